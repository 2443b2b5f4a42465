"""Betti matching: reduced boundary matrices of all cells, labelled sets, and the authors' code."""

import pickle
from collections import Counter

import numpy as np
import pytest
import xarray
from numpy.testing import assert_array_equal
from oracles.matching import betti_matching as oracle
from scipy import ndimage

import ecc_core as ecc
from ecc_core._backends.cpu.betti.matching import order_by_death

SHAPES = [(7,), (6, 7), (3, 4, 3)]


def flat(pairs):
    """Classes as (dimension, point of birth, point of death), -1 where there is none."""
    shape = tuple(np.max(np.concatenate([pairs.birth_points, pairs.death_points]), axis=0) + 1)
    assert len(shape) == pairs.ndim
    points = (pairs.birth_points.tolist(), pairs.death_points.tolist())
    return [(k, tuple(a), tuple(b)) for k, a, b in zip(pairs.dimensions, *points, strict=True)]


def counted(found, shape):
    """What matches by dimension and points of birth, and all classes of both images."""
    first, second = map(flat, found.matched)
    matches = Counter((a[0], a[1], b[1]) for a, b in zip(first, second, strict=True))
    return matches, Counter(flat(found.prediction)), Counter(flat(found.target))


def expected(prediction, target, connectivity, superlevel):
    """The same by the oracle, whose points are numbers."""
    matched, *left = oracle(prediction, target, connectivity, superlevel)
    shape = prediction.shape

    def point(number):
        if number < 0:
            return (-1,) * len(shape)
        return tuple(map(int, np.unravel_index(number, shape)))

    def classes(found):
        return Counter((k, point(birth), point(death)) for k, birth, death in found)

    matches = Counter((a[0], point(a[1]), point(b[1])) for a, b in matched)
    first = classes([pair[0] for pair in matched] + [*left[0]])
    second = classes([pair[1] for pair in matched] + [*left[1]])
    both = first, second
    return matches, *both


def joins_many(image, superlevel):
    """Whether a point joins more than two components of the points before it, along diagonals.

    These are joined one after another, in an order of which only the kernel knows.
    """
    values = np.unique(image, return_inverse=True)[1].reshape(image.shape)
    ranks = np.empty(image.size, int)
    ranks[np.argsort(-values if superlevel else values, axis=None, kind="stable")] = np.arange(
        image.size
    )
    around = np.pad(ranks.reshape(image.shape), 1, constant_values=image.size)
    box = np.ones((3,) * image.ndim)
    for part in np.lib.stride_tricks.sliding_window_view(around, box.shape).reshape(-1, *box.shape):
        if ndimage.label(part < part[(1,) * image.ndim], box)[1] > 2:
            return True
    return False


def draw(rng, shape, kind):
    if kind == "floats":
        return rng.random((2, *shape)).astype(np.float32)
    if kind == "ties":
        return rng.integers(0, 4, (2, *shape)).astype(np.uint8)
    return rng.random(shape), (rng.random(shape) < 0.5).astype(float)


def count_places(classes):
    """How often each dimension and point of birth occurs."""
    return Counter(one[:2] for one in classes)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cubes", [False, True], ids=["vertices", "cubes"])
@pytest.mark.parametrize("kind", ["floats", "ties", "mask"])
def test_equals_reduced_matrices(shape, cubes, kind):
    rng = np.random.default_rng(0)
    connectivity = len(shape) if cubes else 1
    for i in range(4 if len(shape) == 3 else 20):
        prediction, target = draw(rng, shape, kind)
        superlevel = bool(i % 2)
        union = (np.maximum if superlevel else np.minimum)(prediction, target)
        if cubes and len(shape) > 1 and joins_many(union, superlevel):
            continue
        options = {"connectivity": connectivity, "superlevel": superlevel}
        found = ecc.betti_matching(prediction, target, **options)
        wanted = expected(prediction, target, connectivity, superlevel)
        pairs, *unmatched = counted(found, shape)
        assert pairs == wanted[0]
        assert list(map(count_places, unmatched)) == list(map(count_places, wanted[1:]))


