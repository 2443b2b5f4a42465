"""The transform of a mask on the device: its planes of bits, and how blocks count them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.calls import by_value, pack
from ecc_core._backends.cuda.compile import processors, shared_limit
from ecc_core._backends.cuda.transform_sampling import (
    THREADS,
    Sampling,
    accumulate,
    launch,
    place_grid,
    sample,
    split,
)
from ecc_core._orthants import Frame

__all__ = ["mask_transform"]

Floats = NDArray[np.float64]

# Structures of transform_mask.cu.
PLANES = np.dtype(
    [("bits", "i8")]
    + [
        (name, "i4")
        for name in ("deep", "slices", "tiles", "words", "cubes", "outside", "sign", "")
    ]
)
PLACES = np.dtype(
    [(name, "f8") for name in ("scale", "offset", "error")] + [("shift", "i4"), ("guard", "i4")]
)

WARP = 32  # lanes of a warp, bits of a word
TILE_ROWS, TILE_COLUMNS = 32, 64  # of points that a warp handles together
PACKED_WORDS = THREADS // WARP  # words of a row that a block packs
COUNTING = 512  # threads of a block that counts
RESIDENT = 2  # of these blocks on a multiprocessor, at most
QUEUE_BYTES = COUNTING // WARP * (2 * 1024 + 16)  # points that the warps of a block have listed
BIN_BYTES = 8  # two counts, one for each sign
BUDGET = 80 << 10  # bytes of bins of a block, where this is enough for one copy
MOST_TURNS = 1 << 14  # of a block: a bin of 32 bits holds 2**12 points of 16 warps in each
FINDING = 6  # time to find 32 critical points, in additions of a warp
MOST_STEP = 2**15 - 1  # between points, in units of places


class Share(NamedTuple):
    """How blocks share the directions and the tiles of a mask.

    Attributes
    ----------
    jobs : (blocks, 5) array
        For each block the first and the last of its directions, their orthant, its number among
        the blocks that have these directions, and the number of these blocks.
    width : int
        Bins of each level in shared memory; 0 if bins are in global memory.
    shared : int
        Bytes of dynamic shared memory.
    """

    jobs: NDArray[np.int32]
    width: int
    shared: int


class Places(NamedTuple):
    """How integers tell the bins of heights; see the structure in transform_mask.cu."""

    scale: float
    offset: float
    error: float
    shift: int
    guard: int


def mask_transform(
    mask: Any,
    directions: Floats,
    heights: Floats,
    spacing: Floats,
    connectivity: int,
    workers: int | None = None,  # noqa: ARG001
) -> Any:
    """Return the transform (directions, heights) of a mask, int64."""
    values = cupy.zeros((len(directions), heights.size), np.int64)
    if values.size == 0:
        return values
    frame, grid = place_grid(mask.shape, spacing, connectivity)
    high, wide = (len(positions) for positions in frame.positions[1:])
    tiles, words = -(-high // TILE_ROWS), -(-wide // TILE_COLUMNS)
    sampling = sample(directions, heights, frame.reach)
    places = _place_bins(sampling, spacing)
    count = len(frame.positions[0]) * tiles * words
    work = _share(sampling, count, places)
    if places and not work.width:  # without the rows of bins on both sides they may fit
        places, work = None, _share(sampling, count, None)
    _sampling_memory, samples = sampling.upload(work.jobs)
    macros: dict[str, int | str] = {"SHARED": int(work.width > 0), "PLACES": int(bool(places))}
    given = by_value(pack(PLACES, *(places or Places(0, 0, 0, 0, 0))))
    _bits, planes = _pack_bits(mask, frame, tiles, words)
    arguments = planes, grid, samples, given, values, np.int32(work.width)
    launch("transform_mask", "count_mask", len(work.jobs), arguments, macros, work.shared, COUNTING)
    return accumulate(values)


def _pack_bits(mask: Any, frame: Frame, tiles: int, words: int) -> tuple[Any, Any]:
    """Return the planes of a mask, with a border, and the kernels' Planes."""
    deep = frame.axes[0]
    shape = frame.shape[0] + 2 * deep, tiles + 1, TILE_COLUMNS // WARP * words + 2
    bits = cupy.empty((*shape, TILE_ROWS), np.int32)
    outside = -1 if frame.cubes else 0
    planes = by_value(
        pack(PLANES, bits.data.ptr, deep, *shape, frame.cubes, outside, frame.sign, 0)
    )
    pixels = cupy.ascontiguousarray(mask)
    blocks = shape[0] * shape[1] * -(-shape[2] // PACKED_WORDS)
    launch("transform_pack", "pack", blocks, (pixels, planes, *map(np.int32, frame.shape)))
    return bits, planes


def _place_bins(sampling: Sampling, spacing: Floats) -> Places | None:
    """Return how steps of 16 bits tell bins, or None if too few heights are far from levels."""
    if not sampling.scale:
        return None
    steps = np.zeros(3)
    steps[3 - spacing.size :] = spacing
    steps *= np.abs(sampling.directions).max(axis=0) * sampling.scale
    # From the centre of a tile to a point, twice, as centres may be as far from the levels.
    guard = math.ceil(TILE_COLUMNS * steps[2] + TILE_ROWS * steps[1]) + 1
    rows = sampling.levels.size + 2 + 2 * guard
    most = max(float(steps[1:].max()), 2.0**-10)
    shift = min(math.floor(math.log2(MOST_STEP / most)), WARP - rows.bit_length())
    error = sampling.error * 2.0**shift
    # A step is off by half a unit at most, a centre by one.
    close = 4 * ((TILE_COLUMNS + TILE_ROWS) / 4 + 2 + error)
    if shift < 1 or close > 2.0 ** (shift - 2):
        return None
    scale = sampling.scale * 2.0**shift
    return Places(scale, 2.0**shift - sampling.origin * scale, error, shift, guard)


def _share(sampling: Sampling, tiles: int, places: Places | None) -> Share:
    """Share the directions among jobs, and the tiles among the blocks of each."""
    device = cupy.cuda.runtime.getDevice()
    rows = sampling.levels.size + 2 + 2 * (places.guard if places else 0)
    width = WARP
    while width > 1 and width * rows * BIN_BYTES > BUDGET:
        width //= 2
    size = width * rows * BIN_BYTES
    if QUEUE_BYTES + size > shared_limit(device):
        width = size = 0
    units = -(-tiles // (COUNTING // WARP))
    # A small image is shared by its directions.
    wanted = -(-2 * processors(device) // units)
    most = max(1, min(width or WARP, sampling.rows.size // wanted))
    resident = max(1, min(RESIDENT, shared_limit(device) // (QUEUE_BYTES + size)))
    jobs = _jobs(sampling.starts, most, units, resident * processors(device))
    return Share(jobs, width, QUEUE_BYTES + size)


@lru_cache(maxsize=64)
def _jobs(starts: tuple[int, ...], most: int, units: int, blocks: int) -> NDArray[np.int32]:
    """Return the blocks' jobs.

    At most `most` directions are in a job, so many that few lanes have no work. The jobs share the
    blocks in proportion to the time that they take, and no job has more blocks than units of work.
    """

    def times(jobs: NDArray[np.int32]) -> Floats:
        return FINDING + WARP / (WARP // (jobs[:, 1] - jobs[:, 0]))

    jobs = min((split(starts, size) for size in range(most, 0, -1)), key=lambda j: times(j).sum())
    shares = times(jobs) / times(jobs).sum()
    fewest = max(1, -(-units // MOST_TURNS))
    taken = np.clip(np.floor(blocks * shares), fewest, max(units, fewest)).astype(int)
    ranks = [(*job, rank, n) for job, n in zip(jobs, taken, strict=True) for rank in range(n)]
    return np.array(ranks, np.int32)
