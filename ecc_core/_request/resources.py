"""Numbers of threads and devices, and the cores and memory of the machine."""

import operator
import os
import sys
from pathlib import Path
from typing import Any


class AtMost(int):
    """An upper bound on the number of threads; fewer may be used for small images."""


def check_positive_int(number: Any, name: str, kind: str = "a positive int") -> int:
    """Return an argument as an int, or raise an error that says it must be `kind`."""
    try:
        if isinstance(number, bool):
            raise TypeError
        count = operator.index(number)
    except TypeError:
        raise TypeError(f"`{name}` must be {kind}, got {number!r}") from None
    if count < 1:
        raise ValueError(f"`{name}` must be {kind}, got {count}")
    if count > sys.maxsize:
        raise ValueError(
            f"`{name}` must be {kind} of at most 63 bits, got one of {count.bit_length()} bits"
        )
    return count


def available_cores() -> int:
    """Return the number of cores to use: those on which the process may run.

    NUMBA_NUM_THREADS, or without it OMP_NUM_THREADS, is an upper bound.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        first = os.environ.get(name, "").partition(",")[0].strip()
        if first.isdecimal() and int(first) > 0:
            return min(cores, int(first))
    return cores


def available_memory() -> int | None:
    """Return the bytes of memory that can be used without swapping, or None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return None


def check_devices(devices: Any) -> list[int]:
    try:
        numbers = [operator.index(number) for number in devices]
    except TypeError:
        raise TypeError(f"`devices` must be a sequence of ints, got {devices!r}") from None
    if not numbers or min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise ValueError(f"`devices` must be distinct non-negative device numbers, got {devices!r}")
    return numbers


def check_unused(reason: str, **arguments: Any) -> None:
    """Refuse arguments that are given but have no effect; `reason` ends the message."""
    for name, value in arguments.items():
        if value is not None:
            shown = repr(value) if isinstance(value, str | int | float) else type(value).__name__
            raise ValueError(f"`{name}` must be None {reason}, got {shown}")
