"""Soft curves and transforms on a CUDA device, against plain PyTorch and the CPU."""

import itertools
from functools import partial
from typing import Any

import pytest
import soft_helpers
import torch
from soft_helpers import check_transform, check_windows, gradients, leaves, plain_curve, relative
from torch import Tensor

from ecc_core.nn import EulerCurveLayer
from ecc_core.nn.functional import (
    soft_euler_curve,
    soft_euler_transform,
    soft_simplicial_transform,
)

SHAPES = [(3, 40), (2, 17, 23), (2, 70, 100), (2, 9, 10, 11), (1, 35, 20, 70)]
CASES = [
    pytest.param(shape, connectivity, superlevel, id=f"{shape}-{connectivity}-{superlevel}")
    for shape in SHAPES
    for connectivity, superlevel in itertools.product(sorted({1, len(shape) - 1}), (False, True))
]
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-11}
draw = partial(soft_helpers.draw, device="cuda")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("shape", "connectivity", "superlevel"), CASES)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("directional", [False, True])
def test_curve_equals_the_reference(shape, connectivity, superlevel, dtype, masked, directional):
    ndim = len(shape) - 1
    numbers = [
        draw(shape, dtype),
        torch.linspace(-0.3, 1.2, 9, dtype=dtype).cuda(),
        torch.tensor(9.0, dtype=dtype).cuda(),
    ]
    if directional:
        numbers += [torch.tensor([0.3, -1.0, 0.8][:ndim], dtype=dtype).cuda()]
        numbers += [torch.tensor(0.11, dtype=dtype).cuda()]
    mask = draw(shape, seed=1) < 0.85 if masked else None
    found, wanted = leaves(numbers)
    direction = {"direction": found[3], "direction_scale": found[4]} if directional else {}
    options = {"mask": mask, "connectivity": connectivity, "superlevel": superlevel}
    curve = soft_euler_curve(
        *found[:2], sharpness=found[2], **direction, spacing=0.5, n_spatial=ndim, **options
    )
    exact = plain_curve(*wanted, spacing=0.5, **options)
    assert relative(curve, exact) < TOLERANCE[dtype]
    slopes = gradients(exact, wanted)
    # Sharpness, direction and scale get sums over all points, of terms that cancel.
    reach = max(shape[1:]) * 0.5
    terms = slopes[0].abs().sum() * torch.tensor([1.5 / 9, 0.11 * reach, reach]).cuda()
    scales = [slopes[0].norm(), slopes[1].norm(), *terms[: len(slopes) - 2]]
    pairs = zip(gradients(curve, found), slopes, strict=True)
    errors = [(own.double() - true).norm() for own, true in pairs]
    assert (torch.stack(errors) < TOLERANCE[dtype] * torch.stack(scales)).all()


@pytest.mark.parametrize("ties", ["raster", "split"])
@pytest.mark.parametrize(("shape", "connectivity", "superlevel"), CASES)
def test_tied_points_share_as_on_the_cpu(shape, connectivity, superlevel, ties):
    image = torch.randint(0, 5, shape, generator=torch.Generator().manual_seed(0)) / 4
    mask = draw(shape, seed=1) < 0.85
    options = {"connectivity": connectivity, "superlevel": superlevel, "ties": ties}
    options |= {"sharpness": 6.0, "n_spatial": len(shape) - 1}
    results = []
    for device in ("cuda", "cpu"):
        own = image.to(device).requires_grad_()
        shown = mask.to(device)
        levels = torch.linspace(0, 1, 5, device=device)
        curve = soft_euler_curve(own, levels, mask=shown, **options)
        results.append((curve.cpu(), gradients(curve, [own])[0].cpu()))
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sharpness", [1.0, 40.0, 600.0, 3000.0, 1e5])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("levels", [1, 64, 300])
def test_windows_of_any_width(sharpness, offset, levels):
    thresholds = (draw((levels,), seed=3) + 0.5 / levels) * 1.2 - 0.1 + offset
    check_windows(draw((2, 60, 90)) + offset, thresholds, sharpness, 3e-5, 1e-5)


