"""Open images that need not fit in memory: Zarr, OME-Zarr, TIFF, folders of TIFF files, NPY."""

import itertools
import math
import os
import weakref
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from ecc_core._checks import check_image_dtype
from ecc_core._io.read import read_file
from ecc_core._optional import import_optional
from ecc_core.errors import InputFileError

__all__ = ["Volume", "grown_chunks", "open_volume"]

TIFF_SUFFIXES = (".tif", ".tiff")
EXTRA = {"extra": "dask", "purpose": "reading images block by block"}


class Volume(NamedTuple):
    """An image on the disk, of which nothing but its description has been read."""

    source: Any
    """Has shape and dtype, and reads the boxes it is indexed with."""
    axes: str
    """One letter for each axis."""
    chunks: tuple[int, ...]
    """Shape of what is best read at once."""


class _Named:
    """An array on the disk whose errors say where they happened."""

    def __init__(self, path: Path, level: int, array: Any, chunks: tuple[int, ...]) -> None:
        self.path, self.level, self.array, self.chunks = path, level, array, chunks
        self.shape, self.dtype, self.ndim = array.shape, np.dtype(array.dtype), array.ndim

    def __reduce__(self) -> Any:
        """Other processes open it themselves: a mapped file would travel with all its values."""
        return _reopen, (self.path, self.level)

    def __dask_tokenize__(self) -> Any:
        return (type(self).__name__, str(self.path.resolve()), self.level)

    def __getitem__(self, index: tuple[slice | int, ...]) -> Any:
        try:
            return np.asarray(self.array[index])
        except Exception as error:  # codecs raise whatever they like on damaged chunks
            box = ", ".join(f"{i.start}:{i.stop}" for i in self._damaged(index))
            reason = str(error).splitlines() or [type(error).__name__]
            raise InputFileError(f"{self.path}: cannot read chunk [{box}]: {reason[0]}") from error

    def _damaged(self, index: tuple[slice | int, ...]) -> tuple[slice, ...]:
        """The first stored chunk that cannot be read of those that a box touches."""
        ends = [(i, i + 1) if isinstance(i, int) else (i.start, i.stop) for i in index]
        starts = (
            range(low // step * step, high, step)
            for (low, high), step in zip(ends, self.chunks, strict=True)
        )
        box: tuple[slice, ...] = ()
        for corner in itertools.product(*starts):
            box = tuple(
                slice(start, min(start + step, n))
                for start, step, n in zip(corner, self.chunks, self.shape, strict=True)
            )
            try:
                self.array[box]
            except Exception:
                break
        return box


def open_volume(path: str | os.PathLike[str], *, level: int = 0, axes: str | None = None) -> Volume:
    """Open an image without reading it.

    Parameters
    ----------
    path : path-like
        A Zarr array or an OME-Zarr image (a folder), a folder of TIFF files of one shape, which are
        the first axis in the order of their names, or a TIFF or NPY file.
    level : int, default 0
        Which resolution of an OME-Zarr image, 0 the finest.
    axes : str, optional
        One letter for each axis, where the file says nothing or something wrong. Z, Y and X are
        those of the image, others are batch axes.

    Raises
    ------
    InputFileError
        If there is no such image, or it is none of real numbers.
    ImportError
        If the library that reads this type is not installed.
    """
    path = Path(path)
    try:
        source, named, chunks = _open(path, level)
        check_image_dtype(np.dtype(source.dtype))
    except (ImportError, InputFileError):
        raise
    except Exception as error:  # readers raise whatever they like on damaged files
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputFileError(f"{path}: {reason}") from error
    letters = (axes or named).upper()
    if len(letters) != len(source.shape) or len(set(letters)) < len(letters):
        raise InputFileError(
            f"{path}: `axes` must be one letter per axis of shape {tuple(source.shape)}, "
            f"got {letters!r}"
        )
    return Volume(_Named(path, level, source, chunks), letters, chunks)


def _reopen(path: Path, level: int) -> _Named:
    array, _, chunks = _open(path, level)
    return _Named(path, level, array, chunks)


def _open(path: Path, level: int) -> tuple[Any, str, tuple[int, ...]]:
    if not path.exists():
        raise InputFileError(f"{path}: no such file or folder")
    suffix = path.suffix.lower()
    is_zarr = path.is_dir() and any(
        (path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")
    )
    if is_zarr:
        return _open_zarr(path, level)
    if level:
        raise InputFileError(f"{path}: has no levels, got level {level}")
    if path.is_dir():
        return _open_folder(path)
    if suffix in TIFF_SUFFIXES:
        return _open_tiff(path)
    if suffix == ".npy":
        file = read_file(path)
        return file.values, _axes_of(file.values.ndim), (1,) * file.values.ndim
    raise InputFileError(f"{path}: must be a Zarr or TIFF folder, or a .tif, .tiff or .npy file")


def _open_zarr(path: Path, level: int) -> tuple[Any, str, tuple[int, ...]]:
    zarr = import_optional("zarr", **EXTRA)
    node = zarr.open(path, mode="r")
    if isinstance(node, zarr.Array):
        if level:
            raise InputFileError(f"{path}: is an array without levels, got level {level}")
        return node, _axes_of(node.ndim), _stored(node)
    attributes = node.attrs.asdict()
    images = attributes.get("ome", attributes).get("multiscales")
    if not images:
        arrays = ", ".join(sorted(node.array_keys())) or "none"
        raise InputFileError(f"{path}: is no OME-Zarr image; arrays in this group: {arrays}")
    levels = [str(entry["path"]) for entry in images[0]["datasets"]]
    if not 0 <= level < len(levels):
        raise InputFileError(f"{path}: has levels 0 to {len(levels) - 1}, got level {level}")
    inside = PurePosixPath(levels[level])
    if inside.is_absolute() or ".." in inside.parts:
        raise InputFileError(f"{path}: the path of level {level} leaves the image: {inside}")
    array = node[str(inside)]
    names = [axis if isinstance(axis, str) else axis["name"] for axis in images[0].get("axes", [])]
    letters = "".join(name[0] for name in names)
    return array, letters or _axes_of(array.ndim), _stored(array)


def _open_tiff(path: Path) -> tuple[Any, str, tuple[int, ...]]:
    tifffile = import_optional("tifffile", extra="io", purpose="reading TIFF files")
    zarr = import_optional("zarr", **EXTRA)
    with tifffile.TiffFile(path) as tiff:
        if len(tiff.series) != 1:
            shapes = ", ".join(str(series.shape) for series in tiff.series) or "none"
            raise InputFileError(f"{path}: must hold one image, got shapes {shapes}")
        axes = tiff.series[0].axes.replace("Q", "Z").replace("I", "Z")
    store = tifffile.imread(path, aszarr=True, level=0)
    array = zarr.open(store, mode="r")
    weakref.finalize(array, store.close)
    return array, axes, _stored(array)


def _open_folder(path: Path) -> tuple[Any, str, tuple[int, ...]]:
    tifffile = import_optional("tifffile", extra="io", purpose="reading TIFF files")
    zarr = import_optional("zarr", **EXTRA)
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in TIFF_SUFFIXES)
    if not files:
        raise InputFileError(f"{path}: holds neither a Zarr image nor TIFF files")
    array = zarr.open(tifffile.TiffSequence(files).aszarr(), mode="r")
    return array, _axes_of(array.ndim), _stored(array)


def _axes_of(ndim: int) -> str:
    """Axes of an array of which nothing but their order is known."""
    return "ABCDEFGHIJKLMNOPQRSTUVW"[: max(0, ndim - 3)] + "ZYX"[max(0, 3 - ndim) :]


def _stored(array: Any) -> tuple[int, ...]:
    """Shape of what one read brings: a shard, or else a chunk."""
    return tuple(getattr(array, "shards", None) or array.chunks)


def grown_chunks(
    stored: Sequence[int], shape: Sequence[int], grow: Sequence[int], itemsize: int, limit: int
) -> tuple[int, ...]:
    """Multiples of stored chunks, as large as the limit in bytes allows along the axes `grow`."""
    block = [max(1, min(c, n)) for c, n in zip(stored, shape, strict=True)]
    while True:
        shorter = [axis for axis in grow if block[axis] < shape[axis]]
        if not shorter or 2 * math.prod(block) * itemsize > limit:
            return tuple(block)
        axis = min(shorter, key=lambda a: (block[a], a))
        block[axis] = min(2 * block[axis], shape[axis])
