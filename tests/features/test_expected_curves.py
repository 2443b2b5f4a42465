"""Expected curves of Gaussian fields: elementary cases, other formulas, and simulated fields."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import multivariate_normal

import ecc_core as ecc
from ecc_core.features import expected_gaussian_curve

T = np.linspace(-3, 3, 13)


def white(lags):
    return (lags == 0).all(axis=-1).astype(float)


def bell(lags):
    """Covariance of white noise smoothed by a Gaussian of width 1; its moment is 1/2."""
    return np.exp(-(lags**2).sum(axis=-1) / 4)


def torus(shape, width=1.5):
    """Covariances of a smooth field on a torus, sheared and longer along the first axis."""
    along = np.meshgrid(*(2 * np.pi * np.fft.fftfreq(n) for n in shape), indexing="ij")
    rates = np.array([1.5, 1.0, 0.8])[: len(shape)] * width
    power = sum((rate * k) ** 2 for rate, k in zip(rates, along, strict=True))
    power = np.exp(-power - width**2 * (along[0] * along[-1] if len(shape) > 1 else 0))
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
    n, p = 20, ndtr(T)
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
    assert found.lower is None
    assert found.upper is None


def test_pairs_have_bivariate_normal_probabilities():
    found = expected_gaussian_curve((11,), T, covariance=lambda lags: 0.7 ** abs(lags[..., 0]))
    pairs = [multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]]).cdf([t, t]) for t in T]
    assert_allclose(found.mean, 11 * ndtr(T) - 10 * np.array(pairs), rtol=0, atol=1e-3)


@pytest.mark.parametrize("boundary", ["closed", "periodic", "half-open"])
@pytest.mark.parametrize(
    ("shape", "connectivity"), [((50,), 1), ((30, 40), 1), ((30, 40), 2), ((9, 12, 10), 3)]
)
def test_simulated_fields(shape, connectivity, boundary):
    """Means of simulated fields are within 4.5 standard errors of the expected curve."""
    covariance = torus(shape)
    count, superlevel = 150, boundary == "periodic"
    at = 2 * T[2:-2] + 0.5
    options = {"connectivity": connectivity, "superlevel": superlevel, "boundary": boundary}
    expected = expected_gaussian_curve(
        shape, at, covariance=4 * covariance, mean=0.5, rng=1, **options
    )
    curves = np.array(
        [
            ecc.euler_curve(2 * field + 0.5, at, **options).values
            for field in fields(covariance, count, seed=2)
        ]
    )
    error = np.hypot(curves.std(axis=0, ddof=1) / np.sqrt(count), expected.error)
    z = (curves.mean(axis=0) - expected.mean) / error
    assert np.abs(z).max() < 4.5
    assert (expected.error < 0.2 * error).all()


def test_the_grid_tends_to_the_continuum():
    gaps = []
    for spacing in (1.0, 0.5, 0.25):
        shape = (round(32 / spacing), round(24 / spacing))
        both = [
            expected_gaussian_curve(shape, T, spacing=spacing, **{name: given}, rng=rng).mean
            for name, given, rng in (("covariance", bell, 0), ("spectral_moments", 0.5, None))
        ]
        gaps.append(np.abs(both[0] - both[1]).max() / np.abs(both[0]).max())
    assert gaps[0] > 1.7 * gaps[1] > 3 * gaps[2]
    assert gaps[2] < 0.05


def test_spectral_moments_of_a_stretched_field():
    """Stretching axes and scaling moments are the same, and moments are per variance."""
    options = {"superlevel": True, "boundary": "closed"}
    isotropic = expected_gaussian_curve((31, 21, 11), T, spectral_moments=0.5, **options)
    moments = np.diag([0.5 / 4, 0.5, 0.5 * 4])
    for given in (moments, np.diag(moments)):
        found = expected_gaussian_curve(
            (31, 21, 11), T, spectral_moments=given, spacing=(2, 1, 0.5), **options
        )
        assert_allclose(found.mean, isotropic.mean, rtol=1e-12)
    found = expected_gaussian_curve(
        (31, 21, 11), 3 * T + 1, spectral_moments=4.5, mean=1, variance=9, **options
    )
    assert_allclose(found.mean, isotropic.mean, rtol=1e-12)


def test_window_of_the_kinematic_formula():
    """A torus has no boundary terms; in 1-D these formulas are Rice's."""
    crossings = 100 * np.sqrt(0.5) / (2 * np.pi) * np.exp(-(T**2) / 2)
    periodic = expected_gaussian_curve((100,), T, spectral_moments=0.5, boundary="periodic")
    assert_allclose(periodic.mean, crossings)
    closed = expected_gaussian_curve((101,), T, spectral_moments=0.5)
    assert_allclose(closed.mean, crossings + ndtr(T))
    half_open = expected_gaussian_curve((101,), T, spectral_moments=0.5, boundary="half-open")
    assert_allclose(half_open.mean, crossings)


