"""Soft transforms of simplicial complexes, against sums over all simplices and exact transforms."""

import itertools

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from torch._subclasses import FakeTensorMode

import ecc_core as ecc
from ecc_core._backends.cpu.soft import simplices
from ecc_core.errors import BackendError
from ecc_core.nn import SimplicialTransformLayer
from ecc_core.nn.functional import soft_simplicial_transform

RNG = np.random.default_rng(5)
EDGES = [[0, 1], [1, 2], [0, 2], [2, 3], [4, 5], [5, 6], [4, 6], [7, 8]]
TRIANGLES = [[0, 1, 2], [4, 5, 6]]
BATCH = [0, 0, 0, 0, 2, 2, 2, 1, 1]
"""Shapes of four, two and three points."""
SIMPLICES = [torch.tensor(EDGES), torch.tensor(TRIANGLES)]
POINTS = torch.from_numpy(RNG.normal(size=(9, 3)))
WEIGHTS = torch.from_numpy(RNG.uniform(0.1, 2, 9))
DIRECTIONS = RNG.normal(size=(35, 3))  # These are more than are computed at once.
THRESHOLDS = torch.linspace(-2, 2, 7, dtype=torch.float64)


def by_definition(points, thresholds, sharpness, weights=None):
    """The sum over the simplices of each shape, one simplex after another."""
    units = DIRECTIONS / np.linalg.norm(DIRECTIONS, axis=1, keepdims=True)
    found = np.zeros((3, len(units), len(thresholds)))
    for simplex in itertools.chain([[i] for i in range(9)], EDGES, TRIANGLES):
        heights = (points[simplex] @ units.T).max(axis=0)
        steps = expit(sharpness * (thresholds - heights[:, None]))
        weight = 1 if weights is None else weights[simplex].max()
        found[BATCH[simplex[0]]] += (-1) ** (len(simplex) - 1) * weight * steps
    return found


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sharpness", [0.5, 8.0, 300.0])
def test_values_are_sums_over_simplices(dtype, weighted, sharpness):
    weights = WEIGHTS if weighted else None
    shuffled = torch.flip(THRESHOLDS, [0])
    found = soft_simplicial_transform(
        POINTS.to(dtype),
        SIMPLICES,
        torch.from_numpy(DIRECTIONS),
        shuffled,
        sharpness=sharpness,
        weights=weights,
        batch=torch.tensor(BATCH),
    )
    points = POINTS.to(dtype).double().numpy()
    expected = by_definition(
        points, shuffled.numpy(), sharpness, None if weights is None else weights.numpy()
    )
    assert found.dtype == dtype
    tolerance = 1e-12 if dtype == torch.float64 else 3e-4 * max(1, sharpness / 100)
    assert_allclose(found.numpy(), expected, atol=tolerance)


def test_thresholds_in_any_order():
    """Values and gradients are those of increasing thresholds, in the order of what is given."""
    order = [2, 0, 3, 6, 1, 5, 4]
    upstream = torch.from_numpy(RNG.normal(size=(3, 35, 7)))
    found = []
    for places in (order, list(range(7))):
        points = POINTS.clone().requires_grad_()
        thresholds = THRESHOLDS[places].clone().requires_grad_()
        values = soft_simplicial_transform(
            points,
            SIMPLICES,
            torch.from_numpy(DIRECTIONS),
            thresholds,
            sharpness=3.0,
            batch=torch.tensor(BATCH),
        )
        (values * upstream[..., places]).sum().backward()
        found.append((values.detach(), points.grad, thresholds.grad))
    (values, by_points, by_thresholds), expected = found
    assert_array_equal(values, expected[0][..., order])
    assert_allclose(by_points, expected[1], atol=1e-12)
    assert_allclose(by_thresholds, expected[2][order], atol=1e-12)


def test_sharp_transforms_are_exact_ones():
    points = POINTS[:4]
    exact = ecc.simplicial_transform(points, [[0, 1, 2], [1, 2, 3]], 5, THRESHOLDS)
    triangles = torch.tensor([[0, 1, 2], [1, 2, 3]])  # Their edges are added.
    given = torch.as_tensor(exact.directions), THRESHOLDS
    soft = soft_simplicial_transform(points, triangles, *given, sharpness=1e6)
    assert_array_equal(soft.round().numpy(), exact.values.numpy())


