"""Files of meshes, of triangles and edges, and of values at their points."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.formats import Request
from ecc_core._io.readers.array_files import open_npy
from ecc_core._io.readers.vtk_legacy import read_legacy, read_legacy_values
from ecc_core._io.readers.vtk_polydata import read_vtp, read_vtp_values
from ecc_core._optional import import_optional
from ecc_core.errors import InputFileError

Array = NDArray[Any]
Found = TypeVar("Found")

TRIMESH_SUFFIXES = (".obj", ".off", ".ply", ".stl")
GIFTI = ".gii"
VTK_XML = ".vtp"
VTK_LEGACY = ".vtk"
VTK_SUFFIXES = (VTK_LEGACY, VTK_XML)
COMPRESSED = ".gz"  # FreeSurfer's and nilearn's GIFTI files may end in it.
MESH_SUFFIXES = (GIFTI, *TRIMESH_SUFFIXES, *VTK_SUFFIXES)
"""Suffixes of files with meshes."""
VALUE_SUFFIXES = (GIFTI, ".npy", *VTK_SUFFIXES)
"""Suffixes of files with a value for each point."""
UNJOINED = (".obj", ".stl")
"""Formats that repeat points for each triangle, or where a texture has a seam."""
POINTSET = 1008
TRIANGLES = 1009
"""Intents of GIFTI: the kinds of arrays that have points and triangles."""


class Mesh(NamedTuple):
    """A mesh in a file.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.io import Mesh
    >>> points = np.array([[0.0, 0], [1, 0], [0, 1], [2, 2]])
    >>> triangles = np.array([[0, 1, 2]])
    >>> edges = np.array([[2, 3]])
    >>> mesh = Mesh(points, triangles, edges, units=None, notes=())
    >>> [rows.shape for rows in mesh.simplices]
    [(1, 2), (1, 3)]
    """

    points: NDArray[np.float64]
    """(n, d) coordinates."""
    triangles: NDArray[np.int64]
    """(m, 3) numbers of points; empty for points alone."""
    edges: NDArray[np.int64]
    """(k, 2) edges of polylines, without those of the triangles."""
    units: str | None
    """Unit of the coordinates, None if unknown."""
    notes: tuple[str, ...]
    """Notes for users: changes of the mesh, and properties that they may not expect."""

    @property
    def simplices(self) -> list[NDArray[np.int64]]:
        """The edges and the triangles, without those that there are none of.

        Edges of triangles are missing: functions of simplices add them with ``complete=True``.
        """
        return [rows for rows in (self.edges, self.triangles) if len(rows)]


def is_mesh(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a mesh, by its suffix."""
    return _format_of(Path(path)) in MESH_SUFFIXES


def _format_of(file: Path) -> str:
    """Return the suffix that determines the format, without that of a compressed GIFTI file."""
    name = file.name.lower()
    return GIFTI if name.endswith(GIFTI + COMPRESSED) else file.suffix.lower()


def read_mesh(path: str | os.PathLike[str]) -> Mesh:
    r"""Read the points and triangles of a mesh.

    Polygons are divided into triangles, and polylines into edges. Points with equal coordinates are
    joined where the format repeats points: in STL, and in OBJ.

    Parameters
    ----------
    path : path
        A file in one of the formats OBJ, OFF, PLY, STL, GIFTI (surface; also ``.gii.gz``) and VTK
        PolyData (``.vtp``, and the older ``.vtk``).

    Returns
    -------
    Mesh
        ``points`` of shape (n, d), ``triangles`` of shape (m, 3), ``edges`` of polylines of shape
        (k, 2), which VTK files have, ``units`` and ``notes``; and ``simplices``, for functions with
        ``complete=True``.

    Raises
    ------
    InputFileError
        If the file is damaged, or has no mesh.
    ImportError
        If trimesh, or nibabel for GIFTI, is not installed. VTK files need neither.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ecc_core.io import read_mesh
    >>> text = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "triangle.obj")
    ...     _ = file.write_text(text)
    ...     mesh = read_mesh(file)
    >>> mesh.points.shape, mesh.triangles.shape
    ((3, 3), (1, 3))
    """
    file = Path(path)
    suffix = _format_of(file)
    if suffix not in MESH_SUFFIXES:
        raise _unknown_type(file, MESH_SUFFIXES)
    readers = {GIFTI: _read_gifti_surface, VTK_XML: _read_vtk, VTK_LEGACY: _read_vtk}
    mesh = _whole(file, readers.get(suffix, _read_by_trimesh), "a mesh")
    if suffix in UNJOINED:
        mesh = _joined(mesh)
    connected = [rows.reshape(-1) for rows in mesh.simplices]
    alone = 0
    if connected:
        named = np.unique(np.concatenate(connected))
        alone = len(mesh.points) - len(named)
    if alone:
        least = "an edge" if len(mesh.edges) else "a triangle"
        note = f"{alone} points without {least} are components"
        mesh = mesh._replace(notes=(*mesh.notes, note))
    return mesh


