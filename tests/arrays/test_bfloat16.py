"""Arrays of bfloat16, a dtype that ml_dtypes adds to NumPy, against their values in float32."""

import numpy as np
import pytest

import ecc_core as ecc

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")

IMAGE = np.random.default_rng(0).normal(size=(11, 9)).astype(ml_dtypes.bfloat16)
# The 16 bits of bfloat16 are the first 16 bits of float32.
VALUES = (IMAGE.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
LABELS = np.arange(99).reshape(11, 9) // 50


@pytest.mark.parametrize(
    "compute",
    [
        lambda image: ecc.euler_curve(image, 9),
        lambda image: ecc.euler_curve(image, "exact"),
        lambda image: ecc.euler_curve(image, image[0].clip(0, 0)[:1]),
        lambda image: ecc.euler_curve(image, [0, 1], direction=image[0, :2], direction_scale=0.1),
        lambda image: ecc.betti_curves(image, [-0.5, 0.5]),
        lambda image: ecc.minkowski_curves(image, 9),
        lambda image: ecc.component_curves(image, 9),
        lambda image: ecc.region_curves(image, LABELS, 9),
        lambda image: ecc.persistence_pairs(image, superlevel=True),
        lambda image: ecc.persistent_regions(image, 0.5),
        lambda image: ecc.euler_surface(image, -image, [0, 1], [0, 1]),
    ],
    ids=[
        *("curve", "exact", "thresholds", "direction", "betti", "minkowski", "components"),
        *("regions", "pairs", "persistent", "surface"),
    ],
)
def test_results_are_those_of_float32(compute):
    """Thresholds, births and deaths have the dtype of those of float32, too."""
    found = compute(IMAGE)
    expected = compute(VALUES)
    found = [np.asarray(own, wanted.dtype) for own, wanted in zip(found, expected, strict=True)]
    np.testing.assert_equal(found, list(expected))
    last = found[-1]
    assert last.dtype == expected[-1].dtype


def test_numbers_and_coefficients():
    assert ecc.euler_number(IMAGE) == ecc.euler_number(VALUES)
    np.testing.assert_array_equal(ecc.euler_coefficients(IMAGE), ecc.euler_coefficients(VALUES))


def in_dask(array):
    return pytest.importorskip("dask.array", reason="dask is not installed").from_array(array, 4)


def in_jax(array):
    return pytest.importorskip("jax", reason="jax is not installed").numpy.asarray(array)


def in_xarray(array):
    return pytest.importorskip("xarray", reason="xarray is not installed").DataArray(array)


@pytest.mark.parametrize("wrap", [in_dask, in_jax, in_xarray, np.ma.asarray])
def test_arrays_of_other_libraries(wrap):
    found = ecc.euler_curve(wrap(IMAGE), [-1, 0, 1])
    expected = ecc.euler_curve(VALUES, [-1, 0, 1])
    np.testing.assert_array_equal(np.asarray(found.values), expected.values)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "int4"])
def test_other_types_of_ml_dtypes_are_named(dtype):
    with pytest.raises(TypeError, match=f"`image` must have a boolean, .* got {dtype}"):
        ecc.euler_curve(IMAGE.astype(getattr(ml_dtypes, dtype)), [0])
