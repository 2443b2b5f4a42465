"""Numbers of the cells of images, each of which spans one or two points along each axis."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

from ecc_core._backends.cuda.arrays import ArrayView
from ecc_core._backends.cuda.calls import Call, pack
from ecc_core._backends.cuda.compile import function, processors, shared_limit
from ecc_core._request.estimator import Cells

__all__ = ["BYTES", "as_volume", "box_histograms", "boxes_fit", "is_of_boxes", "reads_bytes"]

# As in boxes.cu.
BOXES = np.dtype(
    [("data", "i8"), ("counts", "i8"), ("strides", "i8", 3), ("shape", "i4", 3)]
    + [("first", "i4", 3), ("last", "i4", 3)]
    + [(n, "i4") for n in ("wraps", "bins", "never", "chunk", "across", "blocks", "between")]
)
BYTES = 256  # levels of images that are read directly: every value
THREADS = 1024
PLACES = 4  # columns of a thread
COPIES = (8, 32)  # of a bin in shared memory, at least and at most
MOST_BINS = 1022  # numbers of half precision between 1024 and 2048, less one on either side
CHUNKS = (8, 64)  # slices of a thread, at least and at most
DECLARED = 1024  # bytes of shared memory that are left to the kernel itself
MOST_SUM = (1 << 16) - 1  # of pairs in a word
MOST_PAIRS = 2 * 2 * PLACES  # of the points that a thread takes in a step


def is_of_boxes(cells: Cells, wraps: bool, sizes: tuple[int, ...]) -> bool:
    """Return whether the kernel counts these cells.

    It reads four columns at a time, so rows of periodic images must be a multiple of that.
    """
    return cells.boxes and not (wraps and sizes[-1] % PLACES)


def reads_bytes(view: ArrayView, cells: Cells, wraps: bool) -> bool:
    """Return whether the kernel reads an image itself: 8 bits, in rows of whole words."""
    array = view.array
    aligned = not any(n % PLACES for n in (array.data.ptr, array.shape[-1], *array.strides[:-1]))
    bytes_ = view.element in ("uint8", "int8") and array.strides[-1] == 1
    return bytes_ and aligned and is_of_boxes(cells, wraps, array.shape[1:])


def boxes_fit(kinds: int, levels: int, device: int) -> bool:
    """Return whether the histograms of `kinds` of cells at `levels` fit into shared memory."""
    return levels < MOST_BINS and _copies(kinds // 2, _capacity(levels + 1), device) >= COPIES[0]


def box_histograms(
    codes: Any,
    sizes: tuple[int, ...],
    places: list[tuple[int, int]],
    wraps: bool,
    cells: Cells,
    superlevel: bool,
    levels: int,
    raw: bool = False,
) -> Any:
    """Return the numbers of boxes by their codes, (images * kinds, levels + 1) int64.

    `codes` are the values of 8-bit images if `raw`.
    """
    layout = _Layout(codes.shape[0], sizes, codes.strides, codes.dtype.name, raw)
    kinds, device = len(cells.groups), codes.device.id
    call = _plan(layout, tuple(places), wraps, cells.every, superlevel, levels, device)
    counts = cupy.empty((layout.images * kinds, levels + 1), np.int64)
    stream = cupy.cuda.get_current_stream().ptr
    cupy.cuda.runtime.memsetAsync(counts.data.ptr, 0, counts.nbytes, stream)
    if call is not None:
        data = call.places[0]
        call.launch(stream, ((data, codes.data.ptr), (data + 1, counts.data.ptr)))
    return counts


class _Layout(NamedTuple):
    """Number and sizes of images, strides in bytes, type, and whether codes are values."""

    images: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    element: str
    raw: bool


@lru_cache(maxsize=256)
def _plan(
    layout: _Layout,
    places: tuple[tuple[int, int], ...],
    wraps: bool,
    every: bool,
    superlevel: bool,
    levels: int,
    device: int,
) -> Call | None:
    """Return the launch that lacks addresses, or None if there is nothing to count."""
    (top, bottom), (first, last), (left, right) = as_volume(places, (1, 2))
    if bottom <= top or last <= first or right <= left:
        return None
    bins, item = levels + 1, np.dtype(layout.element).itemsize
    words = 1 << len(layout.sizes) - 1
    capacity = _capacity(bins)
    copies = _copies(words, capacity, device)
    steps = [step // item for step in layout.strides[:-1]]
    strides = (steps[0], *as_volume((*steps[1:], 1), 0)[:2])  # of a batch, of slices, of rows
    depth, height, width = as_volume(layout.sizes, 1)
    across, down = -(-width // PLACES), last - first
    most = MOST_SUM // (MOST_PAIRS * THREADS // copies)
    resident = max(1, processors(device) // layout.images)
    chunk, blocks = _shares(across * down, bottom - top, resident, most)
    given = pack(
        BOXES,
        *(0, 0, strides, (depth, height, width), (top, first, left), (bottom, last, right)),
        *(int(wraps), bins, 0 if superlevel else bins - 1, chunk, across, blocks, most // chunk),
    )
    macros = {
        "CODE": "unsigned short" if item == 2 else "unsigned char",
        "RAW": int(layout.raw),
        "SIGNED": int(layout.element == "int8"),
        "PLAIN": int(not wraps and width % PLACES == 0 and right > width),
        "AXES": len(layout.sizes),
        "LAST": int(every),
        "SUPER": int(superlevel),
        "COPIES": copies,
        "CAPACITY": capacity,
        "THREADS": THREADS,
    }
    found = function("boxes", "count_boxes", device, tuple(macros.items()))
    shared = 4 * capacity * words * copies
    return Call(found.kernel, (layout.images * blocks,), THREADS, shared, (given,))


def _shares(lines: int, slices: int, blocks: int, most: int) -> tuple[int, int]:
    """Return the slices of a chunk, and the blocks of an image.

    A thread processes two chunks at a time, which follow each other in the image.
    """

    def cost(chunk: int) -> tuple[int, int]:
        units = lines * -(-slices // (2 * chunk))
        return -(-units // (blocks * THREADS)) * (chunk + 1), chunk

    least = min(CHUNKS[0], -(-slices // 2))
    chunk = min(range(least, max(least, min(CHUNKS[1], most)) + 1), key=cost)
    units = lines * -(-slices // (2 * chunk))
    return chunk, min(blocks, -(-units // THREADS))


def _capacity(bins: int) -> int:
    """Return the words of a histogram: one of a few numbers, so that few kernels are compiled."""
    least = bins + 2  # bins on either side are written to but not read
    return next(step for step in (40, 72, 136, 264, 520, 1032) if step >= least)


def _copies(words: int, capacity: int, device: int) -> int:
    """Return how many copies of each bin fit into shared memory, at most 32."""
    room = (shared_limit(device) - DECLARED) // (4 * capacity * words)
    return min(COPIES[1], 1 << room.bit_length() >> 1)


def as_volume(values: tuple[Any, ...], missing: Any) -> tuple[Any, ...]:
    """Return values for slices, rows and columns; the axes of 2-D images are slices and columns."""
    first, last = values[:-1], values[-1]
    return (*[missing] * (1 - len(first)), *first, *[missing] * (len(first) < 2), last)
