"""Soft curves by the CUDA kernels, with memory of the CPU, against the CPU backend."""

import itertools

import pytest
import torch
from emulated_soft import drawn

import ecc_core._backends.cuda as cuda_backend
from ecc_core._backends.image_cuts import Cut
from ecc_core._backends.soft import Projected, Transformed
from ecc_core._torch import cpu
from ecc_core._torch.increasing import increasing
from ecc_core._torch.transform import add_heights, transform, unit
from ecc_core._torch.windows import _Windows, cut_in_torch
from ecc_core.nn.functional import soft_euler_curve


def gradients(curve, inputs, strided=False):
    weights = torch.linspace(0.5, 1.5, 2 * curve.numel()).reshape(curve.shape[1], -1)[:, ::2].T
    weights = weights if strided else weights.contiguous()
    return torch.autograd.grad(curve, inputs, weights)


# Shape, connectivity, superlevel, number of thresholds, sharpness, dtype, whether there is a mask.
CASES = {
    "line": ((3, 40), 1, False, 9, 9.0, torch.float16, False),
    "flat": ((2, 33, 70), 1, True, 40, 30.0, torch.float32, True),
    "sharp": ((2, 20, 33), 2, True, 80, 3000.0, torch.float32, False),
    "volume": ((1, 17, 18, 30), 3, False, 7, 20.0, torch.bfloat16, True),
}


