"""NRRD."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.affines import Affine
from ecc_core._io.description import Description, unnamed_axes
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.packed import filled, gunzipped
from ecc_core._io.readers.detached_nrrd import nrrd_dtype, open_detached, read_detached_header
from ecc_core._optional import import_optional


def open_nrrd(path: Path, _: Request) -> Opened:
    """Open an NRRD file.

    Values in another file are mapped into memory if they are not compressed; others are read
    completely.
    """
    nrrd = import_optional("nrrd", extra="nrrd", purpose="reading NRRD files")
    if (detached := read_detached_header(nrrd, path)) is not None:
        header, values, files = open_detached(nrrd, path, *detached)
        axes = _axes(header, len(values.shape))
        return Opened(values, _nrrd_description(header, axes), described=files)
    with path.open("rb") as stream:
        header = nrrd.read_header(stream)
        if header.get("encoding") in ("gzip", "gz") and "byte skip" not in header:
            dtype = nrrd_dtype(nrrd, header)
            with gzip.GzipFile(fileobj=stream) as content:
                shape = tuple(header["sizes"].tolist()[::-1])
                values = filled(gunzipped(content), path, shape, dtype)
        else:
            values = nrrd.read_data(header, stream, index_order="C")
    return Opened(values, _nrrd_description(header, _axes(header, values.ndim)))


def _axes(header: Any, ndim: int) -> str:
    """Return a letter for each axis, by the kinds of axes."""
    kinds = {"time": "T", "vector": "C", "list": "C", "RGB-color": "S", "RGBA-color": "S"}
    described = header.get("kinds", [])
    letters = "".join(kinds.get(kind, "?") for kind in reversed(described))
    letters = letters or "?" * ndim
    spatial = [i for i, letter in enumerate(letters) if letter == "?"]
    named = dict(zip(spatial, unnamed_axes(len(spatial)), strict=True))
    return "".join(named.get(i, letter) for i, letter in enumerate(letters))


def _nrrd_description(header: Any, axes: str) -> Description:
    """Return the axes with their steps and units, and the places of points."""
    if "space directions" not in header:
        units = [unit.strip('"') for unit in header.get("units", ())]
        named = dict(zip(reversed(axes), units, strict=False))
        spacings = np.abs(header.get("spacings", ()))  # A negative spacing reverses an axis.
        steps = dict(zip(reversed(axes), spacings.tolist(), strict=False))
        return Description.of(axes, steps=steps, units=named)
    rows = dict(zip(reversed(axes), header["space directions"], strict=False))
    vectors = {
        axis: np.asarray(row, np.float64)
        for axis, row in rows.items()
        if axis in "ZYX" and row is not None and np.isfinite(row).all()
    }
    # Units belong to the coordinates, not to the axes, so there must be one for all coordinates.
    units = list({unit.strip('"') for unit in header.get("space units", ())})
    lengths = {axis: np.linalg.norm(vector) for axis, vector in vectors.items()}
    unit = units[0] if len(units) == 1 else ""
    description = Description.of(axes, steps=lengths, units=unit)
    origin = header.get("space origin")
    if origin is None or len(origin) != 3 or not np.isfinite(origin).all():
        return description
    return replace(description, place=Affine.of_space(vectors, origin, header.get("space", "")))


READ = frozenset({"axes", "spacing", "place"})
FORMATS = (
    Format(
        name="NRRD",
        suffixes=(".nrrd", ".nhdr"),
        open=open_nrrd,
        fields=READ,
        reference="pynrrd",
        extra="nrrd",
    ),
)
