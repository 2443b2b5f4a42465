"""The curves of an image: by the functions of the library in memory, or summed over its blocks.

Partial sums are kept on the disk.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import astuple
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ecc_core
from ecc_core._blocks.boxes import BoxValues
from ecc_core._blocks.glued import BoxPieces, GluedWork, JoinedBoxes
from ecc_core._blocks.window import cluster_errors, sums_of_groups
from ecc_core._blocks.work import Group, Index, Work, labels_of, values_of, without_missing
from ecc_core._cli.blockwise import Stack, range_of
from ecc_core._cli.outputs import Curves, has_half_open, quantities_of
from ecc_core._cli.progress import bar
from ecc_core._cli.version import version
from ecc_core._io.lazy import Array
from ecc_core._io.parts import Parts, fingerprint
from ecc_core._io.stored import REQUESTS
from ecc_core.errors import BackendError
from ecc_core.quantities import CURVES, CurveQuantity
from ecc_core.quantities.windows import WindowCurve, closed_filtration, joined_tables

Values = NDArray[np.int64]

LEAST_GROUP, MOST_GROUP = 16, 512  # blocks whose sum is kept on the disk
MANY_GROUPS = 4096
PIECES_SHARE = 8  # of the memory, for the pieces of a group
COMMON = ("thresholds", "range", "connectivity", "superlevel", "boundary", "workers")


def curves_of(stack: Stack, at: Array | None = None, folder: Path | None = None) -> Curves:
    """Return the curves of an image.

    At given thresholds, it is read by blocks, once for each quantity. Without them, it is in memory
    as a whole. Partial sums of blocks are kept in the folder, and taken from there.
    """
    of_blocks = _windows_of_blocks if stack.blocks.windows else _sums_of_blocks
    found = [
        _in_memory(stack, one) if at is None else of_blocks(stack, at, one, folder)
        for one in quantities_of(stack.arguments)
    ]
    measures: dict[str, Any] = {}
    for name, values in ((name, values) for own in found for name, values in own.measures.items()):
        measures.setdefault(name, values)  # the Euler number of lasting classes, if there is one
    if stack.arguments.density and not stack.blocks.windows:
        window = _size_of(stack)
        if not window:
            raise ValueError("--density must be of an image with a size, got 0")
        measures = {name: values / window for name, values in measures.items()}
    curves = found[0]._replace(measures=measures)
    return curves.distinct() if isinstance(stack.arguments.thresholds, int) else curves


def _size_of(stack: Stack) -> float:
    """Return the size of an image, by the quantity that --density belongs to."""
    arguments = stack.arguments
    shape = stack.blocks.image.shape[-stack.view.ndim :]
    measured = next(one for one in quantities_of(arguments) if "density" in one.own_options)
    own = measured.own_of(arguments, stack.spacing)
    return measured.window_size(shape, stack.filtration, own)


def _in_memory(stack: Stack, quantity: CurveQuantity[Any]) -> Curves:
    """Return the curves of all images along the batch axes, or of their labels."""
    arguments = stack.arguments
    windows = stack.blocks.windows
    image, *kept = stack.blocks.whole()
    if len(kept) > 1:  # there are windows, and missing points
        image = np.ma.array(image, mask=~kept.pop())
    if kept and not (windows or stack.blocks.labels) and has_half_open(arguments):
        # The points of a mask would be a window: those that are missing never enter.
        image = np.ma.array(image, mask=~kept[0])
        kept = []
    options: dict[str, Any] = {name: getattr(arguments, name) for name in COMMON}
    options |= quantity.own_of(arguments, stack.spacing)._asdict()
    if stack.blocks.labels:
        if options["range"] is None and isinstance(arguments.thresholds, int):
            options["range"] = range_of(stack)  # the same for all places
        of_regions = getattr(ecc_core, quantity.of_regions)
        parts = []
        for at in np.ndindex(*stack.batch):
            part = image[at]
            marks = kept[0][at]
            if not windows:
                part, marks = without_missing(part, marks, stack.filtration.nan)
            own = of_regions(part, marks, **options)
            parts.append(own.densities() if windows and arguments.density else own)
        if not parts:
            raise ValueError("its axes other than Z, Y and X are empty")
        values = np.concatenate([own.values for own in parts])  # at the same thresholds
        return stack.curves(parts[0]._replace(values=values), [own.labels for own in parts])
    axes = tuple(range(image.ndim - stack.view.ndim, image.ndim))
    options |= {"nan": arguments.nan, "axis": axes}
    of_image = getattr(ecc_core, quantity.of_image)
    result = of_image(image, mask=kept[0] if kept else None, **options)
    if windows and arguments.density:
        result = result.densities()
    return stack.curves(result)


def _sums_of_blocks(
    stack: Stack, at: Array, quantity: CurveQuantity[Any], folder: Path | None
) -> Curves:
    """Return the curves of an image, which is read once."""
    boxes = quantity.boxes(
        at,
        stack.filtration,
        quantity.own_of(stack.arguments, stack.spacing),
        dtype=stack.blocks.dtype,
        masked=stack.blocks.is_masked,
    )
    total: _Total
    if isinstance(boxes, BoxPieces):
        total = _JoinedTotal(stack, quantity, boxes)
    else:
        total = _Total(stack, quantity, boxes)
    _add_blocks(stack, total, folder)
    return total.curves()


def _windows_of_blocks(
    stack: Stack, at: Array, quantity: CurveQuantity[Any], folder: Path | None
) -> Curves:
    """Return the curves of windows; for what else is measured, the image is read again."""
    own = quantity.own_of(stack.arguments, stack.spacing)
    curve = WindowCurve(at, closed_filtration(stack.filtration))
    euler = _Total(stack, CURVES["euler"], curve)
    _add_blocks(stack, euler, folder)
    inside = quantity.window_boxes(at, stack.filtration, own)
    if inside is None:
        return euler.curves()
    cells = _Total(stack, quantity, inside)
    _add_blocks(stack, cells, folder)
    join = _side_by_side if stack.blocks.labels is None else joined_tables
    joined = {images: join(table, cells.sums[images]) for images, table in euler.sums.items()}
    labels, rows = _rows_of(stack, euler.work, joined, curve.size + inside.size)
    counts = rows[:, curve.size :]
    values = inside.with_euler(counts, rows[:, : curve.size])
    facts = quantity.facts(stack.filtration, own)
    result = quantity.result(at, values, **facts, window=tuple(inside.sizes(counts).tolist()))
    return stack.curves(result.densities() if stack.arguments.density else result, labels)


def _side_by_side(first: Values, second: Values) -> Values:
    return np.concatenate([first, second], axis=-1)


def _add_blocks(stack: Stack, total: "_Total", folder: Path | None) -> None:
    """Add what is computed of the blocks of an image, which is read once."""
    work = total.work
    scheduler = stack.arguments.scheduler
    size = min(max(LEAST_GROUP, math.prod(work.counts) // MANY_GROUPS), MOST_GROUP)
    if stack.means.piece:
        size = min(size, max(1, stack.arguments.max_memory // (PIECES_SHARE * stack.means.piece)))
    groups = work.groups(size, stack.means.side)
    missing: Sequence[int] = range(len(groups))
    kept = None
    if folder is not None:
        parts = Parts(folder, fingerprint(_job(stack, work, size, total.quantity)))
        kept = _KeptSums(parts, groups, work)
        missing = kept.add_to(total)
    wanted = missing if kept is None else kept.noted(missing)
    means = {"workers": stack.means.workers, "scheduler": scheduler}
    view = stack.blocks.image
    blocks = [group.stop - group.first for group in groups]
    share = math.prod(view.shape) * view.dtype.itemsize / max(sum(blocks), 1)
    there = sum(blocks) - sum(blocks[number] for number in missing)
    extent = {"total": share * sum(blocks), "initial": share * there}
    with (
        bar(unit="B", unit_scale=True, **extent) as shown,
        _on_cluster(scheduler),
        closing(sums_of_groups(work, groups, wanted, **means)) as sums,
    ):
        for number, values in sums:
            if kept is not None:
                kept.keep(number, values)
            total.add(groups[number], values)
            shown.update(share * blocks[number])


@contextmanager
def _on_cluster(scheduler: str | None) -> Iterator[None]:
    """Raise errors of a dask cluster as one line, and silence its logs."""
    if scheduler is None:
        yield
        return
    logging.disable(logging.CRITICAL)
    try:
        yield
    except cluster_errors() as error:
        raise BackendError(
            f"--scheduler {scheduler}: the cluster was lost ({type(error).__name__}), "
            "ecc stack --resume goes on with what was done"
        ) from error
    finally:
        logging.disable(logging.NOTSET)


def _job(stack: Stack, work: Work, size: int, quantity: CurveQuantity[Any]) -> dict[str, Any]:
    """Return what the partial sums depend on, apart from the values of the image."""
    at = work.computed.thresholds
    own = quantity.own_of(stack.arguments, stack.spacing)
    return {
        "version": version(),
        "views": stack.description(),
        "edges": work.edges,
        "groups": [size, stack.means.side],
        "thresholds": [at.dtype.str, at.tobytes().hex()],
        "filtration": astuple(work.computed.filtration),
        "kind": [type(work.computed).__name__, *own],
    }


class _KeptSums:
    """The sums of groups on the disk, with stamps of the files that they were computed from."""

    def __init__(self, parts: Parts, groups: Sequence[Group], work: Work) -> None:
        self.parts = parts
        self.groups = groups
        self.work = work
        self.blocks = work.read
        self.of_block = lru_cache(MANY_GROUPS)(lambda block: self.blocks.stamps(work.box(block)))
        self.stamps: dict[int, str] = {}

    def _stamp(self, group: Group) -> str:
        """Return what changes with the files of a group's blocks and their neighbours."""
        near = dict.fromkeys(other for block in group.blocks() for other in self.work.near(block))
        if not any(view.source.remote for view in self.blocks.views):
            return fingerprint({"files": [*map(self.of_block, near)]})
        with ThreadPoolExecutor(REQUESTS) as pool:
            return fingerprint({"files": [*pool.map(self.of_block, near)]})

    def add_to(self, total: "_Total") -> list[int]:
        """Add the sums that are there; return the numbers of the groups that are missing."""
        missing = []
        there = self.parts.numbers()
        for number, group in enumerate(self.groups):
            values = self.parts.load(number, self._stamp(group)) if number in there else None
            if values is None:
                missing.append(number)
            else:
                total.add(group, values)
        return missing

    def noted(self, missing: Sequence[int]) -> Iterator[int]:
        """Yield numbers, of which each is taken before the group is read, and note its stamp."""
        for number in missing:
            self.stamps[number] = self._stamp(self.groups[number])
            yield number

    def keep(self, number: int, values: Values) -> None:
        self.parts.keep(number, self.stamps.pop(number), values)


