"""Bit planes of comparisons, coefficients as their carry-save sums, and queues of non-zero rows.

A plane has one bit for each of 64 points, one word for a row of them. A point's key is compared
with that of its neighbour along one axis; the larger one owns the cell between them, and ties go to
the lower index. ``docs/design/cpu.md`` derives the formulas.

numba does not vectorise these loops by itself, so they are portable LLVM vector IR; vectors are 64
lanes wide, and LLVM splits them on narrower machines.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import llvmlite.binding
from llvmlite import ir
from numba import config, types
from numba.core import cgutils

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.llvm import LANES

ROWS = 8
"""Rows that a coefficient word holds: 8 x 64 bits, one 512-bit vector."""
COEFFICIENT_PLANES = 4
"""Bits of a coefficient, which is -8 to 7 in two's complement."""
REGISTER_BITS = 512

# True if the target compresses bytes in registers: LLVM's code for other targets is slow.
if config.CPU_FEATURES is not None:
    HAS_COMPRESS = "+avx512vbmi2" in config.CPU_FEATURES
elif config.CPU_NAME in (None, "host"):
    HAS_COMPRESS = bool(llvmlite.binding.get_host_cpu_features().get("avx512vbmi2", False))
else:
    HAS_COMPRESS = False


@llvm.operation()
def write_planes(builder, keys, starts, pitch, rows, planes, out, stride):
    """Write the planes of comparisons of `rows` rows of one 64-point column.

    `starts` are the places of the first row in a slice and, in 3-D, in the next one. Writes the
    planes of row r at ``planes[out + r + kind * stride]``; the kinds are 0: x >= below, 1: max(x,
    right) >= the same below, 2: x >= right, and in 3-D 3: x, 4: max over x, 5: max over y, 6: max
    over xy, each >= the same a slice on.
    """
    vector = ir.VectorType(keys.element, LANES)
    kept = [[cgutils.alloca_once(builder, vector) for _ in range(3)] for _ in starts]

    def maximum(a: Any, b: Any) -> Any:
        return builder.select(builder.icmp_unsigned(">", a, b), a, b)

    def load(row: Any) -> list[Any]:
        """Return the keys of a row, those of their neighbours along x, and their maxima."""
        loaded = []
        for start in starts:
            offset = builder.add(start, builder.mul(row, pitch))
            here = keys.load(offset, LANES)
            right = keys.load(builder.add(offset, llvm.I64(1)), LANES)
            loaded.append((here, right, maximum(here, right)))
        return loaded

    def keep(loaded: list[Any]) -> None:
        """Store the values of a row, which are needed again with those of the next row."""
        for slots, values in zip(kept, loaded, strict=True):
            for slot, value in zip(slots, values, strict=True):
                builder.store(value, slot)

    keep(load(llvm.I64(0)))
    with cgutils.for_range(builder, rows) as loop:
        current = [[builder.load(slot) for slot in slots] for slots in kept]
        coming = load(builder.add(loop.index, llvm.I64(1)))
        here, right, across = current[0]
        below, _, below_across = coming[0]
        pairs = [(here, below), (across, below_across), (here, right)]
        if len(starts) > 1:
            there, _, there_across = current[1]
            under, _, under_across = coming[1]
            pairs += [(here, there), (across, there_across)]
            pairs.append((maximum(here, below), maximum(there, under)))
            pairs.append((maximum(across, below_across), maximum(there_across, under_across)))
        base = builder.add(out, loop.index)
        for kind, pair in enumerate(pairs):
            plane = builder.bitcast(builder.icmp_unsigned(">=", *pair), llvm.I64)
            offset = builder.add(base, builder.mul(stride, llvm.I64(kind)))
            builder.store(plane, planes.one(offset))
        keep(coming)


