"""Curves by the scanning kernels, which read an image once, in its own memory."""

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import (
    Layout,
    Placement,
    arrange,
    arrange_apart,
    arrange_channels,
    in_tiles,
)
from ecc_core._backends.cuda.bins import BINS, Prepared, Rules, prepare
from ecc_core._backends.cuda.calls import (
    WORDS,
    Call,
    plan_call,
    pooled_zeros,
    stream_zeros,
    take_reply,
    wrapped,
)
from ecc_core._backends.cuda.kernels import (
    ITEM_BYTES,
    NAN_OMIT,
    NAN_REPORT,
    WIDE,
    Struct,
    Variant,
    processors,
)
from ecc_core._backends.cuda.recipe import IMAGE, RESULT, Recipe, has_few_long_rows, recipe
from ecc_core._backends.cuda.tiling import PAIR_ROWS
from ecc_core._request.levels import round_to_levels

Array = NDArray[Any]

TABLE = BINS.word("table")
DATA, MASK = map(IMAGE.word, ("data", "mask"))
VALUES, COUNTS, TICKETS, NOT_FINITE = map(
    RESULT.word, ("values", "counts", "tickets", "not_finite")
)
# Types that the kernels read. Others are recoded, except for 2-D images in pairs.
SCANNED = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "float16", "bfloat16", "float32")
THIN_COLUMNS = 32  # Narrower images leave lanes of a warp idle.
SMALL_IMAGE = 1 << 16  # Samples; the order of axes of smaller images does not matter.


