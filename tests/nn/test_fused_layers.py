"""Layers on the CPU in one function of autograd, against the same layers by operators of torch.

Operators compute them where there is a mask, here one of all points.
"""

import pytest
import torch
from nn_helpers import noise

from ecc_core._backends.cpu.soft import image_windows, sums, transform
from ecc_core.nn import EulerCurveLayer, EulerCurveMap, EulerTransformLayer

LEARNED = {"range": (0, 1), "learn_sharpness": True}
ALL = {**LEARNED, "learn_direction_scale": True}
CASES = {
    "images": ((3, 2, 9, 11), lambda: EulerCurveLayer(5, **LEARNED)),
    "superlevel": ((2, 9, 7), lambda: EulerCurveLayer(5, superlevel=True, **LEARNED)),
    "rows": ((4, 30), lambda: EulerCurveLayer(5, n_spatial=1, **LEARNED)),
    "volume": ((2, 4, 5, 6), lambda: EulerCurveLayer(5, n_spatial=3, **LEARNED)),
    "fixed": ((2, 9, 7), lambda: EulerCurveLayer([0.9], sharpness=9, learn_thresholds=False)),
    "directions": (
        (2, 3, 9, 7),
        lambda: EulerCurveLayer(5, directions=3, direction_scale=0.1, spacing=[1, 2], **ALL),
    ),
    "directions in volumes": (
        (2, 4, 5, 6),
        lambda: EulerCurveLayer(
            5, directions=3, direction_scale=0.1, superlevel=True, n_spatial=3, **ALL
        ),
    ),
    "overlapping windows": ((2, 3, 21, 19), lambda: EulerCurveMap(5, window=8, **LEARNED)),
    "windows apart": ((2, 1, 21, 19), lambda: EulerCurveMap(5, window=3, stride=5, **LEARNED)),
    "padding": ((1, 20, 17), lambda: EulerCurveMap(5, window=6, padding=7, stride=4, **LEARNED)),
    "superlevel windows": (
        (2, 2, 13, 12),
        lambda: EulerCurveMap(5, window=4, superlevel=True, connectivity=1, **LEARNED),
    ),
    "windows of rows": ((2, 3, 40), lambda: EulerCurveMap(5, n_spatial=1, window=7, **LEARNED)),
    "windows of volumes": (
        (2, 1, 7, 6, 8),
        lambda: EulerCurveMap(5, n_spatial=3, window=4, **LEARNED),
    ),
    "normalized": ((2, 3, 9, 9), lambda: EulerCurveMap(5, window=4, normalize="side", **LEARNED)),
}


def results(layer, image, *mask):
    """Values, and the gradients of the image and of all parameters."""
    image = image.clone().requires_grad_()
    found = layer(image, *mask)
    leaves = [image, *layer.parameters()]
    upstream = torch.linspace(-1, 2, found.numel(), dtype=found.dtype).reshape(found.shape)
    return found, torch.autograd.grad(found, leaves, upstream)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", CASES)
def test_fused_layers_equal_operators(case, dtype):
    shape, make = CASES[case]
    layer = make().to(dtype)
    image = noise(*shape, dtype=dtype)
    found, slopes = results(layer, image)
    known, expected = results(layer, image, torch.ones(shape[1:][-layer.n_spatial :]).bool())
    assert torch.equal(found, known)
    terms = expected[0].abs().sum().item()  # Those of parameters are sums of such terms.
    for own, other in zip(slopes, expected, strict=True):
        torch.testing.assert_close(own, other, rtol=0, atol=terms * torch.finfo(dtype).eps * 10)


@pytest.mark.parametrize("make", [EulerCurveLayer, EulerCurveMap])
def test_fused_layers_refuse_nan(make):
    image = noise(1, 20, 20)
    image[0, 3, 4] = torch.nan
    with pytest.raises(ValueError, match="NaN"):
        make(5, range=(0, 1))(image)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_images_of_half_precision_are_computed_in_single(dtype):
    image = noise(2, 12, 12).to(dtype)
    layer = EulerCurveLayer(5, range=(0, 1))
    found, slopes = results(layer, image)
    known, _ = results(layer, image.float())
    assert torch.equal(found, known)
    assert slopes[0].dtype == dtype


@pytest.mark.parametrize("case", ["images", "directions", "overlapping windows", "transform"])
def test_results_do_not_depend_on_the_number_of_threads(case, monkeypatch):
    monkeypatch.setattr(image_windows, "MOST_SERIAL_POINTS", 16)
    for module in (sums, transform):
        monkeypatch.setattr(module, "FEW_TERMS", 16)
    shape, make = CASES.get(case) or ((5, 9, 11), lambda: EulerTransformLayer(6, 5, range=(-5, 5)))
    layer = make()
    image = noise(*shape)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        known, expected = results(layer, image)
        torch.set_num_threads(2)
        found, slopes = results(layer, image)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found, known)
    torch.testing.assert_close(slopes, expected, rtol=0, atol=0)


@pytest.mark.parametrize("case", [*CASES, "transform"])
def test_parameters_can_be_resized_after_a_step(case):
    """As FSDP does, which NumPy's view of their memory would prevent."""
    shape, make = CASES.get(case) or ((5, 9, 11), lambda: EulerTransformLayer(6, 5, range=(-5, 5)))
    for dtype in (torch.float32, torch.float64):
        layer = make().to(dtype)
        results(layer, noise(*shape, dtype=dtype))
        storages = [parameter.untyped_storage() for parameter in layer.parameters()]
        assert all(storage.resizable() for storage in storages)


@pytest.mark.parametrize(
    "layer",
    [
        pytest.param(EulerTransformLayer(3, 4, range=(-5, 5)), id="transform"),
        pytest.param(EulerCurveMap(4, window=5, **LEARNED), id="windows"),
    ],
)
def test_layers_learn_from_images_of_inference_mode(layer):
    """Autograd cannot save these images, which are given to operators that copy them."""
    image = noise(2, 9, 7)
    with torch.inference_mode():
        frozen = image.clone()
    parameters = list(layer.parameters())
    expected = torch.autograd.grad(layer(image).sum(), parameters)
    found = torch.autograd.grad(layer(frozen).sum(), parameters)
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-5)


def test_a_direction_of_length_zero_has_a_finite_gradient():
    """It adds no heights, so that its curve is that of the image."""
    layer = EulerCurveLayer(5, directions=2, **LEARNED)
    with torch.no_grad():
        layer.free_directions[0] = 0
    image = noise(9, 7)
    curves, (by_image, *slopes) = results(layer, image)
    assert torch.equal(curves[0], EulerCurveLayer(5, **LEARNED)(image))
    for slope in (by_image, *slopes):
        assert slope.isfinite().all()
