"""NPY, NPZ and HDF5: files of arrays with few or no metadata."""

import json
import math
import zipfile
from contextlib import ExitStack
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ecc_core._io.description import Description, named_axes, unnamed_axes
from ecc_core._io.files import names_in_archive
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.hdf5_links import hdf5_library, node_at
from ecc_core._io.limits import DEFLATE, check_held, check_memory
from ecc_core._io.readers.conventions import CONVENTIONS, decoded

MAGIC = b"\x93NUMPY"
HDF5_SUFFIXES = (".h5", ".hdf5", ".he5")


def open_npy(path: Path, _: Request) -> Opened:
    """Open an NPY file as a memory map."""
    with path.open("rb") as stream:
        if stream.read(len(MAGIC)) != MAGIC:  # `numpy.load` would also try zip and pickle.
            raise ValueError("not an NPY file; pickled data is never loaded")
        stream.seek(0)
        _refuse_objects(_header(stream)[2])
    values = np.load(path, mmap_mode="r", allow_pickle=False)
    surplus = path.stat().st_size - values.offset - values.nbytes
    if surplus:
        raise ValueError(f"damaged: {surplus} bytes follow the array that its header describes")
    return Opened(values, Description.of(unnamed_axes(values.ndim)))


def read_npy(stream: BinaryIO) -> Opened:
    """Read an NPY file from a stream that need not be seekable."""
    content = stream.read()
    if not content.startswith(MAGIC):
        raise ValueError("not an NPY file; pickled data is never loaded")
    buffer = BytesIO(content)
    shape, is_fortran, dtype = _header(buffer)
    _refuse_objects(dtype)
    first = buffer.tell()
    size = math.prod(shape) * dtype.itemsize
    if len(content) - first != size:
        raise ValueError(f"truncated or damaged: {len(content) - first} bytes instead of {size}")
    values = np.frombuffer(content, dtype, math.prod(shape), first)
    description = Description.of(unnamed_axes(len(shape)))
    return Opened(values.reshape(shape, order="F" if is_fortran else "C"), description)


def open_npz(path: Path, _: Request, inside: str) -> Opened:
    """Open an array of an NPZ file: the named one, or the only one. It is read completely."""
    if not zipfile.is_zipfile(path):
        raise ValueError("not an NPZ file, or truncated")
    names_in_archive(path)
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        names = ", ".join(archive.files) or "none"
        if inside and inside not in archive.files:
            raise ValueError(f"has no array {inside}; arrays: {names}")
        if not inside and len(archive.files) != 1:
            raise ValueError(
                f"must hold one array or one be named, as in {path.name}/NAME; arrays: {names}"
            )
        name = inside or archive.files[0]
        _check_size(path, archive.zip, name if name in archive.zip.namelist() else f"{name}.npy")
        values = archive[name]
    return Opened(values, Description.of(unnamed_axes(values.ndim)))


def _check_size(path: Path, archive: zipfile.ZipFile, name: str) -> None:
    """Check that an array fits into its part of the archive, and into memory."""
    entry = archive.getinfo(name)
    ratio = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: DEFLATE}.get(entry.compress_type)
    if ratio is not None:
        check_held(entry.file_size, entry.compress_size, ratio)
    with archive.open(entry) as stream:
        shape, _, dtype = _header(stream)
        if not dtype.hasobject:  # Objects are refused by `numpy.load`, whatever their size.
            size = math.prod(shape) * dtype.itemsize
            check_held(size, entry.file_size - stream.tell(), 1)
            check_memory(size, path)


def _refuse_objects(dtype: np.dtype[Any]) -> None:
    if dtype.hasobject:
        raise ValueError(f"holds Python objects in dtype {dtype}, which are never loaded")


def _header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape of an array, whether it is in Fortran order, and its dtype."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):  # Headers of later versions have the form of version 2.
        read = np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read(stream)
    return shape, is_fortran, dtype


def open_hdf5(path: Path, _: Request, inside: str) -> Opened:
    """Open a dataset of an HDF5 file: the named one, or the only one."""
    h5py = hdf5_library("HDF5")
    names: list[str] = []
    with ExitStack() as failing:
        opened = failing.enter_context(h5py.File(path, "r"))

        # `visititems` does not visit links, so links to other files are not followed.
        def note(name: str, node: Any) -> None:
            if isinstance(node, h5py.Dataset):
                names.append(name)

        opened.visititems(note)
        images = [name for name in names if not h5py.h5ds.is_scale(opened[name].id)]
        name = images[0] if not inside and len(images) == 1 else inside
        linked = isinstance(node_at(h5py, opened, name), h5py.Dataset)
        if name not in names and not linked:
            there = ", ".join(names) or "none"
            asked = "must hold one dataset or one be named"
            if inside:
                asked = f"has no dataset {inside}"
            raise ValueError(f"{asked}; datasets: {there}")
        array = opened[name]
        if array.is_virtual or array.external:
            raise ValueError(f"the values of {name} lie in other files, which are not read")
        if array.ndim == 0:
            raise ValueError(f"the dataset {name} is a single value")
        tags = array.attrs.get("axistags")  # Files of ilastik have it.
        if isinstance(tags, str | bytes):
            names_of_axes = [axis["key"] for axis in json.loads(tags)["axes"]]
        else:
            names_of_axes = [_dimension_name(dim) for dim in array.dims]
        # The exporters of ilastik and PlantSeg write the spacing in micrometers.
        steps = np.ravel(array.attrs.get("element_size_um", ()))
        is_known = steps.size == 3 and steps.dtype.kind == "f"
        distances = dict(zip("ZYX", steps, strict=True)) if is_known else {}
        description = Description.of(
            named_axes(names_of_axes),
            steps=distances,
            units="um",
            names=names_of_axes,
        )
        attributes = {name: array.attrs[name] for name in CONVENTIONS if name in array.attrs}
        values, encoding, missing = decoded(array, attributes)
        description = replace(description, encoding=encoding, missing=missing)
        failing.pop_all()  # The file stays open, because values are read later.
    return Opened(values, description, array.chunks)


def _dimension_name(dim: Any) -> str:
    """Return the label of an axis, or the name of its dimension scale, as netCDF writes it."""
    if dim.label:
        return str(dim.label)
    return dim[0].name.rpartition("/")[2] if len(dim) else ""


FORMATS = (
    Format(name="NPY", suffixes=(".npy",), open=open_npy, fields=frozenset(), reference="numpy"),
    Format(
        name="NPZ",
        suffixes=(".npz",),
        open=open_npz,
        fields=frozenset(),
        reference="numpy",
        is_container=True,
    ),
    Format(
        name="HDF5",
        suffixes=HDF5_SUFFIXES,
        open=open_hdf5,
        fields=frozenset({"axes", "spacing", "encoding", "missing"}),
        reference="h5py, xarray",
        extra="dask",
        is_container=True,
    ),
)
