"""Persistence pairs: GUDHI, points, any cut, and the levels at which Betti numbers change.

More cases: `pytest tests/topology/test_persistence.py --hypothesis-profile=many`.
"""

import numpy as np
import pytest
from filtrations import any_side
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from oracles.components import betti_numbers
from topology_helpers import diagram, sorted_pairs

import ecc_core as ecc
from ecc_core._backends.cpu.betti import launch
from ecc_core.testing import strategies

EVERY_DTYPE = (*strategies.NATIVE_DTYPES, *strategies.SWAPPED_DTYPES)
SIDES = (1, 2, 3, 5, 8)
WIDTHS = (*SIDES, 63, 66)
CUTS = [(1, 2, 1), (3, 4, 5), (2, 20, 3)]
Options = dict[str, object]


def last_value(dtype: np.dtype, superlevel: bool) -> object:
    if dtype.kind == "f":
        return -np.inf if superlevel else np.inf
    if dtype.kind == "b":
        return not superlevel
    return np.iinfo(dtype).min if superlevel else np.iinfo(dtype).max


def check_pairs(pairs, image, shown):
    """Compare with GUDHI, and births and deaths with the values at their points."""
    facts = pairs.connectivity, pairs.superlevel, pairs.dimension
    ended, lasting = diagram(image, shown, *facts)
    dies = ~pairs.essential
    assert pairs.births.dtype == pairs.deaths.dtype == image.dtype.newbyteorder("=")
    assert_array_equal(sorted_pairs(pairs.births[dies], pairs.deaths[dies]), ended)
    assert_array_equal(np.sort(pairs.births[~dies]), lasting)
    assert np.all(pairs.deaths[~dies] == last_value(image.dtype, pairs.superlevel))
    assert np.all(pairs.death_points[~dies] == -1)
    assert pairs.birth_points.dtype == pairs.death_points.dtype == np.int64
    for values, points in (
        (pairs.births, pairs.birth_points),
        (pairs.deaths[dies], pairs.death_points[dies]),
    ):
        place = tuple(points.T)
        assert_array_equal(image[place], values)
        assert shown[place].all()


@st.composite
def partly_excluded(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, Options]:
    """Draw an image, the points that enter, the image to pass, and the options that say so."""
    ndim = draw(st.integers(1, 3))
    sides = [st.sampled_from(SIDES)] * (ndim - 1)
    shapes = st.tuples(*sides, st.sampled_from(WIDTHS))
    image = draw(strategies.images(ndim, dtypes=EVERY_DTYPE, shapes=shapes, nan=True))
    shown = draw(st.just(np.ones(image.shape, bool)) | strategies.masks(image.shape))
    options: Options = draw(any_side(ndim))
    passed = image
    if draw(st.booleans()):
        passed = np.ma.array(image, mask=~shown)
    elif not shown.all():
        options["mask"] = shown
    if image.dtype.kind == "f":
        shown = shown & ~np.isnan(image)
        options["nan"] = "omit"
    return image, shown, passed, options


@given(partly_excluded())
def test_pairs_equal_gudhi(drawn):
    image, shown, passed, options = drawn
    for dimension in range(image.ndim):
        check_pairs(ecc.persistence_pairs(passed, dimension, **options), image, shown)


@given(partly_excluded())
def test_exact_levels_are_those_at_which_labelled_sets_change(drawn):
    image, shown, passed, options = drawn
    levels = np.unique(image[shown])
    order = slice(None, None, -1 if options["superlevel"] else 1)
    sets = [image >= t if options["superlevel"] else image <= t for t in levels[order]]
    counts = [betti_numbers(s & shown, options["connectivity"]) for s in sets]
    numbers = np.reshape(counts, (levels.size, image.ndim))
    changed = np.diff(numbers, prepend=0, axis=0).any(axis=1)
    exact = ecc.betti_curves(passed, "exact", **options)
    assert exact.thresholds.dtype == image.dtype.newbyteorder("=")
    assert_array_equal(exact.thresholds, levels[order][changed][order])
    assert_array_equal(exact.values, numbers[changed][order].T)


@pytest.mark.parametrize("seed", [11, 13, 24])
def test_levels_at_which_only_betti_numbers_change(seed):
    """The Euler characteristic of these volumes does not change at 0, where all is filled."""
    image = np.random.default_rng(seed).integers(0, 2, (3, 5, 4)).astype(np.uint64)
    exact = ecc.betti_curves(image, "exact", superlevel=True, connectivity=1)
    assert_array_equal(exact.thresholds, [0, 1])
    assert_array_equal(exact.values.T, [betti_numbers(image >= t, 1) for t in (0, 1)])


@given(partly_excluded(), st.sampled_from(CUTS))
def test_any_cut_gives_the_same(drawn, cut):
    image, _, passed, options = drawn
    options["workers"] = 2

    def compute():
        for dimension in {0, image.ndim - 1}:
            yield ecc.persistence_pairs(passed, dimension, **options)
        for thresholds in ([0, 1.5, 200], "exact"):
            yield ecc.betti_curves(passed, thresholds, **options)

    whole = list(compute())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "BLOCK", cut)
        patch.setattr(launch, "BLOCK_2D", (1, *cut[1:]))
        assert list(compute()) == whole


def test_large_integers_are_exact():
    image = np.array([[2**53 + 1, 2**53 + 3, 2**53]])
    births, deaths, *_ = ecc.persistence_pairs(image, 0)
    assert_array_equal(births, [2**53, 2**53 + 1])
    assert_array_equal(deaths, [np.iinfo(np.int64).max, 2**53 + 3])


@pytest.mark.parametrize("superlevel", [False, True])
def test_booleans_stored_as_other_bytes(superlevel):
    stored = np.array([2, 0, 1, 0, 3, 1], np.uint8)
    pairs = ecc.persistence_pairs(stored.view(bool), 0, superlevel=superlevel)
    check_pairs(pairs, stored > 0, np.ones(6, bool))


def test_pairs_can_be_shown():
    pairs = ecc.persistence_pairs(np.array([0, 3, 1, 2, 0]), 0)
    table = pairs.to_pandas()
    assert table.value.tolist()[2:] == [0, 3, 1, 2]
    assert table.event.tolist() == ["birth", "death"] * 3
    assert pairs.to_xarray().dims == ("class", "event")
    _, ended, lasting = pairs.plot().get_lines()
    assert_array_equal(np.transpose(ended.get_data()), [[0, 3], [1, 2]])
    assert_array_equal(lasting.get_data(), [[0], [3]])
    assert "<img" in pairs._repr_html_()