@pytest.mark.parametrize("shape", [(3, 3, 66), (6, 7, 8)], ids=str)
@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("values", [3, 1000])
def test_tunnels_of_larger_volumes_equal_reduced_matrices(shape, connectivity, values):
    """Rows are longer than a word of 64 points, and points have links of every kind."""
    prediction, target = np.random.default_rng(3).integers(0, values, (2, *shape)).astype(np.uint16)
    found = ecc.betti_matching(prediction, target, connectivity=connectivity)
    matches = counted(found, shape)[0]
    wanted = expected(prediction, target, connectivity, False)[0]
    tunnels = {match: count for match, count in wanted.items() if match[0] == 1}
    assert tunnels
    assert {match: count for match, count in matches.items() if match[0] == 1} == tunnels


# Numbers that match by dimension, of `Betti-Matching-3D` at commit 50d7379, without the oldest
# component, which it leaves out: of functions that are near each other, and of probabilities.
RECORDED = {
    (9, 12): [
        [9, 0],
        [11, 1],
        [11, 0],
        [6, 2],
        [10, 0],
        [10, 0],
        [6, 1],
        [5, 0],
        [7, 1],
        [3, 1],
        [7, 0],
        [7, 0],
    ],
    (17, 20): [
        [36, 2],
        [33, 0],
        [25, 2],
        [21, 1],
        [25, 2],
        [16, 4],
        [24, 1],
        [21, 1],
        [19, 2],
        [16, 1],
        [28, 0],
        [26, 1],
    ],
    (6, 5, 7): [
        [4, 2, 0],
        [7, 9, 0],
        [3, 4, 0],
        [3, 4, 0],
        [1, 10, 0],
        [3, 10, 0],
        [1, 15, 0],
        [2, 11, 0],
        [3, 2, 0],
        [8, 6, 0],
        [3, 5, 0],
        [5, 5, 0],
    ],
}


@pytest.mark.parametrize("shape", [*RECORDED], ids=str)
def test_equals_code_of_authors(shape):
    rng = np.random.default_rng(0)
    counts = []
    for _ in RECORDED[shape]:
        target = (rng.random(shape) < 0.55).astype(float)
        prediction = np.clip(0.25 + 0.5 * target + 0.6 * (rng.random(shape) - 0.5), 0.001, 0.999)
        found = ecc.betti_matching(1 - prediction, 1 - target, connectivity=1)
        first, _ = found.matched
        components, *others = first.counts
        counts.append([components - 1, *others])  # The peer leaves out the oldest one.
    assert counts == list(RECORDED[shape])


@pytest.mark.parametrize("shape", [(9, 11), (6, 5, 7)], ids=str)
@pytest.mark.parametrize("cubes", [False, True], ids=["vertices", "cubes"])
@pytest.mark.parametrize("seed", range(5))
def test_components_of_masks_match_where_they_are_joined(shape, cubes, seed):
    """A component of the union that has points of both holds one match."""
    rng = np.random.default_rng(seed)
    full = ndimage.generate_binary_structure(len(shape), len(shape) if cubes else 1)
    prediction, target = rng.random((2, *shape)) < 0.2
    labels, _ = ndimage.label(prediction | target, full)
    both = set(labels[prediction]) & set(labels[target])
    found = ecc.betti_matching(prediction, target, connectivity=len(shape) if cubes else 1)
    own, true = (ndimage.label(mask, full)[1] for mask in (prediction, target))
    assert found.error[0] == own + true - 2 * len(both)
    first, second = (pairs.select(0) for pairs in found.matched)
    of_first = labels[tuple(first.birth_points.T)]
    assert (of_first > 0).all()
    assert_array_equal(of_first, labels[tuple(second.birth_points.T)])


def assert_classes_of_mask(pairs, mask):
    """There are as many as the Betti numbers say, born in the mask; no component ever dies."""
    assert pairs.counts == ecc.betti_numbers(mask)
    assert mask[tuple(pairs.birth_points.T)].all()
    assert pairs.select(0).essential.all()


def test_numbers_of_masks_are_those_of_the_sets():
    rng = np.random.default_rng(2)
    prediction, target = rng.random((2, 8, 9, 7)) < 0.5
    found = ecc.betti_matching(prediction, target)
    assert_classes_of_mask(found.prediction, prediction)
    assert_classes_of_mask(found.target, target)
    assert_array_equal(
        found.error,
        np.add(found.unmatched_prediction.counts, found.unmatched_target.counts),
    )


