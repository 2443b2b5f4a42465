"""Imaris 5.5 files (.ims): HDF5 with a dataset for each resolution, time point and channel."""

import math
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.affines import Affine
from ecc_core._io.description import Description
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.hdf5_links import dataset_at, hdf5_library, names_in, node_at
from ecc_core._io.volumes import joined_volumes

SUFFIXES = (".ims",)
AXES = "ZYX"
IMAGE = "DataSetInfo/Image"
LEVEL = "ResolutionLevel "
TIME = "TimePoint "
CHANNEL = "Channel "


def open_imaris(path: Path, request: Request) -> Opened:
    """Open one resolution of the image, without the points that pad it to whole chunks."""
    h5py = hdf5_library("Imaris")
    with ExitStack() as failing:
        opened = failing.enter_context(h5py.File(path, "r"))
        levels = _counted(h5py, opened, "DataSet", LEVEL)
        level = f"DataSet/{LEVEL}{request.pick_level(levels)}"
        times = _counted(h5py, opened, level, TIME)
        channels = _counted(h5py, opened, f"{level}/{TIME}0", CHANNEL)
        volumes = {
            (t, c): _volume(h5py, opened, f"{level}/{TIME}{t}/{CHANNEL}{c}")
            for t in range(times)
            for c in range(channels)
        }
        shape = _size(h5py, opened, f"{level}/{TIME}0/{CHANNEL}0")
        first = volumes[0, 0]
        for (t, c), volume in volumes.items():
            where = f"{level}/{TIME}{t}/{CHANNEL}{c}"
            there = _size(h5py, opened, where), volume.dtype
            if there != (shape, first.dtype):
                raise ValueError(f"{where} has {there}, channel 0 at time 0 {shape, first.dtype}")
            if any(n > stored for n, stored in zip(shape, volume.shape, strict=True)):
                raise ValueError(
                    f"damaged: {where} should have {shape} points, its data have {volume.shape}"
                )
        low, steps, unit = _extent(h5py, opened, shape)
        names = [_channel_name(h5py, opened, c) for c in range(channels)]
        failing.pop_all()  # The file stays open, because values are read later.
    counts = {axis: count for axis, count in (("T", times), ("C", channels)) if count > 1}

    def volume_at(index: tuple[int, ...]) -> Any:
        at = dict(zip(counts, index, strict=True))
        return volumes[at.get("T", 0), at.get("C", 0)]

    along = {axis: step * np.eye(3)["XYZ".index(axis)] for axis, step in steps.items()}
    centre = np.array([low[axis] + steps[axis] / 2 for axis in "XYZ"])
    placed = all(map(math.isfinite, centre)) and min(steps.values()) > 0
    description = Description.of(
        "".join(counts) + AXES,
        steps=steps,
        units=unit,
        place=Affine(along, centre, "imaris") if placed else None,
        channels=names,
    )
    return Opened(
        joined_volumes(tuple(counts.values()), shape, first.dtype, volume_at),
        description,
        (1,) * len(counts) + tuple(first.chunks or shape),
        levels=levels,
    )


def _counted(h5py: Any, opened: Any, path: str, prefix: str) -> int:
    """Return the number of members of a group, which must be numbered from 0."""
    group = node_at(h5py, opened, path)
    if not isinstance(group, h5py.Group):
        raise ValueError(f"not an Imaris file, or damaged: it has no group {path}")
    names = names_in(group, prefix)
    wanted = [f"{prefix}{i}" for i in range(len(names))]
    if not names or names != wanted:
        raise ValueError(f"damaged: {path} must have {prefix}0 and so on, got {names}")
    return len(names)


def _volume(h5py: Any, opened: Any, path: str) -> Any:
    volume = dataset_at(h5py, opened, f"{path}/Data")
    if volume.ndim != len(AXES):
        raise ValueError(f"damaged: {path}/Data must have three axes, got {volume.shape}")
    return volume


def _text(h5py: Any, opened: Any, path: str, name: str) -> str:
    """Return an attribute, which is an array of single characters. ValueError if it is absent."""
    group = node_at(h5py, opened, path)
    value = None if group is None else group.attrs.get(name)
    if value is None:
        raise ValueError(f"damaged: {path} has no attribute {name}")
    if isinstance(value, str):
        return value.strip("\0 ")
    characters = np.asarray(value).astype("S").tobytes()
    return characters.decode("utf-8", "replace").strip("\0 ")


def _size(h5py: Any, opened: Any, path: str) -> tuple[int, ...]:
    """Return the number of points of a volume along Z, Y and X, without padding."""
    sizes = []
    for axis in AXES:
        text = _text(h5py, opened, path, f"ImageSize{axis}")
        if not text.isdecimal() or int(text) == 0:
            raise ValueError(f"damaged: ImageSize{axis} of {path} must be a number, got {text!r}")
        sizes.append(int(text))
    return tuple(sizes)


def _extent(
    h5py: Any, opened: Any, shape: tuple[int, ...]
) -> tuple[dict[str, float], dict[str, float], str]:
    """Return the lower border of the first point, the distances between points, and the unit."""
    low = {}
    steps = {}
    for number, axis in enumerate("XYZ"):
        ends = []
        for name in (f"ExtMin{number}", f"ExtMax{number}"):
            text = _text(h5py, opened, IMAGE, name)
            try:
                ends.append(float(text))
            except ValueError:
                raise ValueError(
                    f"damaged: {name} of {IMAGE} must be a number, got {text!r}"
                ) from None
        low[axis] = ends[0]
        steps[axis] = (ends[1] - ends[0]) / shape[AXES.index(axis)]
    try:
        unit = _text(h5py, opened, IMAGE, "Unit")
    except ValueError:
        unit = ""
    return low, steps, unit


def _channel_name(h5py: Any, opened: Any, number: int) -> str:
    try:
        return _text(h5py, opened, f"DataSetInfo/{CHANNEL}{number}", "Name")
    except ValueError:
        return ""


READ = frozenset({"axes", "spacing", "place", "channels"})
FORMATS = (
    Format(
        name="Imaris",
        suffixes=SUFFIXES,
        open=open_imaris,
        fields=READ,
        reference="imaris-ims-file-reader",
        extra="dask",
    ),
)
