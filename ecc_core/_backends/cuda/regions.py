"""Curves of labelled regions: which labels occur, the number of each region, and its counts."""

from typing import Any, NamedTuple

import cupy
import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import (
    Placement,
    address_of,
    adopt,
    as_cupy,
    check_not_capturing,
    thresholds_on_host,
)
from ecc_core._backends.cuda.bins import Prepared, Rules, prepare
from ecc_core._backends.cuda.calls import Call, plan_call, stream_zeros, take_reply
from ecc_core._backends.cuda.kernels import ELEMENTS, Variant
from ecc_core._backends.cuda.points import (
    POINTS,
    WARPS,
    plan_points,
)
from ecc_core._backends.cuda.samples import (
    DATA,
    THREADS,
    Images,
    Samples,
    plain_samples,
    samples_of,
)
from ecc_core._backends.cuda.scan import pick_levels
from ecc_core._request.filtration import Filtration
from ecc_core._request.labels import check_label_values
from ecc_core.errors import NAN_MESSAGE

COUNTS, NOT_FINITE, TICKET, LABELS, ROWS_OF, MOST_LABEL, MARKS, LARGEST = map(
    POINTS.word,
    ("counts", "not_finite", "ticket", "labels", "rows_of", "most", "marks", "largest"),
)
REPLY, IDS, VALUES, ROOM = map(POINTS.word, ("reply", "ids", "values", "room"))
LABELS_A_THREAD = 8
"""Labels that a thread looks at, `kEach` in labels.cu."""
# A table of marks ranks labels up to a sixteenth of the points, within these limits.
LEAST_MARKED_LABELS = 1 << 16
MOST_MARKED_LABELS = 1 << 24
MOST_POINTS_OF_32_BITS = 1 << 27  # Sums of coefficients of more points could overflow.


class Ranked(NamedTuple):
    """Labels as kernels read them, and the numbers of their regions."""

    # Another stream may write to them at any time, so each label has to be compared with the size
    # of `ranks` in the same read.
    labels: Any
    ids: Any
    """The labels that occur, increasing."""
    ranks: Any
    """The number of each label's region, from 1 on, or 0."""


def contiguous_labels(labels: Any) -> Any:
    """Return labels of any integer type as kernels read them."""
    if labels.dtype == np.bool_:
        labels = (labels.view(np.uint8) != 0).astype(np.uint8)
    return cupy.ascontiguousarray(labels)