def test_places():
    target = np.zeros((7, 24), bool)
    target[1:6, 1:6], target[2:5, 2:5] = True, False
    target[1:6, 8:13], target[2:5, 9:12] = True, False
    target[3, 15:18] = True
    prediction = target.copy()
    prediction[3, 5] = False  # A gap opens the first ring.
    prediction[3, 9:12] = True  # A bridge divides the second one.
    prediction[3, 15:18], prediction[5, 20:23] = False, True  # A bar is elsewhere.
    assert ecc.betti_numbers(prediction) == ecc.betti_numbers(target)
    found = ecc.betti_matching(prediction, target)
    assert_array_equal(found.error, [2, 2])
    assert_array_equal(found.unmatched_target.select(0).birth_points, [[3, 15]])
    assert_array_equal(found.unmatched_prediction.select(0).birth_points, [[5, 20]])
    (hole,) = found.unmatched_target.select(1).death_points
    assert_array_equal(np.clip(hole, 2, 4), hole)
    (hole,) = found.unmatched_prediction.select(1).death_points
    assert 9 <= hole[1] <= 11


def assert_classes_until(own, whole, beyond):
    """Compare pairs with those of an image in which excluded points have the value `beyond`."""
    ends = whole.deaths < beyond
    assert_array_equal(own.births, whole.births)
    assert_array_equal(own.death_points[~own.essential], whole.death_points[ends])


@pytest.mark.parametrize("shape", [(6, 7), (4, 3, 4)], ids=str)
@pytest.mark.parametrize("connectivity", [1, None])
def test_excluded_points_never_enter(shape, connectivity):
    """The same as where they have the value behind all others, whose deaths are none."""
    rng = np.random.default_rng(3)
    images = rng.permutation(2 * np.prod(shape)).reshape(2, *shape)
    shown = rng.random(shape) < 0.8
    beyond = images.max() + 1
    given = ecc.betti_matching(*images, mask=shown, connectivity=connectivity)
    padded = [np.where(shown, image, beyond) for image in images]
    found = ecc.betti_matching(*padded, connectivity=connectivity)
    assert_classes_until(given.prediction, found.prediction, beyond)
    assert_classes_until(given.target, found.target, beyond)
    assert_array_equal(np.sort(given.matches, axis=0), np.sort(found.matches, axis=0))
    floats = [np.where(shown, image, np.nan) for image in images]
    omitted = ecc.betti_matching(*floats, nan="omit", connectivity=connectivity)
    assert_array_equal(omitted.matches, given.matches)
    masked = ecc.betti_matching(
        np.ma.array(images[0], mask=~shown), images[1], connectivity=connectivity
    )
    assert masked == given


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 3)], ids=str)
@pytest.mark.parametrize("connectivity", [1, None])
def test_parts_that_a_mask_separates_are_matched_alone(shape, connectivity):
    rng = np.random.default_rng(5)
    # The first axis is for the prediction and the target.
    parts = rng.integers(0, 9, (2, 3, *shape))
    gap = np.zeros((2, 3, 1, *shape[1:]), int)
    images = np.concatenate([parts, gap], 2).reshape(2, -1, *shape[1:])
    shown = np.arange(images.shape[1]) % (shape[0] + 1) < shape[0]
    flat_axes = [1] * (len(shape) - 1)
    shown = np.broadcast_to(shown.reshape(-1, *flat_axes), images.shape[1:])
    together = ecc.betti_matching(*images, mask=shown, connectivity=connectivity)
    wanted = []
    for k in range(3):
        alone = ecc.betti_matching(*parts[:, k], connectivity=connectivity)
        first = k * (shape[0] + 1)
        wanted += [(births + first, deaths) for births, deaths in _births(alone)]
    assert sorted(map(str, _births(together))) == sorted(map(str, wanted))


def _births(found):
    """First coordinates at which matched classes begin in both images, and their dimensions."""
    one, other = found.matched
    births = zip(one.birth_points[:, 0], other.birth_points[:, 0], one.dimensions, strict=True)
    return [(np.array(pair), dimension) for *pair, dimension in births]


