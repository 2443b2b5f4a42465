"""The loss: its values, windows and gradients, and what training with it does."""

import copy
import math
import pickle

import numpy as np
import pytest
from nn_helpers import SHAPES, noise, torch

from ecc_core._arithmetic import ceil_div
from ecc_core.nn import EulerCurveLoss
from ecc_core.nn.functional import soft_euler_curve


def curves(image, n=8, sharpness=32.0, **options):
    at = (torch.arange(n) + 0.5) / n
    return soft_euler_curve(image, at, sharpness=sharpness, superlevel=True, **options)


class TestValues:
    @pytest.mark.parametrize("n_spatial", [1, 2, 3])
    @pytest.mark.parametrize("p", [1, 2, 3.5, math.inf])
    @pytest.mark.parametrize("connectivity", [1, None])
    def test_definition(self, n_spatial, p, connectivity):
        shape = SHAPES[n_spatial]
        prediction = noise(2, 3, *shape)
        target = noise(2, 3, *shape, seed=1) > 0.5
        options = {"connectivity": connectivity, "n_spatial": n_spatial}
        gap = curves(prediction, **options) - curves(target.float(), **options)
        gap = gap.numpy().astype(np.float64) / math.prod(shape)
        largest = np.abs(gap).max(-1)
        means = (np.abs(gap) ** p).mean(-1)
        expected = largest if p == math.inf else means ** (1 / p)
        found = {
            reduction: EulerCurveLoss(p=p, reduction=reduction, **options)(prediction, target)
            for reduction in ("none", "mean", "sum")
        }
        np.testing.assert_allclose(found["none"], expected, rtol=1e-5)
        np.testing.assert_allclose(found["mean"], expected.mean(), rtol=1e-5)
        np.testing.assert_allclose(found["sum"], expected.sum(), rtol=1e-5)
        absolute = EulerCurveLoss(p=p, reduction="none", normalize=False, **options)
        found = absolute(prediction, target) / math.prod(shape)
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    def test_thresholds_and_sharpness(self):
        prediction = noise(6, 7)
        target = noise(6, 7, seed=1) > 0.5
        loss = EulerCurveLoss(3, sharpness=5.0, normalize=False)
        assert loss.thresholds.tolist() == pytest.approx([1 / 6, 1 / 2, 5 / 6])
        gap = curves(prediction, 3, 5.0) - curves(target.float(), 3, 5.0)
        torch.testing.assert_close(loss(prediction, target), gap.abs().mean())


class TestWindows:
    @pytest.mark.parametrize(
        ("shape", "side"), [((6, 8), 4), ((7, 5), 4), ((2, 3), 4), ((4, 4, 6), 2), ((3, 5, 4), 3)]
    )
    def test_average_over_windows(self, shape, side):
        prediction = noise(2, *shape)
        target = noise(2, *shape, seed=1) > 0.5
        counts = [ceil_div(n, side) for n in shape]
        padded = torch.zeros(2, 2, *(side * count for count in counts))
        for whole, part in zip(padded, (prediction, target), strict=True):
            whole[(slice(None), *map(slice, shape))] = part
        options = {"reduction": "none", "n_spatial": len(shape)}
        whole = EulerCurveLoss(**options)
        pieces = []
        for place in np.ndindex(*counts):
            window = [slice(i * side, (i + 1) * side) for i in place]
            pieces.append(whole(*padded[(..., *window)]))
        found = EulerCurveLoss(window=side, **options)(prediction, target)
        torch.testing.assert_close(found, torch.stack(pieces).mean(0))


class TestGradients:
    @pytest.mark.parametrize("n_spatial", [2, 3])
    @pytest.mark.parametrize("window", [None, 3])
    @pytest.mark.parametrize("p", [1, 2])
    def test_finite_differences(self, n_spatial, window, p):
        shape = SHAPES[n_spatial]
        prediction = noise(2, *shape, dtype=torch.float64).requires_grad_()
        target = noise(2, *shape, seed=1) > 0.5
        loss = EulerCurveLoss(n_spatial=n_spatial, window=window, p=p).double()
        assert torch.autograd.gradcheck(lambda x: loss(x, target), (prediction,), fast_mode=True)

    def test_only_of_the_prediction(self):
        prediction = noise(2, 6, 7).requires_grad_()
        target = noise(2, 6, 7, seed=1)
        target.requires_grad_()
        loss = EulerCurveLoss()
        loss(prediction, target).backward()
        assert prediction.grad.abs().max() > 0
        assert target.grad is None
        assert list(loss.parameters()) == []
        assert loss.state_dict() == {}

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_low_precision(self, dtype):
        """Results are those of the probabilities, rounded to the lower precision."""
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
    prediction = noise(2, 6, 7)
    target = noise(2, 6, 7, seed=1) > 0.5
    copies = copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))
    assert [other(prediction, target) for other in copies] == [loss(prediction, target)] * 2
    text = (
        "EulerCurveLoss(thresholds=5, p=2.0, window=4, normalize=True, connectivity=2, "
        "n_spatial=2, reduction='mean')"
    )
    assert [repr(other) for other in copies] == [text] * 2
