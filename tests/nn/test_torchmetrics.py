"""The error of Betti numbers as a metric of torchmetrics, and in Lightning."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from nn_helpers import draw_normal as draw
from oracles.betti import mean_error

pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")
from torchmetrics import MetricCollection

from ecc_core.nn.torchmetrics import BettiError

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
BLOCK = re.compile(r"^```\{code-block\} python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_probabilities_and_logits_of_batches():
    metric = MetricCollection({"error": BettiError()})
    masks = []
    targets = []
    for seed, count in enumerate((3, 1, 2)):
        logits = draw(count, 18, 20, seed=seed)
        target = draw(count, 18, 20, seed=seed + 9) > 0.4
        metric.update(logits.sigmoid() if seed == 1 else logits, target.long())
        masks += list(logits >= 0)
        targets += list(target)
    assert metric.compute()["error"].item() == pytest.approx(mean_error(masks, targets))
    metric.reset()
    assert metric["error"].count == 0


@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize("axis", [False, True])
def test_class_indices_and_scores(background, axis):
    scores = draw(2, 3, 18, 20)
    target = draw(2, 3, 18, 20, seed=1).argmax(1)
    classes = range(0 if background else 1, 3)
    pairs = [(scores.argmax(1) == c, target == c) for c in classes]
    wanted = np.mean([mean_error(*pair) for pair in pairs])
    shown = target[:, None] if axis else target
    given = scores, scores.softmax(1), scores.argmax(1)
    metrics = [BettiError(num_classes=3, include_background=background) for _ in given]
    found = [metric(preds, shown).item() for metric, preds in zip(metrics, given, strict=True)]
    assert found == pytest.approx([wanted] * 3)


def test_errors():
    metric = BettiError(num_classes=3)
    indices = torch.zeros(2, 5, 6, dtype=torch.long)
    with pytest.raises(ValueError, match=r"`preds` must have shape \(batch, 3, spatial\).*\(2, 4"):
        metric(torch.rand(2, 4, 5, 6), indices)
    with pytest.raises(TypeError, match=r"`target` must hold class indices, got torch\.float32"):
        metric(indices, indices.float())
    with pytest.raises(ValueError, match=r"`target` must have shape \(batch, spatial\).*\(2, 2, 5"):
        metric(indices, torch.zeros(2, 2, 5, 6, dtype=torch.long))
    with pytest.raises(ValueError, match="`num_classes` must be a positive int, got 0"):
        BettiError(num_classes=0)


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # Lightning uses it.
def test_lightning_of_the_guide(tmp_path):
    lightning = pytest.importorskip("pytorch_lightning", reason="Lightning is not installed")
    names = {"nn": torch.nn, "torch": torch}
    exec(BLOCK.findall(PAGE.read_text(encoding="utf-8"))[1], names)
    model = names["Segmentation"](torch.nn.Conv2d(1, 1, 3, padding=1))
    images = draw(4, 1, 32, 32)
    data = [(images, images > 0.5)]
    weights = []

    class Watch(lightning.Callback):
        def on_train_epoch_end(self, trainer, module):
            weights.append(module.topology_weight)

    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    options = {**dict.fromkeys(quiet, False), "default_root_dir": tmp_path, "accelerator": "cpu"}
    steps = [names["AddTopology"](100, first=1, last=3), Watch()]
    trainer = lightning.Trainer(max_epochs=4, callbacks=steps, **options)
    loader = torch.utils.data.DataLoader(data, batch_size=None)
    trainer.fit(model, loader, loader)
    assert weights == [0, 0, 50, 100]
    logits = model.network(images)
    wanted = mean_error((logits >= 0)[:, 0], (images > 0.5)[:, 0])
    assert trainer.callback_metrics["betti_error"].item() == pytest.approx(wanted)
