"""What is kept for later calls on devices: compiled kernels, plans and constants.

Each is the result of a function that is decorated by what it returns. It is found again by the
function and its arguments, among which is the number of the device wherever the result belongs to
one. The rules that hold for all of them:

- **Eviction.** All functions of one kind share a cache, which drops what was not used for longest.
- **Streams.** Memory that is kept is made by :func:`lasting` or :func:`upload`, after which it is
  complete, so that kernels on any stream may read it. Nothing writes to it again.
- **Lifetime.** A kernel may still read such memory when its last owner is dropped. Therefore the
  host waits for the device before the memory is used again.
- **Graphs.** What a captured call uses is never dropped (:data:`captured`), since its graph may be
  replayed at any time.
"""

from collections.abc import Callable
from functools import cache, lru_cache, partial, update_wrapper
from typing import Any, ParamSpec, TypeVar
from weakref import finalize

import cupy
from numpy.typing import NDArray

from ecc_core.errors import BackendError

P = ParamSpec("P")
R = TypeVar("R")

MOST_KERNELS = 1024  # Compiling one takes up to seconds, or milliseconds if it is on the disk.
MOST_PLANS = 4096
MOST_SMALL = 256
MOST_LARGE = 16
LARGE_BYTES = 1 << 16  # A function of data whose arguments take more is kept among the large ones.

captured: list[Any] = []
"""Objects that graphs use, which may be replayed at any time."""


@lru_cache(maxsize=MOST_KERNELS)
def _kernel(make: Callable[..., Any], *given: Any) -> Any:
    return make(*given)


@lru_cache(maxsize=MOST_PLANS)
def _plan(make: Callable[..., Any], *given: Any, **named: Any) -> Any:
    return make(*given, **named)


@lru_cache(maxsize=MOST_SMALL)
def _small(make: Callable[..., Any], *given: Any) -> Any:
    return make(*given)


@lru_cache(maxsize=MOST_LARGE)
def _large(make: Callable[..., Any], *given: Any) -> Any:
    return make(*given)


def _by_size(make: Callable[..., Any], *given: Any) -> Any:
    size = sum(len(one) for one in given if isinstance(one, bytes))
    if size > LARGE_BYTES:
        return _large(make, *given)
    return _small(make, *given)


def kernel(make: Callable[P, R]) -> Callable[P, R]:
    """Keep what a function compiles."""
    return update_wrapper(partial(_kernel, make), make)


def plan(make: Callable[P, R]) -> Callable[P, R]:
    """Keep launches, and what they follow from: shapes, strides, types and numbers.

    A lookup costs one of `lru_cache` and 40 ns, since the function is a part of the key.
    """
    return update_wrapper(partial(_plan, make), make)


def of_data(make: Callable[P, R]) -> Callable[P, R]:
    """Keep what follows from arrays that are given as bytes; only a few of those that are large."""
    return update_wrapper(partial(_by_size, make), make)


fact = cache
"""Keep what never changes, of which there are few: names of types, and limits of devices."""


def forget_plans() -> None:
    """Drop all plans, which depend on the number of multiprocessors."""
    _plan.cache_clear()
    _small.cache_clear()
    _large.cache_clear()


def count_devices() -> int:
    """Return the number of CUDA devices; BackendError if there is none."""
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise BackendError(f"`devices` need a CUDA device, got none: {error}") from error


def is_capturing() -> bool:
    """Return whether the current stream is being captured in a graph."""
    return bool(cupy.cuda.get_current_stream().is_capturing())


def upload(array: NDArray[Any]) -> Any:
    """Return a copy of an array on the current device, which may be kept."""
    return lasting(cupy.asarray(array))


def lasting(array: Any) -> Any:
    """Return a contiguous array that the current stream has written, such that it may be kept.

    The host waits for the stream. From now on, nothing must write to the array.
    """
    cupy.cuda.get_current_stream().synchronize()
    if not array.nbytes:
        return array
    owner = _Owner()
    finalize(owner, _release, array).atexit = False
    memory = cupy.cuda.UnownedMemory(array.data.ptr, array.nbytes, owner, array.device.id)
    return cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(memory, 0))


class _Owner:
    """An object to which all views of memory that is kept refer, so that its end shows theirs."""


def _release(array: Any) -> None:
    """Let memory go that nothing refers to any more, when no kernel can read it."""
    if is_capturing():  # The host must not wait while a graph is captured.
        captured.append(array)
    else:
        cupy.cuda.Device(array.device.id).synchronize()
