"""Warnings about what is probably a mistake, and errors for what are no arrays."""

import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from processes import run_python
from skimage.data import astronaut

import ecc_core as ecc
from ecc_core.quantities import CURVES

RNG = np.random.default_rng(0)
COLOURS = RNG.random((20, 30, 3)).astype(np.float32)
GREY = COLOURS[..., 0]
LABELS = np.ones(GREY.shape, np.uint8)

NAMES = [one.of_image for one in CURVES.values()]
OF_REGIONS = [one.of_regions for one in CURVES.values() if one.of_regions]
FUNCTIONS = {
    **{name: getattr(ecc, name) for name in NAMES},
    "euler_surface": lambda image, **options: ecc.euler_surface(image, image, 4, 4, **options),
}


def tensor(array):
    return pytest.importorskip("torch", reason="torch is not installed").from_numpy(array)


@pytest.fixture
def found():
    """Messages of the warnings raised until now."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: [str(warning.message) for warning in caught]


@pytest.mark.sweep
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("library", [np.asarray, tensor])
@pytest.mark.parametrize("image", [COLOURS, np.moveaxis(COLOURS, 2, 0), COLOURS[..., :2]])
def test_colours_and_channels_without_axis(function, library, image, found):
    function(library(np.ascontiguousarray(image)))
    (message,) = found()
    assert f"of shape {image.shape} is taken for a volume" in message
    assert "`axis`" in message


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_no_warning_where_axes_are_named_or_plain(function, found):
    function(COLOURS, axis=(0, 1))
    function(COLOURS, axis=(0, 1, 2))
    function(GREY[:3])
    function(RNG.random((5, 6, 7)))
    function(RNG.random((3, 3, 9)))
    assert found() == []


def test_dask_arrays_and_transforms(found):
    da = pytest.importorskip("dask.array")
    shape = COLOURS > 0.5
    ecc.euler_curve(da.from_array(COLOURS), [0.5])
    ecc.euler_transform(shape, 3)
    assert [("volume" in message) for message in found()] == [True, True]
    ecc.euler_transform(shape, 3, spacing=1)
    ecc.euler_transform(shape, np.eye(3))
    ecc.euler_number(shape)
    ecc.betti_numbers(shape)
    assert len(found()) == 2


def test_one_warning_for_a_line_which_is_the_callers():
    code = (
        "import numpy as np, ecc_core as ecc\n"
        "image = np.random.default_rng(0).random((20, 30, 3))\n"
        "ecc.minkowski_curves(image[0])  # numba resets them\n"
        "for _ in range(3):\n"
        "    ecc.minkowski_curves(image)\n"
    )
    (line,) = [line for line in run_python(code).stderr.splitlines() if "Warning" in line]
    assert line.startswith("<string>:5: UserWarning: `image` of shape (20, 30, 3) is taken")


RANGES = {
    **{name: getattr(ecc, name) for name in NAMES},
    **{name: partial(getattr(ecc, name), labels=LABELS) for name in OF_REGIONS},
    "first": lambda image, thresholds: ecc.euler_surface(image, GREY, thresholds, 4),
    "second": lambda image, thresholds: ecc.euler_surface(GREY, image, 4, thresholds),
}


@pytest.mark.sweep
@pytest.mark.parametrize("function", RANGES.values(), ids=RANGES)
@pytest.mark.parametrize(
    ("image", "low", "high"),
    [
        (1e39 * GREY.astype(np.float64), -2, -1),
        (GREY, 0, 255),
        (GREY, 10, 20),
        ((60000 * GREY).astype(np.uint16), 0.0, 1.0),
        (-GREY, 0, 1),
    ],
)
def test_thresholds_that_hardly_meet_the_values(function, image, low, high, found):
    function(image, thresholds=np.linspace(low, high, 256, dtype=np.float32))
    (message,) = found()
    assert f"from {low:g} to {high:g}" in message
    assert f"from {image.min():g} to {image.max():g}" in message


@pytest.mark.parametrize("function", RANGES.values(), ids=RANGES)
def test_no_warning_for_thresholds_that_do(function, found):
    for image, t in (
        (GREY, np.linspace(-5, 5, 256)),
        (GREY, [0.2, 2, 3]),
        (GREY, [2.0]),
        (np.full_like(GREY, 0.5), np.linspace(0, 255, 256)),
        ((255 * GREY).astype(np.uint8), 256),
    ):
        function(image, thresholds=t)
    assert found() == []


def test_ranges_of_batches_and_of_images_with_nan(found):
    image = GREY.copy()
    image[0] = np.nan
    ecc.euler_curve(np.stack([image] * 2), np.linspace(0, 255, 256), nan="omit", axis=(1, 2))
    ecc.euler_curve(np.full_like(image, np.nan), np.linspace(0, 1, 9), nan="omit")
    ecc.euler_curve(np.zeros((0, 4, 4)), [0.0, 1.0, 2.0], axis=(1, 2))
    assert len(found()) == 1


@pytest.mark.parametrize("given", ["name", "path", "NIfTI"])
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("image", ecc.euler_curve),
        ("first", lambda given: ecc.euler_surface(given, GREY)),
        ("labels", lambda given: ecc.region_curves(GREY, given)),
        ("mask", lambda given: ecc.betti_curves(GREY, mask=given)),
        ("image", lambda given: ecc.euler_transform(given, 1)),
        ("labels", lambda given: ecc.region_transforms(given, 1)),
        ("image", lambda given: ecc.persistence_pairs(given, 1)),
    ],
)
def test_files_that_were_not_read(name, function, given):
    nibabel = pytest.importorskip("nibabel")
    files = {
        "name": "image.tif",
        "path": Path("image.tif"),
        "NIfTI": nibabel.Nifti1Image(GREY[None], np.eye(4)),
    }
    with pytest.raises(TypeError, match=rf"`{name}` must.*`ecc_core\.io\.read_image`"):
        function(files[given])


@pytest.mark.parametrize("several", ["list", "tuple", "sizes"])
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_lists_of_images(function, several):
    images = {
        "list": [GREY, GREY],
        "tuple": (tensor(GREY),),
        "sizes": [GREY, GREY[1:]],
    }
    with pytest.raises(TypeError, match=r"must be one array, got a (list|tuple) of [12]; pass"):
        function(images[several])


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_lists_of_rows_are_images(function):
    function(GREY.tolist())
    function(list(GREY))


def test_the_command_warns_in_one_line(tmp_path):
    np.save(tmp_path / "image.npy", astronaut()[..., 0] / 255)
    command = Path(sys.executable).with_name("ecc"), "curve", tmp_path / "image.npy"
    outcome = subprocess.run([*command, "--range", "0,255"], capture_output=True, text=True)
    assert outcome.returncode == 0
    assert outcome.stderr == (
        f"ecc: warning: {command[-1]}: hardly any threshold from 0 to 255 lies among the values of "
        "the image, which are from 0 to 1\n"
    )


def test_points_without_a_label_do_not_count(found):
    image = GREY.copy()
    labels = LABELS.copy()
    image[3, 4], labels[3, 4] = np.nan, 0
    at = [-2.0, -1.5, -1.0]
    assert not ecc.region_curves(image, labels, at).values.any()
    assert not ecc.region_betti_curves(image, labels, at).values.any()
    (first, second) = found()
    assert first == second
    assert "nan" not in first