class _Total:
    """The sum of groups for each index of the blocks along the batch axes."""

    def __init__(self, stack: Stack, quantity: CurveQuantity[Any], boxes: BoxValues) -> None:
        self.stack = stack
        self.quantity = quantity
        self.boxes = boxes
        self.work = self._work()
        self.sums: dict[Index, Values] = {}

    def _work(self) -> Work:
        blocks = self.stack.blocks
        chunks = blocks.image.chunks(self.stack.means.sizes)
        return Work(blocks, chunks, self.boxes, regions=blocks.labels is not None)

    def add(self, group: Group, values: Values) -> None:
        if group.images in self.sums:
            values = self.work.sum([self.sums[group.images], values])
        self.sums[group.images] = values

    def curves(self) -> Curves:
        """Return the curves, of all labels if there are any."""
        boxes = self.boxes
        labels, rows = _rows_of(self.stack, self.work, self.sums, boxes.size)
        result = self.quantity.result(boxes.thresholds, boxes.curves(rows))
        return self.stack.curves(result, labels)


def _rows_of(
    stack: Stack, work: Work, sums: dict[Index, Values], size: int
) -> tuple[list[Array] | None, Values]:
    """Return the labels of each image, if there are any, and the sums of all, (rows, size)."""
    if stack.blocks.labels is None:
        values = np.zeros((*stack.batch, size), np.int64)
        for images, own in sums.items():
            values[work.box(images)] = own
        return None, values.reshape((-1, size))
    dtype = stack.blocks.labels.view.dtype.newbyteorder("=")
    empty = np.zeros((0, 1 + size), np.int64)
    tables = [sums.get(images, empty) for images in np.ndindex(*stack.batch)]
    rows = np.concatenate([values_of(table, order=dtype) for table in tables])
    return [labels_of(table, order=dtype) for table in tables], rows


class _JoinedTotal(_Total):
    """The pieces of each place on the batch axes, joined as they come."""

    boxes: BoxPieces
    work: GluedWork

    def __init__(self, stack: Stack, quantity: CurveQuantity[Any], boxes: BoxPieces) -> None:
        super().__init__(stack, quantity, boxes)
        self.images = {place: JoinedBoxes(self.work) for place in np.ndindex(*stack.batch)}

    def _work(self) -> Work:
        blocks = self.stack.blocks
        return GluedWork(blocks, blocks.image.chunks(self.stack.means.sizes), self.boxes)

    def add(self, group: Group, values: Values) -> None:
        box = tuple((part.start, part.stop) for part in group.column)
        self.images[group.images].add_packed(box, values)

    def curves(self) -> Curves:
        at = self.boxes.thresholds
        found = np.zeros((len(self.images), self.boxes.rows, at.size), np.int64)
        for values, joined in zip(found, self.images.values(), strict=True):
            for piece in joined.pieces.values():  # one, or none of an image without points
                values[...] = self.boxes.numbers([piece])[0]
        return self.stack.curves(self.quantity.result(at, found))
