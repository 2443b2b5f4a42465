"""Numbers of cells of images and of labelled regions, from histograms of recoded samples."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import Placement, adopt, as_cupy, on_host
from ecc_core._backends.cuda.bins import Prepared, prepare
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.curves import raise_for_nan
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct, processors, shared_limit
from ecc_core._backends.cuda.recode import codes_of
from ecc_core._backends.cuda.regions import Ranked, contiguous_labels, rank_labels
from ecc_core._backends.cuda.samples import Images
from ecc_core._backends.cuda.scan import pick_levels, running_sums
from ecc_core._backends.cuda.windows import region_window_sums as region_window_sums
from ecc_core._backends.cuda.windows import window_levels as window_levels
from ecc_core._backends.cuda.windows import window_sums as window_sums
from ecc_core._request.dtypes import holder_of
from ecc_core._request.estimator import Cells
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import reached_at, round_to_levels

Counts = NDArray[np.int64]

CELLS = Struct("cells.cu", "Cells")
BYTES = 256  # The levels of images that are read directly are all values of 8 bits.
COLUMNS_A_THREAD = 4
THREADS = {True: 1024, False: 256}
"""Threads of a block by whether it counts in shared memory."""
COPIES = 32  # The most copies of a bin in shared memory, one for each lane.
PAIRED_COPIES = 8  # The fewest copies where one word counts two kinds of cells.
MOST_SUM = (1 << 16) - 1  # The largest count in half a word.
DECLARED = 1024  # Bytes of shared memory that are left to what the kernel declares.
SLICES_A_THREAD = range(4, 65)


def cell_counts(
    image: Any,
    thresholds: Any,
    cells: Cells,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,
) -> Counts:
    with adopt(image) as view:
        shape = (len(view.array), len(cells.groups), thresholds.size)
        if thresholds.size == 0 or view.array.size == 0:
            return np.zeros(shape, np.int64)
        images = Images.of(view, filtration, as_cupy(mask))
        element = view.element
        # Images of 8 bits are read as they are where four columns at a time can be.
        steps = view.array.data.ptr, *view.array.strides[:-1]
        whole = view.array.strides[-1] == 1 and not any(step % COLUMNS_A_THREAD for step in steps)
        raw = images.mask is None and cells.boxes and element in ("uint8", "int8") and whole
        superlevel = filtration.superlevel
        device = view.array.device.id
        prepared = None if raw else prepare(thresholds, images.variant, device)
        counts = on_host(_counts(images, cells, filtration, prepared))
        entered = _levels_reached(
            thresholds.tobytes(), thresholds.dtype.str, element, superlevel, raw
        )
        sums = np.cumsum(counts[:, :0:-1] if superlevel else counts[:, :-1], axis=1)
        found: Counts = reached_at(sums, entered)
        return found.reshape(shape)


def region_cell_counts(
    image: Any,
    labels: Any,
    thresholds: Any,
    cells: Cells,
    filtration: Filtration,
    *,
    workers: int | None = None,
) -> tuple[Any, Counts]:
    with adopt(image) as view:
        given = as_cupy(labels)
        regions = rank_labels(contiguous_labels(given))
        ids = regions.ids.astype(given.dtype, copy=False)
        shape = (int(ids.size), len(cells.groups), thresholds.size)
        if 0 in shape:
            return view.wrap(ids), np.zeros(shape, np.int64)
        single = view._replace(array=view.array[None])
        inside = cupy.not_equal(regions.labels, 0)[None]
        images = Images.of(single, filtration, inside)
        prepared = prepare(thresholds, images.variant, single.array.device.id)
        counts = _counts(images, cells, filtration=filtration, prepared=prepared, regions=regions)
        values = pick_levels(running_sums(counts, filtration.superlevel), prepared).get()
        return view.wrap(ids), values.reshape(shape)


def _counts(
    images: Images,
    cells: Cells,
    filtration: Filtration,
    prepared: Prepared | None,
    regions: Ranked | None = None,
) -> Any:
    """Return the numbers of cells by their codes, (images or regions * kinds, bins) int64.

    Without `prepared`, the codes are the values of 8-bit images.
    """
    view = images.view
    flag = None
    memory = None
    if prepared is None:
        codes = view.array
        levels = BYTES
    else:
        codes, flag, memory = codes_of(images, prepared, keep=True)
        levels = prepared.rules.levels
    shape = (len(codes), *view.array.shape[1:])
    device = codes.device.id
    placement = Placement(shape, codes.strides, 0, device)
    label = None if regions is None else regions.labels.dtype
    call = _plan(placement, codes.dtype, prepared is None, label, cells, filtration, levels)
    rows = len(codes) if regions is None else regions.ids.size
    counts = cupy.zeros((rows * len(cells.groups), levels + 1), np.int64)
    words = [codes.data.ptr, counts.data.ptr]
    if regions is not None:  # The last word is the largest label that has a rank.
        words += [regions.labels.data.ptr, regions.ranks.data.ptr, regions.ranks.size - 1]
    if call is not None:
        call.launch(enumerate(words, call.places[0]))
    if flag is not None:
        raise_for_nan(flag, view, images.mask)
    del memory  # It had to live until the kernels were launched.
    return counts


@programs.of_data
def _levels_reached(
    raw: bytes, dtype: str, element: str, superlevel: bool, every: bool
) -> NDArray[np.int64]:
    """Return the number of levels that each threshold admits; `every`: of all values of 8 bits."""
    own = holder_of(element)
    levels = round_to_levels(np.frombuffer(raw, dtype), own, superlevel)
    if not every:
        return levels.entered
    values = levels.values.astype(np.int64)
    span = np.iinfo(own)
    admitted = span.max - values[::-1] if superlevel else values - span.min
    return np.append(0, admitted + 1)[levels.entered]


class _Tables(NamedTuple):
    """How a block counts in shared memory."""

    copies: int
    """Tables of a block; 0 if it counts in global memory, as it does for regions."""
    paired: bool
    """Whether a word counts two kinds of groups."""

    @classmethod
    def of(cls, cells: Cells, bins: int, device: int) -> Self:
        kinds = len(cells.groups)
        if cells.boxes:
            copies = _copies(kinds // 2, bins, device)
            if copies >= PAIRED_COPIES:
                return cls(copies, True)
        return cls(_copies(kinds, bins, device), False)

    def shared_bytes(self, kinds: int, bins: int) -> int:
        """Return the shared memory of a block."""
        words = kinds // 2 if self.paired else kinds
        return self.copies * _table_bytes(words, bins)


IN_GLOBAL_MEMORY = _Tables(copies=0, paired=False)


class _Work(NamedTuple):
    """How the threads of a launch divide the corners of the cells of an image."""

    across: int
    """Threads side by side along a row, each with some columns."""
    slices: int
    """Slices of a thread, which reads one more."""
    blocks: int
    """Blocks of an image."""

    @classmethod
    def of(cls, images: int, volume: tuple[int, int, int], threads: int, device: int) -> Self:
        """Divide volumes of corners such that the busiest thread does as little as possible."""
        depth, height, width = volume
        across = ceil_div(width, COLUMNS_A_THREAD)
        most_blocks = ceil_div(processors(device), images)

        def turns(slices: int) -> int:
            return across * height * ceil_div(depth, slices)

        def cost(slices: int) -> int:
            return ceil_div(turns(slices), most_blocks * threads) * (slices + 1)

        slices = min(SLICES_A_THREAD, key=cost)
        blocks = min(ceil_div(turns(slices), threads), most_blocks)
        return cls(across, slices, max(blocks, 1))


def _corner_places(
    sizes: Sequence[int], cells: Cells, filtration: Filtration
) -> tuple[tuple[int, int], ...]:
    """Return the range of places of the highest corner of a unit cube along each axis of a volume.

    A group never enters if all of its points are outside the image, or if it enters with the last
    of them and any is outside. Therefore one range serves groups of every extent (``_tables`` in
    ``cpu/cells.py``).
    """
    places = []
    for length, border in zip(sizes, filtration.boundary.axes, strict=True):
        begin = 0 if border.is_closed and not cells.every else 1
        places.append((begin, length + 1 - border.missing))
    return _as_volume(tuple(places), (1, 2))


@programs.plan
def _plan(
    placement: Placement,
    code: np.dtype[Any],
    raw: bool,
    label: np.dtype[Any] | None,
    cells: Cells,
    filtration: Filtration,
    levels: int,
) -> Call | None:
    """Return the launch that lacks addresses, or None if there is nothing to count.

    `raw`: whether codes are the values of images of 8 bits.
    """
    images, *sizes = placement.shape
    device = placement.device
    places = _corner_places(sizes, cells, filtration)
    (top, bottom), (first, last), (left, right) = places
    if last <= first or bottom <= top or right <= left:
        return None
    bins = levels + 1
    tables = _Tables.of(cells, bins, device) if label is None else IN_GLOBAL_MEMORY
    threads = THREADS[tables.copies > 0]
    columns = right - (1 if tables.paired else left)
    work = _Work.of(images, (bottom - top, last - first, columns), threads, device)
    depth, height, width = _as_volume(tuple(sizes), 1)
    steps = tuple(step // code.itemsize for step in placement.strides)
    slice_step, row_step, _ = _as_volume(steps[1:], 0)
    superlevel = filtration.superlevel
    given = CELLS(
        batch=steps[0],
        slice=slice_step,
        row=row_step,
        labels_slice=height * width,
        depth=depth,
        height=height,
        width=width,
        first=[top, first, left],
        last=[bottom, last, right],
        wraps=list(_as_volume(filtration.boundary.wraps, False)),
        bins=bins,
        never_enters=0 if superlevel else bins - 1,
        chunk=work.slices,
        across=work.across,
        blocks=work.blocks,
        # A thread adds to a kind at most once for each of its columns, and the one beside them.
        spill=MOST_SUM * tables.copies // (threads * (COLUMNS_A_THREAD + 1) * work.slices),
    )
    macros = {
        "CODE": ELEMENTS[code.name],
        "SHIFT": _shift(code, superlevel) if raw else 0,
        "SUPER": int(superlevel),
        "LABEL": ELEMENTS["uint8" if label is None else label.name],
        "LABELLED": int(label is not None),
    }
    return plan_call(
        "cells",
        "count_cells",
        macros=macros | _macros(cells, tables),
        grid=(images * work.blocks,),
        threads=threads,
        arguments=(given,),
        shared=tables.shared_bytes(len(cells.groups), bins),
    )


def _macros(cells: Cells, tables: _Tables) -> dict[str, Any]:
    """Return the macros that say which cells are counted, and where."""
    groups = [str(_corners(group)) for group in cells.groups]
    return {
        "GROUPS": ",".join(groups),
        "LAST": int(cells.every),
        "COPIES": tables.copies,
        "PAIRED": int(tables.paired),
    }


def _shift(value: np.dtype[Any], superlevel: bool) -> int:
    """Return what is added to values of 8 bits to make codes of them."""
    shift = 128 if value == np.int8 else 0
    if superlevel:
        shift += 1
    return shift


def _copies(words: int, bins: int, device: int) -> int:
    """Return how many copies of each bin fit into shared memory, at most 32."""
    room = (shared_limit(device) - DECLARED) // _table_bytes(words, bins)
    return min(COPIES, 1 << room.bit_length() >> 1)


def _table_bytes(words: int, bins: int) -> int:
    """Return the size of a table with so many words for each bin.

    Their number is odd, so that bins begin in different banks of shared memory.
    """
    return 4 * bins * (words | 1)


def _as_volume(values: tuple[Any, ...], missing: Any) -> tuple[Any, ...]:
    """Return values for slices, rows and columns; the axes of 2-D images are slices and columns."""
    if len(values) == 1:
        return missing, missing, values[0]
    if len(values) == 2:
        return values[0], missing, values[1]
    return values


def _corners(group: tuple[tuple[int, ...], ...]) -> int:
    """Return the points of a group as bits; steps along columns, rows, slices add 1, 2, 4."""
    total = 0
    for offset in group:
        along = _as_volume(offset, 0)
        total |= 1 << (4 * along[0] + 2 * along[1] + along[2])
    return total
