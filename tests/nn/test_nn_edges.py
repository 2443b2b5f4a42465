"""Layers at the edges: empty batches, the device "meta", and modules of half precision."""

import pytest
from nn_helpers import torch

from ecc_core.nn import EulerCurveLayer, EulerCurveMap, EulerTransformLayer

LAYERS = {
    "curve": lambda **options: EulerCurveLayer(4, range=(0, 1), **options),
    "directions": lambda **options: EulerCurveLayer(
        4, range=(0, 1), directions=3, direction_scale=1.0, **options
    ),
    "map": lambda **options: EulerCurveMap(4, window=4, range=(0, 1), **options),
    "transform": lambda **options: EulerTransformLayer(4, 4, range=(-3, 3), **options),
}
MAKE = pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)


@MAKE
def test_an_empty_batch_keeps_the_graph_of_all_parameters(make):
    """A rank without images must take part in the backward pass of the others."""
    layer = make()
    layer(torch.rand(0, 1, 8, 8)).sum().backward()
    gradients = {name: parameter.grad for name, parameter in layer.named_parameters()}
    assert [name for name, gradient in gradients.items() if gradient is None] == []
    assert [name for name, gradient in gradients.items() if gradient.any()] == []


@MAKE
def test_shapes_on_the_device_meta(make):
    image = torch.rand(2, 1, 8, 8)
    layer = make()
    expected = layer(image).shape
    found = layer.to("meta")(image.to("meta"))
    assert (found.device.type, found.shape) == ("meta", expected)


@pytest.mark.parametrize("make", list(LAYERS.values())[:3], ids=list(LAYERS)[:3])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_normalized_curves_of_modules_of_half_precision(make, dtype):
    """Equal to torch's batch normalization of the curves in the dtype of the module."""
    image = torch.rand(16, 1, 8, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    layer = make(normalize="batch").to(dtype)
    plain = make().to(dtype)
    found = layer(image)
    features = plain(image)  # The only channel is along the second axis in a map.
    rows = features.movedim(1, -1).reshape(-1, layer.norm.num_features).to(dtype)
    expected = torch.nn.BatchNorm1d(layer.norm.num_features, affine=False).to(dtype)(rows)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.movedim(1, -1).reshape(expected.shape), expected.float())
