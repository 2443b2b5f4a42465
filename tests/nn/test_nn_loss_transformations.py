"""The loss: compiled, mapped, in low precision, and copied."""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from nn_helpers import noise  # noqa: E402

from ecc_core.nn import EulerCurveLoss  # noqa: E402


def test_compile():
    loss = EulerCurveLoss(window=4)
    prediction, target = noise(2, 1, 6, 7).requires_grad_(), noise(2, 1, 6, 7, seed=1) > 0.5
    values = [
        call(prediction, target)
        for call in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager"))
    ]
    torch.testing.assert_close(*values)
    torch.testing.assert_close(*(torch.autograd.grad(v, prediction)[0] for v in values))


def test_vmap():
    loss = EulerCurveLoss(window=3)
    prediction, target = noise(4, 2, 6, 7), noise(4, 2, 6, 7, seed=1) > 0.5
    expected = torch.stack([loss(*pair) for pair in zip(prediction, target, strict=True)])
    torch.testing.assert_close(torch.vmap(loss)(prediction, target), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision(dtype):
    """As good as the rounded probabilities are."""
    prediction = noise(2, 2, 6, 7).to(dtype).requires_grad_()
    target = noise(2, 2, 6, 7, seed=1) > 0.5
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = EulerCurveLoss()(prediction, target)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, EulerCurveLoss()(prediction.float(), target))
    found.backward()
    assert prediction.grad.dtype == dtype
    assert prediction.grad.abs().max() > 0


def test_copies():
    loss = EulerCurveLoss(5, p=2, window=4)
    prediction, target = noise(2, 6, 7), noise(2, 6, 7, seed=1) > 0.5
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert other(prediction, target) == loss(prediction, target)


def test_repr():
    assert repr(EulerCurveLoss(5, window=16)) == (
        "EulerCurveLoss(thresholds=5, p=1.0, window=16, normalize=True, connectivity=2, "
        "n_spatial=2, reduction='mean')"
    )
