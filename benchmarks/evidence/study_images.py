"""Images with thin structures that fade in places, for the study of losses."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from imageio.v3 import imread
from numpy.typing import NDArray
from outcome import ROOT
from scipy.ndimage import gaussian_filter
from scipy.spatial import KDTree
from torch import Tensor

sys.path.insert(0, str(ROOT / "examples"))
from learn_segmentation import data_set as walls

Image = NDArray[np.float32]
Mask = NDArray[np.bool_]
Data = tuple[Tensor, Tensor]
"""Images and masks, (count, 1, *shape)."""

SIDE = 64
DEPTH = 20
"""Slices of volumes."""
VESSELS = 5
NODES = 9
"""Nodes in a network of tubes."""
NEIGHBOURS = 2
"""Nearest nodes that are joined to a node."""
RADIUS = 1.2
"""The radius of tubes."""
FADED = 0.25
"""The contrast in a fog, relative to that outside."""
FOG = 1.2  # There is fog where smooth noise exceeds so many standard deviations.
BLOCK = 4
"""Side of the blocks of pixels of micrographs that are averaged."""
SHARE = 0.4  # A block is membrane if more than this share of it is.
TRAINING = (0, 32)
"""The least and the largest first column of tiles of the micrographs."""
VALIDATION = (112, 112)
TEST = (192, 192)
COUNTS = (24, 16, 40)
"""Images for training, for validation and for the test."""


class Sets(NamedTuple):
    """Images to train on, to choose by, and to judge by."""

    training: Data
    validation: Data
    test: Data


class Subject(NamedTuple):
    """The images of a part of the study."""

    title: str
    ndim: int
    draw: Callable[[int], Sets]
    """Returns the images of a seed."""
    crop: int
    """The side of the parts of images with which networks are trained."""
    skeleton: int
    """The iterations of soft skeletons: half the width of the widest structure, rounded up."""


def faded(mask: Mask, rng: np.random.Generator, noise: float) -> Image:
    """Return a noisy image of a mask, with less contrast in a fog."""
    fog = gaussian_filter(rng.standard_normal(mask.shape), 3)
    strength = np.where(fog > FOG * fog.std(), FADED, 1.0)
    grain = noise * gaussian_filter(rng.standard_normal(mask.shape), 0.7)
    return (gaussian_filter(mask * strength, 0.8) + grain).astype(np.float32)


def vessel(rng: np.random.Generator) -> NDArray[np.float64]:
    """Return points of a winding path across the square, 4 a pixel, that begins outside."""
    angle = rng.uniform(0, 2 * np.pi)
    begin = SIDE / 2 - 0.75 * SIDE * np.array([np.cos(angle), np.sin(angle)])
    begin = begin + rng.uniform(-SIDE / 4, SIDE / 4, 2)
    turns = gaussian_filter(rng.standard_normal(8 * SIDE), 24)
    angles = angle + 1.5 * turns / turns.std() * rng.uniform(0.2, 0.5)
    return begin + np.cumsum(np.stack([np.cos(angles), np.sin(angles)], axis=1), axis=0) / 4


def vessels(rng: np.random.Generator) -> tuple[Image, Mask]:
    """Return a noisy image of thin vessels, which cross each other, and the vessels."""
    points = np.stack(np.mgrid[:SIDE, :SIDE], axis=-1).reshape(-1, 2)
    mask = np.zeros(SIDE**2, np.bool_)
    for _ in range(VESSELS):
        distances = KDTree(vessel(rng)).query(points)[0]
        mask |= distances < rng.uniform(0.9, 1.6)
    mask = mask.reshape(SIDE, SIDE)
    return faded(mask, rng, 0.6), mask


def tubes(rng: np.random.Generator) -> tuple[Image, Mask]:
    """Return a noisy volume of tubes between near nodes, and the tubes."""
    nodes = rng.uniform(2, DEPTH - 3, (NODES, 3))
    near = KDTree(nodes).query(nodes, k=NEIGHBOURS + 1)[1][:, 1:]
    joined = set()
    for i in range(NODES):
        for j in near[i].tolist():
            joined.add((min(i, j), max(i, j)))
    points = np.stack(np.mgrid[:DEPTH, :DEPTH, :DEPTH], axis=-1).reshape(-1, 3)
    mask = np.zeros(DEPTH**3, np.bool_)
    for i, j in sorted(joined):
        along = nodes[j] - nodes[i]
        part = ((points - nodes[i]) @ along / (along @ along)).clip(0, 1)
        distances = np.linalg.norm(points - nodes[i] - part[:, None] * along, axis=1)
        mask |= distances < RADIUS
    mask = mask.reshape(DEPTH, DEPTH, DEPTH)
    return faded(mask, rng, 0.6), mask


def generated(
    make: Callable[[np.random.Generator], tuple[Image, Mask]],
) -> Callable[[int], Sets]:
    """Return a function that generates all images of a seed."""

    def draw(seed: int) -> Sets:
        sets = []
        for part, count in enumerate(COUNTS):
            rng = np.random.default_rng((seed, part))
            images, masks = zip(*(make(rng) for _ in range(count)), strict=True)
            pair = (torch.from_numpy(np.stack(found))[:, None] for found in (images, masks))
            sets.append((next(pair), next(pair)))
        return Sets(*sets)

    return draw


def draw_walls(seed: int) -> Sets:
    """Return images of cell walls, as in the example."""
    firsts = 50_000, 40_000, 30_000
    sets = [walls(count, first + seed) for count, first in zip(COUNTS, firsts, strict=True)]
    return Sets(*sets)


@cache
def micrographs() -> Data:
    """Return standardized sections (20, 256, 256) and membranes."""
    folder = Path(os.environ.get("DROSOPHILA_VNC", "groundtruth-drosophila-vnc")) / "stack1"
    blocks = []
    for name, suffix in (("raw", "tif"), ("membranes", "png")):
        files = [folder / name / f"{k:02}.{suffix}" for k in range(20)]
        stack = np.stack([imread(file) for file in files])
        blocks.append(stack.reshape(20, 256, BLOCK, 256, BLOCK).mean((2, 4)))
    images = (blocks[0] - blocks[0].mean()) / blocks[0].std()
    return torch.from_numpy(images).float(), torch.from_numpy(blocks[1] > SHARE)


def draw_membranes(seed: int) -> Sets:
    """Return random tiles; columns for training, validation and the test do not overlap."""
    sections = micrographs()
    sets = []
    for part, (count, columns) in enumerate(zip(COUNTS, (TRAINING, VALIDATION, TEST), strict=True)):
        rng = np.random.default_rng((seed, part))
        ends = (20, 256 - SIDE + 1, columns[1] + 1)
        places = rng.integers((0, 0, columns[0]), ends, (count, 3)).tolist()
        tiles = []
        for stack in sections:
            cut = [stack[k, y : y + SIDE, x : x + SIDE] for k, y, x in places]
            tiles.append(torch.stack(cut)[:, None])
        sets.append((tiles[0], tiles[1]))
    return Sets(*sets)


SUBJECTS = {
    "walls": Subject(title="Faded cell walls", ndim=2, draw=draw_walls, crop=32, skeleton=3),
    "vessels": Subject(
        title="Thin vessels with gaps", ndim=2, draw=generated(vessels), crop=32, skeleton=3
    ),
    "tubes": Subject(title="Tubes in volumes", ndim=3, draw=generated(tubes), crop=16, skeleton=3),
    "membranes": Subject(
        title="Membranes in micrographs", ndim=2, draw=draw_membranes, crop=32, skeleton=3
    ),
}