def rank_labels(labels: Any) -> Ranked:
    """Number contiguous labels. Waits for the device; ValueError if a label is negative."""
    check_label_values(labels, labels.dtype)
    most = int(labels.max()) if labels.size else 0
    if most < min(max(labels.size // 16, LEAST_MARKED_LABELS), MOST_MARKED_LABELS):
        marks = cupy.zeros(most + 1, np.int32)
        if most:
            macros = {"LABEL": ELEMENTS[labels.dtype.name], "COUNT": "int", "SUPER": 0}
            blocks = ceil_div(labels.size, THREADS * LABELS_A_THREAD)
            given = labels, labels.size, labels.shape[-1], most, marks
            plan_call("labels", "mark_labels", macros, (blocks,), THREADS, given).launch()
        ids = cupy.flatnonzero(marks).astype(labels.dtype)
        return Ranked(labels, ids, cupy.cumsum(marks, dtype=np.int32) * marks)
    labels = labels.copy()  # Other streams may write to the labels while they are ranked.
    ids, places = cupy.unique(labels.ravel(), return_inverse=True)
    empty = ids.size > 0 and int(ids[0]) == 0
    labels = (places.reshape(labels.shape) + (0 if empty else 1)).astype(np.int32)
    ids = ids[1:] if empty else ids
    return Ranked(labels, ids, cupy.arange(ids.size + 1, dtype=np.int32))


EXPECTED_LABELS = 4096  # The largest label, and the number of regions, of the first image.
MOST_BYTES = 1 << 27  # If the counts of all labels need more memory, labels are ranked first.
ROWS_BYTES = 40 << 10  # The most bytes of a block's counts of labels in shared memory.
MOST_ROWS = 64  # The most labels that a block counts there.
# Bins of all regions; with so few, additions to global memory wait for each other.
FEW_BINS = 1 << 17
# The memory of a result may be unused by so many bytes, or by as many as its curves have.
SPARE_BYTES = 1 << 20
# One block writes the curves of eight regions faster than another kernel: this is the room for
# eight with its margin.
MOST_AT_ONCE = 18
HEADER_BYTES = 32  # The largest label without a row, whether there is a NaN, and a ticket.


class Regions:
    """Curves of the regions of images of one layout, with `size` labels of the type `label`.

    There is a row of counts for each label that may occur, so that images can be counted before
    anything is known about their labels. Rows without a region are left out when curves are
    written. The numbers of labels and regions are guessed from the last image; an image with more
    of them is counted again. Labels are ranked first only if they are very large.

    `samples` lack addresses.
    """

    def __init__(
        self, samples: Samples, levels: int, label: np.dtype[Any], size: int, variant: Variant
    ) -> None:
        self._samples = samples
        self._bins = levels + 1
        self._superlevel = variant.superlevel
        self._label = label
        self._count_type = "int" if size < MOST_POINTS_OF_32_BITS else "long long"
        self._row_bytes = self._bins * (4 if size < MOST_POINTS_OF_32_BITS else 8)
        self._limit = MOST_BYTES // self._row_bytes
        self._rows = self._room = min(EXPECTED_LABELS, self._limit)
        self._few = True
        self._expected = 0  # The number of regions of the last image is expected again.
        self._calls: dict[tuple[int, np.dtype[Any]], Call] = {}
        self._sums: dict[int, Call] = {}
        self._kept: _Kept | None = None

    def find(
        self, image: list[tuple[int, int]], labels: Any, prepared: Prepared
    ) -> tuple[Any, Any]:
        """Return the labels that occur, increasing, and their curves. Waits for the device.

        `image` are the words (place, value) of Samples that are addresses. Labels are a contiguous
        CuPy array or tensor; ValueError if one is negative, or for NaN in a region.
        """
        check_not_capturing()
        rows = self._rows
        room = self._room
        own = address_of(labels), self._label
        while 0 < rows <= self._limit:
            found, count, largest = self._count(image, *own, prepared, rows, room, self._few)
            if count <= room and not largest:
                room = with_margin(count)
                self._rows = rows
                self._room = room
                self._few = room * self._bins <= FEW_BINS
                break
            room = with_margin(largest or count)
            rows = room if largest else rows
        else:
            ranked = rank_labels(as_cupy(labels))
            self._rows = rows  # The labels of the next image are probably as large.
            count = ranked.ids.size
            found = ranked.ids, cupy.zeros((0, self._bins - 1), np.int64), False
            if count:
                own = ranked.labels.data.ptr, ranked.labels.dtype
                few = count * self._bins <= FEW_BINS
                found, *_ = self._count(image, *own, prepared, count, count, few, ranked)
        ids, values, nan = found
        if nan:
            raise ValueError(NAN_MESSAGE)
        return ids, pick_levels(values, prepared)

    def _count(
        self,
        image: list[tuple[int, int]],
        labels: int,
        label_type: np.dtype[Any],
        prepared: Prepared,
        rows: int,
        room: int,
        few: bool,
        ranked: Ranked | None = None,
    ) -> tuple[tuple[Any, Any, bool], int, int]:
        """Count regions: the labels from 1 to `rows`, or those that are `ranked`, one row each.

        `labels` is their address. Returns the labels that occur, increasing, and their curves at
        the levels, for at most `room` regions, and whether a labelled point is NaN; then the number
        of all regions, and the largest label without a row, or 0. If `few`, blocks count in shared
        memory first.
        """
        stream = cupy.cuda.get_current_stream().ptr
        at_once = ranked is None and room <= MOST_AT_ONCE
        zeros = self._zeros(rows, stream, leaves_zeros=at_once)
        results = _Results(room, self._bins - 1, self._label)
        reply = take_reply(self._samples.device)
        last = rows if ranked is None else ranked.ranks.size - 1
        call, words = self._counting(prepared, zeros, last, room if few else 0, label_type)
        first, second, _ = call.places
        words += [(first + place, word) for place, word in image]
        words.append((second + LABELS, labels))
        if at_once:
            words += [
                (second + REPLY, reply.address),
                (second + IDS, results.ids),
                (second + VALUES, results.values),
                (second + ROOM, room),
            ]
        elif ranked is not None:
            words.append((second + ROWS_OF, ranked.ranks.data.ptr))
        call.launch(words, stream)
        if not at_once:
            sum_bins = self._sums.get(rows) or self._plan_sums(rows)
            labels_of = 0 if ranked is None else ranked.ids.data.ptr
            counted = zeros.counts, zeros.marks, zeros.largest, rows, self._bins, labels_of
            given = *counted, room, results.ids, results.values, reply.address
            sum_bins.launch(zip(sum_bins.places, given, strict=True), stream)
        expected = min(self._expected, room)
        found = results.arrays(expected)  # Arrays are made while the kernel runs.
        count, largest, nan = reply.wait(3)
        reply.release()
        shown = min(count, room)
        if shown != expected:
            found = results.arrays(shown)
            self._expected = shown
        return (*found, bool(nan)), count, largest

    def _counting(
        self, prepared: Prepared, zeros: "_Zeros", last: int, regions: int, label: np.dtype[Any]
    ) -> tuple[Call, list[tuple[int, int]]]:
        """Return the launch that counts labels up to the last one, and words to be set.

        Where zeros last, they are set already in a launch that is kept.
        """
        key = zeros.largest, last, regions, label
        kept = self._kept
        if kept is not None and kept.key == key and kept.prepared is prepared:
            return kept.call, []
        call = self._plan(regions, label)
        _, second, third = call.places
        words = [
            (second + COUNTS, zeros.counts),
            (second + MARKS, zeros.marks),
            (second + LARGEST, zeros.largest),
            (second + NOT_FINITE, zeros.not_finite),
            (second + TICKET, zeros.ticket),
            (second + MOST_LABEL, last),
            *enumerate(prepared.bins.tolist(), third),
        ]
        if zeros.owner is not None:
            return call, words
        filled = call.filled(words)
        # Another thread may replace the kept launch at once, so this one is returned itself.
        self._kept = _Kept(key, prepared, filled)
        return filled, []

    def _zeros(self, rows: int, stream: int, *, leaves_zeros: bool) -> "_Zeros":
        """Return zeros for the counts of labels; zeros that last if a kernel `leaves_zeros`."""
        start = HEADER_BYTES + 16 * ceil_div(rows, 128)  # Counts follow a bit for each row.
        size = start + rows * self._row_bytes
        if leaves_zeros:
            lasting = stream_zeros(ceil_div(size, 8), self._samples.device, stream)
            if lasting:
                return _Zeros(None, lasting, lasting + start)
        memory = cupy.cuda.alloc(size)
        cupy.cuda.runtime.memsetAsync(memory.ptr, 0, size, stream)
        return _Zeros(memory, int(memory.ptr), int(memory.ptr) + start)

    def _plan(self, regions: int, label: np.dtype[Any]) -> Call:
        """Return the launch that counts; blocks count so many regions in shared memory, or 0."""
        rows = 0
        room = min(ROWS_BYTES // (4 * self._bins), MOST_ROWS)
        if regions and room > 1:  # The power of two that is enough, or as large as fits.
            enough = 1 << (regions - 1).bit_length()
            fitting = 1 << (room.bit_length() - 1)
            rows = min(enough, fitting)
        call = self._calls.get((rows, label))
        if call is None:
            macros = {"OUTPUT": 1, "LABEL": ELEMENTS[label.name], "COUNT": self._count_type}
            call = plan_points(self._samples, macros, rows, self._bins)
            self._calls[rows, label] = call
        return call

    def _plan_sums(self, rows: int) -> Call:
        macros: dict[str, Any] = {"SUPER": int(self._superlevel), "COUNT": self._count_type}
        macros["LABEL"] = ELEMENTS[self._label.name]
        grid = (ceil_div(rows, WARPS),)
        call = plan_call("labels", "sum_bins", macros, grid, THREADS, [0] * 10)
        self._sums = {rows: call}  # The next images most probably have as many rows.
        return call


class _Zeros(NamedTuple):
    """Addresses of what is zero when regions are counted."""

    # The owner of the memory, which must live until the kernels have been launched, or None.
    owner: Any
    largest: int
    """The address of the first word of a header."""
    counts: int

    @property
    def not_finite(self) -> int:
        return self.largest + 8

    @property
    def ticket(self) -> int:
        return self.largest + 16

    @property
    def marks(self) -> int:
        return self.largest + HEADER_BYTES


class _Kept(NamedTuple):
    """A launch with all words but those that differ from call to call."""

    key: tuple[Any, ...]
    prepared: Prepared
    call: Call


class _Results:
    """Memory for the labels and curves of at most `room` regions."""

    def __init__(self, room: int, levels: int, label: np.dtype[Any]) -> None:
        self._room = room
        self._levels = levels
        self._label = label
        self._memory = cupy.cuda.alloc(room * (8 * levels + label.itemsize))
        self.values: int = self._memory.ptr
        self.ids = self.values + 8 * room * levels

    def arrays(self, count: int) -> tuple[Any, Any]:
        """Return the labels and curves of the first regions; copies if much memory is unused."""
        ids = cupy.ndarray((count,), self._label, self._memory + 8 * self._room * self._levels)
        values = cupy.ndarray((count, self._levels), np.int64, self._memory)
        if 8 * (self._room - count) * self._levels > max(SPARE_BYTES, values.nbytes):
            return ids.copy(), values.copy()
        return ids, values


def with_margin(count: int) -> int:
    """Return the room for about so many regions: the next image may have a few more."""
    return count + count // 4 + 8


def region_curves(
    image: Any, labels: Any, thresholds: Any, filtration: Filtration, *, workers: int | None = None
) -> tuple[Any, Any]:
    with adopt(image) as view:
        given = as_cupy(labels)
        regions = contiguous_labels(given)
        thresholds = thresholds_on_host(thresholds)
        images = Images.of(view._replace(array=view.array[None]), filtration)
        single = images.view.array
        variant = images.variant
        if regions.size and thresholds.size:
            prepared = prepare(thresholds, variant, regions.device.id)
            kind = (regions.dtype, regions.size)
            memory = None
            if images.direction is None:
                plan = plan_regions(Placement.of(single), variant, prepared.rules, *kind)
                words = [(DATA, single.data.ptr)]
            else:
                samples = samples_of(images, prepared, vector=False)
                plan = Regions(samples, prepared.rules.levels, *kind, variant)
                memory = samples.memory
                words = list(enumerate(samples.image.tolist()))
            ids, values = plan.find(words, regions, prepared)
            del memory  # It had to live until the kernels were launched.
        else:
            ids = rank_labels(regions).ids
            values = cupy.zeros((ids.size, thresholds.size), np.int64)
        ids = ids.astype(given.dtype, copy=False)  # Labels may be boolean.
        return view.wrap(ids), view.wrap(values)


@programs.plan
def plan_regions(
    placement: Placement, variant: Variant, rules: Rules, label: np.dtype[Any], size: int
) -> Regions:
    """Return the Regions of a batch of one image and contiguous labels, without a direction."""
    samples = plain_samples(placement, variant)
    samples = samples._replace(options=samples.options | {"BINS": rules.single})
    return Regions(samples, rules.levels, label, size, variant)
