"""Persistence pairs: GUDHI, a reduced boundary matrix, any cut, and the levels of changes.

More cases: `pytest tests/topology/test_persistence.py --hypothesis-profile=many`.
"""

import itertools

import numpy as np
import pytest
from filtrations import EVERY_DTYPE, OF_16_BITS, OTHERS, any_side, sides
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from oracles.components import betti_numbers
from topology_helpers import assert_diagrams, check_points, diagram, intervals, sorted_pairs

import ecc_core as ecc
from ecc_core._backends.cpu.betti import cells, launch, memory, tunnels
from ecc_core.testing import strategies

SIDES = (1, 2, 3, 5, 8)
WIDTHS = (*SIDES, 63, 66)
CUTS = [(1, 2, 1), (3, 4, 5), (2, 20, 3)]


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
def partly_excluded(draw, dtypes=OTHERS):
    """Draw an image, the points that enter, the image to pass, and the options that say so."""
    ndim = draw(st.integers(1, 3))
    sides = [st.sampled_from(SIDES)] * (ndim - 1)
    shapes = st.tuples(*sides, st.sampled_from(WIDTHS))
    image = draw(strategies.images(ndim, dtypes=dtypes, shapes=shapes, nan=True))
    shown = draw(st.just(np.ones(image.shape, bool)) | strategies.masks(image.shape))
    options = draw(any_side(ndim))
    passed = image
    if draw(st.booleans()):
        passed = np.ma.array(image, mask=~shown)
    elif not shown.all():
        options["mask"] = shown
    if image.dtype.kind == "f":
        shown = shown & ~np.isnan(image)
        options["nan"] = "omit"
    return image, shown, passed, options


def check_every_dimension(image, shown, passed, options):
    for dimension in range(image.ndim):
        check_pairs(ecc.persistence_pairs(passed, dimension, **options), image, shown)


@given(partly_excluded())
def test_pairs_equal_gudhi(drawn):
    check_every_dimension(*drawn)


@pytest.mark.slow
@given(partly_excluded(OF_16_BITS))
def test_pairs_of_16_bits_equal_gudhi(drawn):
    check_every_dimension(*drawn)


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


def python_differences(found):
    """Differences of births and deaths as Python's numbers, which are exact for integers."""
    rows = zip(found.births.tolist(), found.deaths.tolist(), found.essential.tolist(), strict=True)
    return [np.inf if lasts else float(abs(death - birth)) for birth, death, lasts in rows]


@pytest.mark.sweep
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("dtype", EVERY_DTYPE)
def test_persistence_does_not_wrap_around(dtype, superlevel):
    """Pairs of GUDHI and differences of Python's numbers, over the whole range of each dtype."""
    dtype = np.dtype(dtype)
    values = [False, True] if dtype.kind == "b" else [-40000.0, -3.25, 0.0, 60000.0]
    values = ends(dtype) if dtype.kind in "iu" else np.array(values, dtype)
    image = np.random.default_rng(8).choice(values, 60)
    check_pairs(
        ecc.persistence_pairs(image, 0, superlevel=superlevel), image, np.ones(60, dtype=bool)
    )
    pairs = ecc.persistence_pairs(image, superlevel=superlevel)
    regions = ecc.persistent_regions(image, 0, superlevel=superlevel)
    largest = float(max(values)) - float(min(values))
    assert pairs.persistence.dtype == regions.persistence.dtype == np.float64
    assert pairs.persistence.tolist() == python_differences(pairs)
    assert pairs.persistence[~pairs.essential].max() == largest
    assert regions.persistence.tolist() == python_differences(regions)
    assert regions.persistence[~regions.essential].max() == largest
    assert regions.to_pandas()["persistence"].tolist() == regions.persistence.tolist()
    table = pairs.to_pandas()
    births = table[table.event == "birth"]
    deaths = table[table.event == "death"]
    assert births["persistence"].tolist() == pairs.persistence.tolist()
    assert deaths["persistence"].tolist() == pairs.persistence.tolist()


def test_persistence_of_one_infinity_to_the_other():
    pairs = ecc.persistence_pairs(np.array([-np.inf, np.inf, -np.inf, 1.7e308, -1.7e308]), 0)
    assert pairs.persistence.tolist() == [np.inf, np.inf, np.inf]
    assert pairs.essential.tolist() == [True, False, False]


SHAPES = [(5,), (4, 4), (2, 3), (3, 3, 3), (2, 3, 4), (1, 4, 3), (3, 1, 3), (1, 1, 5)]


def ends(dtype):
    """The first and the last two integers of a dtype, where components that meet last forever."""
    info = np.iinfo(dtype)
    return np.array([info.min, info.min + 1, info.max - 1, info.max], dtype)


VALUES = [
    *map(np.arange, (2, 4, 100)),
    *map(ends, (np.int8, np.uint8, np.int64, np.uint64)),
    np.array([False, True]),
    np.array([-np.inf, 0, 1, np.inf], np.float32),
]


