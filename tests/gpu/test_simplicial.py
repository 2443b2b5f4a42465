"""Curves and transforms of complexes on a device equal those on the host, bit for bit."""

import numpy as np
import pytest
from gpu_helpers import PUT, cupy, to_torch
from simplicial_helpers import random_simplices

import ecc_core as ecc
from ecc_core.testing import assert_arrays_equal

COUNT = 700
RNG = np.random.default_rng(4)
SIZES = ((2, 900), (3, 700), (4, 300), (6, 20))
SIMPLICES = [random_simplices(RNG, COUNT, *sizes) for sizes in SIZES]
POINTS = RNG.normal(size=(COUNT, 3)).round(2)


def assert_same(function, first, *given, put=cupy.asarray, weights=None, **options):
    there = {} if weights is None else {"weights": put(weights)}
    found = function(put(first), [put(rows) for rows in SIMPLICES], *given, **options, **there)
    there = {} if weights is None else {"weights": weights}
    known = function(first, SIMPLICES, *given, **options, **there)
    assert_arrays_equal(found.values, known.values, like=put(first))
    assert found.facts == known.facts


LEVELS = {
    "even": np.linspace(-4, 4, 128),
    "uneven": np.sort(RNG.normal(size=50)),
    "on points": np.arange(-4, 4.05, 0.05),
    "many": np.linspace(-4, 4, 70_000),
}


@PUT
@pytest.mark.parametrize("directions", [1, 3, 17, 32, 64, 100])
@pytest.mark.parametrize("levels", LEVELS)
def test_transforms(put, directions, levels):
    given = POINTS, directions, LEVELS[levels]
    assert_same(ecc.simplicial_transform, *given, put=put, complete=True)


@pytest.mark.parametrize("ndim", [1, 2, 7])
def test_transforms_of_other_dimensions(ndim):
    points = RNG.normal(size=(COUNT, ndim)).astype(np.float32)
    directions = RNG.normal(size=(40, ndim))
    assert_same(ecc.simplicial_transform, points, directions, 60, complete=True)


@PUT
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("levels", ["even", "many"])
def test_weights(put, dtype, levels):
    weights = RNG.integers(0, 9, COUNT).astype(dtype)
    given = POINTS, 70, LEVELS[levels]
    assert_same(ecc.simplicial_transform, *given, put=put, weights=weights, complete=True)


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_sums_of_floats_are_the_same_in_every_run(scale):
    weights = RNG.normal(size=COUNT) * scale
    given = cupy.asarray(POINTS), [cupy.asarray(rows) for rows in SIMPLICES], 40, 60
    options = {"weights": cupy.asarray(weights), "complete": True}
    runs = [ecc.simplicial_transform(*given, **options).values for _ in range(3)]
    known = ecc.simplicial_transform(
        POINTS, SIMPLICES, 40, 60, weights=weights, complete=True
    ).values
    most = np.abs(weights).max()
    np.testing.assert_allclose(runs[0].get(), known, rtol=0, atol=1e-9 * most)
    assert_arrays_equal(runs[1], runs[0].get(), like=given[0])
    assert_arrays_equal(runs[2], runs[0].get(), like=given[0])


@pytest.mark.parametrize("center", ["mean", "box"])
def test_placed_points(center):
    options = {"center": center, "normalize": "radius", "complete": True}
    found = ecc.simplicial_transform(
        cupy.asarray(POINTS), [cupy.asarray(rows) for rows in SIMPLICES], 20, 33, **options
    )
    known = ecc.simplicial_transform(POINTS, SIMPLICES, 20, 33, **options)
    # The mean of many points may be rounded differently.
    if center == "box":
        assert_arrays_equal(found.values, known.values, like=found.values)
    differs = found.values.get() != known.values
    assert differs.mean() < 0.01


