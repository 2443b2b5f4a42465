"""Soft transforms of simplicial complexes on CUDA devices: launches of soft_simplices.cu.

Memory is allocated by torch. Coefficients of weighted simplices are added in any order, so that
these results may differ between runs by rounding.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.cuda import is_current_stream_capturing

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import soft
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.kernels import Struct
from ecc_core._backends.soft import SoftShapeGradients, SoftShapes
from ecc_core.errors import BackendError

SHAPES = Struct("soft_simplices.cu", "SoftShapes")
REALS = {torch.float32: "float", torch.float64: "double"}
THREADS = 128
MOST_BLOCKS = 1 << 14
MOST_SHAPES = 1 << 15  # The shapes are the third axis of a grid.
POINTS_A_CHUNK = 256
ITEMS_A_THREAD = 8
MOST_CHUNKS = 64
SIZES = 8  # Kernels take simplices of up to so many sizes.
REFUSED = 1
UNSORTED = 2


class Launches:
    """The kernels with the arguments of one call."""

    def __init__(self, given: SoftShapes, device: int, stream: int) -> None:
        if len(given.simplices) > SIZES:
            raise BackendError(
                f"`simplices` must have at most {SIZES} sizes on a device, got "
                f"{len(given.simplices)}"
            )
        self.given = given
        self._stream = stream
        count = len(given.points)
        self.directions = len(given.vectors)
        self.heights = given.points.new_empty((count, self.directions))
        self.coefficients = torch.empty_like(self.heights)
        self._members: Tensor | None = None
        numbers = given.points, given.weights, given.vectors, given.levels, given.sharpness
        kept = [part if part is None else part.contiguous() for part in (*numbers, given.batch)]
        self._kept = [*kept, *(rows.contiguous() for rows in given.simplices)]
        self._fields = self._described(kept)

    def _described(self, kept: list[Tensor | None]) -> dict[str, Any]:
        """Return the fields of the kernels' SoftShapes."""
        given = self.given
        names = "points", "weights", "vectors", "levels", "sharpness", "batch"
        rows = self._kept[len(kept) :]
        missing = [0] * (SIZES - len(rows))
        addresses = (0 if part is None else part.data_ptr() for part in kept)
        return {
            **dict(zip(names, addresses, strict=True)),
            "rows": [*(part.data_ptr() for part in rows if part is not None), *missing],
            "counts": [*map(len, given.simplices), *missing],
            "sizes": [*(part.shape[1] for part in given.simplices), *missing],
            "kinds": len(given.simplices),
            "axes": given.points.shape[1],
            "directions": self.directions,
            "levels_count": len(given.levels),
            "count": len(given.points),
            "shapes": given.shapes,
            "heights": self.heights.data_ptr(),
            "coefficients": self.coefficients.data_ptr(),
        }

    def run(self, name: str, items: int, *arguments: Any, grid: tuple[int, ...] = ()) -> None:
        """Launch a kernel with a thread for each item, or with a grid of its own."""
        grid = grid or (min(max(1, ceil_div(items, THREADS)), MOST_BLOCKS),)
        macros = {"REAL": REALS[self.given.points.dtype]}
        plan_call(
            "soft_simplices", name, macros=macros, grid=grid, threads=THREADS, arguments=arguments
        ).launch(stream=self._stream)

    @property
    def shapes(self) -> Any:
        """The structure that kernels take."""
        members = 0 if self._members is None else self._members.data_ptr()
        return SHAPES(**self._fields, members=members)

    @property
    def most_items(self) -> int:
        """Entries of the largest argument."""
        sizes = [self.given.points.numel(), *(rows.numel() for rows in self.given.simplices)]
        return max(sizes)

    def order_members(self) -> None:
        """List the points in the order of their shapes."""
        self._members = torch.argsort(self.given.batch, stable=True)

    def project(self) -> None:
        """Compute heights and coefficients."""
        self.run("project", self.heights.numel(), self.shapes)
        most = max((len(rows) for rows in self.given.simplices), default=0)
        if most:
            self.run("add_simplices", most * self.directions, self.shapes)