@pytest.mark.sweep
@pytest.mark.parametrize("periodic", [False, True, (False, True, False), (True, False, True)])
@pytest.mark.parametrize("values", VALUES, ids=lambda values: f"{values.dtype}-{values.size}")
@pytest.mark.parametrize("shape", SHAPES)
def test_points_of_pairs(shape, values, periodic):
    rng = np.random.default_rng(values.size)
    for options, masked in itertools.product(sides(len(shape)), (False, True)):
        shown = rng.random(shape) < 0.8 if masked else np.ones(shape, bool)
        check_points(rng.choice(values, shape), shown, periodic=periodic, **options)


@pytest.mark.sweep
@pytest.mark.parametrize(("count", "most", "ndim"), [(80, 12, 2), (80, 7, 3)])
@pytest.mark.parametrize("cubes", [False, True])
@pytest.mark.parametrize("levels", [2, 3, 10, 1000])
def test_pairs_of_many_small_images(count, most, ndim, cubes, levels):
    rng = np.random.default_rng(levels)
    connectivity = ndim if cubes else 1
    for _ in range(count):
        image = rng.integers(0, levels, rng.integers(1, most, ndim)).astype(np.float32)
        options = {"connectivity": connectivity, "axis": tuple(range(ndim))}
        pairs = ecc.persistence_pairs(image, **options)
        assert_diagrams(pairs.to_gudhi(), intervals(image, connectivity))
        for dimension in range(ndim):
            alone = ecc.persistence_pairs(image, dimension, **options)
            assert pairs.select(dimension) == alone == alone.select(dimension)
            assert_array_equal(pairs.to_gudhi()[dimension], alone.to_gudhi())
        assert pairs.dimension is None
        assert_array_equal(np.bincount(pairs.dimensions, minlength=ndim), pairs.counts)
        assert_array_equal(pairs.to_pandas()["dimension"][::2], pairs.dimensions)
    with pytest.raises(KeyError, match="no dimension 0"):
        alone.select(0)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.uint64])
@pytest.mark.parametrize("shape", [(90, 150), (300, 64), (30, 20, 25)])
@pytest.mark.parametrize("cubes", [False, True])
def test_larger_images(dtype, shape, cubes):
    image = (np.random.default_rng(2).random(shape) * 1000).astype(dtype)
    image[5:20, 5:12] = 7  # A plateau has many ties.
    connectivity = image.ndim if cubes else 1
    pairs = ecc.persistence_pairs(image, connectivity=connectivity)
    assert_diagrams(pairs.to_gudhi(), intervals(image, connectivity))


@pytest.mark.parametrize("connectivity", [1, 2])
def test_long_paths(connectivity):
    """Valleys that wind through the whole image, and lead to one minimum."""
    image = np.zeros((41, 70))
    image[1::2] = 5000
    image[1::4, -1], image[3::4, 0] = 1, 1
    places = np.argwhere(image < 5000)
    turns = np.where(places[:, 0] % 4 < 2, places[:, 1], 69 - places[:, 1])
    image[tuple(places[np.lexsort((turns, places[:, 0]))].T)] = np.arange(len(places))[::-1]
    image += np.random.default_rng(0).random(image.shape) / 2
    image[::9, ::7] += 3
    pairs = ecc.persistence_pairs(image, connectivity=connectivity)
    assert_diagrams(pairs.to_gudhi(), intervals(image, connectivity))


def test_axes_of_length_one():
    image = np.random.default_rng(4).random((1, 6, 7))
    plane = ecc.persistence_pairs(image, axis=(1, 2))
    assert plane == ecc.persistence_pairs(image[0])
    turned = ecc.persistence_pairs(image[0], axis=(1, 0))
    assert_array_equal(turned.births, plane.births)
    assert_array_equal(turned.birth_points, plane.birth_points[:, ::-1])


