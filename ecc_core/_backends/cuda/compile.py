"""Kernels from `source/`, compiled when they are first used and kept for each device."""

from __future__ import annotations

import hashlib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import cupy

from ecc_core._backends.cuda.tiling import REGISTERS, RESOURCES

__all__ = ["function", "kernel", "processors", "shared_limit"]

SOURCE = Path(__file__).parent / "source"


@cache
def _digest() -> str:
    """Return a hash of all sources; CuPy's cache depends on the main file and the options only."""
    files = sorted(SOURCE.iterdir())
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


@lru_cache(maxsize=512)
def kernel(source: str, device: int, options: tuple[tuple[str, Any], ...]) -> Any:
    """Return the kernel `curve` of a source file for the current device, number `device`.

    Parameters
    ----------
    source : str
        "lines", "pairs2d", "pairs3d", "bytes2d" or "bytes3d".
    device : int
        Part of the key, since limits of shared memory are set for a kernel on a device.
    options : tuple of (name, value)
        The macros of ``options.cuh`` without the prefix ``ECC_``.
    """
    given = dict(options)
    given["THREADS"], given["BLOCKS"] = RESOURCES[source]
    return function(source, "curve", device, tuple(given.items()))


@lru_cache(maxsize=512)
def function(source: str, name: str, device: int, macros: tuple[tuple[str, Any], ...]) -> Any:
    """Return a kernel of a source file, with these ``ECC_`` macros, for the current device."""
    options = [f"-DECC_{macro}={value}" for macro, value in macros]
    if source in REGISTERS:
        options.append(f"--maxrregcount={REGISTERS[source]}")
    module = cupy.RawModule(
        code=(SOURCE / f"{source}.cu").read_text(),
        options=("--std=c++17", f"-I{SOURCE}", f"-DECC_DIGEST=0x{_digest()}ull", *options),
    )
    found = module.get_function(name)
    found.max_dynamic_shared_size_bytes = shared_limit(device) - found.shared_size_bytes
    return found


@cache
def shared_limit(device: int) -> int:
    """Return the number of bytes of shared memory that a block may have."""
    attributes = cupy.cuda.Device(device).attributes
    return int(attributes["MaxSharedMemoryPerBlockOptin"])


@cache
def processors(device: int) -> int:
    """Return the number of multiprocessors."""
    return int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])
