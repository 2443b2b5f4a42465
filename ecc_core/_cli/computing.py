"""The curves of an image, by the functions of the library or summed over its blocks.

Partial sums are kept on the disk, from which an interrupted run continues.
"""

import logging
import math
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import astuple
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import ecc_core
from ecc_core._blocks.totals import Total, total_of
from ecc_core._blocks.window import cluster_errors, sums_of_groups
from ecc_core._blocks.work import Group, Span, Work, without_missing
from ecc_core._cli.blockwise import Stack, range_of
from ecc_core._cli.outputs import has_half_open
from ecc_core._cli.progress import bar
from ecc_core._cli.version import version
from ecc_core._io.curve_columns import Curves
from ecc_core._io.lazy import Array
from ecc_core._io.parts import Parts, fingerprint
from ecc_core._io.stack_job import StackJob
from ecc_core._io.stack_parts import WHOLE, Part
from ecc_core._io.stored import MOST_REQUESTS
from ecc_core._request.thresholds import missed_values
from ecc_core.errors import BackendError, InputFileError
from ecc_core.quantities import CurveQuantity
from ecc_core.quantities.registry import quantities_of

Values = NDArray[np.int64]

LEAST_GROUP = 16
MOST_GROUP = 512
"""Limits of the number of blocks in a group, whose sum is one file on the disk."""
USUAL_GROUPS = 4096
"""The number of groups of an image, unless they would be too small or too large."""
MOST_CACHED_STAMPS = 4096
"""The most blocks whose stamps are remembered."""
MOST_UNWRITTEN = 1
"""The most sums that wait for the disk while others are computed, because they take memory."""
PIECES_DIVISOR = 8
"""The pieces of a group take at most the memory limit divided by this."""
COMMON = ("thresholds", "range", "connectivity", "superlevel", "boundary", "workers")
"""Arguments that all functions of curves take."""


def curves_of(stack: Stack, at: Array | None = None, folder: Path | None = None) -> Curves:
    """Return the curves of an image.

    With thresholds `at`, it is read by blocks, once for each quantity. Without them, it must be in
    memory. Partial sums of blocks are kept in the folder, and loaded from there if they exist.
    """
    if at is None:
        found = [_in_memory(stack, one) for one in quantities_of(stack.arguments)]
        return stack.job().joined(found)
    job = stack.job(at)
    return job.curves(totals_of(stack, job, folder))


def values_missed(
    stack: Stack, curves: Curves, most: int | None = None
) -> tuple[float, float] | None:
    """Return the range of an image if hardly any given threshold lies among its values.

    At most `most` blocks are read for it, by default all.
    """
    wanted = stack.arguments.thresholds
    if isinstance(wanted, str) or (isinstance(wanted, int) and stack.arguments.range is None):
        return None
    values = next(iter(curves.measures.values()))
    return missed_values(curves.thresholds, values, lambda: range_of(stack, most) or (None, None))


def totals_of(
    stack: Stack, job: StackJob, folder: Path | None = None, part: Part = WHOLE
) -> list[Total]:
    """Return the totals of a part of the blocks of an image, one for each pass of a job."""
    works = job.works(stack.blocks)
    least = min(work.blocks for work in works)
    if part.count > max(1, least):
        raise InputFileError(
            f"--part must be I/N with N of at most {max(1, least)}, as the image has no more "
            f"blocks, got {part}"
        )
    totals = []
    for one, work in zip(job.passes(), works, strict=True):
        own = one.quantity.own_of(stack.arguments, stack.spacing)
        total = total_of(work)
        _add_blocks(stack, total, own=own, folder=folder, span=part.of(work.blocks))
        totals.append(total)
    return totals


def _in_memory(stack: Stack, quantity: CurveQuantity[Any]) -> Curves:
    """Return the curves of all images along the batch axes, or of their labels."""
    arguments = stack.arguments
    windows = stack.blocks.windows
    job = stack.job()
    image, *kept = stack.blocks.whole()
    if len(kept) > 1:  # The last array marks the points that are not missing; others are masked.
        image = np.ma.array(image, mask=~kept.pop())
    if kept and not (windows or stack.blocks.labels) and has_half_open(arguments):
        # With this boundary, the argument `mask` would be a window. Here it marks missing points,
        # which never enter.
        image = np.ma.array(image, mask=~kept[0])
        kept = []
    options: dict[str, Any] = {name: getattr(arguments, name) for name in COMMON}
    options |= quantity.own_of(arguments, stack.spacing)._asdict()
    if stack.blocks.labels:
        if options["range"] is None and isinstance(arguments.thresholds, int):
            # Thresholds must be the same along the batch axes.
            options["range"] = range_of(stack)
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
        # All parts have the same thresholds.
        values = np.concatenate([own.values for own in parts])
        labels = [own.labels for own in parts]
        return job.curves_of_result(parts[0]._replace(values=values), labels)
    axes = tuple(range(image.ndim - stack.view.ndim, image.ndim))
    options |= {"nan": arguments.nan, "axis": axes}
    of_image = getattr(ecc_core, quantity.of_image)
    result = of_image(image, mask=kept[0] if kept else None, **options)
    if windows and arguments.density:
        result = result.densities()
    return job.curves_of_result(result)