@pytest.mark.parametrize(
    ("dtype", "low", "high", "gap"),
    [
        (np.uint8, 0, 255, 255),
        (np.int8, -128, 127, 255),
        (np.int64, -(2**63), 2**63 - 1, 2**64 - 1),
        (np.uint64, 1, 2**64 - 1, 2**64 - 2),
        (np.float32, -1, 2.5, 3.5),
        (np.float64, 0.25, np.inf, np.inf),
        (bool, False, True, 1),
    ],
)
@pytest.mark.parametrize("superlevel", [False, True])
def test_differences_do_not_overflow(dtype, low, high, gap, superlevel):
    image = np.array([low, high, low], dtype)
    image = np.array([high, low, high], dtype) if superlevel else image
    reached = ecc.persistence_pairs(image, min_persistence=gap, superlevel=superlevel)
    assert len(reached.births) == 2
    if not np.isinf(gap):
        more = gap + 1 if isinstance(gap, int) else np.nextafter(gap, np.inf)
        beyond = ecc.persistence_pairs(image, min_persistence=more, superlevel=superlevel)
        assert_array_equal(beyond.essential, [True])
    beyond = ecc.persistence_pairs(image[:1], min_persistence=np.inf)
    assert_array_equal(beyond.essential, [True])


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, bool])
@pytest.mark.parametrize("shape", [(40,), (12, 14), (7, 8, 9)])
@pytest.mark.parametrize("superlevel", [False, True])
def test_curves_of_pairs(dtype, shape, superlevel):
    image = np.random.default_rng(5).integers(0, 30, shape) % 29
    image = (image > 9) if dtype is bool else image.astype(dtype)
    options = {"superlevel": superlevel, "connectivity": 1}
    pairs = ecc.persistence_pairs(image, **options)
    for thresholds in (np.array([-1, 0, 0.5, 3, 7.25, 28, 1e9]), [0, 1], "exact"):
        expected = ecc.betti_curves(image, thresholds, **options)
        assert pairs.betti_curves(thresholds) == expected
        euler = ecc.euler_curve(image, np.asarray(expected.thresholds), **options)
        assert_array_equal(pairs.euler_curve(thresholds).values[:], euler.values)
    least = 4
    at = np.arange(-1, 31)
    options["min_persistence"] = least
    curves = pairs.betti_curves(at, least)
    assert curves == ecc.persistence_pairs(image, **options).betti_curves(at)
    assert curves == ecc.betti_curves(image, at, **options)


def test_curves_of_pairs_at_even_and_large_thresholds():
    pairs = ecc.persistence_pairs(np.array([1.0, np.inf, 0.0, 4.0, 2.0, -np.inf]))
    curves = pairs.betti_curves(5)
    assert_array_equal(curves.thresholds, [0, 1, 2, 3, 4])
    assert_array_equal(curves.values, [[2, 3, 3, 3, 2]])
    large = ecc.persistence_pairs(np.array([2**53, 2**53 + 3, 2**53 + 1]))
    assert_array_equal(large.betti_curves(np.array([2**53, 2**53 + 1])).values, [[1, 2]])
    none = ecc.persistence_pairs(np.zeros((0, 4)))
    assert_array_equal(none.betti_curves([0.0]).values, [[0], [0]])
    with pytest.raises(ValueError, match="`range` must be given"):
        none.betti_curves(3)


@pytest.mark.parametrize(
    ("shape", "options", "said"),
    [
        ((16, 16, 16), {"dimension": 1, "workers": 1}, r"at most 170 points. In addition"),
        ((16, 16, 16), {"workers": 2}, "`workers=1`, which needs .* GiB, or `dimension` 0 or 2"),
        ((16, 16, 16), {"boundary": "periodic"}, "blocks of at most 16 points"),
        ((64, 64), {"dimension": 1}, "at most 170 points. In addition, each class takes 34 bytes"),
        ((64, 64), {"boundary": "periodic"}, "blocks of at most 34 points"),
    ],
)
def test_pairs_that_do_not_fit_in_memory_are_refused_before_the_work_begins(
    monkeypatch, shape, options, said
):
    """The message says how many points fit, and what else does."""
    monkeypatch.setattr(memory, "FEW", 100)
    monkeypatch.setattr(launch, "worker_count", lambda workers, *_: workers or 1)
    available = 25_000 if options.get("workers") == 2 else 1 << 10
    monkeypatch.setattr(memory, "available_memory", lambda: available)
    image = np.zeros(shape, np.uint8)
    with pytest.raises(MemoryError, match=said) as caught:
        ecc.persistence_pairs(image, **options)
    assert "`min_persistence` leaves it out" in str(caught.value)


@pytest.mark.parametrize(("levels", "slope"), [(6, 0), (300, 100)])
@pytest.mark.parametrize("connectivity", [1, 3])
def test_any_number_of_slabs_has_the_pairs_of_one(monkeypatch, levels, slope, connectivity):
    """Columns that leave their slab meet younger ones in others, and take their place.

    Nor does it matter how many cells are located at once.

    On a slope, paths lead from a column to more rows than are sorted as they are listed.
    """
    monkeypatch.setattr(launch, "worker_count", lambda workers, *_: workers)
    monkeypatch.setattr(launch, "BLOCK", (16, 16, 64))
    monkeypatch.setattr(tunnels, "CUBE_POINTS", 8)
    noise = np.random.default_rng(5).integers(0, levels, (40, 41, 42))
    image = (noise + slope * np.arange(42)).astype(np.float32)
    alone = ecc.persistence_pairs(image, connectivity=connectivity, workers=1)
    monkeypatch.setattr(cells, "AT_ONCE", 1000)
    shared = ecc.persistence_pairs(image, connectivity=connectivity, workers=4)
    assert alone == shared
    assert_diagrams(alone.to_gudhi(), intervals(image, connectivity))
