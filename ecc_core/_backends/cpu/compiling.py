"""Kernels: functions that numba compiles, and keeps in a cache on disk (`kernel_cache.py`)."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from numba import config, njit
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import register_jitable

from ecc_core._backends import process_forks
from ecc_core._backends.cpu.kernel_cache import SharedCache, warn_once
from ecc_core.errors import BackendError

if config.DISABLE_JIT:
    raise BackendError(
        f"NUMBA_DISABLE_JIT must be 0 or unset: kernels are compiled, got {config.DISABLE_JIT}"
    )

process_forks.wait_for(global_compiler_lock)


def _name_of_version(function: Callable[..., Any]) -> str:
    """Return the name of a function with the numbers that it is compiled for, if it has some.

    numba calls compiled code by its name and a number that processes give out anew. Versions of one
    name that two processes have compiled can have the same number, and a third one that loads both
    from the cache then calls the first in place of the second.
    """
    versions = [str(cell.cell_contents) for cell in function.__closure__ or ()]
    return "_".join([function.__qualname__, *versions])


def _inlined_if_rounded_freely(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a function, which is inlined where its operations may be reordered.

    LLVM compiles such a function once on its own and again in each kernel that calls it, with sums
    in another order. A process that has compiled both would call the first version, one that has
    loaded the kernel from the cache the second, and results would differ in the last bits.
    """
    return {"forceinline": bool(options.get("fastmath")), **options}


def _without_extensions() -> None:
    """Replace a step of numba that imports its extensions, which kernels do not need.

    It reads the metadata of every package that is installed, for a tenth of the first call of a
    process with compiled kernels in the cache. Functions of others take the step as before.
    """


def _compile_uncollected(dispatcher: Any) -> None:
    """Let a dispatcher compile, or load from the cache, without the collector of reference cycles.

    Python starts it after every few thousand new objects. While numba compiles, most of them live
    on, so that they are looked at in vain, which takes a seventh of the time.

    The collector is switched under the lock of the compiler, for which forks wait, too. Otherwise
    it could stay off: in a child forked while a thread waits for the lock, or where two threads
    switch by turns.
    """
    compile_version = dispatcher.compile

    def compile_uncollected(signature: Any) -> Any:
        with global_compiler_lock:
            was_enabled = gc.isenabled()
            gc.disable()
            try:
                return compile_version(signature)
            finally:
                if was_enabled:
                    gc.enable()

    dispatcher.compile = compile_uncollected


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return ``numba.njit(nogil=True, cache=True, **options)``, with the cache of this package."""
    options = _inlined_if_rounded_freely(options)

    def compiled(function: Callable[..., Any]) -> Any:
        function.__qualname__ = _name_of_version(function)
        dispatcher = njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
        dispatcher._compilation_chain_init_hook = _without_extensions
        _compile_uncollected(dispatcher)
        try:
            dispatcher._cache = SharedCache(function)
        except RuntimeError as error:  # numba found no folder that it can write.
            warn_once(str(error))
        return dispatcher

    return compiled


def subroutine(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return ``numba.extending.register_jitable`` for functions that only kernels call.

    They are compiled with each kernel that calls them, without a wrapper for calls from Python and
    without files in the cache. Short ones that few places call are compiled faster as a
    ``kernel(inline="always")``.
    """
    options = _inlined_if_rounded_freely(options)
    register: Callable[[Callable[..., Any]], Any] = register_jitable(
        no_cfunc_wrapper=True, **options
    )
    return register
