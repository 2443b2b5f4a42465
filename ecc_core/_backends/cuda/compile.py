"""Kernels from `source/`, compiled when first used and kept for each device."""

from __future__ import annotations

import hashlib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import cupy

__all__ = ["compares_shorts", "function", "kernel", "processors", "shared_limit"]

SOURCE = Path(__file__).parent / "source"

# Threads a block may have, and blocks that must fit on one multiprocessor with as many: they bound
# the registers of a thread.
RESOURCES = {
    "curve1d": (256, 4),
    "curve2d": (768, 1),
    "curve3d": (384, 1),
    "pairs2d": (512, 1),
    "lines": (512, 1),
    "pairs3d": (384, 1),
    "bytes2d": (512, 1),
    "bytes3d": (512, 1),
    "shorts3d": (384, 1),
}
# Bytes of local memory of a thread beyond which kernels of pairs do without asynchronous copies
# (docs/design/cuda.md); the tests reach those below.
SPILL = 32
# Registers of a thread, where it helps that the compiler is told so in so many words: it then
# computes less anew to save some.
REGISTERS = {"pairs2d": 128, "lines": 128, "pairs3d": 168, "bytes2d": 128, "bytes3d": 128}


@cache
def _digest() -> str:
    """CuPy's cache on disk looks at the main file and the options only; this names the rest."""
    files = sorted(SOURCE.iterdir())
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


@lru_cache(maxsize=512)
def kernel(source: str, device: int, options: tuple[tuple[str, Any], ...]) -> Any:
    """A kernel of one source file for the current device, which must be number `device`.

    Parameters
    ----------
    source : str
        "curve1d", "curve2d", "curve3d", "lines", "pairs2d", "pairs3d", "bytes2d", "bytes3d" or
        "shorts3d".
    device : int
        Part of the key: shared-memory limits belong to a kernel on a device.
    options : tuple of (name, value)
        The ``ECC_`` macros of ``options.cuh``, without the prefix.
    """
    given = dict(options)
    given["THREADS"], given["BLOCKS"] = RESOURCES[source]
    if not source.startswith(("pairs", "lines", "shorts")):
        return function(source, "curve", device, tuple(given.items()))
    found = function(source, "curve", device, (*given.items(), ("ASYNC", 1)))
    if found.local_size_bytes > SPILL:
        found = function(source, "curve", device, (*given.items(), ("ASYNC", 0)))
    return found


@lru_cache(maxsize=512)
def function(source: str, name: str, device: int, macros: tuple[tuple[str, Any], ...]) -> Any:
    """The kernel `name` of a source file, with these ``ECC_`` macros, for the current device."""
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
    """Bytes of shared memory that a block may have."""
    attributes = cupy.cuda.Device(device).attributes
    return int(attributes["MaxSharedMemoryPerBlockOptin"])


@cache
def compares_shorts(device: int) -> bool:
    """Whether there is an instruction for two integers of 16 bits at once (shorts3d.cu)."""
    return int(cupy.cuda.Device(device).compute_capability) >= 90


@cache
def processors(device: int) -> int:
    """Number of multiprocessors."""
    return int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])
