"""NetCDF 3 and 4: the variables of a file, with their coordinates and the CF conventions."""

import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.affines import Affine
from ecc_core._io.description import Description, letter_of, unnamed_axes
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.lazy import Array, Box, Lazy
from ecc_core._io.readers.conventions import decoded
from ecc_core._optional import import_optional

SUFFIXES = (".nc", ".nc4", ".cdf")
HDF5 = b"\x89HDF"
CLASSIC = (b"CDF\x01", b"CDF\x02")
EXTRA = {"extra": "netcdf", "purpose": "reading NetCDF files"}
LETTERS = {"lon": "X", "longitude": "X", "lat": "Y", "latitude": "Y", "lev": "Z", "level": "Z"}
LETTERS |= {"height": "Z", "altitude": "Z", "depth": "Z"}
STANDARD = LETTERS | {"time": "T", "projection_x_coordinate": "X", "projection_y_coordinate": "Y"}
"""Letters by the names that the CF conventions give to coordinates."""
EAST = ("degrees_east", "degree_east", "degree_E", "degrees_E", "degreeE", "degreesE")
NORTH = ("degrees_north", "degree_north", "degree_N", "degrees_N", "degreeN", "degreesN")
REFERRING = ("bounds", "climatology", "coordinates", "grid_mapping")
"""Attributes that name variables which are no images."""
NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable"
MOST_UNEVEN = 1e-3
"""The largest relative difference between the steps of a coordinate, which are rounded."""
MOST_COORDINATES = 1 << 24


@dataclass(frozen=True)
class Variable:
    """An array of a file."""

    array: Any
    dimensions: tuple[str, ...]
    attributes: Mapping[str, Any]
    is_coordinate: bool  # Whether it has the coordinates of a dimension.
    chunks: tuple[int, ...] | None = None


def open_netcdf(path: Path, _: Request, inside: str) -> Opened:
    """Open a variable: the named one, or the only one that is no coordinate."""
    with path.open("rb") as stream:
        magic = stream.read(4)
    if magic in CLASSIC:
        variables = _classic_variables(path)
    elif magic == HDF5:
        variables = _hdf5_variables(path)
    else:
        kind = "CDF-5, which is not supported" if magic == b"CDF\x05" else "not a NetCDF file"
        raise ValueError(kind)
    name = _pick(variables, path.name, inside)
    variable = variables[name]
    group = name.rpartition("/")[0]
    values, encoding, missing = decoded(variable.array, variable.attributes)
    found = {
        dimension: variables.get(f"{group}/{dimension}".strip("/"), variables.get(dimension))
        for dimension in variable.dimensions
    }
    description = _described(variable.dimensions, found)
    description = replace(description, encoding=encoding, missing=missing)
    return Opened(values, description, variable.chunks)


def _hdf5_variables(path: Path) -> dict[str, Variable]:
    """Return the datasets of a NetCDF-4 file, which is left open."""
    h5py = import_optional("h5py", **EXTRA)
    found: dict[str, Variable] = {}
    with ExitStack() as failing:
        opened = failing.enter_context(h5py.File(path, "r"))

        def keep(name: str, node: Any) -> None:
            if not isinstance(node, h5py.Dataset) or node.is_virtual or node.external:
                return
            scale = bool(h5py.h5ds.is_scale(node.id))
            if scale and _text(node.attrs.get("NAME")).startswith(NO_VARIABLE):
                return
            dimensions = tuple(map(_dimension, node.dims))
            if scale and node.ndim == 1:
                dimensions = (name.rpartition("/")[2],)
            attributes = {key: node.attrs[key] for key in node.attrs if key.isidentifier()}
            found[name] = Variable(
                array=node,
                dimensions=dimensions,
                attributes=attributes,
                is_coordinate=scale,
                chunks=node.chunks,
            )

        opened.visititems(keep)  # This visits no links, so none to other files.
        failing.pop_all()
    return found


def _dimension(dim: Any) -> str:
    """Return the name of a dimension, which is that of its scale or else its label."""
    if not len(dim):
        return str(dim.label)
    _, _, name = dim[0].name.rpartition("/")
    return str(name)


def _classic_variables(path: Path) -> dict[str, Variable]:
    """Return the variables of a NetCDF-3 file, which stays mapped into memory."""
    scipy_io = import_optional("scipy.io", **EXTRA)
    opened = scipy_io.netcdf_file(path, "r", mmap=True)
    found = {}
    for name, stored in opened.variables.items():
        dimensions = tuple(map(str, stored.dimensions))
        array = _copied(opened, name, tuple(map(int, stored.shape)), stored.data.dtype)
        found[name] = Variable(array, dimensions, dict(stored._attributes), name in dimensions)
    for variable in found.values():
        weakref.finalize(variable.array, _close_after, opened, len(found))
    return found


