"""Sums of floats in two integers, so that they do not depend on the order of addition.

A term is rounded to a multiple of ``1 / first``, and the rest to one of ``1 / (first * second)``.
"""

import math
from typing import Any, NamedTuple

import cupy
import numpy as np

SAFE_EXPONENT = 900
"""Terms of 2**900 and more are scaled before they are added."""


class Scales(NamedTuple):
    """The factors by which terms become integers, in two parts."""

    first: float
    second: float
    bits: int
    """The number of bits that a term has."""
    exponent: int
    """Terms are below ``2**exponent``."""
    moved: int
    """Terms have been divided by ``2**moved``."""


def scales_of(terms: Any, count: int) -> tuple[Any, Scales]:
    """Return the terms, which may be divided, and scales for sums of `count` of them."""
    bits = 62 - (count - 1).bit_length()
    largest = max(float(terms.max()), -float(terms.min()))
    exponent = math.frexp(largest)[1]
    moved = 0
    if abs(exponent) > SAFE_EXPONENT:
        terms = cupy.ldexp(terms, -exponent)
        moved = exponent
        exponent = 0
    return terms, Scales(
        first=2.0 ** (bits - exponent), second=2.0**bits, bits=bits, exponent=exponent, moved=moved
    )


def join_parts(first: Any, second: Any, scales: Scales) -> Any:
    """Return sums in float64 from those of both parts, int64."""
    bits = scales.bits
    carry = second >> bits
    rest = (second - (carry << bits)).astype(np.float64) * 2.0**-bits
    sums = (first + carry).astype(np.float64) + rest
    return cupy.ldexp(sums, scales.exponent - bits + scales.moved)
