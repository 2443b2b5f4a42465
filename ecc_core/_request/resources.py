"""Threads and devices."""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["AtMost", "check_devices", "check_unused", "check_workers"]


class AtMost(int):
    """An upper bound on the number of threads, which small images need not reach."""


def check_workers(workers: Any) -> int | None:
    """Check a number of threads: a positive integer or None."""
    if workers is None:
        return None
    try:
        if isinstance(workers, bool):
            raise TypeError
        count = operator.index(workers)
    except TypeError:
        raise TypeError(f"`workers` must be a positive int or None, got {workers!r}") from None
    if count < 1:
        raise ValueError(f"`workers` must be a positive int or None, got {workers}")
    return count


def check_devices(devices: Any) -> list[int]:
    """Return distinct device numbers, at least one."""
    try:
        numbers = [operator.index(number) for number in devices]
    except TypeError:
        raise TypeError(f"`devices` must be a sequence of ints, got {devices!r}") from None
    if not numbers or min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise ValueError(f"`devices` must be distinct non-negative device numbers, got {devices!r}")
    return numbers


def check_unused(reason: str, **arguments: Any) -> None:
    """Raise for an argument that is given where it has no effect."""
    for name, value in arguments.items():
        if value is not None:
            shown = repr(value) if isinstance(value, str | int | float) else type(value).__name__
            raise ValueError(f"`{name}` must be None {reason}, got {shown}")
