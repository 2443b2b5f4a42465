"""Masks and regions of a half-open image: windows of any shape, whose densities have no bias."""

import operator

import dask.array as da
import numpy as np
import pytest
from filtrations import cases_of_connectivities
from scipy.ndimage import gaussian_filter

import ecc_core as ecc

RNG = np.random.default_rng(0)
DTYPES = ["u1", "i8", "u8", "f2", "f4", "f8", "?", ">f4"]


def draw(shape, dtype, rng=RNG):
    """Few values, so that there are many ties, at the ends of the dtype too."""
    image = rng.integers(0, 5, shape)
    if dtype == "?":
        return image > 2
    if np.dtype(dtype).kind == "f":
        return np.choose(image, [-np.inf, -1.5, 0.0, 2.25, np.inf]).astype(dtype)
    info = np.iinfo(dtype)
    return np.array([info.min, 1, 2, info.max - 1, info.max], dtype)[image]


def sums(image, window, at, **options):
    """The sum of the coefficients of the window's points that have entered."""
    c = ecc.euler_coefficients(image, **options)
    entered = operator.ge if options.get("superlevel", False) else operator.le
    sets = [window & entered(image, t) for t in at]
    return np.array([c[inside].sum(dtype=np.int64) for inside in sets])


@pytest.mark.sweep
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "case", cases_of_connectivities([(11,), (7, 9), (1, 6), (5, 6, 4), (1, 1, 3)])
)
def test_a_mask_is_a_window(dtype, superlevel, case):
    shape, connectivity = case
    image = draw(shape, dtype)
    mask = RNG.random(shape) < 0.6
    options = {"connectivity": connectivity, "superlevel": superlevel}
    at = np.unique(image)
    found = ecc.euler_curve(image, at, mask=mask, boundary="half-open", **options)
    np.testing.assert_array_equal(found.values, sums(image, mask, at, **options))
    assert (found.values.dtype, found.boundary) == (np.int64, "half-open")
    lazy = ecc.euler_curve(
        da.from_array(image, chunks=2),
        at,
        mask=da.from_array(mask, chunks=2),
        boundary="half-open",
        **options,
    )
    np.testing.assert_array_equal(lazy.values.compute(), found.values)


@pytest.mark.parametrize("superlevel", [False, True])
def test_exact_levels(superlevel):
    image = draw((9, 12), "f4")
    mask = RNG.random((9, 12)) < 0.5
    options = {"superlevel": superlevel}
    found = ecc.euler_curve(image, "exact", mask=mask, boundary="half-open", **options)
    at = np.unique(image)
    known = dict(zip(at.tolist(), sums(image, mask, at, **options), strict=True))
    assert [known[t] for t in found.thresholds.tolist()] == found.values.tolist()
    steps = np.diff(found.values[:: -1 if superlevel else 1])
    assert steps.all()


def test_batches_have_windows_of_their_own():
    images = draw((3, 6, 7), "u1")
    masks = RNG.random((3, 6, 7)) < 0.5
    at = np.array([0, 1, 2, 254, 255])
    found = ecc.euler_curve(images, at, mask=masks, axis=(1, 2), boundary="half-open")
    expected = [sums(image, mask, at) for image, mask in zip(images, masks, strict=True)]
    np.testing.assert_array_equal(found.values, expected)


def test_points_that_are_missing_never_enter():
    """NaN that is omitted, inside and outside of the window, and masked elements."""
    image = draw((8, 9), "f8")
    mask = RNG.random((8, 9)) < 0.6
    missing = RNG.random((8, 9)) < 0.2
    image[missing] = np.nan
    at = np.array([-np.inf, -1.5, 0, 3, np.inf])
    known = sums(np.where(missing, 0, image), mask, at, mask=~missing)
    found = ecc.euler_curve(image, at, mask=mask, nan="omit", boundary="half-open")
    np.testing.assert_array_equal(found.values, known)
    hidden = np.ma.array(np.nan_to_num(image, nan=7, posinf=np.inf, neginf=-np.inf), mask=missing)
    found = ecc.euler_curve(hidden, at, mask=mask, boundary="half-open")
    np.testing.assert_array_equal(found.values, known)
    with pytest.raises(ValueError, match='nan="omit"'):
        ecc.euler_curve(image, at, mask=mask, boundary="half-open")


@pytest.mark.parametrize("shape", [(7, 9), (5, 6, 4), (1, 4), (4, 1, 3)])
def test_regions_are_windows(shape):
    image = draw(shape, "u2" if len(shape) > 2 else "u1")
    labels = RNG.integers(0, 4, shape) * 3
    at = np.unique(image)
    found = ecc.region_curves(image, labels, at, boundary="half-open")
    assert found.labels.tolist() == np.unique(labels[labels > 0]).tolist()
    expected = [sums(image, labels == label, at) for label in found.labels]
    np.testing.assert_array_equal(found.values, expected)
    chunks = da.from_array(image, chunks=2), da.from_array(labels, chunks=2)
    lazy = ecc.region_curves(*chunks, at, boundary="half-open").to_numpy()
    assert lazy == found