def _copied(opened: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Lazy:
    """Return a variable that is copied when it is read: a file with views cannot be closed."""

    def read(box: Box) -> Array:
        return np.array(opened.variables[name].data[box])

    return Lazy(shape, dtype, read)


def _close_after(opened: Any, count: int) -> None:
    """Close a file when this has been called for all `count` variables of it."""
    opened.dropped = getattr(opened, "dropped", 0) + 1
    if opened.dropped == count:
        opened.close()


def _pick(variables: Mapping[str, Variable], file: str, inside: str) -> str:
    """Return the name of the variable to open."""
    named = set()
    for variable in variables.values():
        for attribute in REFERRING:
            named |= {*_text(variable.attributes.get(attribute)).split()}
    images = [
        name
        for name, variable in variables.items()
        if not variable.is_coordinate
        and name.rpartition("/")[2] not in named
        and len(variable.array.shape) > 0
        and variable.array.dtype.kind in "iuf"
    ]
    if inside:
        if inside not in variables:
            there = ", ".join(images) or "none"
            raise ValueError(f"has no variable {inside}; variables: {there}")
        if not variables[inside].array.shape:
            raise ValueError(f"the variable {inside} is a single value")
        return inside
    if len(images) != 1:
        raise ValueError(
            f"must hold one variable or one be named, as in {file}/NAME; "
            f"variables: {', '.join(images) or 'none'}"
        )
    return images[0]


def _described(
    dimensions: tuple[str, ...], coordinates: Mapping[str, Variable | None]
) -> Description:
    """Return the axes, with the steps of coordinates that are evenly spaced, and the place."""
    letters = _letters(dimensions, coordinates)
    steps = {}
    units = {}
    firsts = {}
    notes = []
    for letter, dimension in zip(letters, dimensions, strict=True):
        coordinate = coordinates[dimension]
        if coordinate is None or letter not in "TZYX":
            continue
        found = _first_and_step(coordinate)
        if found is None:
            notes.append(f"points along {letter} ({dimension}) are not evenly spaced")
            continue
        firsts[letter], steps[letter] = found
        units[letter] = _unit(_text(coordinate.attributes.get("units")))
    lengths = {letter: abs(step) for letter, step in steps.items()}
    description = Description.of(
        "".join(letters), steps=lengths, units=units, names=dimensions, notes=notes
    )
    spatial = [letter for letter in letters if letter in "ZYX"]
    if not spatial or not {*spatial} <= steps.keys() or len({units[a] for a in spatial}) != 1:
        return description
    vectors = {axis: steps[axis] * np.eye(3)["XYZ".index(axis)] for axis in spatial}
    origin = np.array([firsts.get(axis, 0.0) for axis in "XYZ"])
    return replace(description, place=Affine(vectors, origin, "coordinates"))


def _letters(dimensions: tuple[str, ...], coordinates: Mapping[str, Variable | None]) -> list[str]:
    """Return a letter for each dimension, by its coordinate or its name."""
    letters = [_letter(name, coordinates[name]) for name in dimensions]
    for i, letter in enumerate(letters):
        if letter in letters[:i]:
            letters[i] = "?"
    if not {*letters} & {*"ZYX"}:
        rest = iter(unnamed_axes(letters.count("?")))
        letters = [next(rest) if letter == "?" else letter for letter in letters]
    return letters


def _letter(name: str, coordinate: Variable | None) -> str:
    attributes = {} if coordinate is None else coordinate.attributes
    axis = _text(attributes.get("axis")).upper()
    if axis in ("T", "Z", "Y", "X"):
        return axis
    standard = STANDARD.get(_text(attributes.get("standard_name")))
    units = _text(attributes.get("units"))
    if standard:
        return standard
    if units in EAST or units in NORTH:
        return "X" if units in EAST else "Y"
    if " since " in units:
        return "T"
    if _text(attributes.get("positive")).lower() in ("up", "down"):
        return "Z"
    return LETTERS.get(name.lower(), letter_of(name))


def _first_and_step(coordinate: Variable) -> tuple[float, float] | None:
    """Return the first place and the step, or None if the steps differ."""
    values = decoded(coordinate.array, coordinate.attributes).array
    if len(values.shape) != 1 or not 1 < values.shape[0] <= MOST_COORDINATES:
        return None
    if values.dtype.kind not in "iuf":
        return None
    places = np.asarray(values[(slice(0, values.shape[0]),)], np.float64)
    step = float(places[-1] - places[0]) / (len(places) - 1)
    if not np.isfinite(step) or step == 0:
        return None
    off = np.abs(np.diff(places) - step)
    if off.max() > MOST_UNEVEN * abs(step):
        return None
    if values.dtype == np.float32:  # The number with the fewest digits that rounds to the step.
        step = float(str(np.float32(step)))
    return float(places[0]), step


def _unit(text: str) -> str:
    """Return the unit of a coordinate, without the reference of times."""
    if text in EAST or text in NORTH:
        return "degree"
    return text.partition(" since ")[0]


def _text(value: Any) -> str:
    """Return an attribute that is text, or "" for another one."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


READ = frozenset({"axes", "spacing", "time", "place", "encoding", "missing"})
FORMATS = (
    Format(
        name="NetCDF",
        suffixes=SUFFIXES,
        open=open_netcdf,
        fields=READ,
        reference="xarray",
        extra="netcdf",
        is_container=True,
    ),
)
