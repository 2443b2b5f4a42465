"""Curves that do not belong together are not compared, and functionals one at a time."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import ecc_core as ecc
from ecc_core.features import (
    align_curves,
    curve_descriptors,
    curve_distance,
    descriptor_table,
    distance_matrix,
    expected_gaussian_curve,
    mean_band,
    permutation_test,
)

IMAGES = np.random.default_rng(0).normal(size=(5, 12, 14)).round(1)
T = np.linspace(-2, 2, 9)


def curve(**options):
    return ecc.euler_curve(IMAGES[0], T, **options)


def minkowski(**options):
    return ecc.minkowski_curves(IMAGES[0], T, **options)


TOGETHER = {
    "curve_distance": curve_distance,
    "distance_matrix": lambda a, b, **options: distance_matrix([a], [b], **options),
    "distance_matrix of one set": lambda a, b, **options: distance_matrix([a, b], **options),
    "permutation_test": lambda a, b, **options: permutation_test([a], [b], **options),
    "mean_band": lambda a, b, **options: mean_band([a, b], n_resamples=9, **options),
}
OF_CURVES = {
    **TOGETHER,
    "align_curves": lambda a, b, **options: align_curves([a, b], **options),
    "descriptor_table": lambda a, b, **options: descriptor_table({"a": a, "b": b}, **options),
}


def directed(**options):
    return curve(direction=(0, 1), **options)


# Two curves that differ in each fact, made by their tests, and what the message says of them.
EULER = {
    "connectivity": (curve, lambda: curve(connectivity=1), "2 in .* and 1 in"),
    "boundary": (curve, lambda: curve(boundary="periodic"), "'closed' in .* and 'periodic' in"),
    "direction": (curve, directed, r"None in .* and \(0.0, 1.0\) in"),
    "direction_scale": (directed, lambda: directed(direction_scale=2), "1.0 in .* and 2.0 in"),
    "ndim": (
        lambda: curve(connectivity=1),
        lambda: ecc.euler_curve(IMAGES, T, connectivity=1),
        "2 in .* and 3 in",
    ),
    "units": (
        lambda: replace(curve(), units="HU"),
        lambda: replace(curve(), units="keV"),
        "'HU' in .* and 'keV'",
    ),
    "spacing_units": (
        lambda: replace(directed(), spacing_units="millimeter"),
        lambda: replace(directed(), spacing_units="micrometer"),
        "'millimeter' in .* and 'micrometer' in",
    ),
}


@pytest.mark.parametrize("function", OF_CURVES)
@pytest.mark.parametrize("fact", EULER)
def test_curves_that_differ_in_a_fact_are_not_compared(fact, function):
    make_first, make_second, message = EULER[fact]
    first = make_first()
    second = make_second()
    with pytest.raises(ValueError, match=f"curves must agree in `{fact}`.* got {message}"):
        OF_CURVES[function](first, second)


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("name", OF_CURVES)
def test_curves_know_their_side(superlevel, name):
    own = curve(superlevel=superlevel)
    other = curve(superlevel=not superlevel)
    wrong = {"superlevel": not superlevel}
    message = f"`superlevel` must be {superlevel} or left"
    with pytest.raises(ValueError, match=message):
        OF_CURVES[name](own, own, **wrong)
    if name != "descriptor_table":  # This function compares nothing.
        with pytest.raises(ValueError, match="all be of sublevel or all of superlevel"):
            OF_CURVES[name](own, other)


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("function", [curve_descriptors, descriptor_table, mean_band])
def test_curves_of_regions_know_their_side(function, superlevel):
    regions = ecc.region_curves(IMAGES[0], np.ones((12, 14), int), T, superlevel=superlevel)
    with pytest.raises(ValueError, match=f"`superlevel` must be {superlevel} or left"):
        function(regions, superlevel=not superlevel)


@pytest.mark.parametrize("function", OF_CURVES)
def test_what_is_not_known_agrees_with_everything(function):
    for other in (ecc.EulerCurve(T, curve().values), tuple(curve()), replace(curve(), units="HU")):
        OF_CURVES[function](curve(), other)


def test_regions_and_batches_are_compared_with_curves_of_their_kind():
    labels = np.ones(IMAGES[0].shape, int)
    regions = ecc.region_curves(IMAGES[0], labels, T)
    batch = ecc.euler_curve(IMAGES, T, axis=(1, 2))
    assert distance_matrix(regions, batch).shape == (1, 5)
    assert distance_matrix(regions, batch)[0, 0] == 0
    other = ecc.euler_curve(IMAGES, T, axis=(1, 2), boundary="half-open")
    with pytest.raises(ValueError, match=r"agree in `boundary`.* 'closed' in `a` and 'half-open'"):
        distance_matrix(regions, other)


@pytest.mark.parametrize("function", TOGETHER)
@pytest.mark.parametrize(
    ("fact", "functional", "others"),
    [
        ("connectivity", "euler", {"connectivity": 1}),
        ("estimator", "perimeter", {"estimator": "crofton-4"}),
    ],
)
def test_functionals_that_differ_in_a_fact_are_not_compared(function, fact, functional, others):
    with pytest.raises(ValueError, match=f"curves must agree in `{fact}`"):
        TOGETHER[function](minkowski(), minkowski(**others), functional=functional)


def test_lengths_need_one_unit_and_numbers_none():
    a = minkowski()
    b = replace(minkowski(), spacing_units="millimeter")
    message = "`spacing_units`.* got None in `a` and 'millimeter' in `b`"
    with pytest.raises(ValueError, match=message):
        curve_distance(a, b, functional="area")
    assert curve_distance(a, b, functional="euler") == 0
    assert curve_distance(a, curve(), functional="euler") == 0
    with pytest.raises(ValueError, match=message):
        curve_distance(a.densities(), b.densities(), functional="euler")
    with pytest.raises(ValueError, match=r"`density`.* got False in `a` and True in `b`"):
        curve_distance(a, a.densities(), functional="area")


@pytest.mark.parametrize("name", ["area", "perimeter", "euler"])
def test_distances_of_one_functional(name):
    a = ecc.minkowski_curves(IMAGES, T, axis=(1, 2), estimator="crofton-4")
    values = getattr(a, name).astype(float)
    widths = np.diff(T)

    def distance(one, other):
        return np.sum(np.abs(one - other)[:-1] * widths)

    expected = np.array([[distance(one, other) for other in values] for one in values])
    found = distance_matrix(a, metric="L1", functional=name)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    singles = [ecc.minkowski_curves(image, T, estimator="crofton-4") for image in IMAGES]
    found = distance_matrix(singles, a, metric="L1", functional=name)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert_allclose(mean_band(a, functional=name, rng=0).mean, values.mean(axis=0))
    test = permutation_test(singles[:2], singles[2:], metric="L1", functional=name)
    difference = values[:2].mean(axis=0) - values[2:].mean(axis=0)
    assert_allclose(test.statistic, (abs(difference)[:-1] * widths).sum(), rtol=1e-9)


def test_betti_numbers_are_compared_one_at_a_time():
    a = ecc.betti_curves(IMAGES, T, axis=(1, 2))
    expected = distance_matrix((T, a.values[:, 1]))
    assert_allclose(distance_matrix(a, functional="b1"), expected)
    single = ecc.betti_curves(IMAGES[3], T)
    other = ecc.betti_curves(IMAGES[4], T)
    assert_allclose(curve_distance(single, other, functional="b1"), expected[3, 4])
    with pytest.raises(ValueError, match="`functional` must be 'b0' or 'b1' for `a`, got None"):
        distance_matrix(single)


@pytest.mark.parametrize("function", TOGETHER)
def test_functionals_are_named(function):
    call = TOGETHER[function]
    message = r"be 'area' or 'perimeter' or 'euler' for `.*`, got None"
    with pytest.raises(ValueError, match=message) as refused:
        call(minkowski(), minkowski())
    assert "distance_matrix" not in str(refused.value)  # It cannot compare functionals, either.
    with pytest.raises(ValueError, match=r"'euler' for `.*`, got 'surface'"):
        call(minkowski(), minkowski(), functional="surface")
    with pytest.raises(ValueError, match=r"`functional` must be 'euler' for `.*`, got 'perimeter'"):
        call(curve(), minkowski(), functional="perimeter")
    with pytest.raises(ValueError, match=r"`functional` must be None for a pair of .*, got 'b0'"):
        call(tuple(curve()), tuple(curve()), functional="b0")


def expected(**options):
    def bell(lags):
        return np.exp(-(lags**2).sum(-1) / 4)

    return expected_gaussian_curve((12, 14), T, covariance=bell, rng=0, **options)


@pytest.mark.parametrize(
    ("measured", "theory", "message"),
    [
        ({"superlevel": True}, {}, "`superlevel`.* False in .*expected.* True in `line 1"),
        ({}, {"superlevel": True}, "`superlevel`.* True in .*expected.* False in `line 1"),
        ({"connectivity": 1}, {}, "`connectivity`.* 2 in .*expected.* 1 in `line 1"),
        ({}, {"boundary": "periodic"}, "`boundary`.* 'periodic' in .*expected.* 'closed' in"),
    ],
)
def test_expected_curves_are_drawn_over_curves_of_their_kind(measured, theory, message):
    own = expected(**theory)
    ax = curve(**theory).plot()
    count = len(ax.lines)
    own.plot(own.plot(ax))
    assert len(ax.lines) == count + 2
    with pytest.raises(ValueError, match=message):
        own.plot(curve(**measured).plot())
    with pytest.raises(ValueError, match=message.split("`")[1]):
        curve_distance(own, curve(**measured))


def test_the_kinematic_formula_is_that_of_every_connectivity():
    formula = expected_gaussian_curve((12, 14), T, spectral_moments=0.5)
    formula.plot(formula.plot(curve(connectivity=1).plot()))
    ax = ecc.plotting.plot_curve(tuple(curve()), superlevel=True)
    with pytest.raises(ValueError, match="`superlevel`"):
        formula.plot(ax)


def test_an_expected_curve_is_a_result():
    own = expected(superlevel=True, connectivity=1)
    t, mean, error, lower, upper = own
    facts = {"connectivity": 1, "superlevel": True, "ndim": 2, "boundary": "closed"}
    assert own.facts == facts | {"units": None}
    assert (t is own.thresholds, mean is own.values, lower, upper) == (True, True, None, None)
    assert error.shape == T.shape
    assert own == own.to_numpy() == pickle.loads(pickle.dumps(own))
    assert "lower=None, upper=None, connectivity=1, superlevel=True" in repr(own)
    assert list(own.to_pandas().columns) == ["threshold", "euler_number"]