def test_infinite_thresholds_and_shapes_without_points():
    given = POINTS, SIMPLICES, DIRECTIONS.tolist(), [-np.inf, np.inf]
    batch = torch.tensor(BATCH)
    found = soft_simplicial_transform(*given, sharpness=5.0, batch=batch, shapes=5)
    assert found.shape == (5, 35, 2)
    assert_array_equal(found[:, 0].numpy(), [[0, 1], [0, 1], [0, 1], [0, 0], [0, 0]])
    nothing = torch.empty(0, 3), [], DIRECTIONS.tolist(), [0.0]
    assert not soft_simplicial_transform(*nothing, sharpness=5.0).any()


def test_a_scale_moves_heights_beyond_the_coordinates():
    """Steep levels far above all coordinates, but not above all scaled heights."""
    points = torch.tensor([[1.0, 0], [0, 1], [-1, 0]])
    found = soft_simplicial_transform(
        points, [], [[1.0, 0]], [-15.0, 5.0, 15.0, 25.0], sharpness=100.0, scale=20.0
    )
    assert_array_equal(found.numpy(), [[1, 2, 2, 3]])


def test_gradients_of_all_arguments():
    directions = torch.from_numpy(DIRECTIONS[:5])
    numbers = torch.tensor(3.0, dtype=torch.float64), torch.tensor(0.7, dtype=torch.float64)
    given = [POINTS, WEIGHTS, directions, THRESHOLDS, *numbers]

    def transform(points, weights, directions, thresholds, sharpness, scale):
        return soft_simplicial_transform(
            points,
            SIMPLICES,
            directions,
            thresholds,
            sharpness=sharpness,
            scale=scale,
            weights=weights,
            batch=torch.tensor(BATCH),
        )

    leaves = [tensor.clone().requires_grad_() for tensor in given]
    assert torch.autograd.gradcheck(transform, leaves)
    (slope,) = torch.autograd.grad(transform(*leaves).sum(), leaves[0], create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        slope.sum().backward()


def layer_of(**options):
    return SimplicialTransformLayer(6, 9, range=(-2, 2), **options)


@pytest.mark.parametrize("learned", [False, True])
def test_gradients_do_not_depend_on_what_each_thread_takes(monkeypatch, learned):
    generator = torch.Generator().manual_seed(1)
    points = torch.rand(50, 3, generator=generator)
    directions = torch.randn(300, 3, generator=generator)
    thresholds = torch.linspace(-1, 1, 8, requires_grad=learned)

    def gradient(threads):
        def share(items, work, _):
            return [work(iter(items[i::threads])) for i in range(threads)]

        own = points.clone().requires_grad_()
        monkeypatch.setattr(simplices, "share", share)
        values = soft_simplicial_transform(own, [], directions, thresholds, sharpness=20.0)
        values.square().sum().backward()
        return own.grad

    alone = gradient(1)
    assert alone.dtype == torch.float32
    assert torch.equal(gradient(2), alone)
    assert torch.equal(gradient(3), alone)


def test_the_layer_learns_what_it_is_told():
    layer = layer_of(scale=0.5, sharpness=6.0, learn_sharpness=True, learn_scale=True)
    points = POINTS.float().requires_grad_()
    batch = torch.tensor(BATCH)
    found = layer(points, SIMPLICES, batch=batch)
    expected = soft_simplicial_transform(
        points / 2, SIMPLICES, layer.directions, layer.thresholds, sharpness=6.0, batch=batch
    )
    assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=1e-4)
    found.square().sum().backward()
    learned = dict(layer.named_parameters())
    assert {name: bool(p.grad.any()) for name, p in learned.items()} == {
        "free_thresholds": True,
        "free_directions": True,
        "log_sharpness": True,
        "log_scale": True,
    }
    assert points.grad.any()
    assert repr(layer_of()) == (
        "SimplicialTransformLayer(directions=6, thresholds=9, n_spatial=3, "
        "learned=[thresholds, directions])"
    )


