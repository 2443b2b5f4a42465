#!/usr/bin/env bash
# WarpingLoss of topolosses compares the predicted objects with the channel of the background.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
# An empty module stands for torchvision, which another loss of the package needs.
"$folder/env/bin/pip" install --quiet --no-deps "topolosses==0.2.0"
"$folder/env/bin/pip" install --quiet "torch==2.13.0" "numpy==2.4.6" "scipy==1.17.1" "gudhi==3.13.0" "POT==0.9.7.post1" \
    "opencv-python-headless==5.0.0.93"
mkdir "$folder/torchvision"
touch "$folder/torchvision/__init__.py"
export PYTHONPATH="$folder"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import torch
from topolosses.losses import WarpingLoss

print("topolosses", version("topolosses"))
wall = torch.zeros(16, 16, dtype=torch.long)
wall[6:10] = 1  # class 1 is the object
target = torch.nn.functional.one_hot(wall).movedim(-1, 0)[None].float()  # background, then object
broken = wall.clone()
broken[:, 8] = 0
logits = 4 * torch.nn.functional.one_hot(broken).movedim(-1, 0)[None].float()
logits.requires_grad_()
loss = WarpingLoss(use_base_loss=False, alpha=1.0)
gaps = (wall != broken)[None]


def slope_in_the_gap(shown: torch.Tensor) -> float:
    """How the loss changes with the logit of class 1 where the wall is broken."""
    (gradient,) = torch.autograd.grad(loss(logits, shown), logits)
    return float(gradient[:, 1][gaps].sum())


given, exchanged = slope_in_the_gap(target), slope_in_the_gap(target.flip(1))
print("slope in the gap, background and object in this order:", given)
print("slope in the gap, channels of the target exchanged:", exchanged)
# A loss that closes the gap falls as the logit of the object grows there.
assert exchanged < 0
assert given >= 0
values = {}
for name, classes in {"right": wall, "inverse": 1 - wall}.items():
    guess = classes.clone()
    guess[0, 0] = 1 - guess[0, 0]  # Without a wrong point the loss raises an IndexError.
    shown = 4 * torch.nn.functional.one_hot(guess).movedim(-1, 0)[None].float()
    values[name] = float(loss(shown, target))
print("loss of the right mask and of its inverse:", values)
assert values["right"] > values["inverse"]
PYTHON