class Logic:
    """Carry-save arithmetic on vectors of planes; numbers are lists of planes, lowest bit first."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self.inv = builder.not_
        self.both = builder.and_
        self.either = builder.or_

    def odd(self, *planes: Any) -> Any:
        result = planes[0]
        for plane in planes[1:]:
            result = self.builder.xor(result, plane)
        return result

    def most(self, a: Any, b: Any, c: Any) -> Any:
        return self.either(self.both(a, b), self.both(c, self.either(a, b)))

    def total(self, a: Any, b: Any, c: Any) -> list[Any]:
        """Return a + b + c of three planes."""
        return [self.odd(a, b, c), self.most(a, b, c)]

    def difference(self, a: list[Any], b: list[Any]) -> list[Any]:
        """Return a - b of unsigned numbers of equal length, in two's complement of a plane more."""
        result = []
        borrow = None
        for p, q in zip(a, b, strict=True):
            if borrow is None:
                result.append(self.odd(p, q))
                borrow = self.both(self.inv(p), q)
            else:
                result.append(self.odd(p, q, borrow))
                borrow = self.most(self.inv(p), q, borrow)
        return [*result, borrow]

    def subtract(self, a: list[Any], b: list[Any], planes: int) -> list[Any]:
        """Return a - b in two's complement, both sign-extended to `planes` planes."""
        a = a + [a[-1]] * (planes - len(a))
        b = b + [b[-1]] * (planes - len(b))
        return self.difference(a, b)[:planes]

    def masked(self, number: list[Any], plane: Any) -> list[Any]:
        return [self.both(bit, plane) for bit in number]

    def along_two_axes(self, plane: Any, starts: list[Any], kind: int) -> list[Any]:
        """Return coefficients along z and y of x (kind 0) or of the maximum over x (kind 1).

        ``plane(start, kind, shift)`` loads a plane; the starts are those of `coefficients`.
        """
        row, between, before = starts
        # The cells to the next and to the previous row that the row itself owns.
        to_next = plane(row, kind)
        to_previous = self.inv(plane(row, kind, -1))
        pairs = kind + 2  # The kind of the maxima over y.
        gained = self.total(
            self.inv(plane(between, kind)),
            self.both(to_next, self.inv(plane(before, pairs))),
            self.both(to_previous, self.inv(plane(before, pairs, -1))),
        )
        spent = self.total(
            self.inv(plane(before, kind)),
            self.both(to_next, self.inv(plane(between, pairs))),
            self.both(to_previous, self.inv(plane(between, pairs, -1))),
        )
        return self.difference(gained, spent)

    def shifted(
        self, number: list[Any], carry: Any, offset: Any, edge: list[Any], edge_bit: Any
    ) -> list[Any]:
        """Move every plane one point on along x; the last point of the word before comes in.

        `carry` keeps the planes of the word before. At a border of the image `edge_bit` is a plane
        whose lowest bit takes the incoming point from `edge` instead.
        """
        builder = self.builder
        result = []
        for i, bit in enumerate(number):
            place = builder.add(offset, llvm.I64(ROWS * i))
            held = carry.load(place, ROWS)
            before = builder.lshr(held, llvm.splat(llvm.I64, ROWS, 63))
            carry.store(bit, place)
            moved = self.either(builder.shl(bit, llvm.splat(llvm.I64, ROWS, 1)), before)
            result.append(self.either(moved, self.both(edge[i], edge_bit)))
        return result


def compress(builder: Any, values: Any, bits: Any) -> Any:
    lanes = values.type.count
    width = values.type.element.width
    name = f"llvm.experimental.vector.compress.v{lanes}i{width}"
    undefined = ir.Constant(values.type, ir.Undefined)
    return llvm.call(builder, name, values.type, [values, bits, undefined])


class Queued(NamedTuple):
    """A queue of rows, and the 8 rows of a word that join it if they have a coefficient."""

    queue: Any
    """(6, n): for each queued row its 4 planes, its non-zero plane and the offset of its keys."""
    count: Any
    """The number of rows in the queue."""
    valid: Any
    """The bits of a word that stand for points of the block itself."""
    rows: Any
    """The number of the 8 rows that are rows of the block."""
    at: Any
    """The offset of the keys of the first row."""
    pitch: Any
    """The distance from the keys of a row to those of the next one."""


def _queue(builder: Any, words: list[Any], into: Queued) -> Any:
    """Queue the rows that have a non-zero coefficient, and return how many are queued then.

    There is no branch, because it would be predicted wrongly for every other word.
    """
    number = ir.Constant(ir.VectorType(llvm.I64, ROWS), [llvm.I64(i) for i in range(ROWS)])
    planes = words[:-1]
    nonzero = builder.and_(words[-1], llvm.each(builder, into.valid, ROWS))
    steps = builder.mul(number, llvm.each(builder, into.pitch, ROWS))
    wanted = builder.and_(
        builder.icmp_unsigned("!=", nonzero, llvm.splat(llvm.I64, ROWS, 0)),
        builder.icmp_signed("<", number, llvm.each(builder, into.rows, ROWS)),
    )
    offsets = builder.add(llvm.each(builder, into.at, ROWS), steps)
    for i, word in enumerate([*planes, nonzero, offsets]):
        place = builder.add(into.count, builder.mul(into.queue.shape[1], llvm.I64(i)))
        into.queue.store(compress(builder, word, wanted), place)
    kept = builder.ctpop(builder.bitcast(wanted, llvm.I8))
    return builder.add(into.count, builder.zext(kept, llvm.I64))


