"""Open images of any format, reading only their metadata if the format allows it."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from ecc_core._io.files import Address, Files, is_address
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.lazy import Array, Box, Lazy, rows_of
from ecc_core._io.readers import (
    amira,
    analyze,
    array_files,
    bigdataviewer,
    companions,
    dicom,
    emd,
    fits,
    folders,
    imaris,
    metaimage,
    microscopes,
    minc,
    mrc,
    n5,
    netcdf,
    nifti,
    nrrd,
    persistence_images,
    pictures,
    raw,
    tiff,
    vtk_images,
    zarr_images,
)
from ecc_core._io.stored import StoredImage
from ecc_core.errors import InputFileError

FORMATS: tuple[Format, ...] = (
    *pictures.FORMATS,
    *tiff.FORMATS,
    *companions.FORMATS,
    *array_files.FORMATS,
    *zarr_images.FORMATS,
    *netcdf.FORMATS,
    *n5.FORMATS,
    *nifti.FORMATS,
    *analyze.FORMATS,
    *minc.FORMATS,
    *nrrd.FORMATS,
    *mrc.FORMATS,
    *metaimage.FORMATS,
    *dicom.FORMATS,
    *microscopes.FORMATS,
    *imaris.FORMATS,
    *bigdataviewer.FORMATS,
    *emd.FORMATS,
    *amira.FORMATS,
    *vtk_images.FORMATS,
    *fits.FORMATS,
    *persistence_images.FORMATS,
    *raw.FORMATS,
)
"""All formats that can be read."""
_BY_SUFFIX = {suffix: found for found in FORMATS for suffix in found.suffixes}
CONTAINER_SUFFIXES = tuple(suffix for suffix, found in _BY_SUFFIX.items() if found.is_container)
"""Suffixes of files that can hold several arrays, named like files in a folder."""
IMAGE_SUFFIXES = tuple(_BY_SUFFIX)
"""Suffixes of the files that can be read."""
_LAST_AXES = "CZYXS"
"""The axes that follow all others, in this order. Time is the first axis."""


def open_image(
    path: str | os.PathLike[str],
    *,
    series: int | None = None,
    level: int = 0,
    axes: str | None = None,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    offset: int = 0,
    order: str = "C",
) -> StoredImage:
    """Open an image without reading its values.

    Values of PNG, JPEG and similar files, NPZ files and compressed medical files are read at once.

    Parameters
    ----------
    path, series, level, axes, shape, dtype, offset, order
        As for `read_image`.

    Returns
    -------
    StoredImage
        Has `axes`, `shape`, `dtype` and `spacing`, and reads the box that it is indexed with.

    Raises
    ------
    InputFileError, ImportError
        As for `read_image`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from ecc_core.io import open_image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "image.npy")
    ...     np.save(path, np.arange(20).reshape(4, 5))
    ...     image = open_image(path)
    ...     image.axes, image.shape, image[1:3, 2:4].tolist()
    ('YX', (4, 5), [[7, 8], [12, 13]])
    """
    request = Request(series, level, axes, *raw.checked_layout(shape, dtype, offset, order))
    location = os.fspath(path) if is_address(path) else Path(path)
    return _stored(location, request, partial(_opened, location, request))


@lru_cache(maxsize=1)  # A stream can be read only once.
def open_stream(stream: BinaryIO, request: Request) -> StoredImage:
    """Open the NPY file in a stream, whose values are read at once."""
    return _stored(Path("-"), request, partial(array_files.read_npy, stream))


def _stored(path: Path | str, request: Request, read: Callable[[], Opened]) -> StoredImage:
    """Return the image that a reader opens, with its axes in the usual order."""
    try:
        opened = read()
        _check(opened, request)
        opened = _in_order(opened)
        if request.axes:
            named = opened.description.renamed(request.axes.upper())
            opened = _in_order(replace(opened, description=named))
    except (ImportError, MemoryError, InputFileError):
        raise
    except Exception as error:  # Libraries raise errors of any type for damaged files.
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputFileError(f"{path}: {reason.splitlines()[0]}") from error
    return StoredImage(path, request, opened, partial(open_image, **request._asdict()))


def _opened(path: Path | str, request: Request) -> Opened:
    if isinstance(path, str):
        address = Address(path)
        if not zarr_images.is_zarr(address):
            raise ValueError("no Zarr image there")
        return _read_by(zarr_images.ZARR, zarr_images.open_zarr(address, request))
    if path.is_dir():
        files = Files(path)
        if zarr_images.is_zarr(files):
            return _read_by(zarr_images.ZARR, zarr_images.open_zarr(files, request))
        if n5.is_n5(path):
            return _read_by(n5.FORMATS[0], n5.open_n5(path, request))
        if slices := dicom.slices_in(path):
            return _read_by(dicom.FORMATS[0], dicom.open_dicom_folder(slices, request))
        formats = {
            suffix: found.open.__name__
            for suffix, found in _BY_SUFFIX.items()
            if found.is_slice and not found.is_container
        }
        return folders.open_folder(path, formats, open_image)
    file, *inside = _split(path)
    if not file.exists():
        raise ValueError("no such file or folder")
    if not file.is_file():
        raise ValueError("not a file")
    suffix = file.suffix.lower()
    if suffix == ".gz":  # The suffixes of formats are .nii.gz and .mrc.gz.
        suffix = Path(file.stem).suffix.lower() + suffix
    found = _BY_SUFFIX.get(suffix)
    # A shape is given for raw values only, which may have any suffix.
    if request.shape is not None:
        found = raw.FORMATS[0]
    # Zarr and N5 images are folders, not files.
    if found is None or found in (zarr_images.ZARR, *n5.FORMATS):
        there = file.suffix or "none"
        raise ValueError(f"type not supported, got {there}; ecc info --help lists those that are")
    opened = _read_by(found, found.open(file, request, *inside))
    return replace(opened, described=opened.described or (str(file),))


def _read_by(found: Format, opened: Opened) -> Opened:
    """Return an image whose description says which fields the reader of its format looks for."""
    return replace(opened, description=replace(opened.description, read=found.fields))


def is_there(path: str) -> bool:
    """Whether a path exists, or leads into a file that does. Addresses are taken to exist."""
    return is_address(path) or _split(Path(path))[0].exists()


def _split(path: Path) -> tuple[Path, *tuple[str, ...]]:
    """Split a path into a file of several arrays and the name of an array, which may be empty."""
    for file in (path, *path.parents):
        if file.suffix.lower() in CONTAINER_SUFFIXES and file.is_file():
            return file, "/".join(path.relative_to(file).parts)
    return (path,)


def _check(opened: Opened, request: Request) -> None:
    """Raise an error if what a reader returned is inconsistent."""
    shape = opened.array.shape
    letters = (request.axes or opened.description.letters).upper()
    named = letters.replace("?", "")
    if len(letters) != len(shape) or len(set(named)) < len(named):
        given = "`axes` must be" if request.axes else "its axes are not"
        raise ValueError(f"{given} one letter per axis of shape {shape}, got {letters!r}")
    if request.axes and not letters.isalpha():
        raise ValueError(f"`axes` must be letters, got {letters!r}")
    if opened.chunks is not None and min(opened.chunks, default=1) < 1:
        raise ValueError(f"damaged: it is stored in chunks of shape {opened.chunks}")
    if request.series not in (None, *range(opened.series)):
        raise ValueError(f"`series` must be 0 to {opened.series - 1}, got {request.series}")
    request.pick_level(opened.levels)


def _in_order(opened: Opened) -> Opened:
    """Return an image with its axes in the order T, others, C, Z, Y, X, S; nothing is read."""
    axes = opened.description.letters
    # The description has another number of axes. `_check` then requires `axes` in the request, by
    # which the caller orders the array.
    if len(axes) != len(opened.array.shape):
        return opened

    def rank(i: int) -> tuple[bool, int]:
        return axes[i] != "T", _LAST_AXES.find(axes[i])

    order = sorted(range(len(axes)), key=rank)
    if order == list(range(len(axes))):
        return opened
    array = opened.array
    file_of = opened.file_of
    ordered = itemgetter(*order)
    as_stored = itemgetter(*np.argsort(order))

    def read(box: Box) -> Array:
        found: Array = np.asanyarray(array[as_stored(box)]).transpose(order)
        return found

    transposed: Any = Lazy(ordered(array.shape), array.dtype, read)
    if isinstance(array, np.ndarray):
        transposed = array.transpose(order)
    in_order = replace(
        opened,
        array=transposed,
        description=opened.description.in_order(order),
        chunks=ordered(opened.chunks or rows_of(array)),
    )
    if opened.parts:
        in_order = replace(in_order, parts=ordered(opened.parts))
    if file_of is None:
        return in_order

    def file_in_order(chunk: tuple[int, ...]) -> str:
        return file_of(as_stored(chunk))

    return replace(in_order, file_of=file_in_order)
