"""Meshes as the input of ``ecc transform`` and ``ecc curve``."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli.errors import blame
from ecc_core._cli.outputs import check_outputs
from ecc_core._cli.paths import pair_of
from ecc_core._io.curve_columns import Curves
from ecc_core._io.meshes import Mesh, has_own_values, is_mesh, read_mesh, read_point_values
from ecc_core._io.write import printable
from ecc_core.errors import InputFileError
from ecc_core.io import write_figure, write_result
from ecc_core.quantities._base import EULER_NUMBER
from ecc_core.simplicial import simplicial_curve, simplicial_transform

OF_IMAGES = (
    *("series", "level", "axes", "channel", "time", "roi", "shape", "dtype", "offset"),
    *("mask", "mask_dtype", "mask_label", "smooth", "labels", "labels_dtype", "connectivity"),
    *("spacing", "unit", "weighted", "threshold", "direction", "direction_scale"),
    *("betti", "persistence", "components", "minkowski", "density"),
)
"""Arguments for images only, which are 0, False or None unless they are given."""
USUAL = {"boundary": "closed", "nan": "raise"}
"""Arguments for images only, with their defaults."""


def transform_mesh(path: str, arguments: Namespace) -> None:
    """Write and draw the transform of a mesh."""
    check_outputs(arguments, [path])
    _refuse_options_of_images(path, arguments)
    mesh = _read(path)
    with blame(path):
        result = simplicial_transform(
            mesh.points,
            mesh.simplices,
            arguments.directions,
            arguments.heights,
            complete=True,
            range=arguments.range,
            center=arguments.center,
            normalize=arguments.normalize,
        )
    units = None if arguments.normalize else mesh.units
    result = replace(result, axes="XYZ"[: mesh.points.shape[1]], units=units)
    if arguments.out:
        write_result(arguments.out, result)
    if arguments.plot:
        from ecc_core.plotting import plot_transforms

        write_figure(arguments.plot, plot_transforms({printable(Path(path).name): result}))


def curves_of_meshes(
    paths: Sequence[str], arguments: Namespace
) -> tuple[list[Curves], list[dict[str, Any]]]:
    """Return the curve of the values on each mesh, and its description."""
    for path in paths:
        if not is_mesh(path):
            raise InputFileError(f"{path}: --values must not be given for an image")
        if arguments.values is None and not has_own_values(path):
            raise InputFileError(f"{path}: --values must be given for a mesh of this format")
        _refuse_options_of_images(path, arguments)
    given = "{input}" if arguments.values is None else arguments.values
    sources = [pair_of("values", given, path) or "" for path in paths]
    values = [_values_in(source) for source in sources]
    if len(paths) > 1 and arguments.range is None and isinstance(arguments.thresholds, int):
        arguments.range = _range_of(values)
    found = []
    facts = []
    for path, source, own in zip(paths, sources, values, strict=True):
        mesh = _read(path)
        found.append(_curve(path, mesh, source=source, values=own, arguments=arguments))
        sizes = {"points": len(mesh.points), "triangles": len(mesh.triangles)}
        facts.append({"path": path, "values": source, **sizes})
    return found, facts


def _curve(
    path: str, mesh: Mesh, source: str, values: NDArray[Any], arguments: Namespace
) -> Curves:
    if len(values) != len(mesh.points):
        raise InputFileError(
            f"--values {source}: must have a value for each of the {len(mesh.points)} points of "
            f"{path}, got {len(values)}"
        )
    with blame(source):
        found = simplicial_curve(
            values,
            mesh.simplices,
            arguments.thresholds,
            complete=True,
            range=arguments.range,
            superlevel=arguments.superlevel,
            workers=arguments.workers,
        )
    return Curves(path, np.asarray(found.thresholds), {}, {EULER_NUMBER: found.values[None]})


def _values_in(source: str) -> NDArray[Any]:
    """Read a file that --values names."""
    try:
        return read_point_values(source)
    except InputFileError as error:
        raise InputFileError(f"--values {error}") from error


def _range_of(values: Sequence[NDArray[Any]]) -> tuple[Any, Any] | None:
    """Return the least and the greatest finite value of all meshes."""
    finite = [own[np.isfinite(own)] for own in values]
    ends = [end for own in finite if own.size for end in (own.min().item(), own.max().item())]
    return (min(ends), max(ends)) if ends else None


def _read(path: str) -> Mesh:
    mesh = read_mesh(path)
    for note in mesh.notes:
        sys.stderr.write(f"ecc: {path}: {note}\n")
    return mesh


def _refuse_options_of_images(path: str, arguments: Namespace) -> None:
    for name in (*OF_IMAGES, *USUAL):
        given = getattr(arguments, name, USUAL.get(name))
        is_absent = given is None or given is False or (type(given) is int and given == 0)
        is_usual = name in USUAL and given == USUAL[name]
        if not is_absent and not is_usual:
            option = name.replace("_", "-")
            raise InputFileError(f"{path}: --{option} must not be given for a mesh")