def test_the_curve_of_minkowski_functionals_is_that_of_the_window():
    image = gaussian_filter(np.random.default_rng(3).normal(size=(30, 40)), 2)
    mask = np.hypot(*(np.indices(image.shape) - 15)) < 10
    at = np.linspace(-0.2, 0.2, 5)
    curves = ecc.minkowski_curves(image, at, mask=mask, boundary="half-open")
    euler = ecc.euler_curve(image, at, mask=mask, boundary="half-open")
    np.testing.assert_array_equal(curves.euler, euler.values)
    inside = image[mask]
    np.testing.assert_array_equal(curves.area, [np.count_nonzero(inside <= t) for t in at])
    assert curves.window == mask.sum()
    dens = curves.densities()
    np.testing.assert_allclose(dens.values, curves.values / mask.sum())
    lazy = ecc.minkowski_curves(
        da.from_array(image, chunks=11),
        at,
        mask=da.from_array(mask, chunks=11),
        boundary="half-open",
    ).to_numpy()
    np.testing.assert_array_equal(lazy.values, curves.values)
    regions = ecc.region_minkowski(image, mask.astype(int), at, boundary="half-open")
    np.testing.assert_array_equal(regions.values[0], curves.values)
    assert regions.window == (mask.sum(),)


@pytest.mark.parametrize("connectivity", [1, 2])
@pytest.mark.parametrize("estimator", ["exact", "crofton-4"])
def test_lengths_and_areas_within_a_mask_of_all_points_are_those_of_the_image(
    connectivity, estimator
):
    """Cells of the last points are incomplete, so that neither window has them."""
    image = draw((7, 9), "u1")
    at = np.unique(image)
    options = {"boundary": "half-open", "connectivity": connectivity, "estimator": estimator}
    expected = ecc.minkowski_curves(image, at, **options)
    everywhere = np.ones(image.shape, bool)
    of_mask = ecc.minkowski_curves(image, at, mask=everywhere, **options)
    np.testing.assert_allclose(of_mask.values[:-1], expected.values[:-1], atol=1e-12)
    of_region = ecc.region_minkowski(image, everywhere.astype(int), at, **options)
    np.testing.assert_allclose(of_region.values[0, :-1], expected.values[:-1], atol=1e-12)
    assert of_mask.window == of_region.window[0] == expected.window == 6 * 8


def test_functionals_of_regions_in_chunks_with_unsigned_ids_beyond_int64():
    image = draw((8, 9), "u1")
    labels = RNG.integers(0, 5, image.shape).astype("u8") * np.uint64(2**62)
    at = np.unique(image)
    known = ecc.region_minkowski(image, labels, at, boundary="half-open")
    assert known.labels.max() == np.uint64(2**63 + 2**62)
    chunks = da.from_array(image, chunks=4), da.from_array(labels, chunks=4)
    lazy = ecc.region_minkowski(*chunks, at, boundary="half-open").to_numpy()
    np.testing.assert_array_equal(lazy.labels, known.labels)
    np.testing.assert_allclose(lazy.values, known.values, atol=1e-12)


@pytest.mark.parametrize(("shape", "sigma", "radius"), [((128, 128), 3, 40), ((48, 48, 48), 2, 17)])
@pytest.mark.parametrize("connectivity", [1, None])
def test_densities_of_a_ball_have_no_bias(shape, sigma, radius, connectivity):
    """Within three standard errors of the periodic fields that they are cut from."""
    steps = zip(np.indices(shape), shape, strict=True)
    centre = np.hypot.reduce([i - n / 2 for i, n in steps])
    voi = centre < radius
    at = np.linspace(-1.5, 1.5, 5)
    errors = []
    for seed in range(60):
        noise = np.random.default_rng(seed).normal(size=shape)
        field = gaussian_filter(noise, sigma, mode="wrap")
        field /= field.std()
        options = {"superlevel": True, "connectivity": connectivity}
        inside = ecc.minkowski_curves(field, at, mask=voi, boundary="half-open", **options)
        whole = ecc.minkowski_curves(field, at, boundary="periodic", **options)
        errors.append(inside.densities().values - whole.densities().values)
    z = np.mean(errors, 0) / (np.std(errors, 0, ddof=1) / np.sqrt(len(errors)))
    assert np.abs(z).max() < 3.5  # There are 15 or 20 values.


def test_what_has_no_windows_says_so():
    image = np.zeros((4, 5))
    mask = np.ones((4, 5), bool)
    with pytest.raises(ValueError, match="`boundary` must be"):
        ecc.betti_curves(image, [0.0], mask=mask, boundary="half-open")
