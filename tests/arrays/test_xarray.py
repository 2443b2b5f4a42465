"""DataArrays: their coordinates are the spacing, and results keep their units."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from skimage.measure import euler_number

import ecc_core as ecc

xarray = pytest.importorskip("xarray", reason="xarray is not installed")

Y, X = 0.5, 0.25
IMAGE = np.random.default_rng(0).integers(0, 9, (12, 20)).astype(np.float32)
LABELS = np.repeat([1, 2], 6)[:, None] * np.ones(20, int)


def labelled(image=IMAGE, units="HU", y=None, x=None, **attributes):
    coords = {
        "y": ("y", 7 - Y * np.arange(12) if y is None else y, {"units": "mm"}),  # it decreases
        "x": ("x", 1000 + X * np.arange(20) if x is None else x, {"units": "mm"} | attributes),
    }
    return xarray.DataArray(image, coords, ("y", "x"), attrs={"units": units})


def test_lengths_and_units_of_curves():
    found = ecc.minkowski_curves(labelled(), [3, 5])
    assert_allclose(found.area, [(t >= IMAGE).sum() * Y * X for t in (3, 5)])
    assert_array_equal(found.euler, [euler_number(t >= IMAGE, 2) for t in (3, 5)])
    assert found.measure_units == ("mm^2", "mm", "")
    sizes = ecc.component_curves(labelled(), [3, 5])
    assert_allclose(sizes.volume, found.area)
    regions = ecc.region_minkowski(labelled(), LABELS, [9])
    assert_allclose(regions.area[:, 0], 120 * Y * X)
    assert {r.spacing for r in (found, sizes, regions)} == {(Y, X)}
    assert {r.spacing_units for r in (found, sizes, regions)} == {"mm"}


@pytest.mark.parametrize(
    "compute",
    [
        lambda image: ecc.euler_curve(image, 4),
        lambda image: ecc.euler_curve(image, "exact"),
        lambda image: ecc.betti_curves(image, 4),
        lambda image: ecc.betti_curves(image, 4, min_persistence=2),
        lambda image: ecc.region_curves(image, LABELS, 4),
        lambda image: ecc.region_betti_curves(image, LABELS, 4),
        lambda image: ecc.component_curves(image, 4),
        lambda image: ecc.minkowski_curves(image, 4),
        lambda image: ecc.region_minkowski(image, LABELS, 4),
        lambda image: ecc.persistence_pairs(image),
        lambda image: ecc.persistence_pairs(image).betti_curves(4),
        lambda image: ecc.persistent_regions(image, 2),
    ],
)
def test_units_of_values_are_those_of_thresholds(compute):
    found, plain = compute(labelled()), compute(IMAGE)
    assert (found.units, plain.units) == ("HU", None)


def test_units_of_surfaces_are_those_of_both_images():
    found = ecc.euler_surface(labelled(), labelled(IMAGE[::-1], units="keV"), 4, 5)
    plain = ecc.euler_surface(IMAGE, IMAGE[::-1], 4, 5)
    assert (found.units_first, found.units_second) == ("HU", "keV")
    assert_array_equal(found.values, plain.values)
    assert found.to_xarray().threshold_second.attrs == {"units": "keV"}


def test_heights_of_transforms_and_directions():
    box = (slice(2, 9), slice(3, 8))
    shape = np.zeros(IMAGE.shape, bool)
    shape[box] = True
    transform = ecc.euler_transform(labelled(shape), [[1, 0], [0, 1]], [0.0])
    assert (transform.units, transform.spacing) == ("mm", (Y, X))
    t = np.linspace(-4, 4, 200)  # the box enters with its first row, or with its first column
    down, right = ecc.euler_transform(labelled(shape), [[1, 0], [0, 1]], t, connectivity=1).values
    assert t[down.argmax()] >= (2 - 5.5) * Y > t[down.argmax() - 1]
    assert t[right.argmax()] >= (3 - 9.5) * X > t[right.argmax() - 1]
    regions = ecc.region_transforms(labelled(LABELS), 4, 5)
    assert (regions.units, regions.spacing) == ("mm", (Y, X))
    assert ecc.region_transforms(labelled(LABELS), 4, 5, normalize="radius").units is None
    rows = np.arange(12) - 5.5
    steep = ecc.euler_curve(labelled(), 8, direction=[2, 0], direction_scale=3)
    added = IMAGE + 3.0 * Y * rows[:, None]
    assert_array_equal(steep.values, [euler_number(added <= t, 2) for t in steep.thresholds])
    assert (steep.units, steep.spacing_units) == ("HU", "mm")


def test_batch_axes_need_no_numbers():
    stack = np.stack([IMAGE, IMAGE + 1])
    array = xarray.concat([labelled(), labelled(IMAGE + 1)], "channel")
    array = array.assign_coords(channel=["DAPI", "GFP"])
    found = ecc.minkowski_curves(array, [4], axis=(1, 2))
    assert_allclose(found.area[:, 0], [(one <= 4).sum() * Y * X for one in stack])


def test_spacing_given():
    found = ecc.minkowski_curves(labelled(), [4], spacing=(Y, X))
    assert found == ecc.minkowski_curves(labelled(), [4])
    message = "`spacing`.*left out, got 2 along 'y', where they have 0.5"
    with pytest.raises(ValueError, match=message):
        ecc.minkowski_curves(labelled(), [4], spacing=2)
    half = labelled().drop_vars("y")
    with pytest.raises(ValueError, match=r"`spacing` must be given.*along 'y'"):
        ecc.component_curves(half, [4])
    assert ecc.component_curves(half, [4], spacing=(3, X)).spacing == (3, X)
    bare = xarray.DataArray(IMAGE, dims=("y", "x"))
    assert ecc.component_curves(bare, [4], spacing=2).spacing == (2, 2)
    assert ecc.component_curves(bare, [4]).spacing == (1, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.arange(20.0) ** 2}, "evenly spaced coordinates along 'x'"),
        ({"x": np.zeros(20)}, "evenly spaced coordinates along 'x'"),
        ({"x": list("abcdefghijklmnopqrst")}, "numbers for coordinates along 'x'"),
    ],
)
def test_coordinates_that_are_no_spacing(changes, message):
    image = labelled(**changes)
    assert_array_equal(ecc.euler_curve(image, [4]).values, ecc.euler_curve(IMAGE, [4]).values)
    with pytest.raises(ValueError, match=message):
        ecc.minkowski_curves(image, [4])


def test_units_that_differ():
    image = labelled()
    image.x.attrs["units"] = "um"
    with pytest.raises(ValueError, match="spatial coordinates of one unit, got mm and um"):
        ecc.minkowski_curves(image, [4])


def test_rounded_coordinates():
    image = labelled(x=(1000 + 0.1 * np.arange(20)).astype(np.float32))
    assert_allclose(ecc.component_curves(image, [4]).spacing, (Y, 0.1), rtol=1e-4)


def test_results_as_labelled_arrays():
    found = ecc.minkowski_curves(labelled(), [3, 5]).to_xarray()
    assert found.threshold.attrs == {"units": "HU"}
    assert "units" not in found.attrs  # those of the values would be meant
    assert found.attrs["spacing_units"] == "mm"
    heights = ecc.euler_transform(labelled(IMAGE > 4), 4, 5).to_xarray().height
    assert heights.attrs == {"units": "mm"}
