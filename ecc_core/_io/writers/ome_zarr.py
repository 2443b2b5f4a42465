"""OME-Zarr 0.5, and labels inside images of OME-Zarr 0.5 and 0.4."""

import json
import math
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.units import UNITS
from ecc_core._io.writers.grid import Grid, Source
from ecc_core._io.zarr_tasks import finish_zarr_tasks
from ecc_core._optional import import_optional
from ecc_core._partition import Partition, whole_box

EXTRA = {"extra": "dask", "purpose": "writing Zarr images"}
SIDES = {2: 512, 3: 64}
"""Points along each side of a chunk, by the number of axes."""
CHUNKS_A_SHARD = 4
"""The most chunks of a shard along each axis."""
MARK = "napari-ecc"
"""An attribute of groups that were written here, and may therefore be replaced."""
LEVEL = "0"
Json = dict[str, Any]


def image_around(path: Path) -> Path | None:
    """Return the image in whose folder ``labels`` a path lies, or None."""
    if path.parent.name != "labels":
        return None
    image = path.parent.parent
    is_group = any((image / name).is_file() for name in ("zarr.json", ".zgroup"))
    return image if is_group else None


def check_folder(path: Path) -> None:
    """Raise an error if an image cannot be written to a folder, or would replace another one."""
    import_optional("zarr", **EXTRA)
    if not path.exists() or MARK in _attributes(path):
        return
    raise FileExistsError(f"{path}: exists and was not written by this program")


def write_ome_zarr(path: Path, values: Source, grid: Grid, *, labels: bool) -> None:
    """Write an image or labels with one resolution, completely or not at all.

    Shards are written whole, each by one task: two tasks that write parts of one shard lose data.
    """
    zarr = import_optional("zarr", **EXTRA)
    around = image_around(path)
    sharded = around is None or (around / "zarr.json").is_file()
    is_line = len(values.shape) == 1  # Images of OME-Zarr have two or three axes.
    shape = (1, *values.shape) if is_line else tuple(values.shape)
    axes = "YX" if is_line else grid.axes
    with _whole_folder(path) as folder:
        group = zarr.create_group(folder, zarr_format=3 if sharded else 2)
        side = SIDES[len(shape)]
        chunks = tuple(np.clip(shape, 1, side).tolist())
        shards = tuple(map(_shard, chunks, shape))
        options: Json = {"shards": shards, "dimension_names": [*axes.lower()]} if sharded else {}
        array = group.create_array(
            LEVEL,
            shape=shape,
            dtype=values.dtype,
            chunks=chunks,
            compressors=_compressor(sharded),
            fill_value=0,
            **options,
        )
        _store(values, array, shards)
        version = "0.5" if sharded else "0.4"
        image: Json = {
            "name": path.name.removesuffix(".zarr").removesuffix(".ome"),
            "axes": [_axis(axis, grid) for axis in axes],
            "datasets": [
                {"path": LEVEL, "coordinateTransformations": _transformations(axes, grid)}
            ],
        }
        about: Json = {"multiscales": [image]}
        if labels:
            about["image-label"] = {} if around is None else {"source": {"image": "../../"}}
        if sharded:
            about = {"ome": {"version": version, **about}}
        else:
            image["version"] = version
        group.attrs.update({**about, MARK: {"labels": labels}})
    if around is not None:
        _list_labels(around, path.name, 3 if sharded else 2)


def _compressor(sharded: bool) -> Any:
    """Return Zstandard with zarr's level and with a checksum of each chunk, which readers verify.

    Without a checksum, more than half of the bits of a chunk can flip without an error.
    """
    module = "zarr.codecs" if sharded else "numcodecs"
    codecs: Any = import_optional(module, **EXTRA)
    return (codecs.ZstdCodec if sharded else codecs.Zstd)(level=0, checksum=True)


def _shard(chunk: int, length: int) -> int:
    """Return the side of a shard: that of a few chunks, and no more than the array needs."""
    return chunk * min(CHUNKS_A_SHARD, math.ceil(length / chunk) or 1)


def _store(values: Source, array: Any, shards: tuple[int, ...]) -> None:
    if getattr(values, "dask", None) is not None and len(values.shape) == len(shards):
        blocks = import_optional("dask.array", **EXTRA)
        blocks.store(values.rechunk(shards), array, lock=False)  # type: ignore[attr-defined]
        return
    if len(values.shape) < len(shards):
        array[:] = np.asarray(values[whole_box(values.shape)])[None]
        return
    for box in Partition.of_chunks(array.shape, shards).boxes():
        array[box] = np.asarray(values[box])


def _axis(axis: str, grid: Grid) -> Json:
    unit = {"unit": grid.unit} if axis in grid.spacing and grid.unit in UNITS else {}
    return {"name": axis.lower(), "type": "space", **unit}


def _transformations(axes: str, grid: Grid) -> list[Json]:
    """Return a scale, and a translation unless axes are rotated, which it cannot express."""
    steps = grid.steps()
    origin = grid.along_axes()
    found: list[Json] = [{"type": "scale", "scale": [steps.get(axis, 1.0) for axis in axes]}]
    if grid.is_placed and origin is not None:
        places = [origin.get(axis, 0.0) for axis in axes]
        found.append({"type": "translation", "translation": places})
    return found


def _list_labels(image: Path, name: str, zarr_format: int) -> None:
    """Add a name to the labels that an image lists."""
    zarr = import_optional("zarr", **EXTRA)
    group = zarr.open_group(image / "labels", mode="a", zarr_format=zarr_format)
    held = dict(group.attrs)
    about = held if zarr_format == 2 else held.setdefault("ome", {"version": "0.5"})
    names = about.setdefault("labels", [])
    if name not in names:
        names.append(name)
        group.attrs.update(held)


def _attributes(path: Path) -> Json:
    """Return the attributes of a group in a folder, or none."""
    for name in ("zarr.json", ".zattrs"):
        if (path / name).is_file():
            found = json.loads((path / name).read_bytes())
            return dict(found.get("attributes", {}) if name == "zarr.json" else found)
    return {}


@contextmanager
def _whole_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder, which replaces the folder at `path` when it is complete."""
    token = secrets.token_hex(4)
    path.parent.mkdir(exist_ok=True)  # The folder "labels" of an image may not exist.
    temporary, old = (path.with_name(f".{path.name}.{token}.{end}") for end in ("tmp", "old"))
    try:
        yield temporary
        if path.exists():
            os.rename(path, old)  # noqa: PTH104
        temporary.rename(path)
    except BaseException:
        finish_zarr_tasks()  # They may still write to the folder.
        shutil.rmtree(temporary, ignore_errors=True)
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)
