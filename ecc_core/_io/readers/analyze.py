"""NIfTI and Analyze 7.5 in two files: a header (.hdr) and its values (.img)."""

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.affines import Affine
from ecc_core._io.description import Description, Encoding, unnamed_axes
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.lazy import Array, Box, Lazy
from ecc_core._io.limits import check_held
from ecc_core._optional import import_optional

HEADER = ".hdr"
VALUES = ".img"
SIZES = (348, 540)
"""The size of a header, its first number: that of Analyze and NIfTI-1, and that of NIfTI-2."""
NO_PLACE = "an Analyze header does not say which side is left; the order of points is as stored"


def open_pair(path: Path, _: Request) -> Opened:
    """Open a pair, by the name of one of its files, as a memory map."""
    nibabel = import_optional("nibabel", extra="nifti", purpose="reading Analyze and NIfTI files")
    header_file, values_file = (_with_suffix(path, suffix) for suffix in (HEADER, VALUES))
    with header_file.open("rb") as stream:
        start = stream.read(4)
    if not {int.from_bytes(start, order) for order in ("little", "big")} & {*SIZES}:
        raise ValueError(f"{header_file.name} is no header of Analyze or NIfTI")
    kind = _kind(nibabel, header_file)
    with header_file.open("rb") as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nibabel warns of invalid fields, which it repairs.
        header = kind.header_class.from_fileobj(stream)
    shape = tuple(int(n) for n in header.get_data_shape()[::-1])
    dtype = header.get_data_dtype()
    offset = int(header.get_data_offset())
    if not shape or min(shape) < 1:
        raise ValueError(f"damaged: its shape is {shape}")
    size = math.prod(shape) * dtype.itemsize
    check_held(size, values_file.stat().st_size - offset, 1)
    stored = np.memmap(values_file, dtype, "r", offset, shape)
    array: Any = stored
    slope, offset_of_values = header.get_slope_inter()
    scaling = (1 if slope is None else slope, offset_of_values or 0)
    if scaling != (1, 0):

        def read(box: Box) -> Array:
            return np.asarray(nibabel.volumeutils.apply_read_scaling(stored[box], *scaling))

        array = Lazy(shape, read((slice(0, 1),) * len(shape)).dtype, read)
    is_nifti = issubclass(kind, nibabel.Nifti1Pair)
    axes = "XYZTC"[: len(shape)][::-1]
    if len(axes) != len(shape):
        axes = unnamed_axes(len(shape))
    steps = dict(zip("XYZ", header.get_zooms(), strict=False))
    description = Description.of(
        axes,
        steps=steps,
        units=_unit(header, is_nifti=is_nifti),
        place=_affine(header) if is_nifti else None,
        encoding=_encoding(dtype, *scaling),
        notes=[] if is_nifti else [NO_PLACE],
    )
    return Opened(array, description, described=(str(header_file), str(values_file)))


def _encoding(stored: np.dtype[Any], slope: float, offset: float) -> Encoding:
    if (slope, offset) == (1, 0):
        return Encoding()
    return Encoding(str(stored), (float(slope),), (float(offset),))


def _with_suffix(path: Path, suffix: str) -> Path:
    """Return the file of a pair, whose suffix may be in capitals."""
    for spelt in (suffix, suffix.upper()):
        if (file := path.with_suffix(spelt)).is_file():
            return file
    raise ValueError(f"its other file {path.with_suffix(suffix).name} is missing")


def _kind(nibabel: Any, file: Path) -> Any:
    """Return the class of nibabel for a header, which `nibabel.load` would choose."""
    for kind in (nibabel.Nifti1Pair, nibabel.Nifti2Pair, nibabel.Spm2AnalyzeImage):
        if kind.path_maybe_image(file)[0]:
            return kind
    return nibabel.AnalyzeImage


def _unit(header: Any, *, is_nifti: bool) -> str:
    if is_nifti:
        return str(header.get_xyzt_units()[0])
    unit = bytes(header["vox_units"].item())
    return unit.decode("latin-1").strip("\0 ")


def _affine(header: Any) -> Affine | None:
    has_place = int(header["sform_code"]) or int(header["qform_code"])
    if not has_place:
        return None
    matrix = header.get_best_affine()
    return Affine(dict(zip("XYZ", matrix[:3, :3].T, strict=True)), matrix[:3, 3])


READ = frozenset({"axes", "spacing", "place", "encoding"})
FORMATS = (
    Format(
        name="NIfTI or Analyze, a pair",
        suffixes=(HEADER,),
        open=open_pair,
        fields=READ,
        reference="nibabel",
        extra="nifti",
    ),
    Format(
        name="values of a pair",
        suffixes=(VALUES,),
        open=open_pair,
        fields=READ,
        reference="nibabel",
        extra="nifti",
        is_slice=False,
    ),
)
