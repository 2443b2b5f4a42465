"""Regions of components that last: a flooding by the definition, GUDHI, and h-maxima."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from filtrations import EVERY_DTYPE, omitting
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from oracles.components import steps_to_neighbours
from scipy import ndimage
from topology_helpers import boundary_of, diagram

import ecc_core as ecc
from ecc_core.testing import strategies


def as_number(value):
    """A Python number, whose differences are exact for integers."""
    return int(value) if np.asarray(value).dtype.kind in "biu" else float(value)


def neighbours_of(shape, connectivity, wraps):
    """A function that gives the neighbours of a point, also beyond sides that do not touch."""
    steps = steps_to_neighbours(len(shape), connectivity)

    def beside(point):
        near = np.add(point, steps)
        wrapped = np.where(wraps, np.mod(near, shape), near)
        return list(map(tuple, wrapped.tolist()))

    return beside


class Flooding:
    """Components of the points that have entered, and the basins that they consist of.

    Both are named by their first point. A component that does not last is poured into the basin of
    the point at which it dies.
    """

    def __init__(self, value, least):
        self.value = value
        self.least = least
        self.basins = {}
        """The points of each basin, oldest first."""
        self.owner = {}
        """The basin of each point."""
        self.component = {}
        """The component of each basin, also of merged ones."""
        self.deaths = {}
        self.merged = {}

    def enter(self, point, neighbours):
        """Add a point to the oldest basin beside it, or begin one, and join components."""
        near = {self.owner[other] for other in neighbours if other in self.owner}
        oldest_first = list(self.basins)
        home = min(near, key=oldest_first.index, default=point)
        if home == point:
            self.basins[point] = set()
            self.component[point] = point
        self.basins[home].add(point)
        self.owner[point] = home
        meeting = {self.component[basin] for basin in (*near, home)}
        oldest = min(meeting, key=list(self.component).index)
        for young in meeting - {oldest}:
            self._join(young, oldest, point)
            if not self._lasted(young, point):
                self._pour(young, home)

    def _join(self, young, oldest, point):
        self.deaths[young] = point
        self.merged[young] = oldest
        for basin, component in self.component.items():
            if component == young:
                self.component[basin] = oldest

    def _lasted(self, young, point):
        birth = self.value[young]
        death = self.value[point]
        return birth != death and death - birth >= self.least  # Both may be infinite.

    def _pour(self, young, home):
        points = self.basins.pop(young)
        self.basins[home] |= points
        self.owner.update(dict.fromkeys(points, home))


def entry_values(image, superlevel, shown):
    """The number of each point that is used, the smaller the earlier it enters."""
    sign = -1 if superlevel else 1
    points = zip(*(axis.tolist() for axis in np.nonzero(shown)), strict=True)
    return {point: sign * as_number(image[point]) for point in points}


def flood(image, least, connectivity, superlevel, wraps, shown):
    """Labels, births, deaths and what the regions merge into, with sets of points.

    `wraps` tells along which axes opposite sides touch.
    """
    value = entry_values(image, superlevel, shown)
    beside = neighbours_of(image.shape, connectivity, wraps)
    flooding = Flooding(value, least)
    for point in sorted(value, key=lambda p: (value[p], p)):
        flooding.enter(point, beside(point))
    labels = np.zeros(image.shape, np.int32)
    for number, points in enumerate(flooding.basins.values(), 1):
        mark(labels, points, number)
    born = list(flooding.basins)
    died = [flooding.deaths.get(birth) for birth in born]
    label_of = {birth: number for number, birth in enumerate(born, 1)}
    into = [label_of[flooding.merged[b]] if b in flooding.merged else 0 for b in born]
    return labels, born, died, into


def mark(labels, points, number):
    """Give points a label."""
    labels[tuple(np.transpose(list(points)))] = number


def connected(start, points, beside):
    """The points of a set that steps within it lead to."""
    found = set()
    new = {start}
    while new:
        found |= new
        new = {q for p in new for q in beside(p)} & points - found
    return found


def cut(image, labels, born, died, superlevel, shown, beside, height):
    """Labels of the points that are connected to the extreme point of their region at its level."""
    value = entry_values(image, superlevel, shown)
    points = set(value)
    finite = [v for v in value.values() if abs(v) < np.inf]

    def level_of(birth, death):
        if image.dtype.kind != "f":
            return birth + Fraction(height) * (death - birth)
        if not finite:
            return birth
        birth, death = np.clip([birth, death], min(finite), max(finite)).tolist()
        return min(max(birth, (1 - height) * birth + height * death), death)

    result = np.zeros_like(labels)
    for number, (birth, death) in enumerate(zip(born, died, strict=True), 1):
        if death is None:
            end = max(value[p] for p in connected(birth, points, beside))
        else:
            end = value[death]
        level = max(value[birth], level_of(value[birth], end))
        inside = {p for p in points if labels[p] == number and value[p] <= level}
        mark(result, connected(birth, inside, beside), number)
    return result


def gaps_of(image):
    """Differences of some of the smallest and the largest values, at which regions may die."""
    values = sorted({as_number(v) for v in image.ravel() if v == v})
    extremes = {*values[:4], *values[-4:]}
    gaps = {b - a for a, b in itertools.combinations(sorted(extremes), 2)}
    return sorted(gap for gap in gaps if gap < 2**63)


CLASSES = ("births", "deaths", "birth_points", "merged_into")


def assert_classes_equal(found, expected, rows=slice(None)):
    """Compare the classes of regions, without their labels, with some of others."""
    own = {name: getattr(found, name) for name in CLASSES}
    np.testing.assert_equal(own, {name: getattr(expected, name)[rows] for name in CLASSES})


@given(st.data())
def test_equal_the_flooding_by_definition(data):
    """Regions may be cut at a part of their height."""
    ndim = data.draw(st.integers(1, 3))
    shapes = st.tuples(*[st.integers(1, 7)] * ndim)
    image = data.draw(strategies.images(ndim, dtypes=EVERY_DTYPE, shapes=shapes, nan=True))
    native = image.astype(image.dtype.newbyteorder("="))
    least = data.draw(st.sampled_from([0, 0.5, *gaps_of(native)]))
    options = data.draw(omitting(image))
    wraps = data.draw(st.tuples(*[st.booleans()] * ndim))
    boundary = boundary_of(wraps, ndim)
    shown = ~np.isnan(image) & (True if options["mask"] is None else options["mask"])
    found = ecc.persistent_regions(image, least, boundary=boundary, **options)
    assert found.boundary == (boundary[0] if len({*boundary}) == 1 else boundary)
    facts = found.connectivity, found.superlevel
    labels, born, died, into = flood(image, least, *facts, wraps, shown)
    assert found.labels.dtype == found.merged_into.dtype == np.int32
    assert_array_equal(found.labels, labels)
    assert [tuple(p) for p in found.birth_points.tolist()] == born
    assert found.births.dtype == found.deaths.dtype == image.dtype.newbyteorder("=")
    assert_array_equal(found.births, [image[p] for p in born])
    dies = np.array([p is not None for p in died], bool)
    assert_array_equal(found.deaths[dies], [image[p] for p in died if p is not None])
    assert_array_equal(found.merged_into, into)
    ended, lasting = diagram(image, shown, *facts, 0, wraps)
    wide = [tuple(map(as_number, pair)) for pair in ended]
    lengths = [abs(d - b) for b, d in wide if b != d]
    counted = sum(length >= least for length in lengths)
    assert len(born) == counted + len(lasting)
    height = data.draw(st.sampled_from([0, 0.25, 0.5, 1]))
    some = ecc.persistent_regions(image, least, boundary=boundary, rel_height=height, **options)
    beside = neighbours_of(image.shape, facts[0], wraps)
    assert_array_equal(some.labels, cut(image, labels, born, died, facts[1], shown, beside, height))
    assert_classes_equal(some, found)


@pytest.mark.parametrize("connectivity", [1, 2])
@pytest.mark.parametrize("wraps", [(False, False), (True, True)])
@pytest.mark.parametrize("slope", [0, 1, -1])
def test_labels_spread_along_rows_of_several_words(wraps, slope, connectivity):
    """Labels spread in words of 64 points: within one, and across both of its ends."""
    noise = np.random.default_rng(3).integers(0, 40, (9, 150))
    image = (noise + abs(slope) * np.arange(150)[:: -slope or 1]).astype(np.int32)
    boundary = boundary_of(wraps, 2)
    shown = np.ones(image.shape, bool)
    found = ecc.persistent_regions(image, 20, connectivity=connectivity, boundary=boundary)
    labels, born, _, into = flood(image, 20, connectivity, False, wraps, shown)
    assert_array_equal(found.labels, labels)
    assert [tuple(p) for p in found.birth_points.tolist()] == born
    assert_array_equal(found.merged_into, into)


@pytest.mark.parametrize("threshold", [None, 0.05])
@pytest.mark.parametrize("cubes", [False, True])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("ndim", [2, 3])
def test_every_label_is_connected(ndim, superlevel, cubes, threshold):
    rng = np.random.default_rng(ndim)
    noise = ndimage.gaussian_filter(rng.normal(size=(30,) * ndim), 1)
    connectivity = ndim if cubes else 1
    found = ecc.persistent_regions(
        noise, 0.2, threshold=threshold, connectivity=connectivity, superlevel=superlevel
    )
    structure = ndimage.generate_binary_structure(ndim, connectivity)
    sets = [found.labels == number for number in range(1, len(found.birth_points) + 1)]
    assert {ndimage.label(inside, structure)[1] for inside in sets} == {1}
    at_birth = found.labels[tuple(found.birth_points.T)]
    assert at_birth.tolist() == list(range(1, len(found.birth_points) + 1))
    kept = found.labels > 0
    if threshold is None:
        assert kept.all()
    else:
        assert not kept[(noise < threshold) if superlevel else (noise > threshold)].any()


@pytest.mark.parametrize(
    ("superlevel", "threshold"),
    [
        *[(False, threshold) for threshold in range(20, 120, 20)],
        *[(True, threshold) for threshold in range(140, 240, 20)],
    ],
)
def test_components_born_before_a_threshold_are_those_of_the_whole_image(superlevel, threshold):
    """Components that are born after the threshold may end others, which changes nothing."""
    image = np.random.default_rng(5).integers(0, 250, (90, 110)).astype(np.uint8)
    whole = ecc.persistent_regions(image, 3, superlevel=superlevel)
    some = ecc.persistent_regions(image, 3, threshold=threshold, superlevel=superlevel)
    born = whole.births >= threshold if superlevel else whole.births <= threshold
    assert 0 < born.sum() < born.size
    assert_classes_equal(some, whole, born)


def test_threshold_keeps_the_labels_of_the_whole_image():
    heights = np.array([0.0, 3.0, 1.0, 2.0, 0.5, 4.0, 3.9, 5.0])
    found = ecc.persistent_regions(heights, 1.5, threshold=2)
    assert_array_equal(found.labels, [1, 0, 2, 2, 2, 0, 0, 0])
    assert_array_equal(found.deaths, [np.inf, 3])
    # Until 1 the valley of 1 is not yet part of a region that lasts.
    assert_array_equal(
        ecc.persistent_regions(heights, 1.5, threshold=1).labels, [1, 0, 0, 0, 2, 0, 0, 0]
    )
    assert len(ecc.persistent_regions(heights, 1.5, threshold=-1).births) == 0


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "float32"])
@pytest.mark.parametrize(("least", "count"), [(0.5, 3), (1, 3), (1.5, 2), (2, 2), (2.5, 1)])
def test_persistence_between_two_integers(least, count, dtype, superlevel):
    """Classes of persistence 1, 2 and infinity."""
    image = np.array([0, 9, 8, 9, 7, 9])
    image = (100 - image if superlevel else image).astype(dtype)
    options = {"min_persistence": least, "superlevel": superlevel}
    assert len(ecc.persistence_pairs(image, 0, **options).births) == count
    assert len(ecc.persistent_regions(image, **options).births) == count
    level = 92 if superlevel else 8
    assert ecc.betti_curves(image, [level], **options).values.tolist() == [[count]]


TIES = [
    [0, 5, 5, 1],
    [1, 5, 5, 0],
    [0, 5, 5, 5, 1],
    [0, 2, 2, 1, 2, 0],
    [[0, 5], [5, 1]],
    # The component of 2 joins that of 1 one point before both join that of 0.
    [[1, 5, 2], [9, 5, 9], [9, 0, 9]],
]


@pytest.mark.parametrize("connectivity", [1, None])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("values", TIES, ids=str)
def test_plateaus_where_components_meet(values, superlevel, connectivity):
    """The flooding by definition: points of one value enter in C order."""
    image = np.array(values)
    image = -image if superlevel else image
    options = {"connectivity": connectivity, "superlevel": superlevel}
    found = ecc.persistent_regions(image, 1, **options)
    shown = np.ones(image.shape, bool)
    facts = found.connectivity, superlevel
    labels, _, _, into = flood(image, 1, *facts, False, shown)
    assert_array_equal(found.labels, labels)
    assert_array_equal(found.merged_into, into)


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("signs", [*itertools.product((1, -1), repeat=3)])
def test_both_zeros_are_one_value(signs, superlevel):
    """Zeros of either sign enter in C order, on plateaus and apart from each other."""
    zeros = np.copysign(0.0, signs)
    image = np.array([zeros[0], zeros[1], 5, zeros[2], zeros[0], 3, zeros[1]])
    image[[2, 5]] *= -1 if superlevel else 1
    found = ecc.persistent_regions(image, 1, superlevel=superlevel)
    assert_array_equal(found.birth_points[:, 0], [0, 3, 6])
    assert_array_equal(found.merged_into, [0, 1, 2])
    assert_array_equal(found.labels, [1, 1, 1, 2, 2, 2, 3])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_both_ends_of_integers(dtype):
    info = np.iinfo(dtype)
    image = np.array([info.min, info.max, info.min, info.max, info.min], dtype)
    gap = int(info.max) - int(info.min)
    assert len(ecc.persistent_regions(image, gap).births) == 3
    assert len(ecc.persistent_regions(image, gap, superlevel=True).births) == 2


RANGES = {name: (np.iinfo(name).min, np.iinfo(name).max) for name in ("int8", "uint8", "int64")}
RANGES |= {"uint64": (0, 2**64 - 1), "bool": (0, 1)}
HALVES = {name: (*ends, sum(ends) // 2, sum(ends) // 2 + 1) for name, ends in RANGES.items()}
HALVES |= {"float32": (-3e38, 3e38, -1, 1), "float64": (-1.7e308, 1.7e308, -1, 1)}


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("dtype", HALVES)
def test_levels_of_a_cut_do_not_wrap(dtype, superlevel):
    """Over the whole range of a dtype; float64 cannot tell two int64 around its middle apart."""
    low, high, below, above = HALVES[dtype]
    image = np.array([high, above, below, low, below, above, high], dtype)
    if superlevel:
        image = np.array([low, below, above, high, above, below, low], dtype)
    found = ecc.persistent_regions(image, 1, rel_height=0.5, superlevel=superlevel)
    assert_array_equal(found.labels, [0, 0, 1, 1, 1, 0, 0])


def test_cut_and_threshold_end_at_whichever_comes_first():
    heights = np.array([0, 2, 4, 5, 6, 9, 4, 3, 4, 8])
    options = {"min_persistence": 1, "rel_height": 0.5}
    assert_array_equal(
        ecc.persistent_regions(heights, **options).labels, [1, 1, 1, 0, 0, 0, 2, 2, 2, 0]
    )
    found = ecc.persistent_regions(heights, threshold=3, **options)
    assert_array_equal(found.labels, [1, 1, 0, 0, 0, 0, 0, 2, 0, 0])


def test_parts_of_a_masked_image_end_at_their_own_last_values():
    heights = np.array([0, 2, 4, 6, 99, 0, 20, 40])
    found = ecc.persistent_regions(heights, 1, mask=heights != 99, rel_height=0.5)
    assert_array_equal(found.labels, [1, 1, 0, 0, 0, 2, 2, 0])


def test_tables_files_and_plots(tmp_path):
    image = np.array([[0, 4, 1], [5, 5, 3], [2, 6, 2]], np.int16)
    found = ecc.persistent_regions(image, 1, connectivity=1)
    table = found.to_pandas()
    columns = ["label", "birth", "death", "persistence", "merged_into", "point_0", "point_1"]
    assert list(table.columns) == columns
    assert table["birth"].tolist() == found.births.tolist()
    assert table.attrs["min_persistence"] == 1
    ecc.io.write_result(tmp_path / "regions.npz", found)
    assert ecc.io.read_result(tmp_path / "regions.npz") == found
    with pytest.raises(ValueError, match="a table cannot hold labels"):
        ecc.io.write_result(tmp_path / "regions.csv", found)
    assert found.plot().get_ylabel() == "death"
    assert "<img" in found._repr_html_()


def test_regions_of_images_whose_columns_are_contiguous():
    """The result for the same values in C order."""
    image = np.random.default_rng(0).normal(size=(8, 12))
    known = ecc.persistent_regions(image, 0.5)
    assert known.labels.max() > 1
    assert ecc.persistent_regions(np.asfortranarray(image), 0.5) == known
