"""NIfTI-1, and NIfTI-2 for images that are too long for NIfTI-1."""

import gzip
from contextlib import nullcontext
from typing import IO, Any

import numpy as np

from ecc_core._io.affines import ANATOMICAL
from ecc_core._io.units import UNITS
from ecc_core._io.writers.grid import Grid, Source, slabs
from ecc_core._optional import import_optional

WORDS = {"meter": "meter", "millimeter": "mm", "micrometer": "micron", "": "unknown"}
"""The names that nibabel gives to units."""
SCANNER = 1
ALIGNED = 2
"""Codes of coordinates: those of a scanner, or those of another file."""
LONGEST_SIDE = 32767
"""The most points along an axis in NIfTI-1, which stores lengths as int16."""


def write_nifti(file: IO[bytes], values: Source, grid: Grid, *, compressed: bool) -> None:
    """Write an image of one to three axes. Its axes are those of the array in reverse."""
    nibabel = import_optional("nibabel", extra="nifti", purpose="writing NIfTI files")
    if grid.unit in UNITS and grid.unit not in WORDS:
        grid = grid.in_unit("micrometer")
    shape = tuple(values.shape)[::-1]
    longest = max(shape, default=0)
    kind = nibabel.Nifti2Image if longest > LONGEST_SIDE else nibabel.Nifti1Image
    header: Any = kind.header_class()
    header.set_data_dtype(values.dtype)
    header.set_data_shape(shape)
    header.set_zooms([grid.steps()[axis] for axis in reversed(grid.axes)])
    header.set_xyzt_units(WORDS.get(grid.unit, "unknown"))
    code = SCANNER if grid.affine is not None and grid.affine.space == ANATOMICAL else ALIGNED
    matrix = _matrix(grid)
    header.set_sform(matrix, code)
    header.set_qform(matrix, code)  # This leaves out shears, which only the sform can have.
    header["vox_offset"] = header.single_vox_offset
    stored = gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if compressed else nullcontext(file)
    with stored as stream:
        header.write_to(stream)
        for slab in slabs(values):
            stream.write(np.ascontiguousarray(slab, header.get_data_dtype()).data)


def _matrix(grid: Grid) -> np.ndarray:
    """Return the affine from indices x, y and z to coordinates."""
    matrix = np.eye(4)
    world = grid.world()
    for i, axis in enumerate("XYZ"):
        if axis in grid.axes:
            matrix[:3, i] = world.steps[axis]
    _orthogonal_complement(matrix, [i for i, axis in enumerate("XYZ") if axis in grid.axes])
    matrix[:3, 3] = world.origin
    return matrix


def _orthogonal_complement(matrix: np.ndarray, known: list[int]) -> None:
    """Fill the columns of axes that an image lacks with directions orthogonal to the others."""
    missing = [i for i in range(3) if i not in known]
    across = np.linalg.svd(matrix[:3, known].T)[2][len(known) :]
    for i, direction in zip(missing, across, strict=True):
        unit = np.eye(3)[i]
        matrix[:3, i] = unit if not (matrix[:3, known].T @ unit).any() else direction