def read_point_values(path: str | os.PathLike[str]) -> Array:
    """Read a value for each point.

    Parameters
    ----------
    path : path
        A file in GIFTI (also ``.gii.gz``) with one array of values, or an NPY file of shape (n,),
        (n, 1) or (1, n), or one of VTK PolyData with one array of a value for each point. The name
        of one of several follows, as in ``mesh.vtp/thickness``.

    Returns
    -------
    (n,) array
        In the dtype of the file.

    Raises
    ------
    InputFileError
        If the file is damaged, has several arrays and none is named, or values that are no real
        numbers.
    ImportError
        If nibabel, for GIFTI, is not installed.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from ecc_core.io import read_point_values
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/thickness.npy", np.array([2.5, 3.0]))
    ...     values = read_point_values(f"{folder}/thickness.npy")
    >>> values
    array([2.5, 3. ])
    """
    file, name = _split_name(Path(path))
    suffix = _format_of(file)
    if suffix not in VALUE_SUFFIXES:
        raise _unknown_type(file, VALUE_SUFFIXES)
    if suffix in VTK_SUFFIXES:
        return _whole(file, partial(_read_vtk_values, name=name), "values of points")
    read = _read_gifti_values if suffix == GIFTI else _read_npy
    return _whole(file, read, "values of points")


def has_own_values(path: str | os.PathLike[str]) -> bool:
    """Whether the format of a mesh has values of the points beside the triangles."""
    return _format_of(Path(path)) in VTK_SUFFIXES


def _split_name(path: Path) -> tuple[Path, str]:
    """Return a file, and the name of the array in it that follows in a path, or ""."""
    for file in path.parents:
        if file.suffix.lower() in VTK_SUFFIXES and file.is_file():
            return file, path.relative_to(file).as_posix()
    return path, ""


def _unknown_type(file: Path, suffixes: Sequence[str]) -> InputFileError:
    return InputFileError(f"{file}: type not supported, must be one of {', '.join(suffixes)}")


def _whole(file: Path, read: Callable[[Path], Found], what: str) -> Found:
    """Call a reader of `what`. Errors of any type that it raises become InputFileError."""
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
    # Trimesh opens no other file that the mesh names, such as a texture, if it reads a stream.
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
    """Raise an error if a PLY file has fewer points or faces than its header announces.

    Trimesh reads such files without an error. A polygon gives one triangle or more.
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


def _mesh(
    file: Path, points: Any, triangles: Any, units: str | None = None, edges: Any = ()
) -> Mesh:
    rows = np.asarray(triangles).astype(np.int64).reshape(-1, 3)
    lines = np.asarray(edges).astype(np.int64).reshape(-1, 2)
    for what, own in (("triangles", rows), ("edges", lines)):
        if len(own) and not (own.min() >= 0 and own.max() < len(points)):
            numbers = f"{own.min()} to {own.max()}"
            raise InputFileError(
                f"{file}: has {what} of points {numbers}, and {len(points)} points"
            )
    places = np.asarray(points, np.float64)
    if not np.isfinite(places).all():
        is_finite = np.isfinite(places).all(axis=1)
        row = int(np.argmin(is_finite))
        raise InputFileError(
            f"{file}: points must be finite, got {places[row].tolist()} in row {row}"
        )
    return Mesh(points=places, triangles=rows, edges=lines, units=units, notes=())


def _joined(mesh: Mesh) -> Mesh:
    """Join points with equal coordinates, and drop triangles that then have a point twice."""
    # Adding zero makes -0.0 and 0.0 equal bytes, which `unique` compares.
    points, number = np.unique(mesh.points + 0.0, axis=0, return_inverse=True)
    rows = number.reshape(-1)[mesh.triangles]
    corners = np.sort(rows, axis=1)
    has_repeated = (corners[:, 1:] == corners[:, :-1]).any(axis=1)
    notes = []
    if has_repeated.any():
        notes.append(f"{int(has_repeated.sum())} triangles without an area left out")
    return Mesh(
        points=points,
        triangles=rows[~has_repeated],
        edges=mesh.edges,
        units=mesh.units,
        notes=(*mesh.notes, *notes),
    )


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


def _read_vtk(file: Path) -> Mesh:
    content = file.read_bytes()
    try:
        legacy = file.suffix.lower() == VTK_LEGACY
        shape = read_legacy(content).shape if legacy else read_vtp(content)
        if not len(shape.points):
            raise InputFileError(f"{file}: has no points")
        mesh = _mesh(file, shape.points, shape.triangles, edges=shape.edges)
    except ValueError as error:
        raise InputFileError(f"{file}: {error}") from error
    repeated = len(mesh.points) - len(np.unique(mesh.points + 0.0, axis=0))
    if repeated:
        note = f"{repeated} points lie where others do, and are not joined with them"
        mesh = mesh._replace(notes=(note,))
    return mesh


def _read_vtk_values(file: Path, name: str) -> Array:
    content = file.read_bytes()
    read = read_legacy_values if file.suffix.lower() == VTK_LEGACY else read_vtp_values
    try:
        values = read(content, name)
    except ValueError as error:
        raise InputFileError(f"{file}: {error}") from error
    if values.shape[1] == 1:
        values = values[:, 0]
    return _as_values(file, values)


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
