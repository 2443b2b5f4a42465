"""Kernels from `source/`, compiled when they are first used and kept for each device."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import cupy

from ecc_core._backends.cuda.structures import SOURCE
from ecc_core._backends.cuda.tiling import REGISTERS


@cache
def _digest() -> str:
    """Return a hash of all sources; CuPy's cache depends on the main file and the options only."""
    files = sorted(SOURCE.iterdir())
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def function(source: str, name: str, device: int, macros: Mapping[str, Any]) -> Any:
    """Return a kernel of a source file, with these macros, for the current device.

    The names of macros lack their prefix ``ECC_`` (``options.cuh``). The number of the device is
    given since limits of shared memory are set for a kernel on a device.
    """
    return _compiled(source, name, device, tuple(macros.items()))


@lru_cache(maxsize=512)
def _compiled(source: str, name: str, device: int, macros: tuple[tuple[str, Any], ...]) -> Any:
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
