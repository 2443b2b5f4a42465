"""The wrappers for MONAI in the guide."""

import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("monai", reason="MONAI is not installed")
from ecc_core.nn import BettiError, EulerCurveLoss  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
BLOCK = re.compile(r"^```\{code-block\} python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_guide(capsys):
    from monai.losses import DiceLoss

    (block,) = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 1, 64, 64, generator=generator).requires_grad_()
    target = torch.rand(3, 1, 64, 64, generator=generator) > 0.5
    names = {
        "nn": torch.nn,
        "EulerCurveLoss": EulerCurveLoss,
        "logits": logits,
        "target": target,
        "__name__": "guide",
    }
    exec(block, names)
    loss = names["loss"]
    expected = DiceLoss(sigmoid=True)(logits, target.float())
    expected = expected + 100 * EulerCurveLoss(window=32)(logits.sigmoid(), target)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert logits.grad.abs().max() > 0
    errors = BettiError(2)((logits > 0).numpy(), target.numpy())
    shown = capsys.readouterr().out.split()
    np.testing.assert_allclose([float(x) for x in shown], [loss.item(), errors.mean()], rtol=1e-5)
