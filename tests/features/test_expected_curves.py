"""Expected curves of Gaussian fields, by other formulas and by simulated fields."""

import numpy as np
import pytest
from gaussian_fields import BELL, ball, noise, white
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import multivariate_normal

import ecc_core as ecc
from ecc_core.features import expected_gaussian_curve

T = np.linspace(-3, 3, 13)
SHOWN = np.ones((6, 7), bool)


def slow(lags):
    return np.cos(lags[..., 0] / 9)


def torus(shape, width=1.5):
    """Covariances of a smooth field on a torus, sheared and longer along the first axis."""
    frequencies = [2 * np.pi * np.fft.fftfreq(n) for n in shape]
    along = np.meshgrid(*frequencies, indexing="ij")
    rates = np.array([1.5, 1.0, 0.8])[: len(shape)] * width
    power = sum((rate * k) ** 2 for rate, k in zip(rates, along, strict=True))
    if len(shape) > 1:
        power += width**2 * along[0] * along[-1]
    power = np.exp(-power)
    flipped = np.roll(np.flip(power), 1, axis=tuple(range(len(shape))))
    covariance = np.fft.ifftn((power + flipped) / 2).real
    return covariance / covariance.flat[0]


def fields(covariance, count, seed):
    """Periodic fields of a covariance."""
    amplitude = np.sqrt(np.clip(np.fft.fftn(covariance).real, 0, None))
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield np.fft.ifftn(np.fft.fftn(rng.standard_normal(amplitude.shape)) * amplitude).real


@pytest.mark.parametrize("connectivity", [1, 2])
def test_white_noise_is_elementary(connectivity):
    """A closed image of n x n independent points: cells with 1, 2 and 4 points or cubes."""
    n = 20
    p = ndtr(T)
    if connectivity == 1:
        expected = n**2 * p - 2 * n * (n - 1) * p**2 + (n - 1) ** 2 * p**4
    else:
        any_of = {k: 1 - (1 - p) ** k for k in (1, 2, 4)}
        expected = (n - 2) ** 2 * any_of[1] - 2 * (n - 1) * (n - 2) * any_of[2]
        expected += (n - 1) ** 2 * any_of[4]
    found = expected_gaussian_curve((n, n), T, covariance=white, connectivity=connectivity, rng=0)
    assert_array_equal(found.thresholds, T)
    assert (found.error < 0.05).all()
    assert_allclose(found.mean, expected, rtol=0, atol=0.15)
    assert (found.lower, found.upper) == (None, None)


def test_pairs_have_bivariate_normal_probabilities():
    def covariance(lags):
        return 0.7 ** abs(lags[..., 0])

    found = expected_gaussian_curve((11,), T, covariance=covariance)
    pairs = [multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]]).cdf([t, t]) for t in T]
    assert_allclose(found.mean, 11 * ndtr(T) - 10 * np.array(pairs), rtol=0, atol=1e-3)


MIXED = [("closed", "periodic", "half-open"), ("half-open", "closed", "periodic")]


@pytest.mark.parametrize("boundary", ["closed", "periodic", "half-open", *MIXED])
@pytest.mark.parametrize(
    ("shape", "connectivity"), [((50,), 1), ((30, 40), 1), ((30, 40), 2), ((9, 12, 10), 3)]
)
def test_simulated_fields(shape, connectivity, boundary):
    """Means of simulated fields are within 4.5 standard errors of the expected curve."""
    boundary = boundary if isinstance(boundary, str) else boundary[: len(shape)]
    covariance = torus(shape)
    count = 150
    superlevel = "periodic" in boundary
    at = 2 * T[2:-2] + 0.5
    options = {"connectivity": connectivity, "superlevel": superlevel, "boundary": boundary}
    field = {"covariance": 4 * covariance, "mean": 0.5}
    expected = expected_gaussian_curve(shape, at, rng=1, **field, **options)
    images = (2 * field + 0.5 for field in fields(covariance, count, seed=2))
    curves = np.array([ecc.euler_curve(image, at, **options).values for image in images])
    error = np.hypot(curves.std(axis=0, ddof=1) / np.sqrt(count), expected.error)
    z = (curves.mean(axis=0) - expected.mean) / error
    assert np.abs(z).max() < 4.5
    assert (expected.error < 0.2 * error).all()


