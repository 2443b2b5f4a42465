"""The transform of a mask on the device: its planes of bits, and how blocks count them."""

import math
from itertools import pairwise
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.kernels import Struct, processors, shared_limit
from ecc_core._backends.cuda.transform_sampling import (
    Sampling,
    accumulate,
    place_grid,
    sample,
    split,
)
from ecc_core._orthants import Frame

Floats = NDArray[np.float64]

PLANES = Struct("transform.cuh", "Planes")
PLACES = Struct("transform_mask.cu", "Places")

WARP = 32  # The number of lanes of a warp, and of bits of a word.
# A warp handles so many rows and columns of points together.
TILE_ROWS = 32
TILE_COLUMNS = 64
PACKED_WORDS = 6  # A block packs so many words of a row.
PACKING = PACKED_WORDS * 16  # The threads of such a block, each of which packs two words.
COUNTING = 512  # The threads of a block that counts.
RESIDENT = 2  # The most of these blocks on a multiprocessor.
# Bytes of the points that the warps of a block have listed.
QUEUE_BYTES = COUNTING // WARP * 2048 + 16
SLICES = (8, 4, 2, 1)  # How many slices a warp may handle together: powers of two.
LEAST_UNITS = 4  # The fewest units of work for each warp if it handles several slices.
BIN_BYTES = 8  # A bin has two counts, one for each sign.
BUDGET = 80 << 10  # Bytes of the bins of a block, if one copy of them fits.
# The most slices of a block, of each of which a bin of 32 bits holds 2**12 points of 16 warps.
MOST_TURNS = 1 << 14
FINDING = 6  # Finding 32 critical points takes as long as so many additions of a warp.
MOST_STEP = 2**16 - 1  # The largest step between points, in units of places.


def mask_transform(
    mask: Any,
    directions: Floats,
    heights: Floats,
    spacing: Floats,
    connectivity: int,
    workers: int | None = None,
) -> Any:
    """Return the transform (directions, heights) of a mask, int64."""
    shape = len(directions), heights.size
    if 0 in shape:
        return cupy.zeros(shape, np.int64)
    device = cupy.cuda.runtime.getDevice()
    plan = _plan(
        mask.shape, directions.tobytes(), heights.tobytes(), spacing.tobytes(), connectivity, device
    )
    words, packing, counting, summing, _memory = plan
    pixels = cupy.ascontiguousarray(mask)
    bits = cupy.empty(words, np.int32)
    source, planes, *_ = packing.places
    packing.launch(((source, pixels.data.ptr), (planes, bits.data.ptr)))
    values = cupy.zeros(shape, np.int64)
    planes, _grid, _sampling, _given, result, *_ = counting.places
    counting.launch(((planes, bits.data.ptr), (result, values.data.ptr)))
    summing.launch(((summing.places[0], values.data.ptr),))
    return values


@programs.of_data
def _plan(
    shape: tuple[int, ...],
    directions: bytes,
    heights: bytes,
    spacing: bytes,
    connectivity: int,
    _device: int,
) -> tuple[int, Call, Call, Call, Any]:
    """Plan the transform of masks of a shape, on the current device.

    Returns the words of 32 bits in the planes, the launches that pack a mask, count and sum, which
    lack the addresses of mask, planes and result, and memory that must live as long as these.
    """
    steps = np.frombuffer(spacing)
    frame, grid = place_grid(shape, tuple(steps.tolist()), connectivity)
    sampling = sample(directions, len(shape), heights, frame.reach)
    rows, columns, slices, units = _divide(frame, sampling)
    places = _place_bins(sampling, steps, slices)
    jobs, width, shared = _share(sampling, units, slices, places)
    if places and not width:  # They may fit without the rows of bins on both sides.
        places = {}
        jobs, width, shared = _share(sampling, units, slices, places)
    memory, samples = sampling.upload(jobs)
    deep = frame.axes[0]
    words = frame.shape[0] + 2 * deep, rows + 1, TILE_COLUMNS // WARP * columns + 2
    sizes = {"deep": deep, "slices": words[0], "tiles": words[1], "words": words[2]}
    outside = 0xFFFFFFFF if frame.cubes else 0
    planes = PLANES(**sizes, cubes=frame.cubes, outside=outside, sign=frame.sign)
    blocks = words[0] * words[1] * ceil_div(words[2], PACKED_WORDS)
    arguments = 0, planes, *map(np.int32, frame.shape)
    packing = plan_call(
        "transform_pack", "pack", macros={}, grid=(blocks,), threads=PACKING, arguments=arguments
    )
    macros = {"SHARED": int(width > 0), "PLACES": int(bool(places))}
    numbers = map(np.int32, (width, slices))
    given = planes, grid, samples, PLACES(**places), 0, *numbers
    at = (len(jobs),)
    counting = plan_call(
        "transform_mask",
        "count_mask",
        macros=macros,
        grid=at,
        threads=COUNTING,
        arguments=given,
        shared=shared,
    )
    summing = accumulate(0, len(sampling.rows), sampling.levels.size)
    return math.prod(words) * TILE_ROWS, packing, counting, summing, memory


