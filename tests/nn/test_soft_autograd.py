"""Derivatives of soft curves and transforms under torch's other ways to take them."""

import pytest
import torch
from nn_helpers import draw
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from ecc_core.nn import EulerCurveLayer, EulerCurveLoss, EulerCurveMap, EulerTransformLayer
from ecc_core.nn.functional import soft_euler_curve, soft_euler_transform

# torch itself scripts functions when forward mode is first used.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")

THRESHOLDS = torch.linspace(0.1, 0.9, 5)
MASK = draw(6, 7) < 0.9

MODULES = {
    "curves": EulerCurveLayer(THRESHOLDS, sharpness=4.0),
    "directions": EulerCurveLayer(THRESHOLDS, sharpness=4.0, directions=3, direction_scale=0.1),
    "exact": EulerCurveLayer(THRESHOLDS, sharpness=4.0, hard="forward"),
    "maps": EulerCurveMap(THRESHOLDS, sharpness=4.0, window=4, stride=2),
    "transforms": EulerTransformLayer(3, THRESHOLDS, sharpness=4.0),
    "loss": lambda x: EulerCurveLoss()(x, x > 0.4),
    "windows": lambda x: EulerCurveLoss(window=4)(x, x > 0.4),
}
EACH = pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)


@EACH
def test_checkpointing_changes_nothing(module):
    found, wanted = (draw(2, 6, 7).requires_grad_() for _ in range(2))
    checkpoint(module, found, use_reentrant=False).square().sum().backward()
    module(wanted).square().sum().backward()
    assert found.grad.any()
    assert torch.equal(found.grad, wanted.grad)


@EACH
def test_second_derivatives_of_modules_are_refused(module):
    image = draw(2, 6, 7).requires_grad_()
    (gradient,) = torch.autograd.grad(module(image).square().sum(), image, create_graph=True)
    assert gradient.isfinite().all()
    with pytest.raises(RuntimeError, match="no second derivatives"):
        gradient.square().sum().backward()