def test_the_grid_tends_to_the_continuum():

    def gap(spacing):
        """The largest difference of both formulas, as a part of the largest value."""
        shape = (round(32 / spacing), round(24 / spacing))
        of_grid = expected_gaussian_curve(shape, T, spacing=spacing, covariance=BELL, rng=0).mean
        smooth = expected_gaussian_curve(shape, T, spacing=spacing, spectral_moments=0.5).mean
        return np.abs(of_grid - smooth).max() / np.abs(of_grid).max()

    gaps = [gap(spacing) for spacing in (1.0, 0.5, 0.25)]
    assert gaps[0] > 1.7 * gaps[1] > 3 * gaps[2]
    assert gaps[2] < 0.05


MOMENTS = np.array([0.5 / 4, 0.5, 0.5 * 4])
STRETCHED = {
    "a matrix": (T, {"spectral_moments": np.diag(MOMENTS), "spacing": (2, 1, 0.5)}),
    "a diagonal": (T, {"spectral_moments": MOMENTS, "spacing": (2, 1, 0.5)}),
    "a variance": (3 * T + 1, {"spectral_moments": 4.5, "mean": 1, "variance": 9}),
}


@pytest.mark.parametrize("given", STRETCHED)
def test_spectral_moments_of_a_stretched_field(given):
    """Stretching axes and scaling moments are the same, and moments are per variance."""
    shape = (31, 21, 11)
    sets = {"superlevel": True, "boundary": "closed"}
    isotropic = expected_gaussian_curve(shape, T, spectral_moments=0.5, **sets)
    at, options = STRETCHED[given]
    found = expected_gaussian_curve(shape, at, **options, **sets)
    assert_allclose(found.mean, isotropic.mean, rtol=1e-12)


@pytest.mark.parametrize(
    ("count", "boundary", "ends"),
    [(100, "periodic", 0), (101, "closed", ndtr(T)), (101, "half-open", 0)],
    ids=["periodic", "closed", "half-open"],
)
def test_window_of_the_kinematic_formula(count, boundary, ends):
    """A torus has no boundary terms; in 1-D these formulas are Rice's."""
    crossings = 100 * np.sqrt(0.5) / (2 * np.pi) * np.exp(-(T**2) / 2)
    found = expected_gaussian_curve((count,), T, spectral_moments=0.5, boundary=boundary)
    assert_allclose(found.mean, crossings + ends)


def periodic_lags(shape):
    """Distances from the first point of a torus along each axis, (*shape, d)."""
    along = [np.fft.fftfreq(n) * n for n in shape]
    return np.stack(np.meshgrid(*along, indexing="ij"), axis=-1)