DTYPES = [bool, "u1", "i2", "u4", "i8", "u8", "f2", "f4", "f8"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("batch", [(), (3,), (40,)])
def test_curves(dtype, superlevel, batch):
    values = RNG.integers(0, 7, (*batch, COUNT)).astype(dtype)
    options = {"superlevel": superlevel, "complete": True}
    assert_same(ecc.simplicial_curve, values, np.array([-1, 0, 0.5, 1, 3, 300]), **options)
    if not batch:
        assert_same(ecc.simplicial_curve, values, "exact", **options)
        if dtype is not bool:
            assert_same(ecc.simplicial_curve, values, 9, **options)


def test_curves_of_torch_tensors():
    torch = pytest.importorskip("torch")
    values = RNG.normal(size=COUNT)
    assert_same(ecc.simplicial_curve, values, 50, put=to_torch, complete=True)
    tensor = torch.from_numpy(values).to(torch.bfloat16)
    triangles = torch.from_numpy(SIMPLICES[1])
    known = ecc.simplicial_curve(tensor, triangles, 20)
    found = ecc.simplicial_curve(tensor.cuda(), triangles.cuda(), 20)
    assert torch.equal(found.values.cpu(), known.values)


def test_a_mesh_whose_edges_are_derived():
    triangles = SIMPLICES[1]
    given = cupy.asarray(POINTS), cupy.asarray(triangles), 64, 128
    known = ecc.simplicial_transform(POINTS, triangles, 64, 128)
    assert_arrays_equal(ecc.simplicial_transform(*given).values, known.values, like=given[0])
    listed = ecc.simplicial_transform(given[0], triangles.tolist(), 64, 128)
    assert_arrays_equal(listed.values, known.values, like=given[0])


@pytest.mark.parametrize(
    ("simplices", "message"),
    [
        (np.array([[0, COUNT]]), r"from 0 to 699, got the edge \(0, 700\)"),
        (np.array([[2, 0, 2]]), r"repeat a point .* triangle \(2, 0, 2\)"),
        ([np.array([[0, 1], [1, 2]]), np.array([[0, 1, 2]])], r"without its edge \(0, 2\)"),
        (np.array([[0.0, 1.0]]), "must hold integers, got float64"),
    ],
)
def test_wrong_simplices(simplices, message):
    given = [cupy.asarray(s) for s in simplices] if isinstance(simplices, list) else simplices
    given = cupy.asarray(given) if isinstance(given, np.ndarray) else given
    with pytest.raises((ValueError, TypeError), match=message):
        ecc.simplicial_transform(cupy.asarray(POINTS), given, 4, 5)
    with pytest.raises(ValueError, match="`points` must be finite"):
        ecc.simplicial_transform(cupy.asarray(POINTS * np.nan), [], 4, 5)
    with pytest.raises(ValueError, match="`values` must not contain NaN"):
        ecc.simplicial_curve(cupy.asarray([np.nan]), [], 5)


@PUT
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_planned_transforms(put, dtype, index):
    """The complex is given by its simplices, and its arrays change in place from call to call."""
    triangles = np.unique(np.sort(SIMPLICES[1], axis=1), axis=0).astype(index)
    faces = [triangles[:, pair] for pair in ([0, 1], [0, 2], [1, 2])]
    edges = np.unique(np.concatenate(faces), axis=0)[:, ::-1].copy()
    rows = [put(edges), put(triangles)]
    points = put(np.zeros((COUNT, 3), dtype))
    given = points, rows, 40, np.linspace(-4, 4, 90)
    for scale in (1, 0.5, 2):
        moved = (POINTS * scale).astype(dtype)
        points[:] = put(moved)
        known = ecc.simplicial_transform(moved, [edges, triangles], *given[2:])
        found = ecc.simplicial_transform(*given)
        for part, expected in zip(found, known, strict=True):
            assert_arrays_equal(part, expected, like=points)
    rows[0][5] = rows[0][4]
    with pytest.raises(ValueError, match="without its edge"):
        ecc.simplicial_transform(*given)
    rows[0][5] = put(edges[5])
    points[3, 1] = np.inf
    with pytest.raises(ValueError, match="`points` must be finite"):
        ecc.simplicial_transform(*given)


@PUT
def test_triangles_that_come_again(put):
    """Edges of triangles that come again are kept; others at the same address get new ones."""
    triangles = SIMPLICES[1].copy()
    rows = put(triangles)
    points = put(POINTS)
    spread = 40, np.linspace(-4, 4, 90)
    for turn in range(6):
        if turn % 3 == 2:
            triangles[:9] = triangles[9:18, ::-1]
            rows[:] = put(triangles)
        moved = POINTS / (1 + turn)
        points[:] = put(moved)
        known = ecc.simplicial_transform(moved, triangles, *spread)
        found = ecc.simplicial_transform(points, rows, *spread)
        for part, expected in zip(found, known, strict=True):
            assert_arrays_equal(part, expected, like=points)
    rows[3, 1] = COUNT
    for _ in range(2):
        with pytest.raises(ValueError, match="from 0 to 699"):
            ecc.simplicial_transform(points, rows, *spread)


@pytest.mark.parametrize("directions", [1, 5, 40, 130])
@pytest.mark.parametrize("hub", [False, True])
def test_meshes_that_come_again(directions, hub):
    """They are counted by the stars of their points, unless one has too many neighbours."""
    side = 40
    i, j = np.indices((side - 1, side - 1)).reshape(2, -1)
    here = i * side + j
    below = here + side
    lower = np.stack([here, below, below + 1], axis=1)
    triangles = np.concatenate([lower, np.stack([here, below + 1, here + 1], axis=1)])
    rng = np.random.default_rng(8)
    triangles = rng.permutation(rng.permutation(side * side)[triangles])
    faces = [triangles[:, pair] for pair in ([0, 1], [0, 2], [1, 2])]
    if hub:
        faces.append(np.stack([np.zeros(99, int), np.arange(1, 100)], axis=1))
    edges = np.unique(np.sort(np.concatenate(faces), axis=1), axis=0)
    points = rng.normal(size=(side * side, 3)).round(1)  # Many points have equal heights.
    given = cupy.asarray(points), [cupy.asarray(edges), cupy.asarray(triangles)]
    spread = directions if directions > 1 else [[1.0, 0.0, 0.0]], np.linspace(-3, 3, 90)
    known = ecc.simplicial_transform(points, [edges, triangles], *spread).values
    for _ in range(4):
        found = ecc.simplicial_transform(*given, *spread).values
        assert_arrays_equal(found, known, like=given[0])


def test_arrays_of_both_places_are_refused():
    with pytest.raises(ValueError, match="`simplices` must be on"):
        ecc.simplicial_transform(cupy.asarray(POINTS), SIMPLICES[1], 4, 5)
    with pytest.raises(ValueError, match="`weights` must be on"):
        ecc.simplicial_transform(cupy.asarray(POINTS), [], 4, 5, weights=np.ones(COUNT))


@pytest.mark.parametrize("function", [ecc.simplicial_curve, ecc.simplicial_transform])
def test_no_points(function):
    nothing = cupy.empty(0) if function is ecc.simplicial_curve else cupy.empty((0, 2))
    more = {"directions": 3} if function is ecc.simplicial_transform else {}
    found = function(nothing, [], thresholds=[0, 1], **more)
    assert not found.values.any()


def test_the_current_stream_is_used():
    stream = cupy.cuda.Stream(non_blocking=True)
    points = cupy.asarray(POINTS)
    triangles = cupy.asarray(SIMPLICES[1])
    with stream:
        late = cupy.zeros_like(points)
        for _ in range(50):  # The transform has to wait for this work.
            late += points / 50
        values = ecc.simplicial_transform(late.round(2), triangles, 9, 30).values
    stream.synchronize()
    known = ecc.simplicial_transform(POINTS, SIMPLICES[1], 9, values.shape[1]).values
    assert values.shape == known.shape
    assert (values[:, -1].get() == known[:, -1]).all()
