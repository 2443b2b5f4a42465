"""Limits of the size of an image: what its file can hold, and what fits into memory.

A header can claim any size. Uncompressed values take as many bytes as the header claims, and
deflate (NPZ, PNG, gzip) takes at least 1 byte for 1032, so larger claims are refused before memory
is taken. Other codecs have no such ratio, and missing chunks of Zarr and HDF5 take no space at all:
such images may be sparse, and whatever fits into memory is read.
"""

import os
from pathlib import Path

from ecc_core.errors import InputFileError

DEFLATE = 1032
"""The most bytes that a byte of deflate yields: matches of 258 bytes take 2 bits each."""
ALWAYS_ALLOWED_BYTES = 1 << 28
"""Bytes that are allocated without a look at the available memory."""
GIB = 1 << 30


def check_held(described: int, stored: int, ratio: int = DEFLATE) -> None:
    """Raise an error if `stored` bytes cannot hold `described` bytes of values."""
    if described > stored * ratio:
        raise ValueError(
            f"truncated or damaged: it describes {described} bytes of values, "
            f"which the {stored} bytes in it cannot hold"
        )


def check_memory(needed: int, path: Path | str) -> None:
    """Raise an error if `needed` bytes of memory are not available."""
    there = available_bytes() if needed > ALWAYS_ALLOWED_BYTES else None
    if there is not None and needed > there:
        raise InputFileError(
            f"{path}: needs {needed / GIB:.1f} GiB of memory, {there / GIB:.1f} GiB are available; "
            "`ecc stack` reads files in blocks"
        )


def available_bytes() -> int | None:
    """Return the available bytes of memory.

    None on systems that do not promise more memory than they have, so that an allocation fails.
    """
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kib = {name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines)}
        return 1024 * (kib["MemAvailable"] + kib["SwapFree"])
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows, which does not overcommit memory.
        return None
