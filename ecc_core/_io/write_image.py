"""Write images and labels with their spacing and place, each completely or not at all."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

from ecc_core._arrays import is_lazy, on_host
from ecc_core._io.stored import StoredImage, View
from ecc_core._io.units import unit_named
from ecc_core._io.write import atomic_file, check_output
from ecc_core._io.writers import metaimage, nifti, ome_tiff, ome_zarr
from ecc_core._io.writers.grid import DTYPES, Grid, Source
from ecc_core._request.filtration import check_spacing

Write = Callable[[IO[bytes], Source, Grid], None]


def _write_npy(file: IO[bytes], values: Source, _grid: Grid) -> None:
    """Write the values alone."""
    whole = tuple(slice(0, length) for length in values.shape)
    np.save(file, np.asarray(values[whole]))


_FILES: dict[str, tuple[Write, Sequence[str]]] = {
    ".ome.tif": (ome_tiff.write_ome_tiff, ome_tiff.DTYPES),
    ".ome.tiff": (ome_tiff.write_ome_tiff, ome_tiff.DTYPES),
    ".tif": (ome_tiff.write_ome_tiff, ome_tiff.DTYPES),
    ".tiff": (ome_tiff.write_ome_tiff, ome_tiff.DTYPES),
    ".npy": (_write_npy, ()),
    ".nii": (partial(nifti.write_nifti, compressed=False), DTYPES),
    ".nii.gz": (partial(nifti.write_nifti, compressed=True), DTYPES),
    ".mha": (metaimage.write_metaimage, DTYPES),
}
"""The writer of each suffix and the dtypes that it takes, or () if it takes all."""
ZARR = ".zarr"
WRITTEN_SUFFIXES = (*_FILES, ZARR)
"""Suffixes of the images that can be written."""
ON_AXES = (".ome.tif", ".ome.tiff", ".tif", ".tiff", ZARR)
"""Suffixes of formats whose axes are parallel to those of their coordinates."""


def check_image_output(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """Return a path and its suffix; raise an error unless an image can be written there."""
    path = Path(path)
    suffix = _suffix(path)
    if not suffix:
        words = ", ".join(WRITTEN_SUFFIXES)
        raise ValueError(f"{path}: type not supported, must be one of {words}")
    if suffix != ZARR:
        return check_output(path, (path.suffix.lower(),)), suffix
    image = ome_zarr.image_around(path)
    folder = image or Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path}: the folder {folder} is not writable")
    ome_zarr.check_folder(path)
    return path, suffix


def writes_by_boxes(path: Path) -> bool:
    """Whether an image is written in parts, which are read one at a time, at a checked path."""
    return _suffix(path) == ZARR


def parts_beside(path: Path) -> Path:
    """Return the folder of partial results for an image or another output at a path."""
    image = ome_zarr.image_around(path)
    beside = path if image is None else image.with_name(f"{image.name}.{path.name}")
    return beside.with_name(f"{beside.name}.parts")


def _suffix(path: Path) -> str:
    """Return the suffix of a path that determines the format, "" if none is supported."""
    if ome_zarr.image_around(path) is not None:
        return ZARR
    name = path.name.lower()
    return max((s for s in WRITTEN_SUFFIXES if name.endswith(s)), key=len, default="")


def write_image(
    path: str | os.PathLike[str],
    values: ArrayLike,
    *,
    axes: str | None = None,
    spacing: float | Sequence[float] | None = None,
    unit: str = "",
    origin: Sequence[float] | None = None,
    like: StoredImage | None = None,
    labels: bool = False,
) -> None:
    """Write an image with its spacing, unit and place, completely or not at all.

    Parameters
    ----------
    path : path-like
        The file. Its suffix determines the type: OME-TIFF (``.tif``, ``.ome.tif``), OME-Zarr 0.5
        (``.zarr``), NIfTI (``.nii``, ``.nii.gz``), MetaImage (``.mha``), or ``.npy``, which has the
        values only. ``image.zarr/labels/NAME`` in an OME-Zarr image adds labels to it. A file is
        replaced, a Zarr folder only if this function has written it.
    values : array of 1 to 3 axes
        Integers or floats, such as labels or the result of `euler_coefficients`. A dask array is
        computed and written in parts; of Zarr images these are whole shards.
    axes : str, optional
        One letter for each axis; default the last of ``"ZYX"``.
    spacing : float or (d,) sequence, optional
        Distance of neighbouring points along each axis, or along all.
    unit : str, optional
        Unit of `spacing` and `origin`, such as ``"um"`` or ``"millimeter"``.
    origin : (d,) sequence, optional
        Place of the first point along each axis, in `unit`, or in points without `spacing`.
    like : StoredImage, optional
        Take axes, spacing, unit and place from an image of the same shape, as `open_image` returns
        it, instead of the four arguments above.
    labels : bool, default False
        Whether the values are labels, which OME-Zarr records.

    Raises
    ------
    TypeError
        If the format has no values of this type.
    ValueError
        If the suffix is not supported, or the arguments do not fit the shape.
    OSError
        If the file cannot be written.
    ImportError
        If the library for this file type is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ecc_core.io import open_image, write_image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.ome.tif")
    ...     write_image(path, np.eye(3, dtype=np.uint8), spacing=(0.5, 0.25), unit="um")
    ...     image = open_image(path)
    ...     image.axes, image.spacing, image.unit
    ('YX', {'Y': 0.5, 'X': 0.25}, 'micrometer')
    """
    path, _ = check_image_output(path)
    array: Any = values if is_lazy(values) else on_host(np.asarray(values))
    shape = tuple(array.shape)
    if like is not None:
        if any(given is not None for given in (axes, spacing, origin)) or unit:
            raise ValueError("`axes`, `spacing`, `unit` and `origin` must be left out with `like`")
        if shape != like.shape:
            raise ValueError(f"`values` must have the shape of `like`, {like.shape}, got {shape}")
        grid = grid_of(View.all_of(like))
    else:
        grid = _grid(shape, axes, spacing=spacing, unit=unit, origin=origin)
    if set(grid.axes) - {*"ZYX"}:
        raise ValueError(f"`values` must have the axes Z, Y and X alone, got {grid.axes}")
    write_on_grid(path, array, grid, labels=labels)


def _grid(
    shape: tuple[int, ...],
    axes: str | None,
    spacing: float | Sequence[float] | None,
    unit: str,
    origin: Sequence[float] | None,
) -> Grid:
    """Return the grid from the arguments of `write_image`, after checking them."""
    ndim = len(shape)
    if not 1 <= ndim <= 3:
        raise ValueError(f"`values` must have 1 to 3 axes, got shape {shape}")
    axes = "ZYX"[-ndim:] if axes is None else axes.upper()
    if len(axes) != ndim or axes not in ("X", "Y", "Z", "YX", "ZX", "ZY", "ZYX"):
        raise ValueError(f"`axes` must name {ndim} of Z, Y and X, in this order, got {axes!r}")
    steps: Mapping[str, float] = {}
    if spacing is not None:
        steps = dict(zip(axes, check_spacing(spacing, ndim).tolist(), strict=True))
    place: Mapping[str, float] = {}
    if origin is not None:
        given = np.asarray(origin, np.float64)
        if given.shape != (ndim,) or not np.isfinite(given).all():
            raise ValueError(f"`origin` must have {ndim} finite numbers, got {origin}")
        place = dict(zip(axes, given.tolist(), strict=True))
    return Grid(axes, steps, unit_named(unit), place)


def grid_of(view: View) -> Grid:
    """Return the grid of a part of an image."""
    source = view.source
    steps = {axis: step for axis, step in source.spacing.items() if axis in view.axes}
    starts = zip(view.axes, view.start, strict=True)
    origin = {axis: first * steps.get(axis, 1.0) for axis, first in starts}
    affine = view.affine
    if affine is not None and not {*view.axes} <= affine.steps.keys():
        affine = None
    return Grid(axes=view.axes, spacing=steps, unit=source.unit, origin=origin, affine=affine)


def whole_grid_of(view: View) -> tuple[Grid, tuple[int, ...]]:
    """Return the grid and the shape of the whole image, of which a view is a part."""
    whole = view._replace(
        start=(0,) * len(view.order), shape=tuple(view.source.shape[axis] for axis in view.order)
    )
    return grid_of(whole), whole.shape


def write_on_grid(path: Path, values: Any, grid: Grid, *, labels: bool) -> str:
    """Write an image to a checked path; return a note if its place is left out, or ""."""
    suffix = _suffix(path)
    dtype = np.dtype(values.dtype)
    if dtype.kind == "b" and suffix != ".npy":
        values = values.astype(np.uint8)
        dtype = values.dtype
    if suffix == ZARR:
        _check_dtype(path, dtype, DTYPES)
        ome_zarr.write_ome_zarr(path, values, grid, labels=labels)
    else:
        write, dtypes = _FILES[suffix]
        _check_dtype(path, dtype, dtypes)
        with atomic_file(path) as file:
            write(file, values, grid)
    if suffix in ON_AXES and grid.along_axes() is None:
        return "its format has no mirrored or rotated axes: the place is left out; .nii has them"
    return ""


def _check_dtype(path: Path, dtype: np.dtype[Any], allowed: Sequence[str]) -> None:
    if allowed and dtype.newbyteorder("=").name not in allowed:
        raise TypeError(f"{path}: `values` must be one of {', '.join(allowed)}, got {dtype}")
