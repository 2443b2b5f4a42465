"""Open images that need not fit in memory: Zarr, OME-Zarr, TIFF, folders of TIFF, HDF5, NPY.

Zarr and OME-Zarr may also lie behind an address such as s3://bucket/image.zarr.
"""

import itertools
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._checks import check_image_dtype
from ecc_core._io.files import Address, Folder, Stamp, is_address, stamp_of_file
from ecc_core._io.read import read_file
from ecc_core._optional import import_optional
from ecc_core.errors import InputFileError

__all__ = ["HDF5_SUFFIXES", "Volume", "open_volume", "split_inside"]

TIFF_SUFFIXES = (".tif", ".tiff")
LONGEST_ROW = 4096
HDF5_SUFFIXES = (".h5", ".hdf5", ".he5")
EXTRA = {"extra": "dask", "purpose": "reading images block by block"}


class Volume(NamedTuple):
    """An image on the disk, of which nothing but its description has been read."""

    source: "Source"
    """Has shape and dtype, and reads the boxes it is indexed with."""
    axes: str
    """One letter for each axis."""
    chunks: tuple[int, ...]
    """Shape of what is best read at once."""


class _Opened(NamedTuple):
    """What a reader of one kind of file gives."""

    array: Any
    axes: str
    chunks: tuple[int, ...]
    described: Sequence[str]
    """Files that say how the values are to be read."""
    file_of: Callable[[tuple[int, ...]], str] | None = None
    """The file that holds the chunk of an index, where they lie in files of their own."""
    stamp: Callable[[str], Stamp] = stamp_of_file


class Source:
    """An array on the disk whose errors say where they happened."""

    def __init__(self, path: Path | str, level: int, opened: _Opened) -> None:
        self.path, self.level = path, level
        self.array, _, self.chunks, self.described, self.file_of, self.stamp = opened
        self.shape = tuple(self.array.shape)
        self.dtype = np.dtype(self.array.dtype)

    def __reduce__(self) -> Any:
        """Other processes open it themselves: a mapped file would travel with all its values."""
        return _reopen, (self.path, self.level)

    def __getitem__(self, index: tuple[slice | int, ...]) -> NDArray[Any]:
        try:
            return np.asarray(self.array[index])
        except Exception as error:  # codecs raise whatever they like on damaged chunks
            box = ", ".join(f"{i.start}:{i.stop}" for i in self._damaged(index))
            reason = str(error).splitlines() or [type(error).__name__]
            raise InputFileError(f"{self.path}: cannot read chunk [{box}]: {reason[0]}") from error

    def _damaged(self, index: tuple[slice | int, ...]) -> tuple[slice, ...]:
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

    def _chunks_of(self, index: tuple[slice | int, ...]) -> Iterator[tuple[int, ...]]:
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

    def stamps(self, index: tuple[slice | int, ...]) -> list[Stamp]:
        """What tells whether the files of a box beyond `described` have changed."""
        if self.file_of is None:
            return []
        files = dict.fromkeys(map(self.file_of, self._chunks_of(index)))
        return [self.stamp(file) for file in files]

    def description(self) -> list[Any]:
        """What tells another input or another way to read it, without its values."""
        return [
            self.path if isinstance(self.path, str) else str(self.path.resolve()),
            self.level,
            self.dtype.str,
            self.shape,
            *((file, self.stamp(file)) for file in self.described),
        ]


