"""Soft transforms of complexes by the CUDA kernels, with memory of the CPU, against the CPU."""

from contextlib import nullcontext

import pytest
import torch

from ecc_core._backends.soft import SoftShapes
from ecc_core._torch import cpu
from ecc_core._torch.increasing import increasing
from ecc_core._torch.simplicial import soft_simplices

SIMPLICES = [
    torch.tensor([[0, 1], [1, 2], [0, 2], [2, 3], [4, 5], [5, 6], [4, 6], [7, 8]]),
    torch.tensor([[0, 1, 2], [4, 5, 6]]),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sharpness", [3.0, pytest.param(300.0, marks=pytest.mark.slow)])
def test_transforms_of_complexes_equal_those_of_the_cpu(soft, sharpness, weighted):
    """Shapes in any order, one of which has no points, and levels in any order."""
    drawn = torch.Generator().manual_seed(0)
    points = torch.randn(9, 3, generator=drawn, dtype=torch.float64)
    weights = torch.rand(9, generator=drawn, dtype=torch.float64)
    vectors = torch.randn(35, 3, generator=drawn, dtype=torch.float64)
    levels = torch.tensor(
        [0.5, -torch.inf, -2, -0.3, 1.1, torch.inf, 0, 0.4, 2], dtype=torch.float64
    )
    slope = torch.tensor(sharpness, dtype=torch.float64)
    batch = torch.tensor([2, 2, 2, 2, 0, 0, 0, 1, 1])
    own = weights if weighted else None
    given = SoftShapes(points, own, SIMPLICES, vectors, levels, slope, batch, 4)
    curves, known = (part.simplicial_curves(given) for part in (soft.cuda, cpu))
    torch.testing.assert_close(curves, known, atol=1e-9, rtol=1e-9)
    upstream = torch.randn(curves.shape, generator=drawn, dtype=torch.float64)
    given = given, upstream, True
    slopes, expected = (part.simplicial_gradients(*given) for part in (soft.cuda, cpu))
    names = [name for name in slopes._fields if weighted or name != "weights"]
    found = [getattr(slopes, name) for name in names]
    known = [getattr(expected, name) for name in names]
    torch.testing.assert_close(found, known, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize(
    "message",
    [
        "`points` must be finite",
        "from 0 to 8, got the edge",
        "all their points in one shape",
        "must not repeat a point",
        "from 0 to 1, got 2",
        "`sharpness` must be positive",
    ],
)
def test_complexes_are_checked(soft, message):
    points = torch.ones(9, 3, dtype=torch.float64)
    one = torch.ones((), dtype=torch.float64)
    numbers = points[:1], one[None], one
    batch = torch.tensor([0, 0, 0, 0, 1, 1, 1, 2, 2])
    given = SoftShapes(points, None, SIMPLICES, *numbers, batch, 3)
    wrong = {
        "`points` must be finite": {"points": points * torch.nan},
        "from 0 to 8, got the edge": {"simplices": [torch.tensor([[0, 9]])]},
        "all their points in one shape": {"simplices": [torch.tensor([[0, 1, 4]])]},
        "must not repeat a point": {"simplices": [torch.tensor([[0, 1], [3, 3]])]},
        "from 0 to 1, got 2": {"shapes": 2},
        "`sharpness` must be positive": {"sharpness": -one},
    }
    with pytest.raises(ValueError, match=message):
        soft.cuda.simplicial_curves(given._replace(**wrong[message]))


@pytest.mark.parametrize("case", ["layer", "one shape"])
def test_shapes_in_few_launches_equal_operators(soft, case, monkeypatch):
    """A layer of shapes of which one has no points; and one shape, in several chunks."""
    kind = {"generator": torch.Generator().manual_seed(0), "dtype": torch.float64}
    is_layer = case == "layer"
    monkeypatch.setattr(soft.shape_steps, "POINTS_A_CHUNK", 3)
    module = soft.cuda_simplicial
    points = torch.randn(9, 3, **kind).requires_grad_()
    given = module.Numbers(
        directions=torch.randn(35, 3, **kind).requires_grad_(),
        scale=torch.tensor([0.4], dtype=torch.float64).requires_grad_(),
        levels=torch.randn(40, **kind).requires_grad_(),
        step=torch.tensor(0.1, dtype=torch.float64) if is_layer else None,
        sharpness=torch.tensor([1.1], dtype=torch.float64).requires_grad_(),
    )
    batch = torch.tensor([0, 0, 0, 0, 2, 2, 2, 3, 3] if is_layer else [0] * 9)
    complexes = module.Complexes(batch, 4 if is_layer else 1, SIMPLICES)
    found = module.fused_shapes(points, complexes, given, is_layer)
    levels, scale, sharpness = given.levels, given.scale, given.sharpness
    if is_layer:
        levels = increasing(levels, given.step)
        scale, sharpness = scale.exp(), sharpness.exp()
    numbers = given.directions, scale.reshape(()), levels, sharpness.reshape(())
    known = soft_simplices(points, None, *numbers, batch, complexes.shapes, SIMPLICES)
    torch.testing.assert_close(found, known, atol=1e-9, rtol=1e-9)
    assert set(soft.launched) == {"soft_shapes", *([] if is_layer else ["soft_simplices"])}
    wanted = points, given.directions, given.scale, given.levels, given.sharpness
    upstream = torch.randn(found.shape, **kind)
    slopes = [torch.autograd.grad(each, wanted, upstream) for each in (found, known)]
    torch.testing.assert_close(*slopes, atol=1e-9, rtol=1e-9)
    unsorted = complexes._replace(batch=batch.flip(0) if is_layer else batch - 1)
    assert module.fused_shapes(points, unsorted, given, is_layer) is None
    assert module.fused_shapes(points * torch.nan, complexes, given, is_layer) is None
    again = module.fused_shapes(points, complexes, given, is_layer)
    assert torch.equal(again, found)


def one_shape(soft):
    """The arguments of kernels for a shape."""
    kind = {"generator": torch.Generator().manual_seed(0), "dtype": torch.float64}
    numbers = soft.cuda_simplicial.Numbers(
        directions=torch.randn(35, 3, **kind).requires_grad_(),
        scale=torch.tensor([0.4], dtype=torch.float64),
        levels=torch.randn(40, **kind),
        step=None,
        sharpness=torch.tensor([1.1], dtype=torch.float64),
    )
    simplices = [part.clone() for part in SIMPLICES]
    complexes = soft.cuda_simplicial.Complexes(torch.zeros(9, dtype=torch.int64), 1, simplices)
    return torch.randn(9, 3, **kind), complexes, numbers, False


def test_the_check_of_shapes_waits_for_the_stream_of_torch(soft, monkeypatch):
    """The stream of CuPy, on which there is no kernel, is not waited for."""
    waited = []
    calls = soft.shape_steps.take_reply.__globals__
    monkeypatch.setitem(calls, "LOOKS", 0)
    runtime = calls["cupy"].cuda.runtime
    monkeypatch.setattr(runtime, "streamSynchronize", waited.append)
    monkeypatch.setattr(soft.soft, "launching", lambda _: nullcontext((0, 7)))
    assert soft.cuda_simplicial.fused_shapes(*one_shape(soft)) is not None
    assert waited == [7]


@pytest.mark.parametrize("changed", ["batch", "simplices"])
def test_shapes_that_change_before_the_backward_pass_are_refused(soft, changed):
    """torch refuses this for all tensors that it saves."""
    points, complexes, numbers, is_layer = one_shape(soft)
    found = soft.cuda_simplicial.fused_shapes(points, complexes, numbers, is_layer)
    tensor = complexes.batch if changed == "batch" else complexes.simplices[0]
    tensor.fill_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        found.sum().backward()


def test_shapes_need_the_shared_memory_of_the_device(soft, monkeypatch):
    """Consumer devices have 99 KiB for a block, enough for 1,584 sums of each warp."""
    monkeypatch.setattr(soft.shape_steps, "shared_limit", lambda _: 99 << 10)
    kind = soft.shape_steps.Kind(
        axes=3, directions=328, levels=300, sizes=(2,), is_increasing=False, is_logarithm=True
    )
    assert kind.columns == 1584
    assert soft.shape_steps.plan_shapes(kind, torch.float32, 99) is not None
    wider = kind._replace(levels=301)
    assert soft.shape_steps.plan_shapes(wider, torch.float32, 99) is None


def test_steps_of_shapes_with_a_gradient_are_left_to_operators(soft):
    """Kernels compute none of it."""
    points, complexes, numbers, _ = one_shape(soft)
    step = torch.tensor(0.1, dtype=torch.float64)
    taken = []
    for is_learned in (False, True):
        given = numbers._replace(step=step.requires_grad_(is_learned))
        taken.append(soft.cuda_simplicial.fused_shapes(points, complexes, given, True) is not None)
    assert taken == [True, False]
