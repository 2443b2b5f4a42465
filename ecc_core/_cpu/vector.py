"""Vector intrinsics of the bit-sliced tournament, as portable LLVM vector IR.

numba does not vectorise these loops by itself; everything else in the CPU kernels is plain numba.
One machine word (``uint64``) is a *plane*: one bit for each of 64 points that follow each other
along the last axis. :mod:`ecc_core._cpu.plain` holds the same operations as plain numba loops, and
the tests hold the two equal. Vectors are 64 lanes wide; LLVM splits them on narrower machines.

A "tournament" is the comparison of a point's key with that of its neighbour along one axis; the
winner owns the cell between them, and ties go to the lower index. ``docs/design/cpu.md`` derives
the formulas.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    "BIN_LANES",
    "HAS_COMPRESS",
    "append_events",
    "beat_planes",
    "bin_value",
    "bin_vector",
    "coefficients_2d",
    "coefficients_3d",
    "count_trailing_zeros",
    "expand_coefficients",
    "fused_multiply_add",
    "planes_2d",
    "planes_3d",
    "prefetch",
]

LANES = 64
ROWS = 8  # rows a coefficient word holds: 8 x 64 bits, one 512-bit vector
COEFFICIENT_PLANES = 4  # two's complement: -8..7
NONZERO_PLANE = 4  # the plane behind them: 1 where the coefficient is not zero

_I1, _I8, _I64 = ir.IntType(1), ir.IntType(8), ir.IntType(64)


def _has_compress() -> bool:
    """Whether the target compresses bytes in registers; elsewhere LLVM's expansion is slow."""
    if config.CPU_FEATURES is not None:
        return "+avx512vbmi2" in config.CPU_FEATURES
    if config.CPU_NAME not in (None, "host"):
        return False
    return bool(llvmlite.binding.get_host_cpu_features().get("avx512vbmi2", False))


HAS_COMPRESS = _has_compress()


def _data(context: Any, builder: Any, array_type: Any, value: Any) -> Any:
    return context.make_array(array_type)(context, builder, value).data


def _splat(element: Any, lanes: int, value: int) -> Any:
    return ir.Constant(ir.VectorType(element, lanes), [ir.Constant(element, value)] * lanes)