def curves(given: SoftShapes) -> Tensor | None:
    """Return curves (shapes, k, n), or None for arguments that kernels must not take.

    Waits for the device to check them, unless the call is captured in a graph.
    """
    capturing = is_current_stream_capturing()
    with soft.launching(given.points) as (device, stream):
        launches = Launches(given, device, stream)
        state = UNSORTED
        if not capturing:
            flags = torch.zeros(1, dtype=torch.int32, device=given.points.device)
            launches.run("check_shapes", launches.most_items, launches.shapes, flags.data_ptr())
            state = int(flags)
        if state & REFUSED:
            return None
        if state & UNSORTED:
            launches.order_members()
        found = given.points.new_zeros((given.shapes, launches.directions, len(given.levels)))
        if found.numel() and len(given.points):
            launches.project()
            _sum(launches, found)
    return found


def _sum(launches: Launches, found: Tensor) -> None:
    """Write the sums over points, (shapes, k, n)."""
    shapes, directions, _ = found.shape
    chunks = ceil_div(len(launches.given.points), shapes * POINTS_A_CHUNK)
    chunks = min(max(chunks, 1), MOST_CHUNKS)
    sums = found.new_empty((chunks, *found.shape), dtype=torch.float64)
    grid = chunks, ceil_div(directions, 32), min(shapes, MOST_SHAPES)
    launches.run("sum_curves", 0, launches.shapes, sums.data_ptr(), grid=grid)
    size = found.numel()
    launches.run("add_chunks", size, sums.data_ptr(), size, np.int32(chunks), found.data_ptr())


def gradients(given: SoftShapes, upstream: Tensor, all_arguments: bool) -> SoftShapeGradients:
    """Return gradients by those of the curves: of points and vectors, or of `all_arguments`."""
    with soft.launching(given.points) as (device, stream):
        launches = Launches(given, device, stream)
        by_coefficients = torch.zeros_like(launches.heights)
        by_heights = torch.zeros_like(launches.heights)
        flow = upstream.transpose(1, 2).contiguous()
        terms = by_heights.numel() and upstream.numel()
        if terms:
            launches.project()
            both = by_coefficients.data_ptr(), by_heights.data_ptr()
            items = by_heights.numel()
            launches.run("differentiate", items, launches.shapes, flow.data_ptr(), *both)
        found = SoftShapeGradients(by_heights @ given.vectors, by_heights.T @ given.points)
        if not all_arguments:
            return found
        by_weights = torch.zeros(len(given.points), dtype=torch.float64, device=flow.device)
        by_levels = given.points.new_zeros((len(given.levels), 2))
        if terms:
            most = max([len(given.points), *map(len, given.simplices)])
            if given.weights is not None:
                addresses = by_coefficients.data_ptr(), by_weights.data_ptr()
                launches.run("differentiate_weights", most, launches.shapes, *addresses)
            by_levels = _by_levels(launches, flow)
    dtype = given.points.dtype
    slopes, spreads = by_levels.unbind(1)
    return found._replace(weights=by_weights.to(dtype), levels=slopes, sharpness=spreads.sum())


def _by_levels(launches: Launches, flow: Tensor) -> Tensor:
    """Return the gradients of the levels, and parts of that of the sharpness, (n, 2)."""
    given = launches.given
    chunks = min(ceil_div(launches.heights.numel(), THREADS * ITEMS_A_THREAD), MOST_CHUNKS)
    levels = len(given.levels)
    sums = flow.new_empty((chunks, levels, 2), dtype=torch.float64)
    grid = chunks, min(levels, MOST_SHAPES)
    launches.run(
        "differentiate_levels", 0, launches.shapes, flow.data_ptr(), sums.data_ptr(), grid=grid
    )
    return sums.sum(0).to(flow.dtype)
