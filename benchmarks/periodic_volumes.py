"""Volumes on disk that repeat a period, and their true numbers.

A volume is a sharded Zarr array whose shards are links to those of the first period: any reader
decodes all of it, and the disk holds one period.

The curve and the Minkowski functionals of a volume whose opposite sides touch are the sums of those
of its periods. For a volume that ends, an axis of k periods counts as k - 1 periods that are
periodic along it and one that is closed, in all combinations of the axes. Betti numbers can be
added up only if periods are apart, as those of `walled` periods are at all thresholds but the last.
"""

import itertools
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zarr
from scipy import ndimage
from zarr.codecs import BloscCodec, BloscShuffle

import ecc_core as ecc

PERIOD = 500
SHARD = 250
ESTIMATOR = "crofton-13"
WALL = 255
"""The largest value, which enters at the last threshold."""


class Storage(NamedTuple):
    """How the points of a shard are stored."""

    compressors: Any
    chunk: int
    """Points along each side of a chunk."""


STORAGES = {
    "zstd": Storage("auto", 125),
    "lz4": Storage(BloscCodec(cname="lz4", clevel=1, shuffle=BloscShuffle.bitshuffle), SHARD),
    "none": Storage(None, SHARD),
}
"""The storage for the name of each codec; "zstd" is the default of zarr."""


def scene(side: int = PERIOD) -> np.ndarray:
    """Return periodic smoothed noise, with blobs and the noise of a camera."""
    rng = np.random.default_rng(0)
    shape = (side,) * 3
    background = ndimage.gaussian_filter(rng.standard_normal(shape, np.float32), 2, mode="wrap")
    background -= background.min()
    background *= 70 / background.max()
    blobs = (rng.random(shape, np.float32) < 2e-5).astype(np.float32)
    blobs = ndimage.gaussian_filter(blobs, 6, mode="wrap")
    background += 120 / blobs.max() * blobs
    background += 2 * rng.standard_normal(shape, np.float32)
    return np.clip(background, 0, 255).astype(np.uint8)


def walled(period: np.ndarray) -> np.ndarray:
    """Return a period of eight others, with a wall at its end along each axis."""
    larger = np.tile(period, (2,) * period.ndim)
    for axis in range(larger.ndim):
        np.moveaxis(larger, axis, 0)[-1] = WALL
    return larger


def make(
    path: Path,
    period: np.ndarray,
    periods: Sequence[int],
    shard: int = SHARD,
    storage: Storage = STORAGES["zstd"],
) -> Path:
    """Write a volume of so many periods along each axis, whose shards are links to those of one."""
    if (path / "complete").exists():
        return path
    side = len(period)
    shape = tuple(side * count for count in periods)
    array = zarr.create_array(
        path,
        shape=shape,
        shards=(shard,) * 3,
        chunks=(storage.chunk,) * 3,
        compressors=storage.compressors,
        dtype=period.dtype,
        overwrite=True,
    )
    array[:side, :side, :side] = period
    of_period = side // shard
    for place in np.ndindex(*(length // shard for length in shape)):
        indices = [str(i % of_period) for i in place]
        source = path.joinpath("c", *indices)
        target = path.joinpath("c", *map(str, place))
        if target != source:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(source, target)
    (path / "complete").touch()
    return path


def truth(
    compute: Callable[..., np.ndarray], period: np.ndarray, periods: Sequence[int], boundary: str
) -> np.ndarray:
    """Return the numbers of a volume, from those of its period for combinations of borders.

    `compute` returns the numbers of an image for a boundary.
    """
    if boundary == "periodic":
        return math.prod(periods) * compute(period, boundary="periodic")
    total = 0
    for words in itertools.product(("periodic", "closed"), repeat=len(periods)):
        times = 1
        for word, count in zip(words, periods, strict=True):
            if word == "periodic":
                times *= count - 1
        if times:
            total = total + times * compute(period, boundary=words)
    return np.asarray(total)


def truth_of_walled(period: np.ndarray, periods: Sequence[int]) -> np.ndarray:
    """Return the Betti numbers of a volume of walled periods from those of one in memory."""
    numbers = ecc.betti_curves(period, 256, range=(0, 255)).values
    apart = math.prod(periods) * numbers
    apart[:, WALL] = numbers[:, WALL]  # All points have entered, and are joined.
    return np.asarray(apart)


def curve_of(image: np.ndarray, boundary: Any) -> np.ndarray:
    return ecc.euler_curve(image, 256, range=(0, 255), boundary=boundary).values


def functionals_of(image: np.ndarray, boundary: Any) -> np.ndarray:
    options = {"range": (0, 255), "estimator": ESTIMATOR, "boundary": boundary}
    return ecc.minkowski_curves(image, 256, **options).values