def _load(builder: Any, pointer: Any, offset: Any, element: Any, lanes: int) -> Any:
    vector = ir.VectorType(element, lanes).as_pointer()
    address = builder.bitcast(builder.gep(pointer, [offset]), vector)
    return builder.load(address, align=element.width // 8)


def _store(builder: Any, value: Any, pointer: Any, offset: Any) -> None:
    address = builder.bitcast(builder.gep(pointer, [offset]), value.type.as_pointer())
    builder.store(value, address, align=value.type.element.width // 8)


def _call(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    function = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(result, [a.type for a in arguments]), name
    )
    return builder.call(function, arguments)


@intrinsic
def count_trailing_zeros(typingctx: Any, word: Any) -> Any:
    """Position of the lowest set bit of a non-zero uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(_I1, 1))

    return types.int64(types.uint64), codegen


@intrinsic
def fused_multiply_add(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c of float64, rounded once."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


@intrinsic
def prefetch(typingctx: Any, address: Any) -> Any:
    """Ask for the cache line at an address, which need not be one that may be read."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], cgutils.voidptr_t)
        read, keep, data = (ir.Constant(ir.IntType(32), i) for i in (0, 3, 1))
        _call(builder, "llvm.prefetch.p0", ir.VoidType(), [pointer, read, keep, data])
        return context.get_dummy_value()

    return types.void(types.intp), codegen


class _Rows:
    """Emit the loop over the rows of one 64-point column, keeping each row for the next turn."""

    def __init__(self, context: Any, builder: Any, sig: Any, args: Any) -> None:
        self.builder = builder
        self.element = context.get_value_type(sig.args[0].dtype)
        self.vector = ir.VectorType(self.element, LANES)
        self.keys = _data(context, builder, sig.args[0], args[0])

    def maximum(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.icmp_unsigned(">", a, b), a, b)

    def wins(self, a: Any, b: Any) -> Any:
        return self.builder.bitcast(self.builder.icmp_unsigned(">=", a, b), _I64)

    def load(self, start: Any, pitch: Any, row: Any) -> tuple[Any, Any, Any]:
        """Keys of a row, of the same row one column on, and their maximum."""
        builder = self.builder
        offset = builder.add(start, builder.mul(row, pitch))
        here = _load(builder, self.keys, offset, self.element, LANES)
        right = _load(builder, self.keys, builder.add(offset, _I64(1)), self.element, LANES)
        return here, right, self.maximum(here, right)

    def emit(
        self, starts: list[Any], pitch: Any, rows: Any, planes: Any, out: Any, kind_stride: Any
    ) -> None:
        builder = self.builder
        kept = [[cgutils.alloca_once(builder, self.vector) for _ in range(3)] for _ in starts]

        def keep(loaded: list[tuple[Any, Any, Any]]) -> None:
            for slots, values in zip(kept, loaded, strict=True):
                for slot, value in zip(slots, values, strict=True):
                    builder.store(value, slot)

        keep([self.load(start, pitch, _I64(0)) for start in starts])
        with cgutils.for_range(builder, rows) as loop:
            current = [tuple(builder.load(slot) for slot in slots) for slots in kept]
            following = builder.add(loop.index, _I64(1))
            coming = [self.load(start, pitch, following) for start in starts]
            base = builder.add(out, loop.index)
            for kind, plane in enumerate(self.compare(current, coming)):
                offset = builder.add(base, builder.mul(kind_stride, _I64(kind)))
                builder.store(plane, builder.gep(planes, [offset]))
            keep(coming)

    def compare(self, current: list[Any], coming: list[Any]) -> list[Any]:
        here, right, across = current[0]
        below, _, below_across = coming[0]
        in_plane = [
            self.wins(here, below),
            self.wins(across, below_across),
            self.wins(here, right),
        ]
        if len(current) == 1:
            return in_plane
        (next_here, _, next_across), (next_below, _, next_below_across) = current[1], coming[1]
        between_slices = [
            self.wins(here, next_here),
            self.wins(across, next_across),
            self.wins(self.maximum(here, below), self.maximum(next_here, next_below)),
            self.wins(
                self.maximum(across, below_across), self.maximum(next_across, next_below_across)
            ),
        ]
        return in_plane + between_slices


@intrinsic
def planes_2d(
    typingctx: Any, keys: Any, start: Any, pitch: Any, rows: Any, planes: Any, out: Any, stride: Any
) -> Any:
    """Tournament planes of `rows` rows of one 64-point column.

    Writes the planes of row r at ``planes[out + r + kind * stride]``; the kinds are
    0: x >= below, 1: max(x, right) >= the same below, 2: x >= right.
    """
    sig = types.void(keys, types.intp, types.intp, types.intp, planes, types.intp, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, start, pitch, rows, planes, out, stride = args
        data = _data(context, builder, sig.args[4], planes)
        _Rows(context, builder, sig, args).emit([start], pitch, rows, data, out, stride)
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def planes_3d(
    typingctx: Any,
    keys: Any,
    start: Any,
    next_start: Any,
    pitch: Any,
    rows: Any,
    planes: Any,
    out: Any,
    stride: Any,
) -> Any:
    """As :func:`planes_2d`, with the kinds 3..6 for the tournaments with the next slice.

    They are 3: x, 4: max over x, 5: max over y, 6: max over xy, each >= the same a slice on.
    """
    sig = types.void(
        keys, types.intp, types.intp, types.intp, types.intp, planes, types.intp, types.intp
    )

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, start, next_start, pitch, rows, planes, out, stride = args
        data = _data(context, builder, sig.args[5], planes)
        starts = [start, next_start]
        _Rows(context, builder, sig, args).emit(starts, pitch, rows, data, out, stride)
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def beat_planes(
    typingctx: Any,
    keys: Any,
    labels: Any,
    here: Any,
    there: Any,
    pitch: Any,
    rows: Any,
    flip: Any,
    planes: Any,
    out: Any,
    back: Any,
) -> Any:
    """For `rows` rows, which points beat their neighbour in one direction, and the reverse.

    `here` and `there` are the offsets of the first 64 points and of their neighbours in `keys` and
    `labels`. A point beats one of the same label if its key is at least as large (the neighbour, if
    its key is larger). One of another label is beaten by both if `flip` is all ones, by neither if
    it is 0. Writes the points' planes at `out` + row and the neighbours' at `back` + row.
    """
    sig = types.void(
        keys,
        labels,
        types.intp,
        types.intp,
        types.intp,
        types.intp,
        types.uint64,
        planes,
        types.intp,
        types.intp,
    )

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        keys, labels, here, there, pitch, rows, flip, planes, out, back = args
        data = _data(context, builder, sig.args[7], planes)

        def compare(array: Any, array_type: Any, relation: str, step: Any) -> Any:
            element = context.get_value_type(array_type.dtype)
            source = _data(context, builder, array_type, array)
            points, neighbours = (
                _load(builder, source, builder.add(start, step), element, LANES)
                for start in (here, there)
            )
            return builder.bitcast(builder.icmp_unsigned(relation, points, neighbours), _I64)

        with cgutils.for_range(builder, rows) as loop:
            step = builder.mul(loop.index, pitch)
            wins = compare(keys, sig.args[0], ">=", step)
            same = compare(labels, sig.args[1], "==", step)
            for offset, plane in ((out, wins), (back, builder.not_(wins))):
                beats = builder.and_(builder.xor(plane, flip), same)
                address = builder.gep(data, [builder.add(offset, loop.index)])
                builder.store(builder.xor(beats, flip), address)
        return context.get_dummy_value()

    return sig, codegen


class _Logic:
    """Carry-save arithmetic on vectors of planes; numbers are lists of planes, lowest bit first."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self.ones = _splat(_I64, ROWS, -1)

    def inv(self, a: Any) -> Any:
        return self.builder.xor(a, self.ones)

    def both(self, a: Any, b: Any) -> Any:
        return self.builder.and_(a, b)

    def either(self, a: Any, b: Any) -> Any:
        return self.builder.or_(a, b)

    def odd(self, *planes: Any) -> Any:
        result = planes[0]
        for plane in planes[1:]:
            result = self.builder.xor(result, plane)
        return result

    def most(self, a: Any, b: Any, c: Any) -> Any:
        return self.either(self.both(a, b), self.both(c, self.either(a, b)))

    def total(self, a: Any, b: Any, c: Any) -> list[Any]:
        """a + b + c of three planes."""
        return [self.odd(a, b, c), self.most(a, b, c)]

    def difference(self, a: list[Any], b: list[Any]) -> list[Any]:
        """a - b of unsigned numbers of equal length, in two's complement with one plane more."""
        result, borrow = [], None
        for p, q in zip(a, b, strict=True):
            if borrow is None:
                result.append(self.odd(p, q))
                borrow = self.both(self.inv(p), q)
            else:
                result.append(self.odd(p, q, borrow))
                borrow = self.most(self.inv(p), q, borrow)
        return [*result, borrow]

    def subtract(self, a: list[Any], b: list[Any], planes: int) -> list[Any]:
        """a - b in two's complement, both sign-extended to `planes` planes."""
        a = a + [a[-1]] * (planes - len(a))
        b = b + [b[-1]] * (planes - len(b))
        return self.difference(a, b)[:planes]

    def masked(self, number: list[Any], plane: Any) -> list[Any]:
        return [self.both(bit, plane) for bit in number]

    def shifted(
        self, number: list[Any], carry: Any, offset: Any, edge: list[Any], edge_bit: Any
    ) -> list[Any]:
        """Move every plane one point on along x; the last point of the word before comes in.

        `carry` keeps the planes of the word before. At a border of the image `edge_bit` is a plane
        whose lowest bit takes the incoming point from `edge` instead.
        """
        builder, result = self.builder, []
        for i, bit in enumerate(number):
            place = builder.add(offset, _I64(ROWS * i))
            before = builder.lshr(_load(builder, carry, place, _I64, ROWS), _splat(_I64, ROWS, 63))
            _store(builder, bit, carry, place)
            moved = self.either(builder.shl(bit, _splat(_I64, ROWS, 1)), before)
            result.append(self.either(moved, self.both(edge[i], edge_bit)))
        return result


def _compress(builder: Any, values: Any, bits: Any) -> Any:
    lanes, width = values.type.count, values.type.element.width
    name = f"llvm.experimental.vector.compress.v{lanes}i{width}"
    undefined = ir.Constant(values.type, ir.Undefined)
    return _call(builder, name, values.type, [values, bits, undefined])


def _each(builder: Any, scalar: Any, lanes: int) -> Any:
    """A vector of one number."""
    vector = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    vector = builder.insert_element(vector, scalar, _I64(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(vector, vector, zeros)


def _queue(context: Any, builder: Any, words: list[Any], into: Any, into_type: Any) -> Any:
    """Queue the rows that have a non-zero coefficient; the new number of queued rows.

    Without a branch, which would be mispredicted for every other word.
    """
    queue, queued, valid, rows, at, pitch = cgutils.unpack_tuple(builder, into)
    target = context.make_array(into_type[0])(context, builder, queue)
    capacity = builder.extract_value(target.shape, 1)
    number = ir.Constant(ir.VectorType(_I64, ROWS), [_I64(i) for i in range(ROWS)])
    planes, nonzero = words[:-1], builder.and_(words[-1], _each(builder, valid, ROWS))
    steps = builder.mul(number, _each(builder, pitch, ROWS))
    wanted = builder.and_(
        builder.icmp_unsigned("!=", nonzero, _splat(_I64, ROWS, 0)),
        builder.icmp_signed("<", number, _each(builder, rows, ROWS)),
    )
    offsets = builder.add(_each(builder, at, ROWS), steps)
    for i, word in enumerate([*planes, nonzero, offsets]):
        place = builder.add(queued, builder.mul(capacity, _I64(i)))
        _store(builder, _compress(builder, word, wanted), target.data, place)
    kept = builder.ctpop(builder.bitcast(wanted, _I8))
    return builder.add(queued, builder.zext(kept, _I64))


def _finish(
    context: Any,
    builder: Any,
    logic: _Logic,
    along: list[Any],
    across: list[Any],
    wins: Any,
    sig: Any,
    args: Any,
) -> Any:
    """The last axis: c = along - wins * across - (the point before loses) * across(before)."""
    carry_type, _, _, out_type, into_type = sig.args[-5:]
    carry, offset, edge, out, into = args[-5:]
    data, target = (
        _data(context, builder, carry_type, carry),
        _data(context, builder, out_type, out),
    )
    edge_plane = _each(builder, edge, ROWS)
    lost = logic.masked(across, logic.inv(wins))
    incoming = logic.shifted(lost, data, offset, along, edge_plane)
    total = logic.subtract(along, logic.masked(across, wins), COEFFICIENT_PLANES)
    total = logic.subtract(total, incoming, COEFFICIENT_PLANES)
    nonzero = total[0]
    for plane in total[1:]:
        nonzero = logic.either(nonzero, plane)
    for i, plane in enumerate([*total, nonzero]):
        _store(builder, plane, target, _I64(ROWS * i))
    some = _call(builder, f"llvm.vector.reduce.or.v{ROWS}i64", _I64, [nonzero])
    queued = builder.extract_value(into, 1)
    if HAS_COMPRESS:
        queued = _queue(context, builder, [*total, nonzero], into, into_type)
    return context.make_tuple(builder, sig.return_type, [some, queued])


@intrinsic
def coefficients_2d(
    typingctx: Any,
    planes: Any,
    row: Any,
    stride: Any,
    carry: Any,
    at: Any,
    edge: Any,
    out: Any,
    into: Any,
) -> Any:
    """Coefficients of 8 rows of one 64-point column from the planes of :func:`planes_2d`.

    `row` is the offset of the first row's planes (the row before lies one element lower), `carry`
    keeps what passes from one word to the next along x, `edge` is 1 where the points before this
    word mirror its first. Writes 4 planes of 8 words and the non-zero plane into `out`.

    Where the target can compress vectors, the rows with a non-zero coefficient are queued too:
    `into` is (queue, rows queued, valid bits, valid rows, offset of the keys, pitch of the keys).
    The 6 rows of the queue take, for each queued row, its 4 planes, its non-zero plane and the
    offset of its keys. Returns the union of the non-zero plane's 8 words, and how many rows are
    queued then.
    """
    result = types.Tuple((types.uint64, types.intp))
    sig = result(planes, types.intp, types.intp, carry, types.intp, types.uint64, carry, into)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        planes, row, stride = args[:3]
        data = _data(context, builder, sig.args[0], planes)
        logic = _Logic(builder)

        def plane(kind: int, shift: int = 0) -> Any:
            offset = builder.add(row, builder.mul(stride, _I64(kind)))
            return _load(builder, data, builder.add(offset, _I64(shift)), _I64, ROWS)

        def along(kind: int) -> list[Any]:
            # [loses to below] - [row above loses to it], with wins = not loses
            return logic.difference([plane(kind, -1)], [plane(kind)])

        return _finish(context, builder, logic, along(0), along(1), plane(2), sig, args)

    return sig, codegen


@intrinsic
def coefficients_3d(
    typingctx: Any,
    planes: Any,
    row: Any,
    between: Any,
    before: Any,
    stride: Any,
    carry: Any,
    at: Any,
    edge: Any,
    out: Any,
    into: Any,
) -> Any:
    """As :func:`coefficients_2d` in 3-D.

    `row` is the offset of the in-plane kinds (0..2), `between` and `before` of the kinds between
    slices (3..6, counted from 0) of this slice and of the slice before.
    """
    result = types.Tuple((types.uint64, types.intp))
    sig = result(
        planes,
        types.intp,
        types.intp,
        types.intp,
        types.intp,
        carry,
        types.intp,
        types.uint64,
        carry,
        into,
    )

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        planes, row, between, before, stride = args[:5]
        data = _data(context, builder, sig.args[0], planes)
        logic = _Logic(builder)

        def plane(start: Any, kind: int, shift: int = 0) -> Any:
            offset = builder.add(start, builder.mul(stride, _I64(kind)))
            return _load(builder, data, builder.add(offset, _I64(shift)), _I64, ROWS)

        def along(kind: int) -> list[Any]:
            """Coefficients along z and y of x (kind 0) or of the maximum over x (kind 1)."""
            wins, before_loses = plane(row, kind), logic.inv(plane(row, kind, -1))
            pairs = kind + 2  # the same maximised over y
            loses = logic.inv
            gained = logic.total(
                loses(plane(between, kind)),
                logic.both(wins, loses(plane(before, pairs))),
                logic.both(before_loses, loses(plane(before, pairs, -1))),
            )
            spent = logic.total(
                loses(plane(before, kind)),
                logic.both(wins, loses(plane(between, pairs))),
                logic.both(before_loses, loses(plane(between, pairs, -1))),
            )
            return logic.difference(gained, spent)

        return _finish(context, builder, logic, along(0), along(1), plane(row, 2), sig, args)

    return sig, codegen


def _expanded(builder: Any, words: list[Any]) -> Any:
    """64 int8 coefficients from the 4 planes of one row."""
    total = None
    for i, word in enumerate(words):
        bits = builder.bitcast(word, ir.VectorType(_I1, LANES))
        weight = -(1 << i) if i == COEFFICIENT_PLANES - 1 else 1 << i
        part = builder.select(bits, _splat(_I8, LANES, weight), _splat(_I8, LANES, 0))
        total = part if total is None else builder.or_(total, part)
    return total


@intrinsic
def expand_coefficients(typingctx: Any, coefficients: Any, row: Any, out: Any, at: Any) -> Any:
    """Write the 64 coefficients of row `row` of a coefficient word to ``out[at:at + 64]``."""
    sig = types.void(coefficients, types.intp, out, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        coefficients, row, out, at = args
        data = _data(context, builder, sig.args[0], coefficients)
        target = _data(context, builder, sig.args[2], out)
        words = [
            builder.load(builder.gep(data, [builder.add(row, _I64(ROWS * i))]))
            for i in range(COEFFICIENT_PLANES)
        ]
        _store(builder, _expanded(builder, words), target, at)
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def append_events(
    typingctx: Any, queue: Any, row: Any, keys: Any, event_keys: Any, coefficients: Any, count: Any
) -> Any:
    """Append the keys and coefficients of a queued row to two lists; the new count.

    Both lists need room for 64 entries more than they will hold.
    """
    sig = types.intp(queue, types.intp, keys, event_keys, coefficients, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        queue, row, keys, event_keys, coefficients, count = args
        source = context.make_array(sig.args[0])(context, builder, queue)
        capacity = builder.extract_value(source.shape, 1)
        *planes, wanted, at = (
            builder.load(
                builder.gep(source.data, [builder.add(row, builder.mul(capacity, _I64(i)))])
            )
            for i in range(NONZERO_PLANE + 2)
        )
        key_data = _data(context, builder, sig.args[2], keys)
        key_list = _data(context, builder, sig.args[3], event_keys)
        coefficient_list = _data(context, builder, sig.args[4], coefficients)
        element = context.get_value_type(sig.args[2].dtype)
        # Pieces of one 512-bit register: LLVM splits wider compressions badly.
        lanes = 512 // element.width
        place = count
        for first in range(0, LANES, lanes):
            piece = builder.lshr(wanted, _I64(first))
            if lanes < LANES:
                piece = builder.trunc(piece, ir.IntType(lanes))
            bits = builder.bitcast(piece, ir.VectorType(_I1, lanes))
            values = _load(builder, key_data, builder.add(at, _I64(first)), element, lanes)
            _store(builder, _compress(builder, values, bits), key_list, place)
            kept = builder.ctpop(piece)
            place = builder.add(place, builder.zext(kept, _I64) if lanes < LANES else kept)
        bits = builder.bitcast(wanted, ir.VectorType(_I1, LANES))
        values = _compress(builder, _expanded(builder, planes), bits)
        _store(builder, values, coefficient_list, count)
        return place

    return sig, codegen


def _bin(lanes: int) -> Any:
    """The intrinsic of :func:`ecc_core._cpu.loaders.bin_evenly` for `lanes` values at `at`."""

    @intrinsic
    def bin_lanes(
        typingctx: Any, values: Any, keys: Any, at: Any, scale: Any, count: Any, bins: Any
    ) -> Any:
        sig = types.UniTuple(types.uint64, 2)(values, keys, types.intp, scale, types.int32, bins)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            values, keys, at, scale, count, bins = args
            source = _data(context, builder, sig.args[0], values)
            target = _data(context, builder, sig.args[1], keys)
            element = context.get_value_type(sig.args[0].dtype)
            key = context.get_value_type(sig.args[1].dtype)
            double, whole = ir.DoubleType(), ir.IntType(32)
            wide = ir.VectorType(double, lanes)

            def each(scalar: Any) -> Any:
                return _each(builder, scalar, lanes)

            slope, offset, turn = (each(builder.extract_value(scale, i)) for i in range(3))
            first, direction, of_nan, turned, downwards = (
                each(builder.trunc(builder.extract_value(bins, i), whole)) for i in range(5)
            )
            pointer = ir.VectorType(element, lanes).as_pointer()
            address = builder.bitcast(builder.gep(source, [at]), pointer)
            value = builder.load(address, align=context.get_abi_sizeof(element))
            nan = ir.Constant(ir.VectorType(_I1, lanes), [0] * lanes)
            if isinstance(element, ir.IntType):
                convert = builder.sitofp if sig.args[0].dtype.signed else builder.uitofp
                value = convert(value, wide)
            else:
                nan = builder.fcmp_unordered("uno", value, value)
                value = value if element == double else builder.fpext(value, wide)
            place = _call(builder, f"llvm.fma.v{lanes}f64", wide, [value, slope, offset])
            zero, top = ir.Constant(wide, [0.0] * lanes), builder.sitofp(each(count), wide)
            place = builder.select(builder.fcmp_ordered(">", place, zero), place, zero)
            place = builder.select(builder.fcmp_ordered("<", place, top), place, top)
            below = builder.fptosi(place, ir.VectorType(whole, lanes))
            past = builder.fcmp_ordered(">", value, turn)
            past = builder.xor(past, builder.trunc(downwards, past.type))
            more = builder.icmp_signed(">", below, turned)
            least = builder.select(past, turned, below)
            below = builder.select(more, below, least)
            above = builder.icmp_signed("==", below, each(count))
            below = builder.xor(builder.select(nan, of_nan, below), direction)
            result = builder.add(first, below)
            if key.width < whole.width:
                result = builder.trunc(result, ir.VectorType(key, lanes))
            elif key.width > whole.width:
                result = builder.sext(result, ir.VectorType(key, lanes))
            _store(builder, result, target, at)

            def flags(bits: Any) -> Any:
                return builder.zext(builder.bitcast(bits, ir.IntType(lanes)), _I64)

            return context.make_tuple(builder, sig.return_type, [flags(above), flags(nan)])

        return sig, codegen

    return bin_lanes


BIN_LANES = 16
bin_vector = _bin(BIN_LANES)
bin_value = _bin(1)
