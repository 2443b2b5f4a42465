"""Directions, levels and coordinates of points on the device, and how blocks share the work."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.calls import Call
from ecc_core._backends.cuda.calls import launch as launch_kernel
from ecc_core._backends.cuda.compile import function, processors, shared_limit
from ecc_core._backends.cuda.structures import Struct
from ecc_core._orthants import ORTHANTS, Frame, place_points, sort_directions

Floats = NDArray[np.float64]

THREADS = 256
DIRECTIONS = 32  # that a block counts together at most
QUARTER = 0.25  # of a step: levels closer than this to their even places are found by arithmetic

GRID = Struct("transform.cuh", "Grid")
# Points to its parts in the order of memory.
SAMPLING = Struct("transform.cuh", "Sampling")


class Sampling(NamedTuple):
    """Directions sorted by orthant, and sorted levels.

    Attributes
    ----------
    directions, levels, rows : array
        Vectors (k, 3), the levels, and the row of each direction in the result.
    starts : tuple of int
        Where the directions of each orthant start.
    origin, scale : float
        Level k is near ``origin + k / scale``; scale is 0 if levels are not evenly spaced.
    error : float
        The largest distance between a level and that place, in steps between levels.
    """

    directions: Floats
    levels: Floats
    rows: NDArray[np.int32]
    starts: tuple[int, ...]
    origin: float
    scale: float
    error: float

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


@lru_cache(maxsize=16)
def _on_device(data: bytes, _device: int) -> Any:
    memory = cupy.asarray(np.frombuffer(data, np.uint8))
    # Other streams may use it next, and kernels on any stream may still use what the cache drops.
    cupy.cuda.Device().synchronize()
    return memory


def sample(directions: Floats, heights: Floats, reach: float) -> Sampling:
    """Return the directions and levels of a transform; no height is larger than `reach`."""
    return _sample(directions.tobytes(), directions.shape[1], heights.tobytes(), reach)


@lru_cache(maxsize=16)
def _sample(directions: bytes, ndim: int, heights: bytes, reach: float) -> Sampling:
    by_orthant = sort_directions(np.frombuffer(directions).reshape(-1, ndim))
    levels = np.frombuffer(heights)
    starts = np.searchsorted(by_orthant.orthant, np.arange(ORTHANTS + 1))
    rows = by_orthant.order.astype(np.int32)
    return Sampling(by_orthant.vectors, levels, rows, tuple(starts.tolist()), *_even(levels, reach))


def _even(levels: Floats, reach: float) -> tuple[float, float, float]:
    """Return the first level, levels a unit of height, and how far levels are from even places.

    All are 0 unless this tells all levels well enough.
    """
    low = float(levels[0])
    with np.errstate(all="ignore"):
        scale = float((levels.size - 1) / (levels[-1] - levels[0]))
        error = np.abs((levels - low) * scale - np.arange(levels.size)).max()
        rounding = 16 * np.finfo(np.float64).eps * (reach + abs(low)) * scale
    error = float(error + rounding)
    return (low, scale, error) if error < QUARTER else (0.0, 0.0, 0.0)


@lru_cache(maxsize=64)
def split(starts: tuple[int, ...], size: int) -> NDArray[np.int32]:
    """Divide each orthant into runs of at most `size` directions: (first, last, orthant)."""
    jobs = []
    for orthant in range(ORTHANTS):
        first, last = starts[orthant], starts[orthant + 1]
        runs = -(-(last - first) // size)
        edges = [first + (last - first) * i // max(runs, 1) for i in range(runs + 1)]
        jobs += [(edges[i], edges[i + 1], orthant) for i in range(runs)]
    return np.array(jobs, np.int32)


class Plan(NamedTuple):
    """How blocks share the directions and the image.

    Attributes
    ----------
    jobs : array
        Runs of directions that a block counts together.
    blocks : int
        Number of blocks that share a job.
    shared : int
        Bytes of dynamic shared memory; 0 if bins and levels stay in global memory.
    """

    jobs: NDArray[np.int32]
    blocks: int
    shared: int


def plan(
    sampling: Sampling,
    units: int,
    *,
    bin_bytes: int,
    budget: int,
    spare: int,
    resident: int,
) -> Plan:
    """Share the directions among jobs, and `units` of work on the image among the blocks of each.

    A block has bins of `bin_bytes` bytes in shared memory for each level and direction. They take
    at most `budget` bytes, or more if one direction needs more. The kernel declares `spare` bytes
    itself, and `resident` blocks fit on a multiprocessor.
    """
    device = cupy.cuda.runtime.getDevice()
    levels = sampling.levels.size
    each, fixed = levels * bin_bytes + 24, 8 * levels
    size = min(DIRECTIONS, max(1, (budget - fixed) // each))
    fits = fixed + size * each <= shared_limit(device) - spare
    # A small image is shared by its directions.
    wanted = -(-2 * processors(device) // units)
    size = max(1, min(size if fits else DIRECTIONS, sampling.most, sampling.rows.size // wanted))
    jobs = split(sampling.starts, size)
    blocks = max(1, min(units, resident * processors(device) // len(jobs)))
    return Plan(jobs, blocks, fixed + size * each if fits else 0)


def place_grid(shape: tuple[int, ...], spacing: Floats, connectivity: int) -> tuple[Frame, Any]:
    """Return the frame of an image and the kernels' Grid."""
    return _place_grid(shape, tuple(spacing.tolist()), connectivity)


@lru_cache(maxsize=64)
def _place_grid(
    shape: tuple[int, ...], spacing: tuple[float, ...], connectivity: int
) -> tuple[Frame, Any]:
    frame = place_points(shape, np.array(spacing), connectivity)
    steps = (*[1.0] * (3 - len(spacing)), *spacing)
    axes = []
    for positions, step, present in zip(frame.positions, steps, frame.axes, strict=True):
        axes.append(((len(positions) - 1) / 2, step, len(positions), present))
    return frame, GRID(**dict(zip("zyx", axes, strict=True)))


def launch(
    source: str,
    name: str,
    blocks: int | tuple[int, int],
    arguments: tuple[Any, ...],
    macros: dict[str, int | str] | None = None,
    shared: int = 0,
    threads: int = THREADS,
) -> None:
    """Run a kernel of a transform on the current stream."""
    grid = blocks if isinstance(blocks, tuple) else (blocks,)
    launch_kernel(_kernel(source, name, threads, macros), grid, threads, arguments, shared)


def prepare(
    source: str,
    name: str,
    blocks: int,
    arguments: tuple[Any, ...],
    macros: dict[str, int | str] | None = None,
    shared: int = 0,
    threads: int = THREADS,
) -> Call:
    """Return the launch of a kernel whose arguments are given by value, on the current device."""
    return Call(
        _kernel(source, name, threads, macros).kernel, (blocks,), threads, shared, arguments
    )


def _kernel(source: str, name: str, threads: int, macros: dict[str, int | str] | None) -> Any:
    device = cupy.cuda.runtime.getDevice()
    return function(source, name, device, {"THREADS": threads, **(macros or {})})


def accumulate(bins: Any) -> Any:
    """Replace contiguous bins by their running sums along the last axis."""
    launch(
        "transform_sums",
        "accumulate",
        bins.size // bins.shape[-1],
        (bins, np.int32(bins.shape[-1])),
    )
    return bins
