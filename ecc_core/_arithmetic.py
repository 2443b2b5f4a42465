"""Arithmetic of sizes, and what floats can hold."""

import sys


def ceil_div(size: int, part: int) -> int:
    """Return the quotient rounded up: the number of parts that are needed to cover ``size``."""
    return -(-size // part)


def overflows_float(number: float) -> bool:
    """Whether this is an int that no finite float is near, which Python refuses to convert."""
    return isinstance(number, int) and abs(number) > sys.float_info.max
