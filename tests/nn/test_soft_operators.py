"""Soft curves and transforms as operators: what torch does with them."""

import gc

import pytest
import torch
from nn_helpers import draw
from torch import Tensor

from ecc_core.nn import EulerCurveLayer
from ecc_core.nn.functional import soft_euler_curve, soft_euler_transform

THRESHOLDS = torch.linspace(0.1, 0.9, 5)


def scalar(number: float) -> Tensor:
    return torch.tensor(number, requires_grad=True)


@pytest.mark.parametrize("ties", ["raster", "split"])
def test_opcheck_of_the_curve(ties):
    image = draw(2, 6, 7).requires_grad_()
    terms, mask = draw(13).requires_grad_(), draw(1, 6, 7) < 0.8
    thresholds = THRESHOLDS.clone().requires_grad_()
    arguments = (image, thresholds, scalar(5.0), terms, mask, 1, False, ties, True)
    torch.library.opcheck(torch.ops.ecc.soft_curve.default, arguments)


@pytest.mark.parametrize("wanted", ["none", "image", "wide"])
def test_opcheck_of_the_backward_curve(wanted):
    rows = [draw(2, 5) for _ in range(3)]
    coefficients = torch.zeros(2, 0, dtype=torch.int8)
    image = draw(2, 6, 7).half()
    options = (image, THRESHOLDS, torch.tensor(5.0), None, None, 2, True, "raster", wanted)
    torch.library.opcheck(
        torch.ops.ecc.soft_curve_backward.default, (*rows, coefficients, *options)
    )


def test_opcheck_of_the_transform():
    weights = draw(2, 4, 2, 3).requires_grad_()
    directions = torch.tensor([[0.6, 0.8], [-1.0, 0.0]], requires_grad=True)
    heights = THRESHOLDS.clone().requires_grad_()
    arguments = (weights, directions, heights, scalar(3.0))
    torch.library.opcheck(torch.ops.ecc.soft_projection.default, arguments)
    detached = [argument.detach() for argument in arguments]
    rows = [draw(2, 2, 5) for _ in range(3)]
    for needed in ((True, True), (False, False)):  # gradients of weights and of sharpness
        given = (*rows, *detached, *needed)
        torch.library.opcheck(torch.ops.ecc.soft_projection_backward.default, given)


def curve_of(
    image: Tensor, thresholds: Tensor, sharpness: Tensor, direction: Tensor, scale: Tensor
) -> Tensor:
    options = {"sharpness": sharpness, "direction": direction, "direction_scale": scale}
    return soft_euler_curve(image, thresholds, **options).square().sum()


def transform_of(weights: Tensor, heights: Tensor, sharpness: Tensor, direction: Tensor) -> Tensor:
    values = soft_euler_transform(weights, direction[None], heights, sharpness=sharpness)
    return values.square().sum()


OF = pytest.mark.parametrize("of", [curve_of, transform_of])


def arguments_of(of) -> list[Tensor]:
    numbers = torch.tensor(4.0), torch.tensor([0.8, 0.6]), torch.tensor(0.2)
    return [draw(6, 7), THRESHOLDS, *numbers][: 5 if of is curve_of else 4]


def by_autograd(of, arguments: list[Tensor]) -> tuple[Tensor, ...]:
    inputs = [argument.detach().clone().requires_grad_() for argument in arguments]
    return torch.autograd.grad(of(*inputs), inputs)


@OF
@pytest.mark.parametrize("mapped", [(0,), (3,), (0, 1), (2, 3)])
def test_func_grad_of_each(of, mapped):
    """`vmap` of `grad` over images, directions, and two arguments at once."""
    arguments = arguments_of(of)
    for i in mapped:
        last = arguments[i].flip(-1) if arguments[i].dim() else arguments[i]
        arguments[i] = torch.stack([arguments[i], arguments[i] * 1.5, last + 0.1])
    dims = tuple(0 if i in mapped else None for i in range(len(arguments)))
    every = tuple(range(len(arguments)))
    found = torch.func.vmap(torch.func.grad(of, argnums=every), in_dims=dims)(*arguments)
    for k in range(3):
        one = [a[k] if i in mapped else a for i, a in enumerate(arguments)]
        for own, true in zip(found, by_autograd(of, one), strict=True):
            torch.testing.assert_close(own[k], true)


@pytest.mark.parametrize("hard", [None, "forward"])
def test_func_grad_of_a_layer(hard):
    layer = EulerCurveLayer(THRESHOLDS, sharpness=4.0, learn_thresholds=True, hard=hard)
    parameters, image = dict(layer.named_parameters()), draw(2, 6, 7)

    def loss(parameters: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(layer, parameters, (image,)).square().sum()

    found = torch.func.grad(loss)({k: p.detach() for k, p in parameters.items()})
    loss(parameters).backward()
    for name, parameter in parameters.items():
        torch.testing.assert_close(found[name], parameter.grad)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_vmap_over_images(dim):
    images = draw(2, 3, 4, 6, 7).requires_grad_()
    mask = draw(6, 7) < 0.8

    def curve(image: Tensor) -> Tensor:
        return soft_euler_curve(image, THRESHOLDS, sharpness=6.0, mask=mask)

    mapped = torch.vmap(curve, in_dims=dim, out_dims=dim)(images)
    assert torch.equal(mapped, curve(images))
    upstream = torch.rand_like(mapped)
    found, wanted = (torch.autograd.grad(y, images, upstream)[0] for y in (mapped, curve(images)))
    assert torch.equal(found, wanted)


def test_vmap_over_other_arguments():
    image, sharpness = draw(2, 6, 7), torch.tensor([2.0, 5.0])
    thresholds, masks = draw(2, 4), draw(2, 6, 7) < 0.8

    def curve(thresholds: Tensor, sharpness: Tensor, mask: Tensor) -> Tensor:
        return soft_euler_curve(image, thresholds, sharpness=sharpness, mask=mask)

    def transform(weights: Tensor, heights: Tensor) -> Tensor:
        return soft_euler_transform(weights, [[1.0, 2.0]], heights, sharpness=2.0)

    found = torch.vmap(curve)(thresholds, sharpness, masks)
    each = [curve(*row) for row in zip(thresholds, sharpness, masks, strict=True)]
    assert torch.equal(found, torch.stack(each))
    found = torch.vmap(transform)(image, thresholds)
    each = [transform(*row) for row in zip(image, thresholds, strict=True)]
    assert torch.equal(found, torch.stack(each))


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


def test_strided_and_expanded_images():
    whole = draw(12, 14).requires_grad_()
    before = whole.detach().clone()
    for view in (
        lambda x: x[1::2, ::3],
        lambda x: x.T,
        lambda x: x.flip(1),
        lambda x: x[:6].expand(4, 6, 14),
        lambda x: x[0].expand(5, 14),
    ):
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
    while gc.collect():  # what compiled graphs of other tests leave takes several rounds
        pass
    gc.disable()
    try:
        step()
        assert gc.collect() == 0
    finally:
        gc.enable()
