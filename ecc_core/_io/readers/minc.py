"""MINC 1 and 2, through nibabel."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.affines import Affine
from ecc_core._io.description import Description, Encoding
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.lazy import Array, Box, Lazy
from ecc_core._io.limits import check_held
from ecc_core._optional import import_optional

SUFFIXES = (".mnc",)
AXES = {"time": "T", "xspace": "X", "yspace": "Y", "zspace": "Z"}
HDF5 = b"\x89HDF"
UNIT = "mm"
"""The unit of the coordinates of MINC."""


def open_minc(path: Path, _: Request) -> Opened:
    """Open a volume or a series of them; the order of axes is that of the file."""
    nibabel = import_optional("nibabel", extra="nifti", purpose="reading MINC files")
    with path.open("rb") as stream:
        second = stream.read(len(HDF5)) == HDF5
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        kind = nibabel.minc2.Minc2Image if second else nibabel.minc1.Minc1Image
        image = kind.from_filename(path)
    stored = image.dataobj.minc_file
    names = [str(name) for name in stored._dim_names]
    unknown = [name for name in names if name not in AXES]
    if unknown:
        raise ValueError(f"its axis {unknown[0]} is not supported, only {', '.join(AXES)}")
    shape = tuple(map(int, image.shape))
    if not second:
        check_held(stored.get_data_dtype().itemsize * int(np.prod(shape)), path.stat().st_size, 1)
    values = image.dataobj
    whole = _as_stored(stored)
    dtype = np.dtype(np.float64)
    if whole or stored.get_data_dtype().kind == "f":
        dtype = stored.get_data_dtype()

    def read(box: Box) -> Array:
        found = np.asarray(values[box])
        return found.astype(dtype) if whole else found

    letters = [AXES[name] for name in names]
    steps = dict(zip(letters, image.header.get_zooms(), strict=True))
    spatial = [letter for letter in letters if letter != "T"]
    affine = None
    if len(spatial) == 3:
        vectors = dict(zip(spatial, image.affine[:3, :3].T, strict=True))
        affine = Affine(vectors, image.affine[:3, 3])
    chunks = stored._image.chunks if second else None
    encoding = Encoding()
    if not whole:
        encoding = Encoding(str(stored.get_data_dtype()))
    description = Description.of(
        "".join(letters),
        steps=steps,
        units=dict.fromkeys(spatial, UNIT),
        names=names,
        place=affine,
        encoding=encoding,
        notes=[str(warning.message) for warning in said],
    )
    return Opened(Lazy(shape, dtype, read), description, chunks)


def _as_stored(stored: Any) -> bool:
    """Whether stored integers are the values, as in label volumes, and not scaled."""
    if stored.get_data_dtype().kind == "f":
        return False
    low, high = stored._get_valid_range()
    ends = []
    for variable in (stored._image_min, stored._image_max):
        scalar = len(stored._get_dimensions(variable)) == 0
        found = stored._get_scalar(variable) if scalar else stored._get_array(variable)
        ends.append(np.asarray(found, np.float64))
    return bool((ends[0] == low).all() and (ends[1] == high).all())


READ = frozenset({"axes", "spacing", "time", "place", "encoding"})
FORMATS = (
    Format(
        name="MINC",
        suffixes=SUFFIXES,
        open=open_minc,
        fields=READ,
        reference="nibabel",
        extra="nifti",
    ),
)
