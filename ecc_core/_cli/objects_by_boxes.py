"""Objects of an image that does not fit in memory, which is read and labelled by boxes."""

import math
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ecc_core._arrays.request import indices_of
from ecc_core._backends import betti_numbers
from ecc_core._backends.pair_options import PairOptions
from ecc_core._blocks.box_grid import BoxGrid
from ecc_core._blocks.marked_boxes import held_bytes
from ecc_core._blocks.pair_boxes import PairTree
from ecc_core._blocks.region_boxes import KeptLabels, RegionBoxes
from ecc_core._cli.argument_types import given_memory, least_memory
from ecc_core._cli.errors import blame
from ecc_core._cli.progress import bar
from ecc_core._cli.version import version
from ecc_core._io.blocks import Blocks
from ecc_core._io.kept_parts import KeptParts
from ecc_core._io.lazy import Array, Box
from ecc_core._io.limits import available_bytes
from ecc_core._io.parts import Parts, fingerprint
from ecc_core._io.stored import View, grown_chunks
from ecc_core._io.write_image import parts_beside, writes_by_boxes
from ecc_core._partition import Partition
from ecc_core._request.boundary import COMPLEXES, check_boundary
from ecc_core._request.filtration import Filtration, filtration_of
from ecc_core._request.resources import available_cores
from ecc_core.errors import InputFileError
from ecc_core.results import PersistentRegions, curve_facts

BYTES_IN_MEMORY = 32
"""The bytes for each point, besides its value, while objects of an image in memory are found."""
BYTES_OF_WORK = 60
"""The bytes for each point of a box that is being processed."""
MOST_POINTS = 1 << 25
"""The most points of a box."""
WORK_DIVISOR = 2
"""Boxes that threads process take at most the memory limit divided by this. The rest is for boxes
that are held for later visits."""
IN_MEMORY_DIVISOR = 2
"""An image in memory takes at most the available memory divided by this."""
USUAL_MEMORY = 1 << 30
LEAST_VISITS = 2
"""How often each box is processed at least: once for its components, and once for its labels."""


class Objects(NamedTuple):
    """The objects of an image."""

    regions: PersistentRegions[Array]
    """The regions, without labels if these are not in memory."""
    points: Array
    """The number of points with each label."""
    labels: Any
    """The labels, which are read by boxes."""


def fits_in_memory(blocks: Blocks, arguments: Namespace) -> bool:
    """Whether the objects of an image can be found in memory."""
    needed = math.prod(blocks.image.shape) * (blocks.bytes_a_point + BYTES_IN_MEMORY)
    if arguments.max_memory is not None:
        return needed <= int(arguments.max_memory)
    there = available_bytes()
    return there is None or needed <= there // IN_MEMORY_DIVISOR


@contextmanager
def objects_by_boxes(
    path: str, view: View, blocks: Blocks, arguments: Namespace
) -> Iterator[Objects]:
    """Find the objects of an image by boxes. Their labels can be read within the context.

    Intermediate results are kept beside the output until the context ends. If it fails, another run
    can continue from them.
    """
    if arguments.out and not writes_by_boxes(arguments.out):
        raise InputFileError(
            f"{arguments.out}: must be .zarr, into which labels of an image are written that is "
            "not in memory"
        )
    ndim = view.ndim
    with blame(path):
        filtration = filtration_of(
            ndim,
            arguments.connectivity,
            superlevel=arguments.superlevel,
            nan=arguments.nan,
            direction=None,
            boundary=arguments.boundary,
        )
        check_boundary(filtration.boundary.name, COMPLEXES)
        sizes = _sizes(blocks, ndim, arguments)
    grid = _grid(blocks, sizes, filtration)
    with _folder(arguments) as folder:
        kept = KeptParts(folder, _facts(blocks, grid, filtration, arguments))
        with blame(path):
            yield _found(blocks, grid, filtration=filtration, kept=kept, arguments=arguments)
        Parts(folder).clear()