@pytest.mark.parametrize("extension", ["max", "min"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("shape", "connectivity"),
    [((2, 33), 1), ((2, 30, 17), 1), ((2, 30, 17), 2), ((2, 6, 7, 8), 1), ((2, 6, 7, 8), 3)],
)
def test_transform_equals_the_reference(dtype, extension, shape, connectivity):
    tolerances = TOLERANCE[dtype], 10 * TOLERANCE[dtype]
    check_transform(shape, connectivity, extension, dtype, "cuda", tolerances)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_images_are_summed_in_float32(dtype):
    narrow = draw((2, 40, 50)).to(dtype).requires_grad_()
    wide = narrow.detach().float().requires_grad_()
    thresholds = torch.linspace(0, 1, 7).cuda()
    curves = [soft_euler_curve(x, thresholds, sharpness=30.0) for x in (narrow, wide)]
    assert curves[0].dtype == torch.float32
    assert torch.equal(*curves)
    found, wanted = (gradients(y, [x])[0] for y, x in zip(curves, (narrow, wide), strict=True))
    assert found.dtype == dtype
    assert torch.equal(found, wanted.to(dtype))


VIEWS = {
    "steps": lambda x: x[1::2, ::3],
    "transposed": lambda x: x.T,
    "reversed": lambda x: x.flip(1),
    "expanded": lambda x: x[:30].expand(4, 30, 70),
    "overlapping": lambda x: x.as_strided((3, 20, 20), (7, 70, 2)),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_strides(view):
    whole = draw((60, 70)).requires_grad_()
    results = []
    for copy in (False, True):
        image = view(whole)
        image = image.clone(memory_format=torch.contiguous_format) if copy else image
        curve = soft_euler_curve(image, torch.linspace(0, 1, 7).cuda(), sharpness=20.0)
        results.append((curve, *gradients(curve, [whole])))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("sharpness", [30.0, 4000.0])
def test_results_are_the_same_bits_every_time(sharpness):
    image = draw((2, 40, 50, 60)).requires_grad_()
    thresholds = torch.linspace(0, 1, 33).cuda()
    runs = []
    for _ in range(3):
        curve = soft_euler_curve(image, thresholds, sharpness=sharpness, n_spatial=3)
        runs.append((curve, *gradients(curve, [image])))
    torch.testing.assert_close(runs[1], runs[0], rtol=0, atol=0)
    torch.testing.assert_close(runs[2], runs[0], rtol=0, atol=0)


def both(
    image: Tensor, thresholds: Tensor, sharpness: Tensor, directions: Tensor
) -> tuple[Tensor, Tensor]:
    curve = soft_euler_curve(
        image, thresholds, sharpness=sharpness, direction=directions[0], direction_scale=0.1
    )
    return curve, soft_euler_transform(image, directions, thresholds, sharpness=sharpness)


def inputs() -> list[Tensor]:
    numbers = [draw((2, 3, 30, 31)), torch.linspace(0.1, 0.9, 5).cuda(), torch.tensor(4.0).cuda()]
    return [x.requires_grad_() for x in (*numbers, torch.tensor([[1.0, 2.0]]).cuda())]


def step(numbers: list[Tensor]) -> list[Tensor]:
    curve, transform = both(*numbers)
    slopes = torch.autograd.grad(curve.square().sum() + transform.square().sum(), numbers)
    return [curve, transform, *slopes]


def test_compiles_into_one_graph():
    numbers = inputs()
    compiled = torch.compile(both, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*numbers), both(*numbers))


def test_in_a_cuda_graph_and_on_another_stream():
    wanted = [x.detach().clone() for x in step(inputs())]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        numbers = inputs()
        for _ in range(2):
            found = step(numbers)
        stream.synchronize()
        torch.testing.assert_close(list(found), wanted, rtol=0, atol=0)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            kept = step(numbers)
        with torch.no_grad():
            numbers[0].copy_(numbers[0].flip(2))
        graph.replay()
        expected = step(numbers)
        stream.synchronize()
    torch.testing.assert_close(list(kept), list(expected), rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
def test_nothing_waits_for_the_device():
    numbers = inputs()
    step(numbers)
    try:
        torch.cuda.set_sync_debug_mode("error")
        step(numbers)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_vmap():
    images = draw((2, 3, 4, 12, 13)).requires_grad_()
    thresholds = torch.linspace(0, 1, 5).cuda()

    def curve(image: Tensor) -> Tensor:
        return soft_euler_curve(image, thresholds, sharpness=6.0)

    mapped = torch.vmap(curve, in_dims=1, out_dims=1)(images)
    assert torch.equal(mapped, curve(images))
    slopes = gradients(mapped, [images])
    torch.testing.assert_close(slopes, gradients(curve(images), [images]), rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["curve", "transform"])
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_gradients_of_any_kind(kind):
    numbers = [draw((2, 3, 20, 21)), torch.linspace(0.1, 0.9, 5).cuda(), torch.tensor(6.0).cuda()]
    numbers = [x.requires_grad_() for x in numbers]
    if kind == "curve":
        curve = soft_euler_curve(*numbers[:2], sharpness=numbers[2])
    else:
        numbers.append(torch.tensor([[3.0, 1.0], [-1.0, 2.0]]).cuda().requires_grad_())
        curve = soft_euler_transform(numbers[0], numbers[3], numbers[1], sharpness=numbers[2])
    rows = draw((3, *curve.shape), seed=2)

    def slopes(row: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(curve, numbers, row, retain_graph=True)

    each = [torch.stack(part) for part in zip(*map(slopes, rows), strict=True)]
    kwargs: dict[str, Any] = {"is_grads_batched": True, "retain_graph": True}
    torch.testing.assert_close(list(torch.autograd.grad(curve, numbers, rows, **kwargs)), each)
    torch.testing.assert_close(list(torch.vmap(slopes)(rows)), each)
    one = rows[0, 0, 0].expand(curve.shape)
    views = (one, rows.movedim(0, -1)[..., 1], rows[0]._neg_view())
    copies = [view.resolve_neg().contiguous() for view in views]
    of_copies = list(map(slopes, copies))
    torch.testing.assert_close(list(map(slopes, views)), of_copies)
    (slope,) = torch.autograd.grad(curve.sum(), numbers[:1], create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        slope.sum().backward()


@pytest.mark.parametrize("shape", [(2, 3, 30, 31), (17, 18, 19)])
def test_layers_with_directions_equal_those_of_the_cpu(shape):
    """Where a gradient is recorded, operators of torch compute it."""
    options = {"directions": 3, "direction_scale": 0.02, "learn_direction_scale": True}
    n_spatial = 2 if len(shape) == 4 else 3
    layer = EulerCurveLayer(5, range=(0, 1), n_spatial=n_spatial, spacing=0.5, **options)
    image = draw(shape)
    slopes = []
    curves = []
    for device, recorded in (("cpu", False), ("cuda", False), ("cuda", True)):
        own = image.to(device).requires_grad_()
        found = layer.to(device)(own)
        curves.append(found.cpu())
        numbers = [own, *layer.parameters()]
        upstream = torch.linspace(-1, 2, found.numel()).reshape(found.shape).to(device)
        grads = torch.autograd.grad(found, numbers, upstream, create_graph=recorded)
        slopes.append([slope.detach().cpu() for slope in grads])
    torch.testing.assert_close(curves[1:], [curves[0]] * 2, rtol=1e-4, atol=1e-3)
    scales = [known.abs().max() for known in slopes[0]]
    of_host, *others = [
        [slope / scale for slope, scale in zip(own, scales, strict=True)] for own in slopes
    ]
    torch.testing.assert_close(others, [of_host] * 2, rtol=1e-3, atol=1e-3)


def test_nan_spoils_its_own_image():
    images = draw((3, 20, 21))
    thresholds = torch.linspace(0, 1, 5).cuda()
    whole = soft_euler_curve(images, thresholds, sharpness=6.0)
    images[1, 4, 5] = torch.nan
    curve = soft_euler_curve(images, thresholds, sharpness=6.0)
    assert curve[1].isnan().all()
    assert torch.equal(curve[::2], whole[::2])
    mask = ~images.isnan()
    assert soft_euler_curve(images, thresholds, sharpness=6.0, mask=mask).isfinite().all()
    negative = torch.tensor(-1.0).cuda()
    assert soft_euler_curve(images, thresholds, sharpness=negative).isnan().all()
    missing = torch.tensor(torch.nan).cuda()
    assert soft_euler_curve(images, thresholds, sharpness=missing).isnan().all()


def test_memory_is_less_than_two_images():
    image = draw((4, 64, 128, 128)).requires_grad_()
    thresholds = torch.linspace(0, 1, 64).cuda()
    for _ in range(2):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        curve = soft_euler_curve(image, thresholds, sharpness=60.0, n_spatial=3)
        slopes = torch.autograd.grad(curve.sum(), image)
        peak = torch.cuda.max_memory_allocated() - before
        del curve, slopes
    assert peak < 1.5 * image.numel() * 4


def test_arguments_elsewhere_are_refused():
    image = draw((6, 7))
    thresholds = torch.linspace(0, 1, 5)
    with pytest.raises(ValueError, match="`thresholds` must be on the image's device, cuda:0"):
        soft_euler_curve(image, thresholds, sharpness=3.0)
    with pytest.raises(ValueError, match="`directions` must be on the image's device, cuda:0"):
        soft_euler_transform(image, torch.ones(1, 2), thresholds.cuda(), sharpness=3.0)


@pytest.mark.parametrize("shape", [(0, 5, 6), (2, 0, 6), (3, 5, 0)])
def test_empty_images_have_zero_curves(shape):
    image = torch.zeros(shape, device="cuda", requires_grad=True)
    thresholds = torch.linspace(0, 1, 4).cuda()
    curve = soft_euler_curve(image, thresholds, sharpness=5.0)
    assert curve.shape == (shape[0], 4)
    assert not curve.any()
    curve.sum().backward()
    assert soft_euler_curve(draw((5, 6)), thresholds[:0], sharpness=5.0).shape == (0,)
    transform = soft_euler_transform(image, [[1.0, 0.0]], thresholds, sharpness=5.0)
    assert transform.shape == (shape[0], 1, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shuffled", [False, True])
def test_transforms_of_complexes(dtype, shuffled):
    """Values and gradients of all arguments, against those of the host."""
    drawn = torch.Generator().manual_seed(0)
    shapes = 40
    points = torch.randn(50 * shapes, 3, generator=drawn, dtype=dtype)
    offsets = 50 * torch.arange(shapes).repeat_interleave(60)[:, None]
    simplices = [
        torch.randint(0, 50, (60 * shapes, 1), generator=drawn) + offsets + torch.arange(size)
        for size in (2, 3)
    ]
    simplices = [rows % (50 * shapes) for rows in simplices]
    batch = torch.arange(shapes).repeat_interleave(50)
    inside = [(batch[rows] == batch[rows[:, :1]]).all(1) for rows in simplices]
    simplices = [rows[kept] for rows, kept in zip(simplices, inside, strict=True)]
    if shuffled:
        order = torch.randperm(len(points), generator=drawn)
        place = torch.argsort(order)
        points = points[order]
        batch = batch[order]
        simplices = [place[rows] for rows in simplices]
    weights = torch.rand(len(points), generator=drawn, dtype=dtype)
    levels = torch.randn(33, generator=drawn, dtype=dtype)
    directions = torch.randn(40, 3, generator=drawn, dtype=dtype)
    numbers = torch.tensor(7.0, dtype=dtype), torch.tensor(0.6, dtype=dtype)
    upstream = torch.randn(shapes, 40, 33, generator=drawn, dtype=dtype)
    results = []
    for device in ("cpu", "cuda"):
        given = [points, weights, directions, levels, *numbers]
        leaves = [part.detach().to(device).requires_grad_() for part in given]
        found = soft_simplicial_transform(
            leaves[0],
            [rows.to(device) for rows in simplices],
            *leaves[2:4],
            sharpness=leaves[4],
            scale=leaves[5],
            weights=leaves[1],
            batch=batch.to(device),
            shapes=shapes,
        )
        slopes = torch.autograd.grad(found, leaves, upstream.to(device))
        results.append([found.detach(), *slopes])
    tolerance = 1e-9 if dtype == torch.float64 else 2e-3
    known, found = results
    assert all(part.is_cuda for part in found)
    errors = [(own.cpu() - true).norm() for own, true in zip(found, known, strict=True)]
    norms = [true.norm() for true in known]
    assert (torch.stack(errors) <= tolerance * torch.stack(norms)).all()


def test_complexes_are_checked():
    points = torch.randn(9, 2, device="cuda")
    edges = torch.tensor([[0, 9]], device="cuda")
    given = [[1.0, 0]], [0.0, 0.5]
    with pytest.raises(ValueError, match="from 0 to 8, got the edge"):
        soft_simplicial_transform(points, [edges], *given, sharpness=3.0)
    with pytest.raises(ValueError, match="`simplices` must be on the device of `points`"):
        soft_simplicial_transform(points, [edges.cpu()], *given, sharpness=3.0)
    triangles = torch.tensor([[0, 1, 2], [1, 2, 3]], device="cuda")
    found = soft_simplicial_transform(points, triangles, *given, sharpness=3.0)
    known = soft_simplicial_transform(points.cpu(), triangles.cpu(), *given, sharpness=3.0)
    torch.testing.assert_close(found.cpu(), known, atol=1e-4, rtol=1e-4)
