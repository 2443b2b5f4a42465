"""The loss and the metric for MONAI, and those of the guide."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from nn_helpers import draw_normal as draw
from oracles.betti import error_of, mean_error
from torch.nn.functional import one_hot

from ecc_core import nn

pytest.importorskip("monai", reason="MONAI is not installed")
from ecc_core.nn.monai import BettiErrorMetric, EulerCurveLoss

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
BLOCK = re.compile(r"^```\{code-block\} python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_guide(capsys):
    from monai.losses import DiceLoss

    block = BLOCK.findall(PAGE.read_text(encoding="utf-8"))[0]
    logits = draw(3, 1, 64, 64).requires_grad_()
    target = draw(1, 3, 64, 64).movedim(1, 0) > 0
    names = {"logits": logits, "target": target}
    exec(block, names)
    expected = DiceLoss(sigmoid=True)(logits, target)
    expected = expected + 100 * nn.EulerCurveLoss(window=32)(logits.sigmoid(), target)
    torch.testing.assert_close(names["loss"], expected)
    names["loss"].backward()
    assert logits.grad.abs().max() > 0
    shown = [float(word) for word in capsys.readouterr().out.split()]
    error = mean_error((logits > 0)[:, 0], target[:, 0])
    np.testing.assert_allclose(shown, [expected.item(), error], rtol=1e-5)


@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize("shape", [(10, 12), (6, 7, 8)])
def test_options_of_the_loss(background, shape):
    logits = draw(2, 3, *shape).double()
    classes = draw(2, 1, *shape).mul(2).round()
    indices = classes.long().clamp(0, 2)
    masks = one_hot(indices[:, 0], 3).movedim(-1, 1)
    options = {"n_spatial": len(shape), "include_background": background}
    kept = slice(0 if background else 1, None)
    plain = nn.EulerCurveLoss(n_spatial=len(shape))
    wanted = plain(logits.softmax(1)[:, kept], masks[:, kept])
    of_masks = EulerCurveLoss(softmax=True, **options)(logits, masks)
    torch.testing.assert_close(of_masks, wanted)
    of_indices = EulerCurveLoss(softmax=True, to_onehot_y=True, **options)(logits, indices)
    torch.testing.assert_close(of_indices, wanted)
    wanted = plain(logits.sigmoid()[:, kept], masks[:, kept])
    torch.testing.assert_close(EulerCurveLoss(sigmoid=True, **options)(logits, masks), wanted)
    options["to_onehot_y"] = True
    given = logits.sigmoid()
    torch.testing.assert_close(EulerCurveLoss(**options)(given, indices), wanted)


def test_errors_of_the_loss():
    with pytest.raises(ValueError, match="at most one of `sigmoid`, `softmax` and `other_act`"):
        EulerCurveLoss(sigmoid=True, softmax=True)
    with pytest.raises(TypeError, match="`from_logits` is not an option"):
        EulerCurveLoss(from_logits=True)
    with pytest.raises(TypeError, match="`ignore_index` is not an option here; pass `mask` to a"):
        EulerCurveLoss(ignore_index=255)
    with pytest.raises(ValueError, match="`include_background` must be True for one channel"):
        EulerCurveLoss(include_background=False)(torch.rand(1, 1, 5, 5), torch.rand(1, 1, 5, 5))


@pytest.mark.parametrize("background", [True, False])
def test_metric_of_batches(background):
    metric = BettiErrorMetric(include_background=background)
    errors = []
    for seed in range(2):
        prediction = draw(2, 3, 20 + seed, 16) > 0.3
        target = draw(2, 3, 16, 20 + seed).mT > 0.3
        metric(prediction, target)
        for a, b in zip(prediction, target, strict=True):
            errors.append([error_of(*pair) for pair in zip(a, b, strict=True)])
    errors = np.array(errors)[:, 0 if background else 1 :]
    assert metric.aggregate().item() == pytest.approx(errors.mean())
    np.testing.assert_allclose(metric.aggregate("mean_batch").numpy(), errors.mean(0))
    np.testing.assert_array_equal(metric.aggregate("none").numpy(), errors)
