"""The plan of a scan: a kernel, its macros, and how its blocks share work and memory."""

from __future__ import annotations

from typing import NamedTuple

from ecc_core._backends.cuda.tiling import Tiling

__all__ = ["SPARE_BYTES", "Plan", "copies_within"]

SPARE_BYTES = 2048  # of shared memory that a kernel declares itself
SAMPLES_A_COPY = 256  # of a warp, at least


class Plan(NamedTuple):
    """A kernel, its macros beside those of every kernel, and how its blocks work."""

    source: str
    options: dict[str, int]
    tiling: Tiling
    copies: int
    shared: int
    grid: tuple[int, ...] | None = None


def copies_within(one: int, room: int, samples: int, each: int = SAMPLES_A_COPY) -> int:
    """Return how often something of `one` bytes is kept in shared memory, within `room` bytes.

    There is at most one copy for `each` samples of a warp, so that it pays to make them.
    """
    most = min(32, max(1, samples // each), room // one)
    return 1 << (max(1, most).bit_length() - 1)
