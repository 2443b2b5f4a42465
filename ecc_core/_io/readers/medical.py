"""NIfTI, NRRD and MRC."""

import gzip
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.stored import Opened, Request, unnamed_axes
from ecc_core._io.units import in_micrometers
from ecc_core._optional import import_optional

__all__ = ["MRC_SUFFIXES", "open_mrc", "open_nifti", "open_nrrd"]

MRC_SUFFIXES = (".mrc", ".map", ".rec", ".st")
NIFTI_2 = 540
"""Length of the header of NIfTI-2; that of NIfTI-1 is 348."""


def open_nifti(path: Path, _: Request) -> Opened:
    """Open a NIfTI file. A compressed one is read completely."""
    nibabel = import_optional("nibabel", extra="nifti", purpose="reading NIfTI files")
    compressed = path.suffix.lower() == ".gz"
    with gzip.open(path) if compressed else path.open("rb") as stream:
        head = stream.read(4)
        if len(head) < 4:
            raise ValueError("not a NIfTI file, or truncated")
        second = NIFTI_2 in (*struct.unpack("<i", head), *struct.unpack(">i", head))
        kind = nibabel.Nifti2Image if second else nibabel.Nifti1Image
        if compressed:
            stream.seek(0)
            image = kind.from_stream(stream)
            array: Any = np.asanyarray(image.dataobj)
            while stream.read(1 << 20):  # the checksum stands at the end
                pass
        else:
            image = kind.from_filename(path)
            array = _Scaled(image.dataobj)
    # the fourth axis is time, the fifth has the components of vectors
    axes = "XYZTC"[: len(array.shape)]
    unit = image.header.get_xyzt_units()[0]
    steps = dict(zip("XYZ", map(float, image.header.get_zooms()), strict=False))
    spacing = in_micrometers(steps, dict.fromkeys("XYZ", "" if unit == "unknown" else unit))
    return Opened(
        array,
        axes if len(axes) == len(array.shape) else unnamed_axes(len(array.shape)),
        spacing=spacing or steps,
        unit="micrometer" if spacing else "",
    )


class _Scaled:
    """Values of a NIfTI file, which are floats if its header has a slope or an intercept."""

    def __init__(self, values: Any) -> None:
        self.values, self.shape = values, values.shape
        scaled = (values.slope, values.inter) != (1, 0)
        self.dtype = values[(slice(0, 1),) * len(self.shape)].dtype if scaled else values.dtype

    def __getitem__(self, index: tuple[slice | int, ...]) -> NDArray[Any]:
        return np.asanyarray(self.values[index])


def open_nrrd(path: Path, _: Request) -> Opened:
    """Open an NRRD file with an attached header. It is read completely."""
    nrrd = import_optional("nrrd", extra="nrrd", purpose="reading NRRD files")
    with path.open("rb") as stream:
        header = nrrd.read_header(stream)
        if {"data file", "datafile"} & header.keys():
            raise ValueError("its values are in another file, which is not read")
        values = nrrd.read_data(header, stream, index_order="C")
        if header.get("encoding") in ("gzip", "gz") and "byte skip" not in header:
            stream.seek(-8, os.SEEK_END)
            (checksum,) = struct.unpack("<L4x", stream.read(8))
            if checksum != zlib.crc32(np.ascontiguousarray(values).data):
                raise ValueError("truncated or damaged: its values have another checksum")
    kinds = {"time": "T", "vector": "C", "list": "C", "RGB-color": "S", "RGBA-color": "S"}
    letters = "".join(kinds.get(kind, "?") for kind in reversed(header.get("kinds", [])))
    letters = letters or "?" * values.ndim
    spatial = [i for i, letter in enumerate(letters) if letter == "?"]
    named = dict(zip(spatial, unnamed_axes(len(spatial)), strict=True))
    axes = "".join(named.get(i, letter) for i, letter in enumerate(letters))
    steps = np.asarray(header.get("spacings", ()), np.float64)
    if "space directions" in header:
        rows = [[np.nan] if row is None else row for row in header["space directions"]]
        steps = np.array([np.linalg.norm(row) for row in rows])
    pairs = dict(zip(reversed(axes), steps.tolist(), strict=False))
    units = [unit.strip('"') for unit in header.get("space units", header.get("units", []))]
    spacing = in_micrometers(pairs, dict.fromkeys("XYZ", units[-1] if units else ""))
    return Opened(values, axes, spacing=spacing or pairs, unit="micrometer" if spacing else "")


def open_mrc(path: Path, _: Request) -> Opened:
    """Open an MRC file as a memory map."""
    mrcfile = import_optional("mrcfile", extra="mrc", purpose="reading MRC files")
    opened = mrcfile.mmap(path, mode="r")
    axes = unnamed_axes(opened.data.ndim)
    if opened.is_image_stack():
        axes = "?YX"
    size = opened.voxel_size
    spacing = in_micrometers(
        {letter: float(size[letter.lower()]) for letter in "ZYX"}, dict.fromkeys("ZYX", "angstrom")
    )
    return Opened(opened.data, axes, spacing=spacing, unit="micrometer" if spacing else "")