@llvm.operation(types.Tuple((types.uint64, types.intp)))
def coefficients(builder, planes, starts, stride, ends, carry, at, edge, out, into):
    """Find the coefficients of 8 rows of a 64-point column from the planes of `write_planes`.

    `starts` are the offsets of the first row's planes (the row before lies one element lower): of
    the kinds within a slice and, in 3-D, of those between slices (3..6, counted from 0) of this
    slice and of the slice before. `ends` are the bits of kind 2 that are cleared, and that are set,
    where a row ends at a border. `carry` keeps what passes from one word to the next along x,
    `edge` is 1 where the points before this word mirror its first. Writes 4 planes of 8 words and
    the non-zero plane into `out`.

    Where the target can compress vectors, the rows with a non-zero coefficient are queued too (see
    :class:`Queued`). Returns the union of the non-zero plane's 8 words, and how many rows are
    queued then.
    """
    logic = Logic(builder)
    row = starts[0]

    def plane(start: Any, kind: int, shift: int = 0) -> Any:
        offset = builder.add(start, builder.mul(stride, llvm.I64(kind)))
        return planes.load(builder.add(offset, llvm.I64(shift)), ROWS)

    if len(starts) == 1:  # The planes tell which rows own the cells to the next rows.
        along, across = (logic.difference([plane(row, k, -1)], [plane(row, k)]) for k in (0, 1))
    else:
        along, across = (logic.along_two_axes(plane, starts, k) for k in (0, 1))
    # The last axis: c = along - owns * across - (1 - owns before) * across before.
    cleared, set_bits = (llvm.each(builder, word, ROWS) for word in ends)
    owns = logic.either(logic.both(plane(row, 2), logic.inv(cleared)), set_bits)
    of_next = logic.masked(across, builder.not_(owns))
    incoming = logic.shifted(of_next, carry, at, along, llvm.each(builder, edge, ROWS))
    total = logic.subtract(along, logic.masked(across, owns), COEFFICIENT_PLANES)
    total = logic.subtract(total, incoming, COEFFICIENT_PLANES)
    nonzero = total[0]
    for bits in total[1:]:
        nonzero = builder.or_(nonzero, bits)
    words = [*total, nonzero]
    for i, word in enumerate(words):
        out.store(word, llvm.I64(ROWS * i))
    some = llvm.call(builder, f"llvm.vector.reduce.or.v{ROWS}i64", llvm.I64, [nonzero])
    return [some, _queue(builder, words, into) if HAS_COMPRESS else into.count]


def _expanded(builder: Any, words: list[Any]) -> Any:
    """Return 64 int8 coefficients from the 4 planes of a row."""
    total = None
    for i, word in enumerate(words):
        bits = builder.bitcast(word, ir.VectorType(llvm.I1, LANES))
        weight = -(1 << i) if i == COEFFICIENT_PLANES - 1 else 1 << i
        chosen, other = (llvm.splat(llvm.I8, LANES, number) for number in (weight, 0))
        part = builder.select(bits, chosen, other)
        total = part if total is None else builder.or_(total, part)
    return total


@llvm.operation()
def expand_coefficients(builder, coefficients, row, out, at):
    """Write the 64 coefficients of row `row` of a coefficient word to ``out[at:at + 64]``."""
    words = []
    for plane in range(COEFFICIENT_PLANES):
        place = builder.add(row, llvm.I64(ROWS * plane))
        words.append(builder.load(coefficients.one(place)))
    out.store(_expanded(builder, words), at)


@llvm.operation(types.intp)
def append_compressed(builder, array, at, wanted, out, count):
    """Append those of ``array[at : at + 64]`` whose bits are set to a list; return its new length.

    The list needs room for 64 entries more than it will hold.
    """
    # LLVM splits compressions of more than one register badly.
    lanes = REGISTER_BITS // array.element.width
    for first in range(0, LANES, lanes):
        piece = builder.lshr(wanted, llvm.I64(first))
        piece = piece if lanes == LANES else builder.trunc(piece, ir.IntType(lanes))
        bits = builder.bitcast(piece, ir.VectorType(llvm.I1, lanes))
        values = array.load(builder.add(at, llvm.I64(first)), lanes)
        out.store(compress(builder, values, bits), count)
        kept = builder.ctpop(piece)
        count = builder.add(count, kept if lanes == LANES else builder.zext(kept, llvm.I64))
    return count


@llvm.operation()
def append_coefficients(builder, planes, wanted, out, count):
    """Append those of the 64 coefficients of 4 planes whose bits are set to a list."""
    bits = builder.bitcast(wanted, ir.VectorType(llvm.I1, LANES))
    out.store(compress(builder, _expanded(builder, planes), bits), count)
