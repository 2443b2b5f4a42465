"""Triangle meshes and values of their points, in files."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.readers.array_files import open_npy
from ecc_core._io.stored import Request
from ecc_core._optional import import_optional
from ecc_core.errors import InputFileError

Array = NDArray[Any]

TRIMESH_SUFFIXES = (".obj", ".off", ".ply", ".stl")
GIFTI = ".gii"
COMPRESSED = ".gz"  # which FreeSurfer's and nilearn's GIFTI files may end in
MESH_SUFFIXES = (GIFTI, *TRIMESH_SUFFIXES)
"""Suffixes of files with meshes."""
VALUE_SUFFIXES = (GIFTI, ".npy")
"""Suffixes of files with a value for each point."""
UNJOINED = (".obj", ".stl")
"""Formats that repeat points, for each triangle or where a texture has a seam."""
POINTSET, TRIANGLES = 1008, 1009  # intents of GIFTI


class Mesh(NamedTuple):
    """A mesh in a file."""

    points: NDArray[np.float64]
    """(n, d) coordinates."""
    triangles: NDArray[np.int64]
    """(m, 3); none for points alone."""
    units: str | None
    """Unit of the coordinates, if the format says it."""
    notes: tuple[str, ...]
    """What was done to the mesh, and what may be unexpected."""


def is_mesh(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a mesh, by its suffix."""
    return _format_of(Path(path)) in MESH_SUFFIXES


def _format_of(file: Path) -> str:
    """Return the suffix that tells the format; GIFTI may be compressed."""
    name = file.name.lower()
    return GIFTI if name.endswith(GIFTI + COMPRESSED) else file.suffix.lower()


def read_mesh(path: str | os.PathLike[str]) -> Mesh:
    """Read the points and triangles of a mesh.

    Polygons are divided into triangles. Points with equal coordinates are joined where the format
    repeats points: in STL, and in OBJ.

    Parameters
    ----------
    path : path
        A file in one of the formats OBJ, OFF, PLY, STL and GIFTI (surface; also ``.gii.gz``).

    Returns
    -------
    Mesh
        ``points`` of shape (n, d), ``triangles`` of shape (m, 3), ``units`` and ``notes``.

    Raises
    ------
    InputFileError
        If the file is damaged, or has no mesh.
    ImportError
        If trimesh, or nibabel for GIFTI, is not installed.
    """
    file = Path(path)
    suffix = _format_of(file)
    if suffix not in MESH_SUFFIXES:
        raise _unknown_type(file, MESH_SUFFIXES)
    read = _read_gifti_surface if suffix == GIFTI else _read_by_trimesh
    mesh: Mesh = _whole(file, read, "a mesh")
    if suffix in UNJOINED:
        mesh = _joined(mesh)
    alone = len(mesh.points) - len(np.unique(mesh.triangles))
    if alone and len(mesh.triangles):
        note = f"{alone} points without a triangle are components"
        mesh = mesh._replace(notes=(*mesh.notes, note))
    return mesh


def read_point_values(path: str | os.PathLike[str]) -> Array:
    """Read a value for each point.

    Parameters
    ----------
    path : path
        A file in GIFTI (also ``.gii.gz``) with one array of values, or an NPY file of shape (n,),
        (n, 1) or (1, n).

    Returns
    -------
    (n,) array
        In the dtype of the file.

    Raises
    ------
    InputFileError
        If the file is damaged, has several arrays, or values that are no real numbers.
    ImportError
        If nibabel, for GIFTI, is not installed.
    """
    file = Path(path)
    suffix = _format_of(file)
    if suffix not in VALUE_SUFFIXES:
        raise _unknown_type(file, VALUE_SUFFIXES)
    read = _read_gifti_values if suffix == GIFTI else _read_npy
    found: Array = _whole(file, read, "values of points")
    return found


def _unknown_type(file: Path, suffixes: Sequence[str]) -> InputFileError:
    return InputFileError(f"{file}: type not supported, must be one of {', '.join(suffixes)}")


def _whole(file: Path, read: Callable[[Path], Any], what: str) -> Any:
    """Call a reader of `what`, which may raise whatever it likes on damaged files."""
    try:
        return read(file)
    except (ImportError, MemoryError, InputFileError):
        raise
    except OSError as error:
        raise InputFileError(f"{file}: {error.strerror or error}") from error
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputFileError(f"{file}: cannot be read as {what}, damaged? ({reason})") from error