class Scan:
    """A scanning kernel and its arguments, for images of one layout and one set of levels.

    Attributes
    ----------
    simple : bool
        Whether the kernel itself writes the curves.
    flags_wanted : int
        Number of flags that tell whether values are not finite: one for each image, or 0.
    """

    def __init__(self, plan: Recipe, prepared: Prepared, device: int, *, reports: bool) -> None:
        self.plan = plan
        self.prepared = prepared
        self.device = device
        self.simple = not plan.accumulate
        images, levels = self._shape = plan.layout.images, prepared.rules.levels
        self.flags_wanted = images if reports else 0
        self._flags = 8 * images * levels  # In bytes: the flags follow the curves.
        self._curves = self._flags + 8 * images  # The bins follow the flags.
        # Bins and tickets in global memory, which are zero when the kernel begins.
        self.zeros = plan.counts + images if plan.counts else 0
        self._call = plan.call(prepared.pair_bins)

    def begin(self, data: int, mask: int = 0, table: int = 0, flag: int = 0) -> Any:
        """Launch the kernel for an array at this address, and a mask of the same layout.

        `table` is the address of the table, for rules whose table another kernel finds. `flag` is
        the address of the flags, if they are not to be in the memory that is returned.

        The memory returned holds the curves, flags of values that are not finite, and bins and
        tickets unless these are shared by calls. A CUDA graph that has captured the call stays
        valid as long as this memory lives.
        """
        plan = self.plan
        layout = self.plan.layout
        stream = cupy.cuda.get_current_stream()
        lasting = 0
        if stream.is_capturing():
            programs.captured.append(self.prepared)
            if not plan.accumulate:
                lasting = pooled_zeros(self.zeros, self.device)
        elif not plan.accumulate:
            lasting = stream_zeros(self.zeros, self.device, stream.ptr)
        memory = cupy.cuda.alloc(self._curves + (0 if lasting else 8 * self.zeros))
        address = memory.ptr
        flags = address + self._flags
        counts = lasting or address + self._curves
        if self.zeros and not lasting:
            first = flags if plan.accumulate else counts
            size = counts + 8 * self.zeros - first
            cupy.cuda.runtime.memsetAsync(first, 0, size, stream.ptr)
        image, _, bins, result = self._call.places
        words = [
            (image + DATA, data + layout.offset),
            (image + MASK, mask + layout.offset // layout.item),
            (result + VALUES, address),
            (result + COUNTS, counts),
            (result + TICKETS, counts + 8 * plan.counts),
            (result + NOT_FINITE, flag or flags),
        ]
        if table:
            words.append((bins + TABLE, table))
        self._call.launch(words, stream.ptr)
        return memory

    def curves(self, data: int, mask: int = 0, flag: int = 0, _ticket: int = 0) -> tuple[Any, Any]:
        """Return the curves at the levels, (images, levels), and the memory with the flags."""
        memory = self.begin(data, mask, 0, flag)
        if self.plan.accumulate:
            images, levels = self._shape
            bins = cupy.ndarray((images, levels + 1), np.int64, memory + self._curves)
            return running_sums(bins, self.plan.superlevel, self.plan.sign), memory
        return cupy.ndarray(self._shape, np.int64, memory), memory

    def shaped(
        self, data: int, mask: int, shape: tuple[int, ...], flag: int = 0, table: int = 0
    ) -> Any:
        """Return the curves of a simple scan in a shape; `flag` and `table` are as for `begin`."""
        return cupy.ndarray(shape, np.int64, self.begin(data, mask, table, flag))

    def flags(self, memory: Any) -> Any:
        """Return the flags in the memory of a call."""
        return cupy.ndarray(self._shape[:1], np.int64, memory + self._flags)


def scan_of(
    placement: Placement, own: tuple[int, int] | None, thresholds: Array, variant: Variant
) -> "Scan | Number | None":
    """Return the scan of images (batch, *spatial), or None if they must be recoded.

    Masks are of the same layout (:func:`is_alike`). The device is the current one.
    """
    return _scan_of(placement, own, variant, thresholds.tobytes(), thresholds.dtype.str)


@programs.of_data
def _scan_of(
    placement: Placement, own: tuple[int, int] | None, variant: Variant, raw: bytes, dtype: str
) -> "Scan | Number | None":
    device = placement.device
    thresholds = np.frombuffer(raw, dtype)
    prepared = prepare(thresholds, variant, device)
    if variant.nan == NAN_OMIT and prepared.reaches_last:
        return None
    byte = ITEM_BYTES[variant.element] == 1 and not variant.masked
    if own is None and prepared.rules.levels == 1 and byte:
        ndim = len(placement.shape) - 1
        layout = arrange(placement, 1, False)
        if layout is not None and layout.wide and ndim > 1:
            return Number(
                layout=layout,
                ndim=ndim,
                variant=variant,
                thresholds=thresholds,
                prepared=prepared,
                device=device,
            )
    found = plan_scan(placement, own, variant, prepared.rules)
    return found and Scan(found, prepared, device, reports=variant.nan == NAN_REPORT)


@programs.plan
def plan_scan(
    placement: Placement, own: tuple[int, int] | None, variant: Variant, rules: Rules
) -> Recipe | None:
    """Return how the kernels read images, or None if they must be recoded."""
    ndim = len(placement.shape) - 1
    device = placement.device
    wide = variant.element in WIDE and ndim < 3
    if variant.element not in SCANNED and not wide:
        return None
    if rules.pair is None:
        return None
    item = ITEM_BYTES[variant.element]
    layout = arrange(placement, item, own is not None)
    if layout is None and own is None and not variant.masked:
        layout = arrange_apart(placement, item)
    if layout is not None and own is None and ndim < 3 and has_few_long_rows(layout):
        layout = in_tiles(layout, placement.address)
    channels = arrange_channels(placement, item) if ndim == 3 and own is None else None
    if channels and (found := recipe(channels, ndim, own, variant, rules, device)):
        return found
    if layout is None or (own is None and _is_thin(layout, ndim)):
        return None
    return recipe(layout, ndim, own, variant, rules, device)


def _is_thin(layout: Layout, ndim: int) -> bool:
    """Return whether most lanes of a warp would be idle, but not if axes were swapped."""
    depth, height, width = layout.shape
    if depth * height * width < SMALL_IMAGE or ndim == 1:
        return False
    if ndim == 2:
        return width < THIN_COLUMNS < height
    return (height < PAIR_ROWS or width < THIN_COLUMNS) and sorted(layout.shape)[1] >= THIN_COLUMNS


SUM_THREADS = 256
MOST_SUMMED = 1 << 15  # For rows of more bins, CuPy's scan, by many blocks, is faster.


def running_sums(counts: Any, superlevel: bool, sign: int = 1) -> Any:
    """Return curves as sums of the bins up to each level, for superlevels of those above it.

    `counts` are int64, (rows, levels + 1).
    """
    rows, bins = counts.shape
    if bins > MOST_SUMMED:
        sums = cupy.cumsum(counts[:, :0:-1] if superlevel else counts[:, :-1], axis=1)
        return cupy.multiply(sums[:, ::-1] if superlevel else sums, sign)
    values = cupy.empty((rows, bins - 1), np.int64)
    if values.size:
        counts = cupy.ascontiguousarray(counts)
        call = _sums_call(rows, superlevel, counts.device.id)
        given = counts.data.ptr, bins, sign, values.data.ptr
        call.launch(zip(call.places, given, strict=True))
    return values


@programs.plan
def _sums_call(rows: int, superlevel: bool, _device: int) -> Call:
    macros = {"SUPER": int(superlevel)}
    return plan_call(
        "sums", "sum_rows", macros=macros, grid=(rows,), threads=SUM_THREADS, arguments=[0] * 4
    )


def pick_levels(values: Any, prepared: Prepared) -> Any:
    """Return the curves at the thresholds, given those at the levels: (rows, levels) int64."""
    places = prepared.pick
    if places is None:
        return values
    rows, levels = values.shape
    values = cupy.ascontiguousarray(values)
    found = cupy.empty((rows, places.size), np.int64)
    if found.size:
        call = _pick_call(found.size, values.device.id)
        given = values.data.ptr, levels, places.data.ptr, places.size, found.size, found.data.ptr
        call.launch(zip(call.places, given, strict=True))
    return found


@programs.plan
def _pick_call(size: int, _device: int) -> Call:
    grid = (ceil_div(size, SUM_THREADS),)
    return plan_call(
        "sums",
        "pick_levels",
        macros={"SUPER": 0},
        grid=grid,
        threads=SUM_THREADS,
        arguments=[0] * 6,
    )


def at_thresholds(counts: Any, prepared: Prepared, superlevel: bool) -> Any:
    """Return sums up to each threshold, (rows, n), of counts by rank, (rows, levels + 1).

    Levels are ranked as they enter; the last rank is that of points that never enter.
    """
    sums = running_sums(counts.astype(np.int64, copy=False), superlevel=False)
    return pick_levels(cupy.ascontiguousarray(sums[:, ::-1] if superlevel else sums), prepared)


BYTES = Struct("number.cu", "Bytes")
ARRIVAL = 1 << 42
THREADS = 256
COUNTER = WORDS - 1
"""The word of a reply's memory that is not left at zero."""
COLUMNS_A_LANE = 16
ROWS = 4
"""Half of the rows of a lane."""
RESIDENT = 16
"""Warps that keep a multiprocessor busy."""
LEAST_SLICES = 8  # The fewest slices of a warp.


class Number:
    """A kernel for 8-bit images of one layout at one level, with what a `Scan` has."""

    simple = True
    flags_wanted = 0

    def __init__(
        self,
        layout: Layout,
        ndim: int,
        variant: Variant,
        thresholds: NDArray[Any],
        prepared: Prepared,
        device: int,
    ) -> None:
        self.prepared = prepared
        self.layout = layout
        depth, height, width = layout.shape
        batch, step, row = layout.strides
        if ndim == 2:
            step = 0
        lanes = min(32, 1 << (ceil_div(width, COLUMNS_A_LANE) - 1).bit_length())
        across = ceil_div(width, COLUMNS_A_LANE * lanes)
        down = ceil_div(height, 2 * ROWS * (32 // lanes))
        columns = layout.images * across * down
        chunks = max(1, RESIDENT * processors(device) // columns)
        chunk = min(depth, max(LEAST_SLICES, ceil_div(depth, chunks)))
        self._blocks = ceil_div(columns * ceil_div(depth, chunk), THREADS // 32)
        least, flip = _least_byte(variant, thresholds)
        sign = -1 if variant.cubes and ndim == 3 else 1
        steps = {"batch": batch, "slice": step, "row": row, "images": layout.images}
        sizes = {"depth": depth, "height": height, "width": width}
        units = {"lanes": lanes, "across": across, "down": down, "chunk": chunk}
        high = 0 if least > 127 else 0xFFFFFFFF
        flipped = 0xFFFFFFFF if flip else 0
        level = {"least": 0x01010101 * (128 - least % 128), "high": high, "flip": flipped}
        given = BYTES(**steps, **sizes, **units, **level, sign=sign)
        macros = variant.options() | {"FLAT": int(ndim == 2), "ROWS": ROWS}
        self._call = plan_call(
            "number",
            "number",
            macros=macros,
            grid=(self._blocks,),
            threads=THREADS,
            arguments=(given,),
        )
        self.device = device

    def curves(
        self, data: int, _mask: int = 0, _flag: int = 0, _ticket: int = 0
    ) -> tuple[Any, Any]:
        """Return the curves at the level, (images, 1), and their memory."""
        values = cupy.zeros((self.layout.images, 1), np.int64)
        (place,) = self._call.places
        words = (place, data + self.layout.offset), (place + 1, values.data.ptr)
        self._call.launch(words)
        return values, values

    def number(self, data: int) -> int:
        """Wait for the number of a single image, and return it."""
        reply = take_reply(self.device)
        (place,) = self._call.places
        words = (
            (place, data + self.layout.offset),
            (place + 1, reply.memory.data.ptr + 8 * COUNTER),
            (place + 2, reply.address),
            (place + 3, reply.state),
        )
        self._call.launch(words)
        (found,) = reply.wait(1)
        reply.state = wrapped(reply.state + self._blocks * ARRIVAL + found)
        reply.release()
        return found

    def flags(self, _memory: Any) -> None:
        """Return None, since integers are never NaN."""


def _least_byte(variant: Variant, thresholds: NDArray[Any]) -> tuple[int, bool]:
    """Return the least byte of the set, or of its complement, and whether it is the complement.

    Bytes are counted from the least value of the type.
    """
    dtype = np.dtype(variant.element)
    (level,) = round_to_levels(thresholds, dtype, variant.superlevel).values.tolist()
    place = level + (128 if variant.element == "int8" else 0)
    if variant.superlevel:
        return place, False
    return (place + 1) % 256, place < 255