def test_tunnels_that_are_born_at_one_point_begin_with_the_last_to_die():
    rng = np.random.default_rng(0)
    births = np.sort(rng.integers(0, 5, 40))
    deaths = rng.integers(0, 11, 40)
    killers = rng.permutation(40)
    keys = rng.integers(0, 4, 11).astype(np.uint64)
    shown = rng.random(11) < 0.7
    order = np.arange(40, dtype=np.uint32)
    order_by_death(order, births, deaths, killers, keys, shown)

    def last_to_die(i):
        death = deaths[i]
        return births[i], shown[death], -int(keys[death]), -death, -killers[i]

    assert order.tolist() == sorted(range(40), key=last_to_die)


def test_images_of_a_batch():
    rng = np.random.default_rng(4)
    prediction, target = rng.integers(0, 9, (2, 5, 6, 7))
    found = ecc.betti_matching(prediction, target, axis=(1, 2), workers=2)
    assert found == [ecc.betti_matching(*pair) for pair in zip(prediction, target, strict=True)]


def test_integers_beyond_floats():
    """2**53 + 1 is no float64, and 64-bit integers are compared exactly."""
    image = np.full((1, 5), 2**53 + 2)
    image[0, [0, 2]] = 2**53, 2**53 + 1
    found = ecc.betti_matching(image, image)
    assert found.prediction.births.tolist() == [2**53, 2**53 + 1]
    assert found.error.tolist() == [0, 0]


def births_by_dimension(pairs):
    """Births in the order of `persistence_pairs`."""
    return pairs.births[np.lexsort((pairs.births, pairs.dimensions))]


def test_results():
    rng = np.random.default_rng(5)
    prediction, target = rng.random((2, 8, 9))
    found = ecc.betti_matching(prediction, target)
    assert pickle.loads(pickle.dumps(found)) == found
    assert found != ecc.betti_matching(target, prediction)
    table = found.to_pandas()
    assert len(table) == len(found.prediction.births) + len(found.target.births)
    counts = table[table["match"] < 0].groupby("dimension").size()
    assert_array_equal(counts.to_numpy(), found.error)
    matched = table[table["match"] >= 0].sort_values("match")
    rows = [matched[matched["image"] == name] for name in ("prediction", "target")]
    values = [np.stack([pairs.births, pairs.deaths], axis=1) for pairs in found.matched]
    assert_array_equal([own[["birth", "death"]] for own in rows], values)
    assert_array_equal(
        births_by_dimension(found.prediction), ecc.persistence_pairs(prediction).births
    )
    assert_array_equal(births_by_dimension(found.target), ecc.persistence_pairs(target).births)
    labelled = xarray.DataArray(prediction, dims=("y", "x"), attrs={"units": "um"})
    named = ecc.betti_matching(labelled, target)
    assert_array_equal(named.matches, found.matches)
    assert named.prediction.units == "um"


IMAGE = np.zeros((4, 5))
MASK = np.eye(4, 5, dtype=bool)


@pytest.mark.parametrize(
    ("prediction", "target", "options", "error", "message"),
    [
        (IMAGE, np.zeros((5, 4)), {}, ValueError, r"`target` must have the shape of `prediction`"),
        (IMAGE[:0], IMAGE[:0], {}, ValueError, "`prediction` must have points"),
        (IMAGE, ~MASK & MASK, {}, ValueError, "`target` must have points that are True"),
        (IMAGE + 2, MASK, {}, ValueError, r"`prediction` must be between 0 and 1 .* got 2"),
        (IMAGE - 1, MASK, {}, ValueError, r"`prediction` must be between 0 and 1 .* got -1"),
        (IMAGE.astype(int), MASK, {}, TypeError, "`prediction` must be booleans or prob.* int64"),
        (IMAGE * np.nan, IMAGE, {}, ValueError, "`prediction` must not contain NaN"),
        (IMAGE, IMAGE * np.nan, {}, ValueError, "`target` must not contain NaN"),
        (IMAGE, IMAGE.astype(int), {}, TypeError, "got float64 and int64"),
        (IMAGE, IMAGE, {"connectivity": 3}, ValueError, "`connectivity` must be 1 or 2"),
        (IMAGE, IMAGE, {"superlevel": 2}, TypeError, "`superlevel` must be True or False"),
        (IMAGE * 1j, IMAGE, {}, TypeError, "`prediction` must have a boolean, integer or real"),
    ],
)
def test_refusals(prediction, target, options, error, message):
    with pytest.raises(error, match=message):
        ecc.betti_matching(prediction, target, **options)
