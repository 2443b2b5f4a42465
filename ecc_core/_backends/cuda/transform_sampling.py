"""Directions, levels and coordinates of points on the device, and how blocks share the work."""

from itertools import pairwise
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.kernels import Struct
from ecc_core._orthants import ORTHANTS, Frame, place_points, sort_directions

Floats = NDArray[np.float64]

THREADS = 256
DIRECTIONS = 32  # The most directions that a block counts together.
# Levels off their even places by less than this part of a step are found by arithmetic.
QUARTER = 0.25

GRID = Struct("transform.cuh", "Grid")
# The structure points to the parts of a sampling, which follow each other in memory.
SAMPLING = Struct("transform.cuh", "Sampling")


class Sampling(NamedTuple):
    """Directions sorted by orthant, and sorted levels."""

    directions: Floats  # (k, 3)
    levels: Floats
    rows: NDArray[np.int32]
    """The row of each direction in the result."""
    starts: tuple[int, ...]
    """The index at which the directions of each orthant begin."""
    # Level k is near ``origin + k / scale``; scale is 0 if levels are not evenly spaced.
    origin: float
    scale: float
    error: float
    """The largest distance between a level and that place, in steps between levels."""

    @property
    def most(self) -> int:
        """The largest number of directions in an orthant."""
        return max(b - a for a, b in pairwise(self.starts))

    def upload(self, jobs: NDArray[np.int32]) -> tuple[Any, Any]:
        """Return the device memory of a sampling, and the kernels' Sampling, which points to it."""
        parts = (self.directions, self.levels, self.rows, jobs)
        data = b"".join(part.tobytes() for part in parts)
        memory = _on_device(data, cupy.cuda.runtime.getDevice())
        places = np.cumsum([memory.data.ptr, *(part.nbytes for part in parts[:-1])])
        return memory, SAMPLING(
            **dict(zip(("directions", "levels", "rows", "jobs"), places, strict=True)),
            count=self.levels.size,
            directions_count=self.rows.size,
            origin=self.origin,
            scale=self.scale,
        )


@programs.of_data
def _on_device(data: bytes, _device: int) -> Any:
    return programs.upload(np.frombuffer(data, np.uint8))


@programs.of_data
def sample(directions: bytes, ndim: int, heights: bytes, reach: float) -> Sampling:
    """Return the directions and levels of a transform; no height is larger than `reach`."""
    by_orthant = sort_directions(np.frombuffer(directions).reshape(-1, ndim))
    levels = np.frombuffer(heights)
    starts = np.searchsorted(by_orthant.orthant, np.arange(ORTHANTS + 1))
    rows = by_orthant.order.astype(np.int32)
    return Sampling(
        by_orthant.vectors, levels, rows, tuple(starts.tolist()), *evenness(levels, reach)
    )


def evenness(levels: Floats, reach: float) -> tuple[float, float, float]:
    """Return the first level, levels per unit of height, and how far levels are from even places.

    All are 0 if some level is too far from its place, in steps.
    """
    low = float(levels[0])
    with np.errstate(all="ignore"):
        scale = float((levels.size - 1) / (levels[-1] - levels[0]))
        error = np.abs((levels - low) * scale - np.arange(levels.size)).max()
        rounding = 16 * np.finfo(np.float64).eps * (reach + abs(low)) * scale
    error = float(error + rounding)
    return (low, scale, error) if error < QUARTER else (0.0, 0.0, 0.0)


@programs.plan
def split(starts: tuple[int, ...], size: int) -> NDArray[np.int32]:
    """Divide each orthant into runs of at most `size` directions: (first, last, orthant)."""
    jobs = []
    for orthant in range(ORTHANTS):
        first = starts[orthant]
        last = starts[orthant + 1]
        runs = ceil_div(last - first, size)
        edges = [first + (last - first) * i // max(runs, 1) for i in range(runs + 1)]
        jobs += [(edges[i], edges[i + 1], orthant) for i in range(runs)]
    return np.array(jobs, np.int32)


@programs.plan
def place_grid(
    shape: tuple[int, ...], spacing: tuple[float, ...], connectivity: int
) -> tuple[Frame, Any]:
    """Return the frame of an image and the kernels' Grid."""
    frame = place_points(shape, np.array(spacing), connectivity)
    steps = (*[1.0] * (3 - len(spacing)), *spacing)
    axes = []
    for positions, step, present in zip(frame.positions, steps, frame.axes, strict=True):
        axes.append(((len(positions) - 1) / 2, step, len(positions), present))
    return frame, GRID(**dict(zip("zyx", axes, strict=True)))


def accumulate(bins: Any, rows: int, count: int) -> Call:
    """Return the launch that replaces rows of bins by running sums; `bins` may be 0, set later."""
    arguments = bins, np.int32(count)
    return plan_call(
        "transform_sums",
        "accumulate",
        macros={},
        grid=(rows,),
        threads=THREADS,
        arguments=arguments,
    )
