"""Words of 64 bits that tell how 64 keys compare, and stores of 64 equal numbers.

numba does not make words of loops over comparisons, and loops over runs of labels are mispredicted
at their ends: 64 numbers at once take half the time, and less than one store after the other.
"""

from __future__ import annotations

from typing import Any

from numba import types

from ecc_core._backends.cpu import llvm

WORD_LANES = 64


def _each(builder: Any, value: Any, element: Any) -> Any:
    """Return 64 times the lowest bits of a value."""
    narrow = value if element.width == value.type.width else builder.trunc(value, element)
    return llvm.each(builder, narrow, WORD_LANES)


@llvm.operation(types.uint64)
def small_keys(builder: Any, keys: Any, at: Any, bound: Any) -> Any:
    """Return a word whose bit i tells whether ``keys[at + i] <= bound``."""
    limit = _each(builder, bound, keys.element)
    small = builder.icmp_unsigned("<=", keys.load(at, WORD_LANES), limit)
    return builder.bitcast(small, llvm.I64)


def _comparison(relation: str) -> Any:
    @llvm.operation(types.uint64)
    def compare(builder: Any, keys: Any, at: Any, there: Any) -> Any:
        """Return a word whose bit i tells how ``keys[at + i]`` compares with one from `there`."""
        pair = keys.load(at, WORD_LANES), keys.load(there, WORD_LANES)
        return builder.bitcast(builder.icmp_unsigned(relation, *pair), llvm.I64)

    return compare


at_least, equal = _comparison(">="), _comparison("==")


@llvm.operation()
def fill_vector(builder: Any, row: Any, first: Any, value: Any) -> None:
    """Set 64 elements, from ``row[first]`` on, to an unsigned value."""
    row.store(_each(builder, value, row.element), first)