def open_volume(path: str | os.PathLike[str], *, level: int = 0, axes: str | None = None) -> Volume:
    """Open an image without reading it.

    Parameters
    ----------
    path : path-like
        A Zarr array or an OME-Zarr image (a folder, or an address such as
        ``s3://bucket/image.zarr`` that fsspec can read), a folder of TIFF files of one shape, which
        are the first axis in the order of their names, or a TIFF, NPY or HDF5 file. A dataset of an
        HDF5 file that has several is named as if the file were a folder: ``scan.h5/group/data``.
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
    path = os.fspath(path) if is_address(path) else Path(path)
    try:
        opened = _open(path, level)
        check_image_dtype(np.dtype(opened.array.dtype))
    except (ImportError, InputFileError):
        raise
    except Exception as error:  # readers raise whatever they like on damaged files
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputFileError(f"{path}: {reason}") from error
    letters = (axes or opened.axes).upper()
    shape = tuple(opened.array.shape)
    if len(letters) != len(shape) or len(set(letters)) < len(letters):
        raise InputFileError(
            f"{path}: `axes` must be one letter per axis of shape {shape}, got {letters!r}"
        )
    return Volume(Source(path, level, opened), letters, opened.chunks)


def _reopen(path: Path | str, level: int) -> Source:
    return Source(path, level, _open(path, level))


def _open(path: Path | str, level: int) -> _Opened:
    if isinstance(path, str):
        files = Address(path)
        if not any(map(files.stamp, files.metadata(""))):
            raise InputFileError(f"{path}: no Zarr image there")
        return _open_zarr(path, level, files)
    file, inside = split_inside(path)
    if inside is None and not path.exists():
        raise InputFileError(f"{path}: no such file or folder")
    suffix = path.suffix.lower()
    is_zarr = path.is_dir() and any(
        (path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")
    )
    if is_zarr:
        return _open_zarr(path, level, Folder(path))
    if level:
        raise InputFileError(f"{path}: has no levels, got level {level}")
    if path.is_dir():
        return _open_folder(path)
    if inside is not None:
        return _open_hdf5(file, inside)
    if suffix in TIFF_SUFFIXES:
        return _open_tiff(path)
    if suffix == ".npy":
        values = read_file(path).values
        return _one_file(path, values, _axes_of(values.ndim), _rows(values))
    raise InputFileError(
        f"{path}: must be a Zarr or TIFF folder, or a .tif, .tiff, .h5, .hdf5 or .npy file"
    )


def split_inside(path: Path) -> tuple[Path, str | None]:
    """An HDF5 file and the name of a dataset in it, "" if the path ends at the file."""
    for file in (path, *path.parents):
        if file.suffix.lower() in HDF5_SUFFIXES and file.is_file():
            inside = str(PurePosixPath(*path.relative_to(file).parts))
            return file, "" if inside == "." else inside
    return path, None


def _one_file(path: Path, array: Any, axes: str, chunks: tuple[int, ...]) -> _Opened:
    return _Opened(array, axes, chunks, (str(path),))


def _rows(array: Any) -> tuple[int, ...]:
    """Chunks of an array that lies in one piece: its rows, or parts of long ones."""
    *others, length = array.shape
    return (*(1 for _ in others), max(1, min(length, LONGEST_ROW)))


def _open_zarr(path: Path | str, level: int, files: Folder | Address) -> _Opened:
    zarr = import_optional("zarr", **EXTRA)
    node = zarr.open(path, mode="r")
    if isinstance(node, zarr.Array):
        if level:
            raise InputFileError(f"{path}: is an array without levels, got level {level}")
        return _zarr_array(node, "", _axes_of(node.ndim), files)
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
    return _zarr_array(array, str(inside), letters or _axes_of(array.ndim), files)


def _zarr_array(array: Any, inside: str, axes: str, files: Folder | Address) -> _Opened:
    encode = array.metadata.encode_chunk_key

    def file_of(chunk: tuple[int, ...]) -> str:
        return files.file(inside, str(encode(chunk)))

    return _Opened(array, axes, _stored(array), files.metadata(inside), file_of, files.stamp)


def _open_tiff(path: Path) -> _Opened:
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
    return _one_file(path, array, axes, _stored(array))


def _open_folder(path: Path) -> _Opened:
    tifffile = import_optional("tifffile", extra="io", purpose="reading TIFF files")
    zarr = import_optional("zarr", **EXTRA)
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in TIFF_SUFFIXES)
    if not files:
        raise InputFileError(f"{path}: holds neither a Zarr image nor TIFF files")
    array = zarr.open(tifffile.TiffSequence(files).aszarr(), mode="r")
    names = [str(file) for file in files]
    return _Opened(
        array, _axes_of(array.ndim), _stored(array), names, lambda chunk: names[chunk[0]]
    )


def _open_hdf5(file: Path, inside: str) -> _Opened:
    h5py = import_optional("h5py", extra="dask", purpose="reading HDF5 files")
    opened = h5py.File(file, "r")
    names: list[str] = []
    opened.visititems(
        lambda name, node: names.append(name) if isinstance(node, h5py.Dataset) else None
    )
    name = names[0] if not inside and len(names) == 1 else inside
    if name not in names:
        opened.close()
        there = ", ".join(names) or "none"
        asked = f"has no dataset {inside}" if inside else "must hold one dataset or one be named"
        raise InputFileError(f"{file}: {asked}; datasets: {there}")
    array = opened[name]
    if array.ndim == 0:
        raise InputFileError(f"{file}: the dataset {name} is a single value")
    return _one_file(file, array, _axes_of(array.ndim), array.chunks or _rows(array))


def _axes_of(ndim: int) -> str:
    """Axes of an array of which nothing but their order is known."""
    return "ABCDEFGHIJKLMNOPQRSTUVW"[: max(0, ndim - 3)] + "ZYX"[max(0, 3 - ndim) :]


def _stored(array: Any) -> tuple[int, ...]:
    """Shape of what one read brings: a shard, or else a chunk."""
    return tuple(getattr(array, "shards", None) or array.chunks)
