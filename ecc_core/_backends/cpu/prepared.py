"""Curves of small images: what the calls for images of one layout share is prepared once.

An image of one block is read at its address. What remains of a call are three kernels, which load,
scan and sum, and one more for the range of the values where thresholds depend on it. Of images of
several blocks only the arguments are checked once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import lru_cache, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.encoders.plans import Plan, curve_plans
from ecc_core._backends.cpu.pool import worker_count
from ecc_core._backends.cpu.scans import kernels
from ecc_core._backends.cpu.scans.blocks import Scanner, Staged, kept_arrays
from ecc_core._backends.cpu.scans.layouts import lay_out
from ecc_core._backends.cpu.scans.stacks import (
    add_histograms,
    cumulate,
    parts_of,
    spatial_order,
)
from ecc_core._backends.cpu.sources import Block, Box, Source, address_of
from ecc_core._backends.cpu.value_range import range_at, value_range
from ecc_core._request.filtration import Filtration
from ecc_core._request.masks import as_booleans
from ecc_core._request.spatial_axes import Geometry
from ecc_core._request.thresholds import Thresholds
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]
Values = NDArray[np.int64]
_Masked = tuple[Array, Array | None]
"""An image as a batch of one, and the points of its mask."""

MOST_BYTES_OF_FORESTS = 1 << 20  # Forests of larger images are made by several threads.
KEPT_RANGES = 4  # Images often come again, or share the range of their type.
# Encoders of so many thresholds are kept with a plan. Those of 4096 take more than a megabyte, and
# calls with other thresholds each time, such as quantiles of the image, would keep hundreds.
MOST_KEPT_THRESHOLDS = 512
NO_PLACE = (0, 0, 0)  # Stands for the place of coefficients, which are not written here.


def plan(
    kind: str,
    images: Any,
    labels: Any,
    levels: Thresholds,
    filtration: Filtration,
    *,
    mask: Any = None,
    geometry: Geometry,
    workers: int | None = None,
) -> Callable[[Any], Any] | None:
    """Return a function of an image, and of a mask if one is given; None for images and regions.

    Arguments and results are those of :func:`ecc_core._backends.cuda.plans.plan`. Of the kind
    "betti" the values are Betti curves, (d, n).
    """
    closed = filtration.direction is None and filtration.boundary.is_closed
    alone = labels is None and not geometry.batch
    if not (closed and alone) or images.size == 0:
        return None
    at = levels.over(lambda: (0, 1), geometry.spatial)
    if at.size == 0:
        return None
    dtype = images.dtype.newbyteorder("=")
    plans_at = partial(
        curve_plans,
        dtype,
        superlevel=filtration.superlevel,
        cubes=filtration.cubes,
        masked=mask is not None,
        points=images.size,
        counts=True,
    )
    plan_of_all = plans_at(at)[-1]
    if kind == "betti" and images.nbytes > MOST_BYTES_OF_FORESTS:
        return None
    prepared: Any = None
    if mask is None:
        prepared = OneBlock.of(images, plan_of_all, filtration, geometry, workers)
    if prepared is None:
        if kind == "betti":
            return None
        prepared = SeveralBlocks(images, plan_of_all, filtration, geometry, workers)

    forest: Any = None
    if kind == "betti":
        from ecc_core._backends.cpu.betti.prepared import OneForest  # Few calls need it.

        forest = OneForest(prepared.block, dtype, filtration)

    def over(bounds: tuple[Any, Any] | None) -> tuple[Array, Sequence[Plan]]:
        """Return the thresholds over a range of values, if they need one, and the plans at them."""
        spread = at if bounds is None else levels.over(lambda: bounds, geometry.spatial)
        return spread, plans_at(spread)

    find: Callable[..., tuple[Array, Sequence[Plan]]] = over
    if at.size <= MOST_KEPT_THRESHOLDS:
        find = lru_cache(maxsize=KEPT_RANGES)(over)

    def run(image: Array, mask: Array | None = None) -> Any:
        # The values must live as long as their address is used.
        box, _values = prepared.box(image, mask)
        now, known = find(prepared.value_range(box) if levels.needs_range else None)
        result = np.zeros((1, now.size), np.int64)
        prepared.add(box, known, result)
        if kind == "number":
            return int(result.item())
        values = result[0] if forest is None else forest.curves(box, now, result[0])
        levels.warn_if_missed(now, values, partial(prepared.value_range, box), "image")
        if levels.array is not None:
            return None, values
        return now.copy(), values

    return run


class OneBlock:
    """The scan of an image that is one block, for all images of a layout."""

    def __init__(
        self, scanner: Scanner, images: Array, filtration: Filtration, geometry: Geometry
    ) -> None:
        source = scanner.source
        self.geometry = geometry
        self.nan = filtration.nan
        self.dtype = images.dtype.newbyteorder("=")
        self.order = spatial_order(images[0])
        self.block = Block((0, 0, 0), source.shape)
        self.layout = lay_out(self.block, source.shape, max(filtration.ndim, 2))
        self.place = self.layout.at, self.layout.steps
        self.can_stream = scanner.can_stream
        self.scanner = scanner.detached()
        self.ndim = scanner.ndim
        self.scan = kernels.scan_3d if scanner.ndim == 3 else kernels.scan_2d
        closed = scanner.closed_sides(self.layout)
        self.sides = self.layout.geometry, kernels.Borders(*closed, scanner.cubes)
        (address, self.strides, self.extents), _ = source.box(self.block)
        self.offset = address - images.ctypes.data if source.direct else None
        contiguous = not source.direct or images.flags.c_contiguous
        size = images.size
        in_one_row = (size, size), (1, 1, size)
        self.memory = in_one_row if contiguous else (self.strides, self.extents)

    @classmethod
    def of(
        cls,
        images: Array,
        plan: Plan,
        filtration: Filtration,
        geometry: Geometry,
        workers: int | None,
    ) -> Self | None:
        """Prepare for images that lie as the only one of a batch does; None for several blocks."""
        key_size = plan.key_dtype.itemsize
        _, source, _ = next(parts_of(images, None, *spatial_order(images[0]), key_size))
        scanner = Scanner(source, None, filtration, filtration.cubes)
        threads = worker_count(workers, images.size, plan.top + 1)
        if len(scanner.blocks(plan, threads)) > 1:
            return None
        return cls(scanner, images, filtration, geometry)

    def box(self, image: Array, mask: None = None) -> tuple[Box, Array]:
        """Return an image as loaders read it, and the array that owns the memory."""
        if self.offset is not None:
            address = address_of(image) + self.offset
            return (address, self.strides, self.extents), image
        images = self.geometry.stack(image)
        _, source, _ = next(parts_of(images, None, *self.order, self.dtype.itemsize))
        return source.box(self.block)

    def value_range(self, box: Box) -> tuple[Any, Any]:
        """Return the smallest and the largest finite value of a box, or (None, None)."""
        return range_at((box[0], *self.memory), self.dtype, self.nan)

    def add(self, box: Box, plans: Sequence[Plan], curves: Values) -> None:
        """Add the curve of a box to `curves`, (1, n), by the first plan that all keys fit.

        The last plan fits whatever the values are.
        """
        scanner = self.scanner
        layout = self.layout
        values = None
        for plan in plans:
            streams = plan.streams and self.can_stream
            keys, *spare = kept_arrays(layout, plan.key_dtype, self.ndim, streams)
            if streams:
                values = layout.values(plan, box)
                break
            load, settings = plan.loader
            nan, unfit = load(box, keys, self.place, *settings)
            if nan and self.nan == "raise":
                raise ValueError(NAN_MESSAGE)
            if not unfit:
                break
        histogram = np.zeros((1, plan.top + 1), np.int64)
        if plan.bound is None:
            self.scan(keys, values, *self.sides, *spare, histogram, None, NO_PLACE)
        else:
            scanner.add(
                plan,
                Staged(block=self.block, layout=layout, keys=keys, spare=spare, unfit=unfit),
                histogram,
            )
        cumulate(histogram, None, scanner.descending, scanner.sign, plan.entered, curves)


class SeveralBlocks:
    """The scan of images of a layout that are several blocks, or have a mask, as `OneBlock`."""

    def __init__(
        self,
        images: Array,
        plan: Plan,
        filtration: Filtration,
        geometry: Geometry,
        workers: int | None,
    ) -> None:
        self.filtration = filtration
        self.geometry = geometry
        self.workers = workers
        self.key_size = plan.key_dtype.itemsize
        self.order, self.flips = spatial_order(images[0])
        source, _ = self._sources((images, None))
        whole = Scanner(source, None, filtration, filtration.cubes, self.order)
        self.scanner = whole.detached()

    def _sources(self, given: _Masked) -> tuple[Source, Source | None]:
        images, mask = given
        parts = parts_of(images, mask, self.order, self.flips, self.key_size)
        _, source, shown = next(parts)
        return source, shown

    def box(self, image: Array, mask: Array | None = None) -> tuple[_Masked, Array]:
        """Return an image as the other methods take it, and the array that owns the memory."""
        geometry = self.geometry
        images = geometry.stack(image)
        if mask is None:
            return (images, None), images
        return (images, geometry.stack(geometry.spread(as_booleans(mask)))), images

    def value_range(self, given: _Masked) -> tuple[Any, Any]:
        """Return the smallest and the largest finite value of an image, or (None, None)."""
        images, mask = given
        return value_range(images, self.filtration, mask=mask, workers=self.workers)

    def add(self, given: _Masked, plans: Sequence[Plan], curves: Values) -> None:
        """Add the curve of an image to the only one of `curves`."""
        scanner = copy(self.scanner)
        scanner.source, scanner.mask = self._sources(given)
        add_histograms(scanner, plans, self.workers, curves)
