"""Exported layers, for any batch and size of images; ONNX; calls from several threads."""

import concurrent.futures
import math

import pytest
from nn_helpers import noise, torch

from ecc_core.nn import EulerCurveLayer, EulerCurveLoss, EulerCurveMap, EulerTransformLayer

LAYERS = {
    "curve": lambda: EulerCurveLayer(5, range=(0, 1), normalize="side"),
    "directed": lambda: EulerCurveLayer(5, range=(0, 1), directions=2, direction_scale=0.02),
    "hard": lambda: EulerCurveLayer(5, range=(0, 1), hard="forward"),
    "map": lambda: EulerCurveMap(4, window=(12, 24), stride=12, padding=0, range=(0, 1)),
    "transform": lambda: EulerTransformLayer(3, 6, range=(-20, 20)),
}
EACH = pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)


@EACH
def test_export_with_dynamic_batch_and_size(make, tmp_path):
    layer = make()
    sizes = {0: torch.export.Dim("batch"), 2: torch.export.Dim("rows", min=36)}
    sizes[3] = torch.export.Dim("columns", min=36)
    program = torch.export.export(layer, (noise(2, 3, 44, 40),), dynamic_shapes=(sizes,))
    torch.export.save(program, tmp_path / "layer.pt2")
    loaded = torch.export.load(tmp_path / "layer.pt2").module()
    image = noise(2, 3, 44, 40)
    torch.testing.assert_close(loaded(image), layer(image))
    larger = noise(3, 3, 41, 54)
    torch.testing.assert_close(loaded(larger), layer(larger))


def test_export_of_the_loss():
    loss = EulerCurveLoss(window=8, from_logits=True)
    sizes = {0: torch.export.Dim("batch")}
    given = noise(2, 1, 16, 17), (noise(2, 1, 16, 17, seed=1) > 0.5).float()
    program = torch.export.export(loss, given, dynamic_shapes=(sizes, sizes))
    other = noise(3, 1, 16, 17), (noise(3, 1, 16, 17, seed=2) > 0.5).float()
    torch.testing.assert_close(program.module()(*other), loss(*other))


ONNX_LAYERS = {
    "curve": lambda: EulerCurveLayer(5, range=(0, 1), normalize="side"),
    "superlevel": lambda: EulerCurveLayer(5, range=(0, 1), connectivity=1, superlevel=True),
    "directed": LAYERS["directed"],
    "signal": lambda: EulerCurveLayer(5, range=(0, 1), n_spatial=1),
    "transform": LAYERS["transform"],
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("make", ONNX_LAYERS.values(), ids=ONNX_LAYERS)
def test_onnx(make, monkeypatch):
    """What is exported consists of operators of torch, which ONNX knows, and computes the same."""
    layer = make().eval()
    image = noise(2, 1, 14, 15)
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    traced = torch.jit.trace(layer, image)
    assert "ecc::" not in str(traced.inlined_graph)
    other = noise(2, 1, 14, 15, seed=1)
    torch.testing.assert_close(traced(other), layer(other), atol=1e-4, rtol=1e-4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize(("name", "words"), [("hard", 'hard="forward"'), ("map", "dynamo=True")])
def test_refused_by_onnx(name, words, tmp_path):
    given = (noise(1, 1, 36, 36),)
    with pytest.raises(RuntimeError, match=words):
        torch.onnx.export(LAYERS[name](), given, tmp_path / "layer.onnx", dynamo=False)


@EACH
def test_calls_from_several_threads(make):
    """The kernels release the interpreter's lock, so these calls run at the same time."""
    layer = make()

    def call(seed):
        image = noise(2, 1, 40, 40, seed=seed).requires_grad_()
        curves = layer(image)
        (gradient,) = torch.autograd.grad(curves.square().sum(), image)
        return curves.detach(), gradient

    expected = [call(seed) for seed in range(8)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(call, range(8)))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert not math.isnan(expected[0][0].sum())
