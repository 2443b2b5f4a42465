"""Images recoded as their bins: small integers, which the scanning kernels read fastest.

What these kernels do not take themselves is recoded first: masks, types of 32 and 64 bits other
than float32, images along a direction, strides of samples that are not next to each other, and
images of few columns. The curve of the integers at every integer is that of the image.
"""

from typing import Any, NamedTuple, Self

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import Placement, axes_in_memory
from ecc_core._backends.cuda.bins import BINS, Prepared, Rules, prepare, table_memory
from ecc_core._backends.cuda.calls import Call
from ecc_core._backends.cuda.kernels import (
    ELEMENTS,
    ITEM_BYTES,
    NAN_NONE,
    NAN_REPORT,
    Struct,
    Variant,
)
from ecc_core._backends.cuda.rules import PAIR_LEVELS
from ecc_core._backends.cuda.samples import (
    DATA,
    LANES,
    MASK,
    Arrangement,
    Images,
    placed_samples,
)
from ecc_core._backends.cuda.scan import THIN_COLUMNS, Scan, plan_scan
from ecc_core._backends.cuda.tiling import PAIR_ROWS

Array = NDArray[Any]

CODES = Struct("recode.cu", "Codes")
CODES_DATA, NOT_FINITE, TICKET = map(CODES.word, ("data", "not_finite", "ticket"))
COLUMNS = 16
"""Rows of codes are a multiple of it."""
LEVELS_OF_BYTES = 256  # Fewer levels than these have codes of 8 bits.
LEVELS_OF_SHORTS = 65_536  # Fewer levels than these have codes of 16 bits.


@programs.plan
def _order(
    shape: tuple[int, ...], strides: tuple[int, ...], keep: bool, keep_visits: bool
) -> tuple[tuple[int, ...], tuple[int, ...], bool, Array]:
    """Visit samples in the order of memory; codes have long rows, and few slices of many rows.

    Returns the axes of the image in this order, the shape of the codes (images, *spatial), whether
    codes of a row of samples are next to each other, and the kernel's Codes without addresses.
    """
    ndim = len(shape) - 1
    axes = list(range(1, ndim + 1)) if keep_visits else axes_in_memory(shape, strides)
    sizes = [shape[axis] for axis in axes]
    order = list(range(ndim))  # The order of the codes' axes among those visited.
    if not keep and ndim == 2 and sizes[1] < THIN_COLUMNS < sizes[0]:
        order.reverse()
    elif not keep and ndim == 3 and sizes[2] < min(THIN_COLUMNS, sizes[1]):
        order = [*sorted((0, 2), key=lambda axis: sizes[axis]), 1]
    elif not keep and ndim == 3 and sizes[1] < min(PAIR_ROWS, sizes[0]):
        order = [1, 0, 2]
    padded = list(sizes)
    padded[order[-1]] = ceil_div(sizes[order[-1]], COLUMNS) * COLUMNS
    if ndim == 3:
        padded[order[1]] = max(padded[order[1]], PAIR_ROWS)
    steps = [0] * ndim
    step = 1
    for axis in reversed(order):
        steps[axis] = step
        step *= padded[axis]
    lead = 3 - ndim
    whole = (shape[0], *(padded[axis] for axis in order))
    named = zip(("depth", "height", "width"), (*[1] * lead, *padded), strict=True)
    strides = (step, *[0] * lead, *steps)
    return (0, *axes), whole, strides[3] == 1, CODES(strides=strides, **dict(named))


class Recoding(NamedTuple):
    """The launch of a kernel that recodes images of one layout, and what it writes."""

    call: Call
    shape: tuple[int, ...]
    dtype: str
    heights: Any
    """An array on the device, which the kernel reads; None without a direction."""

    def by(self, rule: Array) -> Self:
        """Return the launch with the kernel's Bins."""
        return self._replace(call=self.call.filled(enumerate(rule.tolist(), self.call.places[2])))

    def codes(self, data: int, mask: int, flag: int = 0, ticket: int = 0) -> Any:
        """Return the codes of images at an address.

        NaN is reported to the addresses `flag` and `ticket` as by the function `report` of the
        kernels.
        """
        codes = cupy.ndarray(self.shape, self.dtype)
        samples, out, _ = self.call.places
        words = [(samples + DATA, data), (samples + MASK, mask), (out + CODES_DATA, codes.data.ptr)]
        self.call.launch([*words, (out + NOT_FINITE, flag), (out + TICKET, ticket)])
        return codes


def codes_of(
    images: Images, prepared: Prepared, *, keep: bool = False, repeat: bool = False
) -> tuple[Any, Any, Any]:
    """Return codes of a batch, a flag that is set if NaN was seen, and memory that they need.

    The code of a point is its bin: the number of levels below it (superlevel: up to it). Rows, and
    the other axes unless `keep`, may be longer than the image's or in another order; the points
    that are added repeat the last ones of the image if `repeat`, else they never enter.
    """
    arrangement = Arrangement.of(images)
    recoding = _recoding(arrangement, prepared.rules, keep, repeat).by(prepared.bins)
    flag = cupy.zeros(1, np.int64) if images.variant.nan == NAN_REPORT else None
    reported = 0 if flag is None else flag.data.ptr
    codes = recoding.codes(*images.addresses, reported)
    return codes, flag, (codes, flag, images, recoding.heights)


