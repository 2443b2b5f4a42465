"""HDF5."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.geometry import calibrated
from ecc_core._io.stored import Opened, Request, named_axes
from ecc_core._optional import import_optional

SUFFIXES = (".h5", ".hdf5", ".he5")
STEPS = 256
"""Parts of a path that are followed, because links can lead to themselves."""


def open_hdf5(path: Path, _: Request, inside: str) -> Opened:
    """Open a dataset of an HDF5 file: the named one, or the only one."""
    h5py = import_optional("h5py", extra="dask", purpose="reading HDF5 files")
    opened = h5py.File(path, "r")
    try:
        return _open_dataset(h5py, opened, inside)
    except BaseException:
        opened.close()
        raise


def _open_dataset(h5py: Any, opened: Any, inside: str) -> Opened:
    names: list[str] = []
    # links, of which those to other files are not followed, are not among what is visited
    opened.visititems(
        lambda name, node: names.append(name) if isinstance(node, h5py.Dataset) else None
    )
    name = names[0] if not inside and len(names) == 1 else inside
    if name not in names and not _is_linked(h5py, opened, name):
        there = ", ".join(names) or "none"
        asked = f"has no dataset {inside}" if inside else "must hold one dataset or one be named"
        raise ValueError(f"{asked}; datasets: {there}")
    array = opened[name]
    if array.is_virtual or array.external:
        raise ValueError(f"the values of {name} lie in other files, which are not read")
    if array.ndim == 0:
        raise ValueError(f"the dataset {name} is a single value")
    tags = array.attrs.get("axistags")  # of ilastik
    if isinstance(tags, str | bytes):
        names_of_axes = [axis["key"] for axis in json.loads(tags)["axes"]]
    else:
        names_of_axes = [dim.label for dim in array.dims]
    # written by ilastik's and PlantSeg's exporters, in micrometers
    steps = np.ravel(array.attrs.get("element_size_um", ()))
    known = steps.size == 3 and steps.dtype.kind == "f"
    distances = calibrated(dict(zip("ZYX", steps, strict=True)) if known else {}, "um")
    axes = named_axes(names_of_axes)
    return Opened(array, axes, array.chunks, distances=distances)


def _is_linked(h5py: Any, opened: Any, name: str) -> bool:
    """Whether soft links within the file lead from a name to a dataset."""
    place, parts = opened, [part for part in name.split("/") if part]
    for _ in range(STEPS):
        if not parts:
            return isinstance(place, h5py.Dataset)
        if not isinstance(place, h5py.Group):
            return False
        part, *parts = parts
        link = place.get(part, getlink=True)
        if isinstance(link, h5py.SoftLink):
            target = [step for step in link.path.split("/") if step not in ("", ".")]
            place, parts = opened if link.path.startswith("/") else place, [*target, *parts]
        elif isinstance(link, h5py.HardLink):
            place = place[part]
        else:
            return False
    return False
