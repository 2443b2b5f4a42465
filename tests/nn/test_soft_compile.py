"""Soft curves, layers and the loss in compiled graphs of changing sizes and numbers."""

import pytest
import torch
from nn_helpers import curve_layer, draw, transform_layer
from torch import Tensor

from ecc_core.nn import EulerCurveLayer, EulerCurveLoss, EulerCurveMap
from ecc_core.nn.functional import soft_euler_curve, soft_euler_transform

THRESHOLDS = torch.linspace(0.1, 0.9, 5)
# The backend traces forward and backward, and leaves the C++ compiler alone.
COMPILE = {"fullgraph": True, "backend": "aot_eager"}


@pytest.fixture(autouse=True)
def forget_graphs():
    yield
    torch.compiler.reset()


MODULES = {
    "curves": EulerCurveLayer(THRESHOLDS, sharpness=4.0),
    "directions": curve_layer(),
    "exact": EulerCurveLayer(THRESHOLDS, sharpness=4.0, hard="forward"),
    "exact directions": curve_layer(hard="forward"),
    "maps": EulerCurveMap(THRESHOLDS, sharpness=4.0, window=4, stride=2),
    "transforms": transform_layer(),
    "exact transforms": transform_layer(hard="forward"),
    "loss": EulerCurveLoss(),
    "windows": EulerCurveLoss(window=4),
}


# Each operation occurs in one of the other modules, or is compiled by another test.
SLOW = {"directions", "exact", "exact directions", "loss", "maps", "transforms"}


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(module, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name, module in MODULES.items()
    ],
)
def test_sizes_that_change_share_one_graph(module):
    compiled = torch.compile(module, dynamic=True, **COMPILE)
    for shape in ((2, 6, 7), (3, 8, 9), (4, 11, 5)):
        results = []
        for call in (compiled, module):
            image = draw(*shape).requires_grad_()
            given = (image, draw(*shape) > 0.5) if isinstance(module, EulerCurveLoss) else (image,)
            result = call(*given)
            inputs = image, *module.parameters()
            slopes = torch.autograd.grad(result.square().sum(), inputs)
            results.append((result, *slopes))
        for found, wanted in zip(*results, strict=True):
            # Gradients of single points are differences of large numbers.
            largest = wanted.abs().max().item()
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6 * largest)


@pytest.mark.parametrize("dynamic", [pytest.param(None, marks=pytest.mark.slow), True])
def test_sharpness_may_change_as_a_float(dynamic):
    def both(image: Tensor, sharpness: float, scale: float) -> tuple[Tensor, Tensor]:
        options = {"direction": [1.0, 2.0], "direction_scale": scale}
        curve = soft_euler_curve(image, THRESHOLDS, sharpness=sharpness, **options)
        return curve, soft_euler_transform(image, [[1.0, 2.0]], THRESHOLDS, sharpness=sharpness)

    compiled = torch.compile(both, dynamic=dynamic, **COMPILE)
    image = draw(2, 6, 7).requires_grad_()
    for step in range(12):  # dynamo does not compile so often.
        numbers = 3.0 + step, 0.1 * step
        torch.testing.assert_close(compiled(image, *numbers), both(image, *numbers))
    compiled(image, 5.0, 0.1)[0].sum().backward()
    assert image.grad.any()