def _found(
    blocks: Blocks, grid: BoxGrid, filtration: Filtration, kept: KeptParts, arguments: Namespace
) -> Objects:
    """Return the objects of an image, whose labels are in the store `kept`."""
    dtype = blocks.dtype.newbyteorder("=")
    options = PairOptions(
        dtype=dtype,
        filtration=filtration,
        dimension=0,
        masked=blocks.is_masked,
        least=0,
        short=True,
    )

    def read(box: Box) -> tuple[Array, Array | None]:
        values, *shown = blocks(box)
        return values, shown[0] if shown else None

    threads = _workers(blocks, grid, arguments)
    tree = PairTree(
        grid=grid,
        read=read,
        options=options,
        least=arguments.persistence,
        kept=kept,
        workers=threads,
    )
    threshold = None if arguments.threshold is None else arguments.threshold[0]
    most = max(map(math.prod, map(grid.window_of, range(grid.size))), default=1)
    held = held_bytes(dtype, filtration.boundary.wraps)
    room = _memory(arguments) // WORK_DIVISOR // (most * held)
    boxes = RegionBoxes(tree, threshold, arguments.cut, max(room, tree.workers))
    with bar(total=LEAST_VISITS * grid.size, unit=" boxes") as shown:

        def step(count: int) -> None:
            """Show progress. The total grows if boxes are visited more often than expected."""
            shown.total = max(getattr(shown, "total", 0), getattr(shown, "n", 0) + count)
            shown.update(count)

        found = boxes.regions(boxes.found(step), step)
    regions = PersistentRegions(
        labels=np.empty((0,) * len(grid.shape), np.int32),
        births=found.births,
        deaths=found.deaths,
        birth_points=indices_of(found.birth_places, grid.shape),
        merged_into=found.merged_into,
        min_persistence=arguments.persistence,
        rel_height=arguments.cut,
        **curve_facts(filtration),
    )
    return Objects(regions, found.points, KeptLabels(tree, found.births.size))


def _workers(blocks: Blocks, grid: BoxGrid, arguments: Namespace) -> int:
    """Return the number of threads, whose boxes must fit in memory together."""
    most = max(map(math.prod, map(grid.shape_of, range(grid.size))), default=1)
    room = _memory(arguments) // WORK_DIVISOR // (most * _bytes_of_point(blocks))
    return max(1, min(room, arguments.workers or available_cores()))


def _bytes_of_point(blocks: Blocks) -> int:
    """Return the bytes for each point of a box that is being processed."""
    return BYTES_OF_WORK + blocks.bytes_a_point


def _memory(arguments: Namespace) -> int:
    return USUAL_MEMORY if arguments.max_memory is None else int(arguments.max_memory)


def _sizes(blocks: Blocks, ndim: int, arguments: Namespace) -> tuple[int, ...]:
    """Return the lengths of boxes along each axis of the source."""
    memory = _memory(arguments)
    source = blocks.image.source
    point_bytes = _bytes_of_point(blocks)
    threads = arguments.workers or available_cores()
    limit = min(MOST_POINTS, memory // WORK_DIVISOR // point_bytes // threads)
    order = sorted(blocks.image.order[-ndim:])
    stored = source.chunks
    if math.prod(stored[axis] for axis in order) > limit:
        stored = source.parts  # Shards are too large, so boxes are made of their chunks.
    sizes = grown_chunks(stored, source.shape, grow=order, itemsize=1, limit=limit)
    needed = math.prod(sizes[axis] for axis in order) * point_bytes
    if needed > memory:
        raise InputFileError(
            f"{source.path}: its chunks of shape {sizes} need --max-memory of at least "
            f"{least_memory(needed)}, got {given_memory(memory)}"
        )
    return sizes


def _grid(blocks: Blocks, sizes: tuple[int, ...], filtration: Filtration) -> BoxGrid:
    chunks = blocks.image.chunks(sizes)
    margin = betti_numbers("cpu").flood_boxes.MARGIN
    return BoxGrid(Partition.of_blocks(chunks, filtration.boundary.axes), margin)


@contextmanager
def _folder(arguments: Namespace) -> Iterator[Path]:
    """Yield a folder for intermediate results, beside an output of the command if there is one."""
    output = arguments.out or arguments.table or arguments.plot
    if output is None:
        if arguments.resume:
            raise InputFileError("--resume needs --out, --table or --plot, beside which parts are")
        with tempfile.TemporaryDirectory(prefix="ecc-objects-") as folder:
            yield Path(folder)
        return
    parts = Parts(parts_beside(Path(output)))
    with parts.locked():
        if not arguments.resume:
            parts.clear()
        yield parts.folder


def _facts(
    blocks: Blocks, grid: BoxGrid, filtration: Filtration, arguments: Namespace
) -> dict[str, Any]:
    """Return the facts on which intermediate results depend."""
    fitted = (blocks.labels, blocks.mask)
    boxes = (blocks.stamps(grid.box(number)) for number in range(grid.size))
    return {
        "version": version(),
        "views": [[view.source.identity(), *view[1:]] for view in blocks.views],
        "axes": [None if one is None else one.axes for one in fitted],
        "mask labels": blocks.mask_labels,
        "smoothing": blocks.smoothing,
        "edges": grid.partition.edges,
        "filtration": astuple(filtration),
        "regions": [arguments.persistence, arguments.threshold, arguments.cut],
        "files": fingerprint({"stamps": list(boxes)}),
    }
