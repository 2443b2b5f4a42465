"""Compressed values of files, decompressed in pieces into one array."""

import math
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.lazy import Array
from ecc_core._io.limits import check_held

GZIP = b"\x1f\x8b"
BYTES_AT_ONCE = 1 << 20
"""Bytes that are decompressed at once."""


def gunzipped(stream: Any) -> Iterator[bytes]:
    """Yield the rest of a compressed file. Reading it to the end verifies the checksum there."""
    return iter(partial(stream.read, BYTES_AT_ONCE), b"")


def filled(
    pieces: Iterable[bytes],
    path: Path,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    exact: bool = True,
) -> Array:
    """Return a compressed array from its pieces, so that it is in memory only once.

    If `exact` is True, it is an error if further bytes follow.
    """
    check_held(math.prod(map(int, shape)) * dtype.itemsize, path.stat().st_size)
    values = np.empty(shape, dtype)
    room = values.reshape(-1).view(np.uint8).data
    for piece in pieces:
        if exact and len(piece) > len(room):
            raise ValueError("damaged: it holds more values than it describes")
        room[: len(piece)] = piece[: len(room)]
        room = room[len(piece) :]
    if room:
        raise ValueError(f"truncated or damaged: {len(room)} bytes are missing")
    return values