def _add_blocks(
    stack: Stack, total: Total, own: tuple[Any, ...], folder: Path | None, span: Span
) -> None:
    """Read a span of the blocks of an image once, and add their sums to a total."""
    work = total.work
    scheduler = stack.arguments.scheduler
    size = min(max(LEAST_GROUP, work.partition.size // USUAL_GROUPS), MOST_GROUP)
    if stack.sizes.piece:
        pieces = stack.arguments.max_memory // (PIECES_DIVISOR * stack.sizes.piece)
        size = min(size, max(1, pieces))
    groups = work.groups(size, stack.sizes.across, span)
    missing: Sequence[int] = range(len(groups))
    kept = None
    if folder is not None:
        parts = Parts(folder, fingerprint(_facts(stack, work, size=size, own=own, span=span)))
        kept = _KeptSums(parts, groups, work)
        missing = kept.add_to(total)
    wanted = missing if kept is None else kept.stamped(missing)
    view = stack.blocks.image
    blocks = [group.stop - group.first for group in groups]
    size_of_block = math.prod(view.shape) * view.dtype.itemsize / max(work.blocks, 1)
    there = sum(blocks) - sum(blocks[number] for number in missing)
    extent = {"total": size_of_block * sum(blocks), "initial": size_of_block * there}
    with (
        bar(unit="B", unit_scale=True, **extent) as shown,
        _on_cluster(scheduler),
        kept or nullcontext(),
        closing(
            sums_of_groups(work, groups, wanted, workers=stack.sizes.workers, scheduler=scheduler)
        ) as sums,
    ):
        for number, values in sums:
            if kept is not None:
                kept.keep(number, values)
            total.add(groups[number], values)
            shown.update(size_of_block * blocks[number])


@contextmanager
def _on_cluster(scheduler: str | None) -> Iterator[None]:
    """Turn errors of a dask cluster into BackendError, and silence its logs."""
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


def _facts(stack: Stack, work: Work, size: int, own: tuple[Any, ...], span: Span) -> dict[str, Any]:
    """Return the facts on which partial sums depend, without the values of the image."""
    at = work.computed.thresholds
    return {
        "version": version(),
        "views": stack.description(),
        "edges": work.partition.edges,
        "groups": [size, stack.sizes.across, *span],
        "thresholds": [at.dtype.str, at.tobytes().hex()],
        "filtration": astuple(work.computed.filtration),
        "kind": [type(work.computed).__name__, *own],
    }


class _KeptSums:
    """The sums of groups on the disk, with stamps of the files from which they were computed.

    A thread writes them, so that the computation of blocks does not wait for the disk. When the
    context ends, all have been written.
    """

    def __init__(self, parts: Parts, groups: Sequence[Group], work: Work) -> None:
        self.parts = parts
        self.groups = groups
        self.work = work
        self.blocks = work.read

        def stamps_of(block: Any) -> Any:
            return self.blocks.stamps(work.partition.box(block))

        self.of_block = lru_cache(MOST_CACHED_STAMPS)(stamps_of)
        self.stamps: dict[int, str] = {}
        self.writer = ThreadPoolExecutor(1)
        self.unwritten: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.writer.shutdown()
        if kind is None:
            self._raise_errors(0)

    def _stamp(self, group: Group) -> str:
        """Return a fingerprint of the files with a group's blocks and their neighbours."""
        near = dict.fromkeys(other for block in group.blocks() for other in self.work.near(block))
        if not any(view.source.remote for view in self.blocks.views):
            return fingerprint({"files": [*map(self.of_block, near)]})
        with ThreadPoolExecutor(MOST_REQUESTS) as pool:
            return fingerprint({"files": [*pool.map(self.of_block, near)]})

    def add_to(self, total: Total) -> list[int]:
        """Add the sums that are on the disk; return the numbers of the groups without one."""
        missing = []
        there = self.parts.numbers()
        for number, group in enumerate(self.groups):
            values = self.parts.load(number, self._stamp(group)) if number in there else None
            if values is None:
                missing.append(number)
            else:
                total.add(group, values)
        return missing

    def stamped(self, missing: Sequence[int]) -> Iterator[int]:
        """Yield the numbers of groups, and record the stamp of each group before it is read."""
        for number in missing:
            self.stamps[number] = self._stamp(self.groups[number])
            yield number

    def keep(self, number: int, values: Values) -> None:
        """Let the thread write the sum of a group; raise the error of a sum that it could not."""
        stamp = self.stamps.pop(number)
        self.unwritten.append(self.writer.submit(self.parts.keep, number, stamp, values))
        self._raise_errors(MOST_UNWRITTEN)

    def _raise_errors(self, most: int) -> None:
        """Wait until at most `most` sums are unwritten; raise the error of one that failed."""
        while self.unwritten and (len(self.unwritten) > most or self.unwritten[0].done()):
            self.unwritten.popleft().result()
