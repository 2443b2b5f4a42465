"""Layers of every type and dtype: what is right, or one sentence that says what to choose."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from napari.layers import Image, Labels, Points, Shapes, Surface, Tracks, Vectors
from numpy.testing import assert_array_equal
from skimage.measure import euler_number

from napari_ecc import actions
from napari_ecc._controller.fields import Field, find_objects

VALUES = (np.arange(35).reshape(5, 7) * 7 % 11).astype(np.uint8)
PARTLY = np.where(VALUES < 3, np.nan, VALUES).astype(np.float32)
BOX = np.array([[0.0, 0.0], [0.0, 4.0], [4.0, 4.0], [4.0, 0.0]])
TRIANGLE = np.eye(3), np.array([[0, 1, 2]])
ENDS = np.iinfo(np.int64).max, np.iinfo(np.int64).min
SPLIT = "is an RGB image, whose points have no order. Split its channels"
NOTHING = "has no finite values here"
ALIKE = "float64, which cannot tell integers from .* apart: subtract the least value"


def image(values, **options):
    return Image(values, name="image", **options)


def changed(values):
    """An image whose data were replaced by some that napari refuses, too late."""
    layer = image(VALUES)
    with pytest.raises((ValueError, TypeError, RuntimeWarning)):
        layer.data = values
    return layer


RIGHT = {
    "bool": lambda: image(VALUES > 4),
    "uint8": lambda: image(VALUES),
    "int64": lambda: image(VALUES.astype(np.int64)),
    "all of int64": lambda: image(np.where(VALUES > 4, *ENDS)),
    "all of uint64": lambda: image((VALUES > 4) * np.uint64(2**64 - 1)),
    "above 2^60": lambda: image(VALUES.astype(np.uint64) << np.uint64(60)),
    "big-endian": lambda: image(VALUES.astype(">u2")),
    "float16": lambda: image(VALUES.astype(np.float16)),
    "float32": lambda: image(VALUES.astype(np.float32)),
    "float64": lambda: image(VALUES.astype(np.float64)),
    "some NaN": lambda: image(PARTLY),
    "constant": lambda: image(np.full((5, 7), 3, np.uint8)),
    "one point": lambda: image(np.full((1, 1), 3, np.uint8), contrast_limits=(0, 9)),
    "xarray": lambda: image(xr.DataArray(VALUES)),
    "xarray of dask": lambda: image(xr.DataArray(da.from_array(VALUES, chunks=3))),
    "dask": lambda: image(da.from_array(VALUES, chunks=3)),
    "multiscale": lambda: image([VALUES, VALUES[::2, ::2]], multiscale=True),
    "labels": lambda: Labels(VALUES.astype(int)),
    "no labels": lambda: Labels(np.zeros((5, 7), int)),
}
REFUSED = {
    "RGB": (lambda: image(np.zeros((5, 7, 3), np.uint8), rgb=True), SPLIT),
    "RGBA": (lambda: image(np.zeros((5, 7, 4), np.uint8), rgb=True), SPLIT),
    "complex": (lambda: changed(VALUES.astype(np.complex64)), "must be of real numbers"),
    "empty": (lambda: changed(VALUES[:0]), "has no points. Choose another layer"),
    "NaN only": (lambda: image(np.full((5, 7), np.nan), contrast_limits=(0, 1)), NOTHING),
    "infinite": (lambda: image(np.full((5, 7), np.inf), contrast_limits=(0, 1)), NOTHING),
    "narrow": (lambda: image(VALUES * np.uint64(25) + np.uint64(2**60)), ALIKE),
    "large constant": (lambda: image(np.full((5, 7), 2**60 + 1), contrast_limits=(0, 9)), ALIKE),
    "points": (lambda: Points(BOX), "must be an Image or Labels layer, got Points, which Direct"),
    "surface": (lambda: Surface(TRIANGLE), "must be an Image or Labels layer, got Surface, which"),
    "shapes": (lambda: Shapes([BOX]), "must be an Image or Labels layer, got Shapes"),
    "vectors": (lambda: Vectors(np.zeros((2, 2, 2))), "Labels layer, got Vectors"),
    "tracks": (lambda: Tracks([[1, 0, 2, 2], [1, 1, 3, 3]]), "Labels layer, got Tracks"),
    "array": (lambda: VALUES, "Labels layer, got ndarray"),
    "name": (lambda: "coins", "Labels layer, got str"),
}
CALLS = {
    "curve": actions.layer_curve,
    "Betti curves": actions.layer_betti_curves,
    "transform": lambda layer: actions.layer_transform(layer, 4, 8, threshold=5),
    "regions": actions.region_table,
    "frames": actions.frame_curves,
    "tracks": lambda layer: actions.follow_components(layer, 5),
    "matching": lambda layer: actions.match_labels(layer, Labels(VALUES.astype(int))),
    "surface": lambda layer: actions.layer_surface(image(VALUES), layer),
}
OF_VALUES = ("NaN only", "infinite", "narrow", "large constant")
"""What only functions that look for thresholds refuse."""
PAIRS = [
    (kind, call)
    for kind in REFUSED
    for call in CALLS
    if kind not in OF_VALUES or call in ("curve", "Betti curves")
]


def inside(layer, threshold):
    """The set at a threshold, of Python's numbers, which are compared exactly."""
    data = np.asarray(layer.data[0] if getattr(layer, "multiscale", False) else layer.data)
    values = (data != 0) if isinstance(layer, Labels) else data
    return np.array([[value >= threshold for value in row] for row in values.tolist()])