@pytest.mark.parametrize("given", ["torus", "function"])
def test_band_covers_measured_curves(given):
    shape, covariance = (24, 30), torus((24, 30), 1.0)
    options = {"covariance": covariance if given == "torus" else bell, "superlevel": True}
    band = expected_gaussian_curve(shape, T[4:9], replicas=200, level=0.9, rng=3, **options)
    images = fields(covariance, 300, seed=4)
    if given == "function":
        wide = bell(np.stack(np.meshgrid(*[np.fft.fftfreq(64) * 64] * 2, indexing="ij"), axis=-1))
        images = (image[:24, :30] for image in fields(wide, 300, seed=4))
    curves = np.array([ecc.euler_curve(i, T[4:9], superlevel=True).values for i in images])
    covered = ((band.lower <= curves) & (curves <= band.upper)).mean(axis=0)
    assert_allclose(covered, 0.9, atol=0.06)
    again = expected_gaussian_curve(shape, T[4:9], replicas=200, level=0.9, rng=3, **options)
    assert_array_equal(again.lower, band.lower)
    (line,) = band.plot(color="k").lines
    assert_array_equal(line.get_ydata(), band.mean)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, ValueError, "one of `covariance` and `spectral_moments` must be given"),
        ({"covariance": bell, "spectral_moments": 1}, ValueError, "one of `covariance` and"),
        ({"covariance": bell, "variance": 2}, ValueError, "`variance` must be None with"),
        ({"covariance": bell, "level": 0.9}, ValueError, "`level` must be None without `replicas`"),
        ({"covariance": bell, "replicas": 1}, ValueError, "`replicas` must be at least 2, got 1"),
        ({"covariance": bell, "replicas": 2.5}, TypeError, "`replicas` must be an int, got 2.5"),
        ({"covariance": bell, "boundary": "open"}, ValueError, "`boundary` must be"),
        ({"covariance": np.ones((5, 6))}, ValueError, r"`covariance` must have at least the shape"),
        ({"covariance": np.eye(8), "spacing": 2}, ValueError, "`spacing` must be None with an"),
        (
            {"covariance": torus((9, 8)), "boundary": "periodic"},
            ValueError,
            r"`covariance` must have the shape \(8, 8\), got \(9, 8\)",
        ),
        ({"covariance": lambda lags: lags}, ValueError, "`covariance` must return shape"),
        (
            {"covariance": lambda lags: 1 - 3 * (lags[..., 0] != 0)},
            ValueError,
            "`covariance` must be positive semi-definite",
        ),
        (
            {"covariance": lambda lags: np.cos(lags[..., 0] / 9), "replicas": 2},
            ValueError,
            "it should decay within the image",
        ),
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


def test_wrong_shapes():
    for shape, error in (((4, 4, 4, 4), ValueError), ((0,), ValueError), ((2.5,), TypeError)):
        with pytest.raises(error, match="`shape` must be 1 to 3"):
            expected_gaussian_curve(shape, T, spectral_moments=1)
