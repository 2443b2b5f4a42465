"""NIfTI, NRRD and MRC."""

import gzip
import math
import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.affines import Affine
from ecc_core._io.limits import check_held
from ecc_core._io.stored import Opened, Request, unnamed_axes
from ecc_core._io.units import calibrated
from ecc_core._io.views import Box
from ecc_core._optional import import_optional

MRC_SUFFIXES = tuple(
    suffix + packed for packed in ("", ".gz") for suffix in (".mrc", ".map", ".rec", ".st")
)
GZIP = b"\x1f\x8b"
PIECE = 1 << 20
"""Bytes that are decompressed at once."""


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
            values = _read_array(stream, stored.shape[::-1], stored.dtype)[0]
        else:
            values = stored.get_unscaled().T
    scaled = (stored.slope, stored.inter) != (1, 0)
    array: Any = _Scaled(nibabel, values, stored.slope, stored.inter) if scaled else values
    # nibabel's first axis, x, is the fastest; the fourth is time, the fifth has components
    axes = "XYZTC"[: len(array.shape)][::-1]
    steps = dict(zip("XYZ", image.header.get_zooms(), strict=False))
    spacing, unit = calibrated(steps, image.header.get_xyzt_units()[0])
    return Opened(
        array,
        axes if len(axes) == len(array.shape) else unnamed_axes(len(array.shape)),
        spacing=spacing,
        unit=unit,
        affine=_nifti_affine(image),
    )


def _nifti_affine(image: Any) -> Affine | None:
    """Return the affine of an image; None if its header has none, only distances."""
    if not int(image.header["sform_code"]) and not int(image.header["qform_code"]):
        return None
    steps = dict(zip("XYZ", image.affine[:3, :3].T, strict=True))
    return Affine(steps, image.affine[:3, 3])


def _read_array(
    stream: Any, shape: Sequence[int], dtype: np.dtype[Any]
) -> tuple[NDArray[Any], bool]:
    """Read a compressed array in pieces, so that it is in memory only once, and all that follows.

    Returns
    -------
    values : ndarray
    surplus : bool
        Whether anything followed.
    """
    check_held(math.prod(map(int, shape)) * dtype.itemsize, os.fstat(stream.fileno()).st_size)
    values = np.empty(shape, dtype)
    room = values.reshape(-1).view(np.uint8).data
    while room:
        count = stream.readinto(room[:PIECE])
        if not count:
            raise ValueError(f"truncated: {len(room)} bytes are missing")
        room = room[count:]
    surplus = False
    while stream.read(PIECE):  # the checksum stands at the end
        surplus = True
    return values, surplus


class _Scaled:
    """Values of a NIfTI file whose header has a slope or an intercept; they are floats."""

    def __init__(self, nibabel: Any, values: NDArray[Any], slope: float, intercept: float) -> None:
        self.values, self.shape = values, values.shape
        self.scale = slope, intercept
        self.apply = nibabel.volumeutils.apply_read_scaling
        self.dtype = self[(slice(0, 1),) * len(self.shape)].dtype

    def __getitem__(self, box: Box) -> NDArray[Any]:
        return np.asarray(self.apply(self.values[box], *self.scale))


def open_nrrd(path: Path, _: Request) -> Opened:
    """Open an NRRD file with an attached header. It is read completely."""
    nrrd = import_optional("nrrd", extra="nrrd", purpose="reading NRRD files")
    with path.open("rb") as stream:
        header = nrrd.read_header(stream)
        if {"data file", "datafile"} & header.keys():
            raise ValueError("its values are in another file, which is not read")
        if header.get("encoding") in ("gzip", "gz") and "byte skip" not in header:
            values = _gunzipped(nrrd, header, stream)
        else:
            values = nrrd.read_data(header, stream, index_order="C")
    kinds = {"time": "T", "vector": "C", "list": "C", "RGB-color": "S", "RGBA-color": "S"}
    letters = "".join(kinds.get(kind, "?") for kind in reversed(header.get("kinds", [])))
    letters = letters or "?" * values.ndim
    spatial = [i for i, letter in enumerate(letters) if letter == "?"]
    named = dict(zip(spatial, unnamed_axes(len(spatial)), strict=True))
    axes = "".join(named.get(i, letter) for i, letter in enumerate(letters))
    spacing, unit, affine = _nrrd_geometry(header, axes)
    return Opened(values, axes, spacing=spacing, unit=unit, affine=affine)


def _nrrd_geometry(header: Any, axes: str) -> tuple[dict[str, float], str, Affine | None]:
    """Return the distances along axes, their unit, and the places of points."""
    if "space directions" not in header:
        steps = np.asarray(header.get("spacings", ()), np.float64)
        units = [unit.strip('"') for unit in header.get("units", ())]
        named = dict(zip(reversed(axes), units, strict=False))
        pairs = dict(zip(reversed(axes), steps.tolist(), strict=False))
        return *calibrated(pairs, named), None
    rows = dict(zip(reversed(axes), header["space directions"], strict=False))
    vectors = {
        axis: np.asarray(row, np.float64)
        for axis, row in rows.items()
        if axis in "ZYX" and row is not None and np.isfinite(row).all()
    }
    # the units belong to the coordinates, not to the axes, so that one must hold for all
    units = list({unit.strip('"') for unit in header.get("space units", ())})
    spacing, unit = calibrated(
        {axis: np.linalg.norm(vector) for axis, vector in vectors.items()},
        units[0] if len(units) == 1 else "",
    )
    origin = header.get("space origin")
    if origin is None or len(origin) != 3 or not np.isfinite(origin).all():
        return spacing, unit, None
    return spacing, unit, Affine.of_space(vectors, origin, header.get("space", ""))


def _gunzipped(nrrd: Any, header: Any, stream: Any) -> NDArray[Any]:
    """Return the compressed values of an NRRD file, after comparing their checksum."""
    one = {**header, "encoding": "raw", "dimension": 1, "sizes": np.array([1])}
    dtype = nrrd.read_data(one, BytesIO(bytes(16))).dtype  # only pynrrd knows all names of types
    with gzip.GzipFile(fileobj=stream) as content:
        values, surplus = _read_array(content, header["sizes"].tolist()[::-1], dtype)
    if surplus:
        raise ValueError("damaged: it holds more values than it describes")
    return values


def open_mrc(path: Path, _: Request) -> Opened:
    """Open an MRC file as a memory map. A compressed one is read completely."""
    mrcfile = import_optional("mrcfile", extra="mrc", purpose="reading MRC files")
    with path.open("rb") as stream:
        compressed = stream.read(len(GZIP)) == GZIP
    if compressed:
        with gzip.open(path) as stream:
            opened = mrcfile.mrcinterpreter.MrcInterpreter(iostream=stream)
            while stream.read(PIECE):  # the checksum stands at the end
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
    spacing, unit = calibrated({axis: size[axis.lower()] for axis in "ZYX"}, "angstrom")
    return Opened(opened.data, axes, spacing=spacing, unit=unit)
