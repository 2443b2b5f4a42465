"""How large an image can be: what its file can hold, and what fits into memory.

A file can describe any size in a few bytes. Stored values take as many bytes as they describe, and
deflate (NPZ, PNG, gzip) at least 1 byte for 1032, so that a larger claim is refused before memory
is taken. Other codecs have no such ratio, and missing chunks of Zarr and HDF5 take no space at all:
such images may be sparse, and whatever fits into memory is read.
"""

import os
from pathlib import Path

from ecc_core.errors import InputFileError

DEFLATE = 1032
"""Bytes that a byte of deflate yields at most: matches of 258 bytes, of 2 bits each."""
ALWAYS_ALLOWED_BYTES = 1 << 28
"""Bytes that are taken without asking how many there are."""
GIB = 1 << 30


def check_held(described: int, stored: int, ratio: int = DEFLATE) -> None:
    """Raise an error if values cannot be in so few bytes."""
    if described > stored * ratio:
        raise ValueError(
            f"truncated or damaged: it describes {described} bytes of values, "
            f"which the {stored} bytes in it cannot hold"
        )


def check_memory(needed: int, path: Path | str) -> None:
    """Raise an error if so many bytes are not available."""
    there = available_bytes() if needed > ALWAYS_ALLOWED_BYTES else None
    if there is not None and needed > there:
        raise InputFileError(
            f"{path}: needs {needed / GIB:.1f} GiB of memory, {there / GIB:.1f} GiB are available; "
            "`ecc stack` reads files in blocks"
        )


def available_bytes() -> int | None:
    """Return the bytes that can be taken, or None where the system itself refuses to give more."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kib = {name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines)}
        return 1024 * (kib["MemAvailable"] + kib["SwapFree"])
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows promises no more than it has
        return None
