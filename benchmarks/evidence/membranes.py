"""Membranes in electron micrographs segmented with and without topological losses.

    git clone https://github.com/unidesigner/groundtruth-drosophila-vnc
    python benchmarks/evidence/membranes.py [--quick]

Writes benchmarks/results/evidence/membranes.{json,md}. The environment variable DROSOPHILA_VNC is
the folder of the data set, by default the one that is cloned into the current folder.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from imageio.v3 import imread
from outcome import Outcome, report
from segmentation_trials import PROTOCOL, Data, Task, compare

STEPS = 200
NAMES = "cross entropy", "EulerCurveLoss", "TopoLoss", "clDice"
SIDE = 64
BLOCK = 4
SHARE = 0.4
TRAINING, VALIDATION, TEST = 96, 112, 192
"""The column at which the training set ends, and those at which the others begin."""
QUESTION = "Does EulerCurveLoss improve the topology of membranes that a network segments?"
CONCLUSION = """
Not once small objects and holes have been removed: the change of the 2.58 errors of cross entropy
is -0.04 ± 0.13 with EulerCurveLoss, and not significant with TopoLoss and clDice either. As they
come from the network, there are a third fewer errors (16.0 to 11.1; TopoLoss: 10.0), but still four
times as many as post-processing leaves.
"""
TEXT = f"""
Serial sections of the ventral nerve cord of a Drosophila larva, in transmission electron
microscopy, with membranes drawn by experts (Gerhard, Funke, Martel, Cardona and Fetter, "Segmented
anisotropic ssTEM dataset of neural tissue", figshare 2013, doi:10.6084/m9.figshare.856713; CC
BY-NC-SA 3.0, not included here). The 20 sections are averaged over blocks of 4 x 4 pixels (18 nm);
a block is membrane if 0.4 of it is. Tiles have 64 x 64 pixels. Columns 0 to 95 are for training (24
tiles at random places, drawn anew for each seed), columns 112 to 175 for validation (24 tiles), and
columns 192 to 255 for the test (60 tiles). Networks are trained in {STEPS} steps of Adam, and
weights chosen after post-processing. In a first run they were chosen before it, from up to 1,000:
EulerCurveLoss then took 1,000 and made 5.5 errors at a Dice of 0.59, 4.1 after post-processing.

{PROTOCOL}
"""


def sections() -> Data:
    """Return standardized images (20, 256, 256) and membranes."""
    folder = Path(os.environ.get("DROSOPHILA_VNC", "groundtruth-drosophila-vnc")) / "stack1"
    pairs = ("raw", "tif"), ("membranes", "png")
    stacks = []
    for name, suffix in pairs:
        files = [folder / name / f"{k:02}.{suffix}" for k in range(20)]
        slices = [imread(file) for file in files]
        stacks.append(np.stack(slices))
    blocks = [stack.reshape(20, 256, BLOCK, 256, BLOCK).mean((2, 4)) for stack in stacks]
    images = (blocks[0] - blocks[0].mean()) / blocks[0].std()
    return torch.from_numpy(images).float(), torch.from_numpy(blocks[1] > SHARE)


def run(quick: bool) -> Outcome:
    images, masks = sections()

    def tiles(places: list[tuple[int, int, int]]) -> Data:
        cut = [np.s_[k, y : y + SIDE, x : x + SIDE] for k, y, x in places]
        own_images = torch.stack([images[box] for box in cut])
        own_masks = torch.stack([masks[box] for box in cut])
        return own_images[:, None], own_masks[:, None]

    def drawn(seed: int) -> Data:
        ends = len(images), images.shape[1] - SIDE + 1, TRAINING - SIDE + 1
        return tiles(np.random.default_rng(seed).integers(0, ends, (24, 3)).tolist())

    grid = [(k, y, 0) for k in range(20) for y in range(0, 256, SIDE)]
    validation = [(k, y, VALIDATION) for k, y, _ in grid if k % 10 < 3]
    test = [(k, y, TEST) for k, y, _ in grid if k % 4 != 3]
    task = Task(drawn, tiles(validation), tiles(test), STEPS, NAMES)
    rows = compare(task, quick)
    title = "Membranes with topological losses"
    return Outcome(title, TEXT, {"Membranes": rows}, {}, QUESTION, CONCLUSION)


if __name__ == "__main__":
    report("membranes", run)
