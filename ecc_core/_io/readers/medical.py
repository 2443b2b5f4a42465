"""NIfTI, NRRD, MRC, and MetaImage, the format of ITK."""

import gzip
import math
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.geometry import Affine, Distances, calibrated
from ecc_core._io.limits import check_held
from ecc_core._io.stored import Array, Box, Lazy, Opened, Request, unnamed_axes
from ecc_core._optional import import_optional

MRC_SUFFIXES = tuple(
    suffix + packed for packed in ("", ".gz") for suffix in (".mrc", ".map", ".rec", ".st")
)
METAIMAGE_SUFFIXES = (".mha", ".mhd")
TYPES = {
    "MET_CHAR": "i1",
    "MET_UCHAR": "u1",
    "MET_SHORT": "i2",
    "MET_USHORT": "u2",
    "MET_INT": "i4",
    "MET_UINT": "u4",
    "MET_LONG": "i4",
    "MET_ULONG": "u4",
    "MET_LONG_LONG": "i8",
    "MET_ULONG_LONG": "u8",
    "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}
LONGEST_LINE = 4096
GZIP = b"\x1f\x8b"
PIECE = 1 << 20
"""Bytes that are decompressed at once."""

Header = dict[str, str]


def open_nifti(path: Path, _request: Request) -> Opened:
    """Open a NIfTI file as a memory map. A compressed one is read completely."""
    nibabel = import_optional("nibabel", extra="nifti", purpose="reading NIfTI files")
    compressed = path.suffix.lower() == ".gz"
    second, _ = nibabel.Nifti2Image.path_maybe_image(path)
    kind = nibabel.Nifti2Image if second else nibabel.Nifti1Image
    with gzip.open(path) if compressed else path.open("rb") as stream:
        image = kind.from_stream(stream)
        stored = image.dataobj
        if compressed:
            stream.seek(stored.offset)
            shape = stored.shape[::-1]
            values = _filled(_gunzipped(stream), path, shape, stored.dtype, exact=False)
        else:
            values = stored.get_unscaled().T
    array: Any = values
    if (stored.slope, stored.inter) != (1, 0):  # values are floats then

        def read(box: Box) -> Array:
            scale = nibabel.volumeutils.apply_read_scaling
            return np.asarray(scale(values[box], stored.slope, stored.inter))

        array = Lazy(values.shape, read((slice(0, 1),) * values.ndim).dtype, read)
    # nibabel's first axis, x, is the fastest; the fourth is time, the fifth has components
    axes = "XYZTC"[: len(array.shape)][::-1]
    steps = dict(zip("XYZ", image.header.get_zooms(), strict=False))
    affine = None
    if int(image.header["sform_code"]) or int(image.header["qform_code"]):  # or only distances
        vectors = dict(zip("XYZ", image.affine[:3, :3].T, strict=True))
        affine = Affine(vectors, image.affine[:3, 3])
    return Opened(
        array,
        axes if len(axes) == len(array.shape) else unnamed_axes(len(array.shape)),
        distances=calibrated(steps, image.header.get_xyzt_units()[0]),
        affine=affine,
    )


def _gunzipped(stream: Any) -> Iterator[bytes]:
    """Yield what follows in a compressed file, to its end, where the checksum is."""
    return iter(partial(stream.read, PIECE), b"")


def _filled(
    pieces: Iterable[bytes],
    path: Path,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    exact: bool = True,
) -> Array:
    """Return a compressed array from its pieces, so that it is in memory only once.

    `exact`: nothing may follow.
    """
    check_held(math.prod(map(int, shape)) * dtype.itemsize, path.stat().st_size)
    values = np.empty(shape, dtype)
    room = values.reshape(-1).view(np.uint8).data
    for piece in pieces:
        if exact and len(piece) > len(room):
            raise ValueError("damaged: it holds more values than it describes")
        room[: len(piece)] = piece[: len(room)]
        room = room[len(piece) :]
    if room:
        raise ValueError(f"truncated or damaged: {len(room)} bytes are missing")
    return values


def open_nrrd(path: Path, _: Request) -> Opened:
    """Open an NRRD file with an attached header. It is read completely."""
    nrrd = import_optional("nrrd", extra="nrrd", purpose="reading NRRD files")
    with path.open("rb") as stream:
        header = nrrd.read_header(stream)
        if {"data file", "datafile"} & header.keys():
            raise ValueError("its values are in another file, which is not read")
        if header.get("encoding") in ("gzip", "gz") and "byte skip" not in header:
            one = {**header, "encoding": "raw", "dimension": 1, "sizes": np.array([1])}
            dtype = nrrd.read_data(one, BytesIO(bytes(16))).dtype  # only pynrrd knows all types
            with gzip.GzipFile(fileobj=stream) as content:
                shape = tuple(header["sizes"].tolist()[::-1])
                values = _filled(_gunzipped(content), path, shape, dtype)
        else:
            values = nrrd.read_data(header, stream, index_order="C")
    kinds = {"time": "T", "vector": "C", "list": "C", "RGB-color": "S", "RGBA-color": "S"}
    letters = "".join(kinds.get(kind, "?") for kind in reversed(header.get("kinds", [])))
    letters = letters or "?" * values.ndim
    spatial = [i for i, letter in enumerate(letters) if letter == "?"]
    named = dict(zip(spatial, unnamed_axes(len(spatial)), strict=True))
    axes = "".join(named.get(i, letter) for i, letter in enumerate(letters))
    distances, affine = _nrrd_geometry(header, axes)
    return Opened(values, axes, distances=distances, affine=affine)


def _nrrd_geometry(header: Any, axes: str) -> tuple[Distances, Affine | None]:
    """Return the distances along axes, their unit, and the places of points."""
    if "space directions" not in header:
        units = [unit.strip('"') for unit in header.get("units", ())]
        named = dict(zip(reversed(axes), units, strict=False))
        steps = dict(zip(reversed(axes), header.get("spacings", ()), strict=False))
        return calibrated(steps, named), None
    rows = dict(zip(reversed(axes), header["space directions"], strict=False))
    vectors = {
        axis: np.asarray(row, np.float64)
        for axis, row in rows.items()
        if axis in "ZYX" and row is not None and np.isfinite(row).all()
    }
    # the units belong to the coordinates, not to the axes, so that one must hold for all
    units = list({unit.strip('"') for unit in header.get("space units", ())})
    lengths = {axis: np.linalg.norm(vector) for axis, vector in vectors.items()}
    distances = calibrated(lengths, units[0] if len(units) == 1 else "")
    origin = header.get("space origin")
    if origin is None or len(origin) != 3 or not np.isfinite(origin).all():
        return distances, None
    return distances, Affine.of_space(vectors, origin, header.get("space", ""))


def open_mrc(path: Path, _request: Request) -> Opened:
    """Open an MRC file as a memory map. A compressed one is read completely."""
    mrcfile = import_optional("mrcfile", extra="mrc", purpose="reading MRC files")
    with path.open("rb") as stream:
        compressed = stream.read(len(GZIP)) == GZIP
    if compressed:
        with gzip.open(path) as stream:
            opened = mrcfile.mrcinterpreter.MrcInterpreter(iostream=stream)
            for _ in _gunzipped(stream):  # to compare the checksum
                pass
    else:
        opened = mrcfile.mmap(path, mode="r")
    axes = unnamed_axes(opened.data.ndim)
    if opened.is_image_stack():
        axes = "?YX"
    elif len(axes) >= 3:  # which axes the sections, rows and columns lie along
        along = [int(opened.header[name]) for name in ("maps", "mapr", "mapc")]
        if sorted(along) == [1, 2, 3]:
            axes = axes[:-3] + "".join("XYZ"[i - 1] for i in along)
    size = opened.voxel_size
    distances = calibrated({axis: size[axis.lower()] for axis in "ZYX"}, "angstrom")
    return Opened(opened.data, axes, distances=distances)


def open_metaimage(path: Path, _: Request) -> Opened:
    """Open a MetaImage file as a memory map. A compressed one is read completely."""
    with path.open("rb") as stream:
        header = _metaimage_header(stream)
        start = stream.tell()
    place = header["ElementDataFile"]
    file = path
    if place.upper() != "LOCAL":
        file, start = _neighbour(path, place), int(header.get("HeaderSize", 0))
    if header.get("BinaryData", "True") != "True":
        raise ValueError("values written as text are not supported")
    shape = tuple(map(int, header["DimSize"].split()))[::-1]
    if len(shape) != int(header["NDims"]) or min(shape) < 1:
        raise ValueError(f"damaged: its size is {header['DimSize']}, NDims {header['NDims']}")
    if header["ElementType"] not in TYPES:
        raise ValueError(f"values of type {header['ElementType']} are not supported")
    order = header.get("BinaryDataByteOrderMSB", header.get("ElementByteOrderMSB"))
    dtype = np.dtype((">" if order == "True" else "<") + TYPES[header["ElementType"]])
    axes, channels = unnamed_axes(len(shape)), int(header.get("ElementNumberOfChannels", 1))
    if channels != 1:
        shape = (*shape, channels)
        axes += "S" if channels in (3, 4) and dtype.kind == "u" else "C"
    if header.get("CompressedData") == "True":
        values = _filled(_inflated(file, start), file, shape, dtype)
    else:
        size, there = math.prod(shape) * dtype.itemsize, file.stat().st_size
        if start == -1:  # the values end with the file
            start = max(0, there - size)
        check_held(size, there - start, 1)
        if size < there - start:
            raise ValueError(f"damaged: {there - start - size} bytes follow the values")
        values = np.memmap(file, dtype, "r", start, shape)
    distances, affine = _metaimage_geometry(header)
    files = dict.fromkeys((str(path), str(file)))
    return Opened(values, axes, distances=distances, affine=affine, described=[*files])


def _metaimage_header(stream: IO[bytes]) -> Header:
    """Read the header, of which the name of the file with the values is the last line."""
    header: Header = {}
    while "ElementDataFile" not in header:
        line = stream.readline(LONGEST_LINE)
        name, equals, value = line.decode("utf-8", "replace").partition("=")
        if not equals or not line.endswith(b"\n"):
            raise ValueError("not a MetaImage file, or truncated")
        header[name.strip()] = value.strip()
    for name in ("NDims", "DimSize", "ElementType"):
        if name not in header:
            raise ValueError(f"not a MetaImage file, or damaged: it has no {name}")
    return header


def _neighbour(path: Path, name: str) -> Path:
    """Return the file with the values, which must be in the same folder."""
    if name.partition(" ")[0].upper() == "LIST" or "%" in name:
        raise ValueError("values in a file for each slice are not supported")
    if name in ("", ".", "..") or any(mark in name for mark in "/\\:"):
        raise ValueError(f"its values lie outside of its folder, in {name}")
    if not (file := path.with_name(name)).is_file():
        raise ValueError(f"its values are in {name}, which is missing")
    return file


def _inflated(path: Path, start: int) -> Iterator[bytes]:
    """Yield pieces of the compressed values in a file."""
    decoder = zlib.decompressobj()
    with path.open("rb") as stream:
        stream.seek(max(0, start))
        while not decoder.eof:  # which it reaches after comparing the checksum
            stored = decoder.unconsumed_tail or stream.read(PIECE)
            part = decoder.decompress(stored, PIECE)
            if not stored and not part:
                raise ValueError("truncated")
            yield part


def _metaimage_geometry(header: Header) -> tuple[Distances, Affine | None]:
    """Return the distances along axes, their unit, and the places of points."""
    steps = dict(zip("XYZ", _numbers(header, "ElementSpacing"), strict=False))
    distances = calibrated(steps, header.get("DistanceUnits", "mm"))  # as ITK takes them
    origin = _numbers(header, "Offset", "Position", "Origin")
    rows = _numbers(header, "TransformMatrix", "Rotation", "Orientation")
    if (len(steps), len(origin), len(rows)) != (3, 3, 9):
        return distances, None
    turned = {axis: steps[axis] * rows[3 * i : 3 * i + 3] for i, axis in enumerate("XYZ")}
    return distances, Affine.of_space(turned, origin, "left-posterior-superior")


def _numbers(header: Header, *names: str) -> NDArray[np.float64]:
    """Return the numbers under one of several names of the same thing, or none."""
    found = next((header[name] for name in names if name in header), "")
    return np.array(found.split(), np.float64)
