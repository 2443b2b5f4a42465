"""EMD, HDF5 of electron microscopes: of Berkeley (also EMD 1.0) and of Velox."""

import json
import math
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.description import Description, unnamed_axes
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.hdf5_links import dataset_at, hdf5_library, node_at, with_own_values
from ecc_core._io.lazy import Array, Box, Lazy

SUFFIXES = (".emd",)
BERKELEY = 1
"""The attribute `emd_group_type` of a group with an image."""
ARRAY = "array"
"""The attribute `emd_group_type` of a group with an image in EMD 1.0."""
MOST_UNEVEN = 1e-3
"""The largest relative difference between the steps of an axis."""


@dataclass(frozen=True)
class Found:
    """An image in a file: its dataset, and the group that describes it."""

    name: str
    path: str
    velox: bool


def open_emd(path: Path, request: Request, inside: str = "") -> Opened:
    """Open an image: the named one, the one that `series` selects, or the only one."""
    h5py = hdf5_library("EMD")
    with ExitStack() as failing:
        opened = failing.enter_context(h5py.File(path, "r"))
        images = _images(h5py, opened)
        if inside:
            images = [image for image in images if inside.strip("/") == image.path]
            if not images:
                raise ValueError(f"has no image {inside}")
        image = images[request.pick_series([found.name for found in images])]
        if image.velox:
            result = _open_velox(h5py, opened, image.path)
        else:
            result = _open_berkeley(h5py, opened, image.path)
        failing.pop_all()  # The file stays open, because values are read later.
    array, axes, steps, units = result
    return Opened(
        array,
        Description.of(axes, steps=steps, units=units),
        array.chunks if isinstance(array, h5py.Dataset) else None,
        series=len(images),
    )


def _images(h5py: Any, opened: Any) -> list[Found]:
    """Return the groups that hold an image."""
    found = []

    def look(name: str, node: Any) -> None:
        if not isinstance(node, h5py.Group):
            return
        kind = node.attrs.get("emd_group_type")
        if isinstance(kind, bytes):
            kind = kind.decode("utf-8", "replace")
        is_array = kind == ARRAY or (not isinstance(kind, str) and np.ndim(kind) == 0)
        if kind is not None and is_array and kind in (BERKELEY, ARRAY):
            found.append(Found(name, name, velox=False))
        elif name.startswith("Data/Image/") and name.count("/") == 2 and "Data" in node:
            found.append(Found(name.rpartition("/")[2], name, velox=True))

    opened.visititems(look)  # This visits no links, so none to other files.
    if not found:
        raise ValueError("not an EMD file, or damaged: it has no image")
    return found


Result = tuple[Any, str, dict[str, Any], dict[str, str]]


def _open_berkeley(h5py: Any, opened: Any, path: str) -> Result:
    """Open an image whose axes are described by the datasets dim1, dim2 (or dim0, ...)."""
    array = dataset_at(h5py, opened, f"{path}/data")
    first = 0 if node_at(h5py, opened, f"{path}/dim0") is not None else 1
    names: list[str] = []
    steps = {}
    units = {}
    letters = list(unnamed_axes(array.ndim))
    for axis in range(array.ndim):
        dim = node_at(h5py, opened, f"{path}/dim{axis + first}")
        if not isinstance(dim, h5py.Dataset):
            names.append("")
            continue
        with_own_values(dim, f"{path}/dim{axis + first}")
        names.append(_text(dim.attrs.get("name", "")))
        steps[axis] = _step(dim, array.shape[axis])
        units[axis] = _unit(_text(dim.attrs.get("units", "")))
    words = [name.strip().lower() for name in names]
    times = [i for i, word in enumerate(words) if word in ("t", "time")]
    if {"x", "y"} <= {*words}:
        letters = [_letter(word) for word in words]
        if len({*letters}) < len(letters):
            letters = list(unnamed_axes(array.ndim))
    elif times:
        letters[times[0]] = "T"
    return (
        array,
        "".join(letters),
        {letters[i]: step for i, step in steps.items()},
        {letters[i]: unit for i, unit in units.items()},
    )


def _letter(name: str) -> str:
    words = {"x": "X", "y": "Y", "z": "Z", "t": "T", "time": "T", "energy": "C", "e": "C"}
    return words.get(name, "?")


def _step(dim: Any, length: int) -> float:
    """Return the distance between points along an axis, NaN if it is unknown or varies.

    A file may store the places of the first two points only, if distances are equal.
    """
    if dim.shape not in ((length,), (2,)) or dim.size < 2 or dim.dtype.kind not in "iuf":
        return math.nan
    places = np.asarray(dim, np.float64)
    between = np.diff(places)
    step = float(places[-1] - places[0]) / (len(places) - 1)
    off = np.abs(between - step).max()
    return step if off <= MOST_UNEVEN * abs(step) else math.nan


def _unit(text: str) -> str:
    """Return the name of a unit, which may be in brackets, as in [n_m]."""
    return text.strip().strip("[]").replace("_", "")


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _open_velox(h5py: Any, opened: Any, path: str) -> Result:
    """Open an image of Velox, whose last axis numbers frames."""
    stored = dataset_at(h5py, opened, f"{path}/Data")
    if stored.ndim != 3:
        raise ValueError(f"damaged: {path}/Data must have three axes, got {stored.shape}")
    rows, columns, frames = stored.shape
    shape = (rows, columns) if frames == 1 else (frames, rows, columns)

    def read(box: Box) -> Array:
        if len(box) == 2:
            return np.asarray(stored[(*box, 0)])
        return np.moveaxis(stored[(*box[1:], box[0])], -1, 0)

    size = _velox_metadata(h5py, opened, path).get("BinaryResult", {})
    pixel = size.get("PixelSize", {}) if isinstance(size, dict) else {}
    steps = {axis: pixel.get(name) for axis, name in (("X", "width"), ("Y", "height"))}
    units = {"X": str(size.get("PixelUnitX", "")), "Y": str(size.get("PixelUnitY", ""))}
    return Lazy(shape, stored.dtype, read), "YX" if frames == 1 else "TYX", steps, units


def _velox_metadata(h5py: Any, opened: Any, path: str) -> dict[str, Any]:
    """Return the metadata of the first frame, which are JSON in the first column."""
    node = node_at(h5py, opened, f"{path}/Metadata")
    if not isinstance(node, h5py.Dataset) or node.ndim != 2 or node.dtype != np.uint8:
        return {}
    text = bytes(with_own_values(node, f"{path}/Metadata")[:, 0]).partition(b"\0")[0]
    try:
        found = json.loads(text)
    except ValueError:
        raise ValueError(f"damaged: {path}/Metadata is no JSON") from None
    return found if isinstance(found, dict) else {}


READ = frozenset({"axes", "spacing", "time"})
FORMATS = (
    Format(
        name="EMD",
        suffixes=SUFFIXES,
        open=open_emd,
        fields=READ,
        reference="",
        extra="dask",
        is_container=True,
    ),
)