@pytest.mark.parametrize("way", ["compile", "export", "autocast"])
def test_the_layer_in_graphs_and_in_mixed_precision(way):
    layer = layer_of()
    points = POINTS.float()
    batch = torch.tensor(BATCH)
    given = (points, SIMPLICES)
    options = {"batch": batch, "shapes": 3}
    expected = layer(*given, **options)
    if way == "compile":
        compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
        found = compiled(points.clone().requires_grad_(), SIMPLICES, **options)
        found.sum().backward()
    elif way == "export":
        found = torch.export.export(layer, given, options).module()(*given, **options)
    else:
        with torch.autocast("cpu", torch.bfloat16):
            found = layer(*given, **options)
    assert found.dtype == torch.float32
    assert_array_equal(found.detach().numpy(), expected.detach().numpy())


WRONG = {
    "NaN": ({"points": POINTS / 0}, ValueError, "`points` must be finite"),
    "axes": ({"points": POINTS[0]}, ValueError, r"`points` must have shape \(n, d\)"),
    "array": ({"points": POINTS.numpy()}, TypeError, "`points` must be a torch tensor"),
    "outside": (
        {"simplices": [torch.tensor([[0, 9]])]},
        ValueError,
        r"from 0 to 8, got the edge \(0, 9\)",
    ),
    "apart": (
        {"simplices": [torch.tensor([[0, 4]])], "batch": torch.tensor(BATCH)},
        ValueError,
        r"all their points in one shape, got the edge \(0, 4\)",
    ),
    "loop": (
        {"simplices": [torch.tensor([[0, 1], [2, 2]])]},
        ValueError,
        r"must not repeat a point within a simplex, got the edge \(2, 2\)",
    ),
    "floats": ({"simplices": [torch.rand(3, 2)]}, TypeError, "must hold integers"),
    "numbers": ({"simplices": [torch.arange(3)]}, ValueError, r"shape \(m, k\)"),
    "number": ({"simplices": 3}, TypeError, "`simplices` must be a tensor or a sequence"),
    "batch": ({"batch": torch.arange(3)}, ValueError, r"`batch` must have shape \(9,\)"),
    "shapes": (
        {"batch": torch.tensor(BATCH), "shapes": 2},
        ValueError,
        "`batch` must hold numbers of shapes from 0 to 1, got 2",
    ),
    "no batch": ({"shapes": 2}, ValueError, "`shapes` must come with a `batch`"),
    "weights": ({"weights": torch.ones(3)}, ValueError, r"`weights` must have shape \(9,\)"),
    "infinite": ({"weights": WEIGHTS / 0}, ValueError, "`weights` must be finite"),
    "direction": ({"directions": [[0.0, 0, 0]]}, ValueError, "`directions` must be finite and"),
    "sharpness": ({"sharpness": torch.tensor(-1.0)}, ValueError, "`sharpness` must be positive"),
    "thresholds": ({"thresholds": [np.nan]}, ValueError, "`thresholds` must not contain NaN"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case):
    changed, error, message = WRONG[case]
    given = {
        "points": POINTS,
        "simplices": SIMPLICES,
        "directions": [[1.0, 0, 0]],
        "thresholds": [0.0],
        "sharpness": 1.0,
    }
    with pytest.raises(error, match=message):
        soft_simplicial_transform(**{**given, **changed})


def test_points_on_a_device_without_kernels_are_refused():
    with FakeTensorMode(), pytest.raises(BackendError, match="`points` must be in host memory or"):
        soft_simplicial_transform(
            torch.ones(3, 2, device="xpu"), [], [[1.0, 0]], [0.0], sharpness=1
        )


def test_points_of_another_space():
    layer = SimplicialTransformLayer(4, 4, range=(-1, 1), n_spatial=3)
    with pytest.raises(ValueError, match=r"shape \(n, 3\) for n_spatial=3, got \(9, 2\)"):
        layer(POINTS[:, :2], SIMPLICES)