@pytest.mark.parametrize("given", ["torus", "function", "cylinder"])
def test_band_covers_measured_curves(given):
    shape = (24, 30)
    covariance = torus((24, 30), 1.0)
    options = {"covariance": covariance if given == "torus" else BELL, "superlevel": True}
    few, many = (200, 300) if given != "cylinder" else (1000, 1000)
    options |= {"replicas": few, "level": 0.9, "rng": 3}
    sets = {"superlevel": True, "boundary": "closed"}
    if given == "cylinder":
        options["boundary"] = sets["boundary"] = ("closed", "periodic")
    band, again = (expected_gaussian_curve(shape, T[4:9], **options) for _ in range(2))
    images = fields(covariance, many, seed=4)
    if given != "torus":
        # Wide enough that opposite ends of axes that are not periodic have nothing in common.
        sizes = (64, 64) if given == "function" else (64, 30)
        wide = fields(BELL(periodic_lags(sizes)), many, seed=4)
        images = (image[:24, :30] for image in wide)
    curves = np.array([ecc.euler_curve(i, T[4:9], **sets).values for i in images])
    covered = ((band.lower <= curves) & (curves <= band.upper)).mean(axis=0)
    assert_allclose(covered, 0.9, atol=0.06)
    assert_array_equal(again.lower, band.lower)
    (line,) = band.plot(color="k").lines
    assert_array_equal(line.get_ydata(), band.mean)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, ValueError, "one of `covariance` and `spectral_moments` must be given"),
        ({"covariance": BELL, "spectral_moments": 1}, ValueError, "one of `covariance` and"),
        ({"covariance": BELL, "variance": 2}, ValueError, "`variance` must be None with"),
        ({"covariance": BELL, "level": 0.9}, ValueError, "`level` must be None without `replicas`"),
        ({"covariance": BELL, "replicas": 1}, ValueError, "`replicas` must be at least 2, got 1"),
        ({"covariance": BELL, "replicas": 2.5}, TypeError, "`replicas` must be an int, got 2.5"),
        ({"covariance": BELL, "boundary": "open"}, ValueError, "`boundary` must be"),
        ({"covariance": np.ones((5, 6))}, ValueError, r"`covariance` must have at least the shape"),
        ({"covariance": np.eye(8), "spacing": 2}, ValueError, "`spacing` must be None with an"),
        ({"covariance": torus((9, 8)), "boundary": "periodic"}, ValueError, r"shape \(8, 8\), got"),
        (
            {"covariance": torus((9, 9)), "boundary": ("closed", "periodic")},
            ValueError,
            r"at least the shape, and along periodic axes the length, of \(8, 8\), got \(9, 9\)",
        ),
        ({"covariance": lambda lags: lags}, ValueError, "`covariance` must return shape"),
        ({"covariance": lambda lags: 1 - 3 * (lags[..., 0] != 0)}, ValueError, "semi-definite"),
        ({"covariance": slow, "replicas": 2}, ValueError, "it should decay within the image"),
        ({"spectral_moments": 1, "connectivity": 1}, ValueError, "`connectivity` must be None"),
        ({"spectral_moments": [[1, 2], [2, 1]]}, ValueError, "positive semi-definite"),
        ({"spectral_moments": [1, 2, 3]}, ValueError, r"`spectral_moments` must be a number, or"),
        ({"spectral_moments": 1, "variance": 0}, ValueError, "`variance` must be positive, got 0"),
        ({"spectral_moments": 1, "mean": np.nan}, ValueError, "`mean` must be a finite number"),
    ],
)
def test_wrong_arguments(options, error, message):
    with pytest.raises(error, match=message):
        expected_gaussian_curve((8, 8), T, **options)


@pytest.mark.parametrize(
    ("shape", "error"), [((4, 4, 4, 4), ValueError), ((0,), ValueError), ((2.5,), TypeError)]
)
def test_wrong_shapes(shape, error):
    with pytest.raises(error, match="`shape` must be 1 to 3"):
        expected_gaussian_curve(shape, T, spectral_moments=1)


@pytest.mark.parametrize("shape", [(30, 34), (11, 12, 13)])
def test_expected_curve_within_a_mask(shape):
    mask = ball(shape)
    at = np.linspace(-2, 2, 9)
    options = {"mask": mask, "connectivity": 1}
    images = noise(shape, 1.0, 300, seed=3)
    curves = np.array([ecc.euler_curve(image, at, **options).values for image in images])
    options |= {"covariance": BELL, "replicas": 50}
    expected = expected_gaussian_curve(shape, at, rng=0, **options)
    error = np.hypot(curves.std(axis=0, ddof=1) / np.sqrt(300), expected.error)
    assert (np.abs(curves.mean(axis=0) - expected.mean) < 4.5 * error).all()
    inside = (expected.lower <= curves) & (curves <= expected.upper)
    assert 0.9 < inside.mean() < 0.99


def test_masked_curves_on_the_grid_need_connectivity_1():
    with pytest.raises(ValueError, match="`connectivity` must be 1 with `covariance` and `mask`"):
        expected_gaussian_curve((6, 7), [0.0], covariance=BELL, mask=SHOWN)