@pytest.mark.parametrize("make", RIGHT.values(), ids=RIGHT)
def test_layers_that_have_a_curve(make):
    """It is that of scikit-image at each threshold; of labels, that of all of them together."""
    layer = make()
    found = actions.layer_curve(layer, thresholds=16)
    expected = [euler_number(inside(layer, t), 2) for t in found.thresholds.tolist()]
    assert_array_equal(found.values, expected)


@pytest.mark.parametrize("make", RIGHT.values(), ids=RIGHT)
def test_sets_that_are_swept(make):
    """At the greatest height, the whole set has been swept."""
    layer = make()
    threshold = float(actions.layer_curve(layer, thresholds=16).thresholds[-2:][0])
    found = actions.layer_transform(layer, 3, 8, threshold=threshold)
    assert set(found.values[:, -1].tolist()) == {euler_number(inside(layer, threshold), 2)}


@pytest.mark.parametrize("kind", ["all of int64", "all of uint64", "above 2^60"])
def test_labels_of_integers_of_64_bits(kind):
    """There are as many labels as components, though births and deaths are not found."""
    layer = RIGHT[kind]()
    threshold = float(layer.data.max())
    options = {"superlevel": True, "connectivity": None}
    *_, last = find_objects(Field(layer.data, None), threshold, 0, **options)
    assert_array_equal(last.value.labels > 0, inside(layer, threshold))


@pytest.mark.parametrize(("kind", "call"), PAIRS)
def test_layers_that_have_none(kind, call):
    """One sentence or two, on one line, which say what it must be."""
    make, message = REFUSED[kind]
    with pytest.raises(ValueError, match=message) as raised:
        CALLS[call](make())
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: actions.frame_curves(image(VALUES)), "“image” must have an axis of frames"),
        (lambda: actions.follow_components(image(VALUES), 5), "“image” must have an axis of frame"),
        (
            lambda: actions.layer_curve(image(VALUES), region=Points(BOX)),
            "`region` must be a Shapes or Labels layer, got Points",
        ),
        (
            lambda: actions.region_table(Labels(VALUES.astype(int)), image(PARTLY)),
            "“image” has NaN within objects of “Labels”: erase these points",
        ),
        (
            lambda: actions.object_curves(Labels(VALUES.astype(int)), image(PARTLY)),
            "“image” has NaN within objects of “Labels”: erase these points",
        ),
        (
            lambda: actions.region_table(
                Labels(VALUES.astype(int)), image(np.full((5, 7), np.inf))
            ),
            "“image” has no finite values within objects of “Labels”, so there are no thresholds.",
        ),
        (
            lambda: actions.shape_transform(image(VALUES)),
            "`layer` must be a Surface or Points layer, got Image",
        ),
    ],
    ids=["no frames", "nothing to follow", "region", "NaN, table", "NaN, curves", "inf", "shape"],
)
def test_layers_in_another_place(call, message):
    with pytest.raises(ValueError, match=message):
        call()
