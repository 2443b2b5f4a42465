"""Arithmetic of sizes."""


def ceil_div(size: int, part: int) -> int:
    """Return the quotient rounded up: the number of parts that are needed to cover ``size``."""
    return -(-size // part)