def _divide(frame: Frame, sampling: Sampling) -> tuple[int, int, int, int]:
    """Divide a mask among warps: many slices at a time, but enough units of work.

    Returns how many blocks of 32 rows and of 64 columns there are, the slices of a unit, and the
    number of units.
    """
    deep, high, wide = map(len, frame.positions)
    rows = ceil_div(high, TILE_ROWS)
    columns = ceil_div(wide, TILE_COLUMNS)
    warps = RESIDENT * processors(cupy.cuda.runtime.getDevice()) * COUNTING // WARP
    orthants = sum(a < b for a, b in pairwise(sampling.starts))
    for slices in SLICES:
        units = ceil_div(deep, slices) * rows * columns
        if units * orthants >= LEAST_UNITS * warps:
            break
    return rows, columns, slices, units


def _place_bins(sampling: Sampling, spacing: Floats, slices: int) -> dict[str, float]:
    """Return how integers tell the bins of heights, the fields of PLACES.

    There are none if steps of 16 bits would leave too few heights that are far from levels.
    """
    if not sampling.scale:
        return {}
    steps = np.zeros(3)
    steps[3 - spacing.size :] = spacing
    steps = np.abs(sampling.directions) * (steps * sampling.scale)
    sides = slices, TILE_ROWS, TILE_COLUMNS
    # From the centre of a tile to a point, twice, as centres may be as far from the levels.
    guard = math.ceil((steps @ np.array(sides)).max()) + 1
    rows = sampling.levels.size + 2 + 2 * guard
    most = max(float(steps.max()), 2.0**-10)
    shift = min(math.floor(math.log2(MOST_STEP / most)), WARP - rows.bit_length())
    error = sampling.error * 2.0**shift
    # A step is off by half a unit at most, a centre by one.
    close = 4 * (sum(sides) / 4 + 2 + error)
    if shift < 1 or close > 2.0 ** (shift - 2):
        return {}
    scale = sampling.scale * 2.0**shift
    offset = 2.0**shift - sampling.origin * scale
    return {"scale": scale, "offset": offset, "error": error, "shift": shift, "guard": guard}


def _share(
    sampling: Sampling, units: int, slices: int, places: dict[str, float]
) -> tuple[NDArray[np.int32], int, int]:
    """Return how blocks share the directions and the units.

    Jobs tell for each block the first and the last of its directions, their orthant, its number
    among the blocks that have these directions, and the number of these blocks. Then follow the
    bins of each level in shared memory, 0 if bins are in global memory, and its bytes.
    """
    device = cupy.cuda.runtime.getDevice()
    rows = sampling.levels.size + 2 + 2 * int(places.get("guard", 0))
    width = WARP
    while width > 1 and width * rows * BIN_BYTES > BUDGET:
        width //= 2
    size = width * rows * BIN_BYTES
    if QUEUE_BYTES + size > shared_limit(device):
        width = size = 0
    units = ceil_div(units, COUNTING // WARP)
    # A small image is shared by its directions.
    wanted = ceil_div(2 * processors(device), units)
    most = max(1, min(width or WARP, sampling.rows.size // wanted))
    resident = max(1, min(RESIDENT, shared_limit(device) // (QUEUE_BYTES + size)))
    fewest = ceil_div(units * slices, MOST_TURNS)
    jobs = _jobs(sampling.starts, most, units, resident * processors(device), fewest)
    return jobs, width, QUEUE_BYTES + size


@programs.plan
def _jobs(
    starts: tuple[int, ...], most: int, units: int, blocks: int, fewest: int
) -> NDArray[np.int32]:
    """Return the blocks' jobs.

    At most `most` directions are in a job, so many that few lanes have no work. The jobs share the
    blocks in proportion to the time that they take; no job has more blocks than units of work, or
    less than `fewest`.
    """

    def times(jobs: NDArray[np.int32]) -> Floats:
        return FINDING + WARP / (WARP // (jobs[:, 1] - jobs[:, 0]))

    choices = [split(starts, size) for size in range(most, 0, -1)]
    totals = [times(choice).sum() for choice in choices]
    jobs = choices[int(np.argmin(totals))]
    shares = times(jobs) / times(jobs).sum()
    taken = np.floor(blocks * shares).clip(fewest, max(units, fewest)).astype(int)
    blocks_of_jobs = []
    for (first, last, orthant), count in zip(jobs, taken, strict=True):
        blocks_of_jobs += [(first, last, orthant, rank, count) for rank in range(count)]
    return np.array(blocks_of_jobs, np.int32)
