"""Kernels: functions that numba compiles, with a cache on disk that processes share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

__all__ = ["kernel"]


class _SharedFile(IndexDataCacheFile):  # type: ignore[misc]
    """Names the files of a function's compiled versions after their signatures.

    numba numbers them. Two processes that compile a function for different types at once then take
    the same number, and from that day on one signature leads to the code of the other.
    """

    def save(self, key: Any, data: Any) -> None:
        digest = hashlib.sha256(repr(key).encode()).digest()
        name = self._data_name(int.from_bytes(digest[:8], "big"))
        self._save_data(name, data)
        # An entry that another process adds just now may be lost: it is compiled again.
        self._save_index({**self._load_index(), key: name})


class _SharedCache(FunctionCache):  # type: ignore[misc]
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _SharedFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As ``numba.njit(nogil=True, cache=True, **options)``."""

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher = njit(nogil=True, **options)(function)
        dispatcher._cache = _SharedCache(function)
        return dispatcher

    return compiled
