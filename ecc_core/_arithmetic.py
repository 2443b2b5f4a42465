"""Arithmetic of sizes and magnitudes."""

import sys

import numpy as np
from numpy.typing import NDArray


def ceil_div(size: int, part: int) -> int:
    """Return the quotient rounded up: the number of parts that are needed to cover ``size``."""
    return -(-size // part)


def largest_magnitude(numbers: NDArray[np.integer]) -> int:
    """Return the largest absolute value of integers, as an int; 0 if there are none."""
    if not numbers.size:
        return 0
    return max(int(numbers.max()), -int(numbers.min()))


def overflows_float(number: float) -> bool:
    """Whether this is an int beyond the finite floats, which Python refuses to convert."""
    return isinstance(number, int) and abs(number) > sys.float_info.max