@programs.plan
def _recoding(arrangement: Arrangement, rules: Rules, keep: bool, repeat: bool) -> Recoding:
    """Return how images are recoded; the options are those of :func:`codes_of`."""
    placement, _, variant, mask, direction = arrangement
    order = _order(placement.shape, placement.strides, keep, keep or direction is not None)
    axes, shape, along_rows, place = order
    along_columns = int(place[CODES.word("strides") + 2]) == 1
    visited = arrangement._replace(
        placement=_visited(placement, axes), mask=None if mask is None else _visited(mask, axes)
    )
    samples = placed_samples(visited, along_rows or along_columns)
    image = samples.image.copy()
    if along_columns and not along_rows:  # Lanes write codes of different rows.
        image.view(np.int32)[LANES] = 1
    # Where every point enters, 256 thresholds of a type of 8 bits leave 256 bins.
    levels = rules.levels
    bytes_do = (
        repeat and mask is None and levels == LEVELS_OF_BYTES and ITEM_BYTES[variant.element] == 1
    )
    if levels < LEVELS_OF_BYTES or bytes_do:
        dtype = "uint8"
    elif levels < LEVELS_OF_SHORTS:
        dtype = "uint16"
    else:
        dtype = "uint32"
    place = place.copy()
    place.view(np.int32)[CODES.word("first", 4)] = bytes_do and variant.superlevel
    shared, where = table_memory(rules)
    macros = {"BINS": rules.single, "CODE": ELEMENTS[dtype], "REPEAT": int(repeat), **where}
    macros["ALONG_ROWS"] = int(along_rows)
    given = samples._replace(image=image)
    call = given.plan("recode", "recode", macros, place, BINS(), shared=shared)
    return Recoding(call, shape, dtype, samples.memory)


def _visited(placement: Placement, axes: tuple[int, ...]) -> Placement:
    """Return the placement of an array with its axes in another order."""
    shape = tuple(placement.shape[axis] for axis in axes)
    strides = tuple(placement.strides[axis] for axis in axes)
    return placement._replace(shape=shape, strides=strides)


class RecodedScan(NamedTuple):
    """A scan of the codes of images of one layout at given levels, with what a `Scan` has."""

    recoding: Recoding
    scan: Scan
    prepared: Prepared
    flags_wanted: int
    """1 for all images, or 0."""

    @property
    def simple(self) -> bool:
        return self.scan.simple

    @property
    def device(self) -> int:
        return self.scan.device

    def curves(
        self, data: int, mask: int = 0, flag: int = 0, ticket: int = 0
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the curves at the levels, and the memory that they need.

        `flag` and `ticket` are addresses, as for `Recoding.codes`; without, the memory has a flag.
        """
        own = None
        if self.flags_wanted and not flag:
            own = cupy.zeros(1, np.int64)
            flag = own.data.ptr
        codes = self.recoding.codes(data, mask, flag, ticket)
        values, memory = self.scan.curves(codes.data.ptr)
        return values, (own, codes, memory)

    def flags(self, memory: tuple[Any, ...]) -> Any:
        """Return the flag in the memory of a call."""
        return memory[0]


def recoded_scan(
    images: Arrangement, prepared: Prepared, own: tuple[int, int] | None
) -> RecodedScan | None:
    """Return how images are recoded and scanned, or None if no pairs read the codes.

    `own` restricts the sum to the indices (first, last) of the first spatial axis.
    """
    placement = images.placement
    variant = images.variant
    levels = prepared.rules.levels
    if levels > PAIR_LEVELS:
        return None
    keep = own is not None
    device = placement.device
    recoding = _recoding(images, prepared.rules, keep, not keep)
    inner = Variant(
        cubes=variant.cubes,
        superlevel=variant.superlevel,
        nan=NAN_NONE,
        element=recoding.dtype,
        masked=False,
    )
    scan = _scan_of_codes(_codes_placement(recoding, device), own, inner, levels, device)
    if scan is None:
        return None
    wanted = int(variant.nan == NAN_REPORT)
    return RecodedScan(recoding.by(prepared.bins), scan, prepared, wanted)


def _codes_placement(recoding: Recoding, device: int) -> Placement:
    """Return where codes are, whose memory CuPy aligns."""
    strides = []
    step = np.dtype(recoding.dtype).itemsize
    for length in reversed(recoding.shape):
        strides.append(step)
        step *= length
    return Placement(recoding.shape, tuple(reversed(strides)), 0, device)


@programs.plan
def _scan_of_codes(
    placement: Placement, own: tuple[int, int] | None, variant: Variant, levels: int, device: int
) -> Scan | None:
    """Return the scan of codes at every code that enters, or None if no pairs read them."""
    every = _every_code(levels, variant, device)
    found = plan_scan(placement, own, variant, every.rules)
    return found and Scan(found, every, device, reports=False)


@programs.plan
def _every_code(levels: int, variant: Variant, device: int) -> Prepared:
    """Return all codes that enter: those below `levels`, or for superlevels those above 0.

    Of 256 levels in bytes, the codes begin at 0.
    """
    bytes_do = variant.element == "uint8" and levels == 256
    first = int(variant.superlevel and not bytes_do)
    thresholds = np.arange(first, levels + first, dtype=variant.element)
    return prepare(thresholds, variant, device)
