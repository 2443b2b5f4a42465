"""An image in files, of which nothing but its description need have been read."""

import itertools
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.files import Stamp, stamp_of_file
from ecc_core.errors import InputFileError

__all__ = ["Index", "Opened", "Request", "StoredImage", "rows_of", "unnamed_axes"]

LONGEST_ROW = 4096
REQUESTS = 32  # on their way at once, about files behind an address

Array = NDArray[Any]
Index = tuple[slice | int, ...]


class Request(NamedTuple):
    """Which image of a file is wanted."""

    series: int | None = None
    level: int = 0
    axes: str | None = None

    def pick_series(self, found: Sequence[str], what: str = "images") -> int:
        """Index of the image that is wanted of those found, which are described."""
        if self.series is None and len(found) == 1:
            return 0
        choices = ", ".join(f"{i} ({text})" for i, text in enumerate(found)) or "none"
        if self.series is None:
            raise ValueError(f"holds {len(found)} {what}, choose one with `series`: {choices}")
        if not 0 <= self.series < len(found):
            raise ValueError(f"`series` must be one of {choices}, got {self.series}")
        return self.series

    def pick_level(self, count: int) -> int:
        """Resolution that is wanted of so many."""
        if not 0 <= self.level < count:
            raise ValueError(f"has levels 0 to {count - 1}, got level {self.level}")
        return self.level


@dataclass(frozen=True)
class Opened:
    """What a reader of one format gives."""

    array: Any
    """Has shape and dtype and is indexed with ints and slices."""
    axes: str
    """One letter an axis, ``?`` where the file says nothing."""
    chunks: tuple[int, ...] | None = None
    """Shape of what is best read at once; by default a row."""
    spacing: Mapping[str, float] = field(default_factory=dict)
    """Distance of neighbouring points by axis, where the file says it."""
    unit: str = ""
    series: int = 1
    levels: int = 1
    described: Sequence[str] | None = None
    """Files that say how the values are to be read; by default the file itself."""
    file_of: Callable[[tuple[int, ...]], str] | None = None
    """The file that holds the chunk of an index, where they lie in files of their own."""
    stamp: Callable[[str], Stamp] = stamp_of_file


class StoredImage:
    """An image in a file or folder; only what it is indexed with is read.

    Attributes
    ----------
    path : pathlib.Path or str
        The file or folder, or the address.
    axes : str
        One letter for each axis: ``Z``, ``Y``, ``X`` are those of the image, ``T`` is time, ``C``
        are channels, ``S`` are the samples of a colour, ``?`` are axes of which the file says
        nothing, and other letters are other axes.
    shape : tuple of int
    dtype : numpy.dtype
    chunks : tuple of int
        Shape of what is best read at once.
    spacing : dict of str to float
        Distance of neighbouring points along those of the axes Z, Y and X for which the file says
        it, in units of `unit`.
    unit : str
        Such as ``"micrometer"``; empty if the file does not say it.
    series, levels : int
        How many images and how many resolutions of this one there are.
    """

    def __init__(self, path: Path | str, request: Request, opened: Opened, reopen: Any) -> None:
        self.path, self.request, self._reopen = path, request, reopen
        self.array, self.file_of, self.stamp = opened.array, opened.file_of, opened.stamp
        self.shape: tuple[int, ...] = tuple(map(int, opened.array.shape))
        self.dtype = np.dtype(opened.array.dtype)
        self.axes = (request.axes or opened.axes).upper()
        self.chunks = tuple(map(int, opened.chunks or rows_of(self.shape)))
        self.series, self.levels, self.unit = opened.series, opened.levels, opened.unit
        self.described = (str(path),) if opened.described is None else opened.described
        self.spacing = {
            letter: float(step)
            for letter, step in opened.spacing.items()
            if letter in self.axes and letter in "ZYX" and 0 < step < math.inf
        }

    def __reduce__(self) -> Any:
        """Other processes open it themselves: a mapped file would travel with all its values."""
        return self._reopen, (self.path, *self.request)

    def __repr__(self) -> str:
        return f"<StoredImage {str(self.path)!r}: {self.axes} {self.shape} {self.dtype}>"

    def __getitem__(self, index: Index) -> Array:
        try:
            if self.file_of is not None and not self.remote:
                for chunk in self._chunks_of(index):
                    _refuse_folder(self.file_of(chunk))
            return np.asanyarray(self.array[index])
        except MemoryError:
            raise
        except Exception as error:  # codecs raise whatever they like on damaged chunks
            reason = " ".join(str(error).split()) or type(error).__name__
            if isinstance(error, InputFileError):
                raise
            box = ", ".join(f"{i.start}:{i.stop}" for i in self._damaged(index))
            raise InputFileError(f"{self.path}: cannot read chunk [{box}]: {reason}") from error

    def read(self) -> Array:
        """Read all of it."""
        return self[tuple(slice(0, n) for n in self.shape)]

    def _damaged(self, index: Index) -> tuple[slice, ...]:
        """The first stored chunk that cannot be read of those that a box touches."""
        box: tuple[slice, ...] = ()
        for chunk in self._chunks_of(index):
            box = tuple(
                slice(i * step, min((i + 1) * step, n))
                for i, step, n in zip(chunk, self.chunks, self.shape, strict=True)
            )
            try:
                self.array[box]
            except Exception:
                break
        return box

    def _chunks_of(self, index: Index) -> Iterator[tuple[int, ...]]:
        """Indices of the stored chunks that a box touches."""
        ends = [(i, i + 1) if isinstance(i, int) else (i.start, i.stop) for i in index]
        return itertools.product(
            *(
                range(low // step, -(-high // step))
                for (low, high), step in zip(ends, self.chunks, strict=True)
            )
        )

    @property
    def remote(self) -> bool:
        """Whether every look at a file is a request."""
        return isinstance(self.path, str)

    def stamps(self, index: Index) -> list[Stamp]:
        """What tells whether the files of a box beyond `described` have changed."""
        if self.file_of is None:
            return []
        files = dict.fromkeys(map(self.file_of, self._chunks_of(index)))
        if self.remote and len(files) > REQUESTS:
            with ThreadPoolExecutor(REQUESTS) as pool:
                return list(pool.map(self.stamp, files))
        return [self.stamp(file) for file in files]

    def description(self) -> list[Any]:
        """What tells another input or another way to read it, without its values."""
        return [
            self.path if isinstance(self.path, str) else os.path.realpath(self.path),
            *self.request,
            self.dtype.str,
            self.shape,
            *((file, self.stamp(file)) for file in self.described),
        ]


def _refuse_folder(file: str) -> None:
    """Raise if there is a folder in the place of a chunk, which zarr takes for no chunk."""
    try:
        mode = os.stat(file).st_mode  # noqa: PTH116
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{file} is a folder")


def rows_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Chunks of an array that lies in one piece: its rows, or parts of long ones."""
    if not shape:
        return ()
    *others, length = shape
    return (*(1 for _ in others), max(1, min(length, LONGEST_ROW)))


def unnamed_axes(ndim: int) -> str:
    """Axes of an array of which nothing but their order is known."""
    return "?" * (ndim - 3) + "ZYX"[max(0, 3 - ndim) :]