def _read_by_trimesh(file: Path) -> Mesh:
    trimesh: Any = import_optional("trimesh", extra="mesh", purpose="reading meshes")
    # Of a stream no other file is opened that the mesh names, such as its textures.
    data = file.read_bytes()
    loaded = trimesh.load(
        BytesIO(data),
        file_type=file.suffix[1:].lower(),
        process=False,
        maintain_order=True,
        skip_materials=True,
    )
    if isinstance(loaded, trimesh.Scene):
        loaded = loaded.to_mesh()
    points = getattr(loaded, "vertices", None)
    if points is None or not len(points):
        raise InputFileError(f"{file}: has no points")
    triangles = getattr(loaded, "faces", None)
    if file.suffix.lower() == ".ply":
        _check_ply_counts(file, data, len(points), 0 if triangles is None else len(triangles))
    return _mesh(file, points, np.empty((0, 3)) if triangles is None else triangles)


def _check_ply_counts(file: Path, data: bytes, points: int, triangles: int) -> None:
    """Refuse a PLY file that ends before all that its header announces, which trimesh reads.

    A polygon gives one triangle or more.
    """
    header = data.partition(b"end_header")[0]
    announced = {
        name.decode(): int(count)
        for name, count in re.findall(rb"^element\s+(vertex|face)\s+(\d+)", header, re.MULTILINE)
    }
    wanted = announced.get("vertex", 0), announced.get("face", 0)
    if points != wanted[0] or triangles < wanted[1]:
        raise InputFileError(
            f"{file}: truncated or damaged: its header announces {wanted[0]} points and "
            f"{wanted[1]} faces, and {points} and {triangles} can be read"
        )


def _mesh(file: Path, points: Any, triangles: Any, units: str | None = None) -> Mesh:
    rows = np.asarray(triangles).astype(np.int64).reshape(-1, 3)
    if len(rows) and not (rows.min() >= 0 and rows.max() < len(points)):
        numbers = f"{rows.min()} to {rows.max()}"
        raise InputFileError(f"{file}: has triangles of points {numbers}, and {len(points)} points")
    places = np.asarray(points, np.float64)
    if not np.isfinite(places).all():
        row = int(np.flatnonzero(~np.isfinite(places).all(axis=1))[0])
        raise InputFileError(
            f"{file}: points must be finite, got {places[row].tolist()} in row {row}"
        )
    return Mesh(places, rows, units, ())


def _joined(mesh: Mesh) -> Mesh:
    """Join points with equal coordinates, and drop triangles that become narrower by it."""
    points, number = np.unique(mesh.points + 0.0, axis=0, return_inverse=True)
    rows = number.reshape(-1)[mesh.triangles]
    sides = np.sort(rows, axis=1)
    narrow = (sides[:, 1:] == sides[:, :-1]).any(axis=1)
    notes = []
    if narrow.any():
        notes.append(f"{int(narrow.sum())} triangles without an area left out")
    return Mesh(points, rows[~narrow], mesh.units, (*mesh.notes, *notes))


def _gifti_arrays(file: Path) -> list[Any]:
    """Return the arrays of a GIFTI file."""
    nibabel: Any = import_optional("nibabel", extra="nifti", purpose="reading GIFTI files")
    data = file.read_bytes()
    if file.suffix.lower() == COMPRESSED:
        data = gzip.decompress(data)
    if b"<!ENTITY" in data or b"ExternalFileBinary" in data:
        raise InputFileError(f"{file}: entities and external files are not read")
    arrays: list[Any] = nibabel.GiftiImage.from_bytes(data).darrays
    return arrays


def _read_gifti_surface(file: Path) -> Mesh:
    by_intent: dict[int, list[Any]] = {}
    for array in _gifti_arrays(file):
        by_intent.setdefault(int(array.intent), []).append(array)
    points = by_intent.get(POINTSET, [])
    triangles = by_intent.get(TRIANGLES, [])
    if len(points) != 1 or len(triangles) != 1:
        raise InputFileError(
            f"{file}: must have one array of points and one of triangles, got {len(points)} and "
            f"{len(triangles)}"
        )
    return _mesh(file, points[0].data, triangles[0].data, "millimeter")


def _read_gifti_values(file: Path) -> Array:
    arrays = [a for a in _gifti_arrays(file) if int(a.intent) not in (POINTSET, TRIANGLES)]
    if not arrays:
        raise InputFileError(f"{file}: has no values of points")
    if len(arrays) > 1:
        raise InputFileError(
            f"{file}: must have one array of values, got {len(arrays)} (save the one that is meant "
            "as NPY)"
        )
    return _as_values(file, arrays[0].data)


def _read_npy(file: Path) -> Array:
    try:
        values = np.array(open_npy(file, Request()).array)
    except ValueError as error:
        raise InputFileError(f"{file}: {error}") from error
    return _as_values(file, values)


def _as_values(file: Path, values: Any) -> Array:
    array = np.asarray(values)
    array = array.reshape(-1) if array.ndim == 2 and 1 in array.shape else array
    if array.ndim != 1:
        raise InputFileError(f"{file}: must have one value for each point, got {array.shape}")
    if array.dtype.kind not in "biuf":
        raise InputFileError(f"{file}: must have real numbers, got {array.dtype}")
    return array