@pytest.mark.parametrize(
    ("case", "small"),
    [*((case, True) for case in CASES), ("flat", False), ("sharp", False), ("volume", False)],
)
def test_equals_the_cpu(soft, case, small, monkeypatch):
    """Small images take one launch each way besides coefficients, large ones other kernels."""
    shape, connectivity, superlevel, count, sharpness, dtype, masked = CASES[case]
    if not small:
        monkeypatch.setattr(soft.soft_plans, "SMALL_LEVELS", 0)
    image = drawn(shape, dtype)
    mask = None
    if masked:
        mask = torch.rand(shape, generator=torch.Generator().manual_seed(1)) < 0.9
    thresholds = torch.linspace(-0.1, 1.1, count).flip(0)
    inputs = [image, thresholds, torch.tensor(sharpness)]
    wanted = [x.double().requires_grad_() for x in inputs]
    found = [x.clone().requires_grad_() for x in inputs]
    options = {"connectivity": connectivity, "superlevel": superlevel, "mask": mask}
    options |= {"sharpness": wanted[2], "n_spatial": len(shape) - 1}
    exact = soft_euler_curve(*wanted[:2], **options)
    options = None, mask, connectivity, superlevel, "raster", True
    curve = soft.cuda.fused_curve(*found, *options, len(shape) - 1)
    forward = ["soft_small"] if small else ["soft_levels", "soft_scan", "soft_levels"]
    coefficients = ("points", "coefficients2d", "coefficients3d")[len(shape) - 2]
    assert soft.launched == [coefficients, *forward]
    assert (curve.double() - exact).norm() <= 1e-5 * exact.norm()
    soft.launched.clear()
    strided = case != "flat"
    exact = gradients(exact, wanted, strided)
    # The sharpness gets a sum over all points, of terms that cancel.
    scales = [exact[0].norm(), exact[1].norm(), 1.2 / sharpness * exact[0].abs().sum()]
    rounding = {torch.float16: 1e-3, torch.bfloat16: 1e-2}
    slopes = gradients(curve, found, strided)
    errors = [(own.double() - true).norm() for own, true in zip(slopes, exact, strict=True)]
    allowed = [3e-5 + rounding.get(own.dtype, 0) for own in slopes]
    bounds = [
        allow * scale + 1e-6 * sharpness for allow, scale in zip(allowed, scales, strict=True)
    ]
    assert all(error <= bound for error, bound in zip(errors, bounds, strict=True))
    assert soft.launched == (["soft_gather"] if small else ["soft_levels", "soft_gather"])


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param((2, 31), marks=pytest.mark.slow),
        (2, 20, 24),
        pytest.param((1, 9, 10, 12), marks=pytest.mark.slow),
    ],
)
def test_other_layouts_are_written_anew(soft, shape):
    """Directions, strides, masks of one image for all, and cells divided between equal points."""
    ndim = len(shape) - 1
    image = (drawn(shape) * 8).round() / 8
    mask = torch.rand(shape[1:], generator=torch.Generator().manual_seed(1)) < 0.9
    thresholds = torch.linspace(0, 1, 5)
    terms = torch.cat([torch.linspace(-0.2, 0.3, n) for n in shape[1:]])
    cases = [(image, terms, "raster"), (image.flip(1), None, "raster")]
    cases.append((image.transpose(1, ndim), None, "split"))
    for (given, along, ties), superlevel in itertools.product(cases, (False, True)):
        found, wanted = (given.clone().requires_grad_() for _ in range(2))
        shown = (mask if given.shape == shape else mask.transpose(0, ndim - 1))[None]
        options = thresholds, torch.tensor(9.0), along, shown, 1, superlevel
        images = soft.cuda.SoftImages(found.detach(), *options)
        curve, _, _, kept = soft.cuda.curves(images, True)
        given = torch.ones_like(curve), kept, images, ties == "split", torch.float32, False
        slope = soft.cuda.gradient(*given)
        exact, *_ = torch.ops.ecc.soft_curve(wanted, *options, ties, True)
        (true,) = torch.autograd.grad(exact.sum(), wanted)
        torch.testing.assert_close(curve, exact, rtol=1e-5, atol=1e-4)
        torch.testing.assert_close(slope, true, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("count", [1, 2, 32, 33, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_increasing_levels(soft, dtype, count):
    """One warp computes them; beyond gaps of 20, softplus is the identity."""
    free = torch.linspace(-30, 40, count, dtype=dtype)[torch.randperm(count)].requires_grad_()
    step = torch.tensor(0.3, dtype=dtype)
    wanted = increasing(free, step)
    upstream = torch.linspace(-1, 2, count, dtype=dtype)
    (slopes,) = torch.autograd.grad(wanted, free, upstream)
    torch.testing.assert_close(soft.soft_parameters.increasing(free.detach(), step), wanted)
    found = soft.soft_parameters.increasing_gradients(free.detach(), step, upstream)
    torch.testing.assert_close(found, slopes)


@pytest.mark.parametrize(
    ("shape", "connectivity"),
    [pytest.param((2, 5, 7), 1, marks=pytest.mark.slow), ((1, 3, 4, 5), 3)],
)
def test_transforms_equal_those_of_the_cpu(soft, shape, connectivity):
    weights, ndim, parts = drawn(shape).double(), len(shape) - 1, (soft.soft_transforms, cpu)
    found = soft.soft_transforms.by_orthant(weights, connectivity, "min")
    known = cpu.by_orthant(weights, connectivity, "min")
    torch.testing.assert_close(found, known)
    upstream = drawn(known.shape).double()
    slopes = [
        part.gradients_by_orthant(weights, upstream, connectivity, "min")
        for part in (soft.soft_transforms, cpu)
    ]
    torch.testing.assert_close(*slopes)
    vectors = torch.eye(ndim, dtype=torch.float64) - 0.3
    levels = torch.linspace(-3, 3, 4, dtype=torch.float64)
    given = Projected(known, vectors, levels, torch.tensor(2.0, dtype=torch.float64))
    curves = [part.projections(given) for part in parts]
    torch.testing.assert_close(*curves)
    upstream = torch.ones_like(curves[0][0])
    for images_a_group in (1, len(weights)):
        slopes = [
            part.projection_gradients(given, upstream, images_a_group, True) for part in parts
        ]
        assert slopes[0][1].shape == (len(weights) // images_a_group, ndim, ndim)
        torch.testing.assert_close(*slopes)


@pytest.mark.parametrize(
    ("shape", "learned", "projections", "backward"),
    [
        ((2, 5, 5, 7), (True,) * 4, 1, ["soft_by_points", "soft_transform"]),
        ((3, 4, 5), (False, True, False, True), 1, ["soft_by_points", "soft_parameters"]),
        ((3, 4, 5), (True, False, False, False), 1, ["soft_by_points", "soft_orthants"]),
        ((1, 1, 33, 34), (False, False, True, False), 2, ["soft_levels"]),
    ],
)
@pytest.mark.parametrize("busy_blocks", [0, 1000], ids=["one thread a point", "several"])
def test_fused_transforms_equal_operators(
    soft, monkeypatch, shape, learned, projections, backward, busy_blocks
):
    """The last two or three axes are spatial; there are strides, and a direction is not unit.

    The sums of many chunks of points are added up by a launch of their own.
    """
    monkeypatch.setattr(soft.soft_transforms, "BUSY_BLOCKS", busy_blocks)
    ndim = 2 if len(shape) == 4 else 3
    directions = (torch.eye(ndim) - 0.3) * torch.arange(1, ndim + 1)
    tensors = drawn(shape).transpose(-1, -2), directions, torch.linspace(-3, 3, 5)
    tensors = *tensors, torch.tensor(2.0)
    options = ndim, "min", (1.0, 0.5, 2.0)[:ndim]
    curves, slopes = [], []
    for path in (soft.cuda_transforms.fused_transform, transform):
        own = [t.clone().requires_grad_(k) for t, k in zip(tensors, learned, strict=True)]
        given = Transformed(*own, *options)
        curves.append(path(given))
        wanted = [t for t in own if t.requires_grad]
        upstream = torch.linspace(-1, 2, curves[0].numel()).reshape(curves[0].shape)
        slopes.append(torch.autograd.grad(curves[-1], wanted, upstream))
    torch.testing.assert_close(*curves)
    torch.testing.assert_close(*slopes, rtol=1e-4, atol=1e-4)
    assert soft.launched == ["soft_transform", *["soft_project"] * projections, *backward]


# Sides of images, points before and after them, sides of windows and their distance.
WINDOWS = {
    "apart": ((2, 3, 7, 9), (0, 0), (1, 3), 4, 4),
    "overlapping": ((3, 11, 8), (2, 1), (-1, 5), 5, 2),
    "cropped": ((1, 9, 12), (-2, 3), (0, -4), 3, 5),
    "volume": ((2, 5, 6, 4), (1, 0, 1), (1, 1, 1), 3, 1),
}


@pytest.mark.parametrize("case", WINDOWS)
def test_windows_equal_views(soft, case):
    shape, before, after, side, stride = WINDOWS[case]
    image = drawn(shape).requires_grad_()
    known = cut_in_torch(image, before, after, -2.0, side, stride)
    positions = tuple(known.shape[-2 * len(before) : -len(before)])
    cut = Cut(before, positions, side, stride, -2.0)
    found = soft.soft_windows.windows(image.detach(), cut)
    torch.testing.assert_close(found, known, rtol=0, atol=0)
    upstream = drawn(known.shape)
    (slopes,) = torch.autograd.grad(known, image, upstream)
    torch.testing.assert_close(soft.soft_windows.gradients(upstream, image.shape, cut), slopes)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_mapped_gradients_of_windows(soft, monkeypatch):
    """Operators of torch take the batched gradients that `is_grads_batched` makes."""
    monkeypatch.setattr(cuda_backend, "soft_windows", soft.soft_windows, raising=False)
    image = drawn((2, 5, 6)).requires_grad_()
    known = cut_in_torch(image, (1, 0), (0, 2), 0.5, 3, 2)
    found = _Windows.apply(image, (1, 0), (0, 2), tuple(known.shape[1:3]), 0.5, 3, 2)
    rows = drawn((3, *known.shape))
    slopes = []
    for windows in (found, known):
        slopes += torch.autograd.grad(windows, image, rows, is_grads_batched=True)
    torch.testing.assert_close(*slopes)


def test_second_derivatives_by_strided_levels_are_refused(soft):
    """A copy of the levels, which the graph does not reach, would leave them out."""
    levels = torch.linspace(0, 1, 10).requires_grad_()
    given = drawn((2, 8, 9)), levels[::2], torch.tensor(5.0), None, None, 1, False, "raster", False
    curve = soft.cuda.fused_curve(*given, 2)
    (slope,) = torch.autograd.grad(curve.sum(), levels, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        slope.sum().backward()


@pytest.mark.parametrize(
    ("shape", "learned"), [((2, 3, 35, 34), (True,) * 3), ((3, 4, 5), (False, True, False))]
)
def test_heights_equal_those_of_operators(soft, shape, learned):
    """Cases are more points than a block adds up, strides, and a volume without batch axes."""
    ndim = 2 if len(shape) == 4 else 3
    directions = (torch.eye(ndim) - 0.3) * torch.arange(1, ndim + 1)
    tensors = drawn(shape).transpose(-1, -2), directions, torch.linspace(-2, 0.5, ndim)
    spacing = (1.0, 0.5, 2.0)[:ndim]
    images, slopes = [], []
    for by_kernels in (True, False):
        own = [t.clone().requires_grad_(k) for t, k in zip(tensors, learned, strict=True)]
        if by_kernels:
            images.append(soft.cuda.with_heights(*own, spacing))
        else:
            images.append(add_heights(own[0], unit(own[1]), own[2].exp(), spacing))
        wanted = [t for t in own if t.requires_grad]
        upstream = drawn(images[0].shape)
        slopes.append(torch.autograd.grad(images[-1], wanted, upstream))
    torch.testing.assert_close(*images)
    torch.testing.assert_close(*slopes, rtol=1e-4, atol=1e-3)
    assert set(soft.launched) == {"soft_heights", "soft_parameters"}
