"""Soft curves and transforms as operators: what torch does with them."""

import gc
from typing import Any

import pytest
import torch
from nn_helpers import draw
from torch import Tensor

from ecc_core.nn.functional import soft_euler_curve

THRESHOLDS = torch.linspace(0.1, 0.9, 5)


def leaf(tensor: Tensor) -> Tensor:
    return tensor.clone().requires_grad_()


def opcheck(name: str, *arguments: Any) -> None:
    torch.library.opcheck(getattr(torch.ops.ecc, name).default, arguments)


@pytest.mark.parametrize("ties", ["raster", pytest.param("split", marks=pytest.mark.slow)])
def test_opcheck_of_the_curve(ties):
    arguments = leaf(draw(2, 6, 7)), leaf(THRESHOLDS), leaf(torch.tensor(5.0)), leaf(draw(13))
    opcheck("soft_curve", *arguments, draw(1, 6, 7) < 0.8, 1, False, ties, True)


@pytest.mark.parametrize("wanted", ["none", "image", "wide"])
def test_opcheck_of_the_backward_curve(wanted):
    rows = [draw(2, 5) for _ in range(3)]
    coefficients = torch.zeros(2, 0, dtype=torch.int8)
    given = draw(2, 6, 7).half(), THRESHOLDS, torch.tensor(5.0), None, None
    opcheck("soft_curve_backward", *rows, coefficients, *given, 2, True, "raster", wanted)


def test_opcheck_of_the_transform():
    directions = torch.tensor([[0.6, 0.8], [-1.0, 0.0]])
    given = draw(2, 4, 2, 3), directions, THRESHOLDS, torch.tensor(3.0)
    opcheck("soft_projection", *map(leaf, given))
    rows = [draw(2, 2, 5) for _ in range(3)]
    # Images of a group, and whether gradients of weights and of sharpness are needed.
    for options in ((2, True, True), (1, False, False)):
        opcheck("soft_projection_backward", *rows, *given, *options)


def test_opcheck_of_exact_curves_and_transforms():
    image = draw(2, 6, 7)
    direction = (torch.tensor([0.6, 0.8]), torch.tensor(0.1))
    for given in [(None, None, None), (image > 0.2, *direction), (image[:1] > 0.2, None, None)]:
        opcheck("exact_curve", image, THRESHOLDS, *given, [1.0, 1.0], 2, False)
    opcheck("exact_transform", image, torch.eye(2), THRESHOLDS, [1.0, 1.0], 2)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_vmap_over_images_and_masks(dim):
    images = draw(2, 3, 4, 6, 7).requires_grad_()
    masks = draw(images.shape[dim], 6, 7) < 0.8

    def curve(image: Tensor, mask: Tensor) -> Tensor:
        return soft_euler_curve(image, THRESHOLDS, sharpness=6.0, mask=mask)

    mapped = torch.vmap(curve, in_dims=(dim, 0), out_dims=dim)(images, masks)
    each = torch.stack(list(map(curve, images.unbind(dim), masks)), dim)
    assert torch.equal(mapped, each)
    upstream = torch.rand_like(mapped)
    found, wanted = (torch.autograd.grad(y, images, upstream)[0] for y in (mapped, each))
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_images_are_summed_in_float32(dtype):
    narrow = draw(2, 40, 50).to(dtype).requires_grad_()
    wide = narrow.detach().float().requires_grad_()
    curves = [soft_euler_curve(x, THRESHOLDS, sharpness=30.0) for x in (narrow, wide)]
    assert curves[0].dtype == torch.float32
    assert torch.equal(*curves)
    found, wanted = (
        torch.autograd.grad(y.sum(), x)[0] for y, x in zip(curves, (narrow, wide), strict=True)
    )
    assert found.dtype == dtype
    assert torch.equal(found, wanted.to(dtype))


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1::2, ::3],
        lambda x: x.T,
        lambda x: x.flip(1),
        lambda x: x[:6].expand(4, 6, 14),
        lambda x: x[0].expand(5, 14),
    ],
    ids=["strided", "transposed", "flipped", "expanded", "a row expanded"],
)
def test_strided_and_expanded_images(view):
    whole = draw(12, 14).requires_grad_()
    before = whole.detach().clone()
    results = []
    for image in (view(whole), view(whole).clone(memory_format=torch.contiguous_format)):
        curve = soft_euler_curve(image, THRESHOLDS, sharpness=7.0)
        results.append((curve, *torch.autograd.grad(curve.sum(), whole)))
    torch.testing.assert_close(*results)
    assert torch.equal(whole, before)


def test_graphs_hold_no_cycles():
    image = draw(6, 6).requires_grad_()

    def step() -> None:
        soft_euler_curve(image, THRESHOLDS, sharpness=4.0).sum().backward()

    step()
    gc.disable()
    gc.freeze()  # Objects of other tests are not searched.
    try:
        step()
        assert gc.collect() == 0
    finally:
        gc.unfreeze()
        gc.enable()
