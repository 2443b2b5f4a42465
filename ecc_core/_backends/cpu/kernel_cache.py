"""The cache of compiled kernels on disk, which processes share."""

from __future__ import annotations

import hashlib
import os
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _CacheLocator,
    _SourceFileBackedLocatorMixin,
)
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import nrtdynmod, rtsys
from numba.misc.appdirs import AppDirs

PACKAGE = Path(__file__).parents[2]
DIGEST = 32
"""Bytes of the digest before the content of a file."""

_warned = False


def warn_once(reason: str) -> None:
    """Say once in a process that the cache cannot be used as it should."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled kernels are not cached, so the first calls are slow: {reason} "
            "(NUMBA_CACHE_DIR names another folder)",
            RuntimeWarning,
            stacklevel=2,
        )


def cache_folder() -> Path:
    """Return the folder of compiled kernels.

    It is that of NUMBA_CACHE_DIR, or else in the package, or in the user's cache where the package
    cannot be written.
    """
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR)
    if os.access(PACKAGE, os.W_OK):
        return PACKAGE / "__pycache__" / "kernels"
    return Path(AppDirs("napari-ecc", appauthor=False).user_cache_dir)


class _Locator(_SourceFileBackedLocatorMixin, _CacheLocator):  # type: ignore[misc]
    """Keeps the files of all kernels in one folder."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno
        self._path = cache_folder() / self.get_suitable_cache_subpath(file)

    def get_cache_path(self) -> str:
        return str(self._path)


class _Impl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _SharedFile(IndexDataCacheFile):  # type: ignore[misc]
    """Names the files of a function's compiled versions after their signatures.

    numba numbers them. Two processes that compile a function for different types at the same time
    can take the same number, and from then on one signature leads to the code of the other. Files
    begin with a digest, because a damaged file could be read as machine code.
    """

    def save(self, key: Any, data: Any) -> None:
        digest = hashlib.sha256(repr(key).encode()).digest()
        name = self._data_name(int.from_bytes(digest[:8], "big"))
        self._save_data(name, data)
        # An entry that another process adds at the same time may be lost, and is compiled again.
        self._save_index({**self._load_index(), key: name})

    def _dump(self, obj: Any) -> bytes:
        content: bytes = super()._dump(obj)
        return hashlib.sha256(content).digest() + content

    def _load(self, path: str) -> Any:
        """Return the object in a file; None if the file is missing or damaged."""
        try:
            content = Path(path).read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:
            warn_once(f"{path} is damaged; it is compiled and written again")
            return None
        return pickle.loads(content[DIGEST:])

    def _load_data(self, name: str) -> Any:
        return self._load(self._data_path(name))

    def _load_index(self) -> dict[Any, str]:
        found = self._load(self._index_path)
        if found is None or found[0] != (self._version, self._source_stamp):
            return {}
        overloads: dict[Any, str] = found[1]
        return overloads

    def _save_index(self, overloads: dict[Any, str]) -> None:
        with self._open_for_write(self._index_path) as file:
            file.write(self._dump(((self._version, self._source_stamp), overloads)))


def _initialize_runtime(context: Any) -> None:
    """Do what ``rtsys.initialize`` does, with functions of numba's runtime from the cache.

    numba compiles them in every process, which takes a third of the first call after its imports.
    """
    with global_compiler_lock:
        compile_functions = nrtdynmod.compile_nrt_functions
        nrtdynmod.compile_nrt_functions = _kept_runtime
        try:
            rtsys.initialize(context)
        finally:
            nrtdynmod.compile_nrt_functions = compile_functions


def _kept_runtime(context: Any) -> Any:
    """Return the functions of numba's runtime, which are compiled if the cache does not have them.

    `context` is what numba compiles for.
    """
    codegen = context.codegen()
    target = codegen.magic_tuple()
    folder = cache_folder()
    file = _SharedFile(cache_path=str(folder), filename_base="runtime.ecc", source_stamp=None)
    try:
        kept = file.load(target)
    except OSError:
        kept = None
    if kept is not None:
        return codegen.unserialize_library(kept)
    module, library = nrtdynmod.create_nrt_module(context)
    library.enable_object_caching()
    library.add_ir_module(module)
    library.finalize()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.save(target, library.serialize_using_object_code())
    except OSError as error:
        warn_once(str(error))
    return library


class SharedCache(FunctionCache):  # type: ignore[misc]
    """A cache of compiled code; where it cannot be read or written, functions are compiled anew."""

    _impl_class = _Impl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _SharedFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base + ".ecc",
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load compiled code, which needs the functions of numba's runtime and no others.

        numba would first import all that it needs for compiling, BLAS and a parser of C included.
        That takes longer than everything else in the first call of a process.
        """
        _initialize_runtime(target_context)
        try:
            return self._load_overload(sig, target_context)
        except OSError as error:
            warn_once(str(error))
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:  # The disk may be full, or the folder no longer writable.
            warn_once(str(error))
