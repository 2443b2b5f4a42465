"""NIfTI."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.affines import Affine
from ecc_core._io.description import Description, Encoding, unnamed_axes
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.lazy import Array, Box, Lazy
from ecc_core._io.packed import filled, gunzipped
from ecc_core._optional import import_optional


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
            values = filled(gunzipped(stream), path, shape, stored.dtype, exact=False)
        else:
            values = stored.get_unscaled().T
    array: Any = values
    encoding = Encoding()
    if (stored.slope, stored.inter) != (1, 0):  # Scaled values are floats.

        def read(box: Box) -> Array:
            scale = nibabel.volumeutils.apply_read_scaling
            return np.asarray(scale(values[box], stored.slope, stored.inter))

        slope = float(stored.slope)
        offset = float(stored.inter)
        encoding = Encoding(stored.dtype.name, (slope,), (offset,))
        array = Lazy(values.shape, read((slice(0, 1),) * values.ndim).dtype, read)
    # The first axis of nibabel is X, the fastest. The fourth is time, and the fifth has components.
    axes = "XYZTC"[: len(array.shape)][::-1]
    steps = dict(zip("XYZT", image.header.get_zooms(), strict=False))
    affine = None
    has_place = int(image.header["sform_code"]) or int(image.header["qform_code"])
    if has_place:
        vectors = dict(zip("XYZ", image.affine[:3, :3].T, strict=True))
        affine = Affine(vectors, image.affine[:3, 3])
    if len(axes) < len(array.shape):
        axes = unnamed_axes(len(array.shape))
    length, time = image.header.get_xyzt_units()
    units = dict.fromkeys("ZYX", length) | {"T": time}
    description = Description.of(axes, steps=steps, units=units, place=affine, encoding=encoding)
    return Opened(array, description)


READ = frozenset({"axes", "spacing", "time", "place", "encoding"})
FORMATS = (
    Format(
        name="NIfTI",
        suffixes=(".nii", ".nii.gz"),
        open=open_nifti,
        fields=READ,
        reference="nibabel",
        extra="nifti",
    ),
)