class Annotated(Tensor):
    """An image with metadata, whose methods are Python's."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        result = super().__torch_function__(function, types, args, kwargs or {})
        if isinstance(result, Annotated):
            result.spacing = getattr(args[0], "spacing", None)
        return result

    def new_empty(self, size, **options):
        if isinstance(size, int):
            raise TypeError("`size` must be a tuple")
        return super().new_empty(size, **options)


def annotated(image: Tensor) -> Tensor:
    found = image.as_subclass(Annotated)
    found.spacing = 0.5
    return found


def meta_tensor(image: Tensor) -> Tensor:
    return pytest.importorskip("monai.data", reason="MONAI is not installed").MetaTensor(image)


@EACH
@pytest.mark.parametrize("kind", [annotated, meta_tensor])
def test_tensor_subclasses(module, kind):
    plain = draw(2, 6, 7).requires_grad_()
    image = kind(draw(2, 6, 7)).requires_grad_()
    result = module(image)
    expected = module(plain)
    assert torch.equal(result.as_subclass(Tensor), expected)
    result.sum().backward()
    expected.sum().backward()
    assert torch.equal(image.grad.as_subclass(Tensor), plain.grad)


def curve(image: Tensor, thresholds: Tensor, sharpness: Tensor, direction: Tensor) -> Tensor:
    options = {"sharpness": sharpness, "direction": direction, "direction_scale": 0.13}
    return soft_euler_curve(image, thresholds, **options)


def superlevel(image: Tensor, thresholds: Tensor, sharpness: Tensor, direction: Tensor) -> Tensor:
    options = {"superlevel": True, "mask": MASK, "connectivity": 1, "ties": "split"}
    numbers = {"sharpness": sharpness, "direction": direction}
    return soft_euler_curve(image, thresholds, **numbers, **options)


def transform(image: Tensor, heights: Tensor, sharpness: Tensor, direction: Tensor) -> Tensor:
    directions = torch.stack([direction, direction.flip(0), -direction])
    return soft_euler_transform(image, directions, heights, sharpness=sharpness)


OF = pytest.mark.parametrize("of", [curve, superlevel, transform])


def arguments() -> tuple[Tensor, ...]:
    numbers = torch.tensor(4.0), torch.tensor([0.8, -0.6])
    return tuple(x.double() for x in (draw(2, 6, 7, dtype=torch.float64), THRESHOLDS, *numbers))


@OF
def test_forward_mode_agrees_with_backward(of):
    given = arguments()
    drawn = [draw(*x.shape, 3).double() for x in given]
    tangents = [one[..., 0] for one in drawn]
    inputs = [x.clone().requires_grad_() for x in given]
    result = of(*inputs)
    upstream = draw(*result.shape).double()
    gradients = torch.autograd.grad(result, inputs, upstream)
    wanted = sum((g * tangent).sum() for g, tangent in zip(gradients, tangents, strict=True))
    with forward_ad.dual_level():
        primal, tangent = forward_ad.unpack_dual(of(*map(forward_ad.make_dual, given, tangents)))
    torch.testing.assert_close(primal, result, rtol=0, atol=1e-13)
    torch.testing.assert_close((tangent * upstream).sum(), wanted)
    forward = [torch.func.jacfwd(of, argument)(*given) for argument in range(4)]
    backward = [torch.func.jacrev(of, argument)(*given) for argument in range(4)]
    torch.testing.assert_close(forward, backward)
    summed = [torch.tensordot(upstream, jacobian, upstream.dim()) for jacobian in forward]
    torch.testing.assert_close(summed, list(gradients))
    assert all(jacobian.any() for jacobian in forward)


@OF
@pytest.mark.parametrize("mapped", [(0,), (3,), (0, 1), (2, 3)])
def test_func_grad_of_each(of, mapped):
    """`vmap` of `grad` over images, directions, and two arguments at once."""

    def total(*given: Tensor) -> Tensor:
        return of(*given).square().sum()

    given = list(arguments())
    for i in mapped:
        last = given[i].flip(-1) if given[i].dim() else given[i]
        given[i] = torch.stack([given[i], given[i] * 1.5, last + 0.1])
    dims = tuple(0 if i in mapped else None for i in range(4))
    found = torch.func.vmap(torch.func.grad(total, argnums=(0, 1, 2, 3)), in_dims=dims)(*given)
    for k in range(3):
        one = [x[k] if i in mapped else x for i, x in enumerate(given)]
        one = [x.clone().requires_grad_() for x in one]
        expected = torch.autograd.grad(total(*one), one)
        torch.testing.assert_close([own[k] for own in found], list(expected))


@pytest.mark.parametrize("way", ["hessian", "grad of jvp", "jacfwd of jvp", "grad of grad"])
@OF
def test_second_derivatives_in_any_order_are_refused(of, way):
    first, *rest = arguments()

    def total(image: Tensor) -> Tensor:
        return of(image, *rest).square().sum()

    def slope(image: Tensor) -> Tensor:
        return torch.func.jvp(total, (image,), (torch.ones_like(image),))[1]

    def gradient_sum(image: Tensor) -> Tensor:
        return torch.func.grad(total)(image).sum()

    def twice(image: Tensor) -> Tensor:
        return torch.func.grad(gradient_sum)(image)

    second = {
        "hessian": torch.func.hessian(total),
        "grad of jvp": torch.func.grad(slope),
        "jacfwd of jvp": torch.func.jacfwd(slope),
        "grad of grad": twice,
    }
    with pytest.raises(RuntimeError, match="have no second derivatives"):
        second[way](first)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, torch.inf])
@pytest.mark.parametrize("window", [None, 4])
def test_the_loss_of_a_perfect_prediction_has_no_gradient(p, window):
    prediction = (draw(2, 1, 8, 8) > 0.5).float().requires_grad_()
    loss = EulerCurveLoss(p=p, window=window)(prediction, prediction.detach() > 0)
    (gradient,) = torch.autograd.grad(loss, prediction)
    assert loss == 0
    assert gradient.isfinite().all()
