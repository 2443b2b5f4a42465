"""Curves of images in parts: those of the whole, and errors for parts that do not fit together."""

import numpy as np
import pytest
from filtrations import any_side
from hypothesis import given
from hypothesis import strategies as st

import ecc_core as ecc
from ecc_core.testing import assert_curves_equal, in_chunks

VOLUME = np.random.default_rng(3).integers(0, 6, (11, 7, 9))
LEVELS = np.arange(-1, 7)


def assert_joined(parts, image, thresholds, options):
    """Compare the curve of the parts with that of the whole image."""
    found = ecc.euler_curve_shards(parts, thresholds, **options)
    known = ecc.euler_curve(image, thresholds, **options)
    assert_curves_equal(found, known.values, thresholds=known.thresholds)


@given(data=st.data(), ndim=st.integers(1, 3), dtype=st.sampled_from(["u1", "i8", "f4", ">f8"]))
def test_parts_add_up(data, ndim, dtype):
    image = VOLUME.astype(dtype)[(slice(None), *(0,) * (3 - ndim))]
    cuts = data.draw(st.lists(st.integers(0, len(image)), max_size=6))  # Parts may be empty.
    options = data.draw(any_side(ndim))
    parts = np.split(image, sorted(cuts))
    assert_joined(parts, image, LEVELS, options)
    assert_joined(parts, image, 5, options)


def test_points_that_are_not_finite():
    image = VOLUME.astype(np.float64)
    image[4, 1, 1], image[5, 1, 1] = np.inf, -np.inf
    known = ecc.euler_curve(image, 7)
    found = ecc.euler_curve_shards(np.split(image, [4, 5, 8]), 7)
    assert_curves_equal(found, known.values, thresholds=known.thresholds)
    image[5, 2, 2] = np.nan
    with pytest.raises(ValueError, match=r"must not contain NaN"):
        ecc.euler_curve_shards([image[:5], image[5:]], LEVELS)
    known = ecc.euler_curve(image, LEVELS, nan="omit")
    found = ecc.euler_curve_shards([image[:5], image[5:]], LEVELS, nan="omit")
    np.testing.assert_array_equal(found.values, known.values)
    with pytest.raises(ValueError, match="`range` must be given for an image without finite"):
        ecc.euler_curve_shards([np.full((2, 3), np.inf)] * 2, 4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_torch_tensors_stay_tensors(dtype):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.from_numpy(VOLUME).to(getattr(torch, dtype))
    found = ecc.euler_curve_shards(list(tensor.split(4)), 6)
    known = ecc.euler_curve(tensor, 6)
    assert_curves_equal(found, known.values.numpy(), like=tensor)


@pytest.mark.parametrize("shape", [(0, 3, 4), (5, 0, 4)])
def test_empty_parts(shape):
    found = ecc.euler_curve_shards([np.zeros(shape)] * 2, [0.0, 1.0])
    np.testing.assert_array_equal(found.values, [0, 0])
    assert ecc.euler_curve_shards([VOLUME[:3], VOLUME[3:]], []).values.shape == (0,)


MASKED = "NumPy, CuPy or torch arrays without masks, got MaskedArray"
SHAPES = r"one shape beyond the first axis, got \(11, 7, 9\), "


@pytest.mark.parametrize(
    ("shards", "error", "message"),
    [
        (VOLUME, TypeError, "be a list or tuple of arrays, got ndarray"),
        ([], ValueError, "be at least one array, got none"),
        ([VOLUME, np.ma.array(VOLUME)], TypeError, f"be {MASKED} of numpy"),
        ([VOLUME, VOLUME[:, :5]], ValueError, rf"have {SHAPES}\(11, 5, 9\)"),
        ([VOLUME, VOLUME[0]], ValueError, rf"have {SHAPES}\(7, 9\)"),
        ([VOLUME, VOLUME.astype(np.uint8)], ValueError, "have one dtype, got int64, uint8"),
        ([VOLUME * 1j], TypeError, "have a boolean, integer or real floating dtype"),
        ([VOLUME[None]], ValueError, r"have 1 to 3 axes, got shape \(1, 11, 7, 9\)"),
        ([np.array(1)], ValueError, r"have 1 to 3 axes, got shape \(\)"),
    ],
)
def test_parts_that_do_not_fit_together(shards, error, message):
    with pytest.raises(error, match=f"`shards` must {message}"):
        ecc.euler_curve_shards(shards, LEVELS)


def test_what_else_is_refused():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("dask", reason="dask is not installed")
    message = "`shards` must have one library and kind of memory, got numpy, torch on cpu"
    with pytest.raises(ValueError, match=message):
        ecc.euler_curve_shards([VOLUME, torch.from_numpy(VOLUME)], LEVELS)
    with pytest.raises(TypeError, match="without masks, got Array of dask"):
        ecc.euler_curve_shards([in_chunks(VOLUME[0, 0], [(9,)])], LEVELS)
    with pytest.raises(ValueError, match="`thresholds` must be an int or an array, got 'exact'"):
        ecc.euler_curve_shards([VOLUME], "exact")
