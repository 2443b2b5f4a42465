"""Zarr, OME-Zarr and its plates, in folders, in ZIP archives and at addresses."""

import json
import os
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ecc_core._io.description import Description, named_axes
from ecc_core._io.files import METADATA, Address, Archive, Files, is_address
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.readers.conventions import CONVENTIONS, decoded
from ecc_core._io.readers.multiscales import multiscale_description
from ecc_core._optional import import_optional

EXTRA = {"extra": "dask", "purpose": "reading Zarr images"}
PLACES = ("plate", "well", "row", "column", "field")
Metadata = dict[str, Any]


def is_zarr(files: Files) -> bool:
    """Whether there is a Zarr array or group."""
    stamps = (files.stamp(files.file(name)) for name in METADATA)
    return any(stamp is not None for stamp in stamps)


class Plate(NamedTuple):
    """An OME-Zarr plate."""

    name: str
    images: dict[str, dict[str, str]]
    """The paths of the fields of all wells, and their `PLACES`."""
    missing: list[str]
    """Wells that the plate names but that do not exist."""


def plate_at(path: str) -> Plate | None:
    """Return the plate at a path, None if there is none.

    Raises ValueError or KeyError if the description of the plate or of a well is damaged.
    """
    if not is_address(path) and not os.path.isdir(path):  # noqa: PTH112
        return None
    files = Address(path) if is_address(path) else Files(Path(path))
    if not is_zarr(files):
        return None
    plate = _attributes(_metadata(files, "")).get("plate")
    if plate is None:
        return None
    name = str(plate.get("name") or Path(path).name.partition(".")[0])
    images = {}
    missing = []
    for described in plate["wells"]:
        inside = str(described["path"])
        row, _, column = inside.partition("/")
        found = _metadata(files, _join("", inside))
        if not found:
            missing.append(inside)
            continue
        for field in _attributes(found)["well"]["images"]:
            number = str(field["path"])
            place = "/".join((path.rstrip("/"), inside, number))
            values = name, row + column, row, column, number
            images[place] = dict(zip(PLACES, values, strict=True))
    return Plate(name, images, missing)


def open_zarr(files: Files, request: Request, inside: str = "") -> Opened:
    """Open an array, or an image of an OME-Zarr group or of a group of such images."""
    metadata = _metadata(files, inside)
    if _is_array(metadata):
        return _open_array(files, inside, is_plain=True)
    attributes = _attributes(metadata)
    if "plate" in attributes:
        raise ValueError("is a plate of several images: name one, such as A/1/0, or use ecc batch")
    held = _images_of(files, inside, attributes)
    if held:
        number = request.pick_series(held)
        opened = open_zarr(files, request._replace(series=None), _join(inside, held[number]))
        return replace(opened, series=len(held))
    images = attributes.get("multiscales")
    if not images:
        zarr = import_optional("zarr", **EXTRA)
        group = zarr.open_group(**files.zarr_place(inside), mode="r")
        arrays = ", ".join(sorted(group.array_keys())) or "none"
        raise ValueError(f"is no OME-Zarr image; arrays in this group: {arrays}")
    names = [str(image.get("name", "")) for image in images]
    number = request.pick_series(names)
    opened = _open_image(files, request, inside, images[number])
    described = attributes.get("omero", {}).get("channels", ())
    channels = [str(channel.get("label", "")) for channel in described]
    described = replace(opened.description, channels=tuple(channels))
    return replace(opened, series=len(images), description=described)


def _open_image(files: Files, request: Request, inside: str, image: Metadata) -> Opened:
    """Open one resolution of an image."""
    level = image["datasets"][request.pick_level(len(image["datasets"]))]
    path = PurePosixPath(str(level["path"]))
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"the path of level {request.level} leaves the image: {path}")
    opened = replace(_open_array(files, _join(inside, str(path))), levels=len(image["datasets"]))
    description = multiscale_description(image, level)
    if not description.axes:
        return opened
    letters = description.letters
    if len(letters) != len(opened.array.shape):
        raise ValueError(f"its axes {letters} do not fit its shape {opened.array.shape}")
    of_array = opened.description
    description = replace(description, encoding=of_array.encoding, missing=of_array.missing)
    return replace(opened, description=description)


def _open_array(files: Files, inside: str, *, is_plain: bool = False) -> Opened:
    """Open an array. If it `is_plain`, it belongs to no image of OME-Zarr."""
    metadata = _metadata(files, inside)
    if not _is_array(metadata):
        raise ValueError(f"has no array {inside}")
    _refuse_objects(metadata)
    zarr = import_optional("zarr", **EXTRA)
    version = 3 if "zarr.json" in metadata else 2
    array = zarr.open_array(**files.zarr_place(inside), mode="r", zarr_format=version)
    encode = array.metadata.encode_chunk_key
    # Zarr 3 has names of dimensions. In Zarr 2, xarray writes them as an attribute.
    names = getattr(array.metadata, "dimension_names", array.attrs.get("_ARRAY_DIMENSIONS"))

    def file_of(chunk: tuple[int, ...]) -> str:
        return files.file(inside, str(encode(chunk)))

    attributes = {name: array.attrs[name] for name in CONVENTIONS if name in array.attrs}
    notes = []
    if is_plain and version == 2 and "_ARRAY_DIMENSIONS" in array.attrs:
        notes = _with_fill(attributes, array.metadata.fill_value)
    values, encoding, missing = decoded(array, attributes)
    return Opened(
        values,
        Description.of(
            named_axes(names or [None] * array.ndim),
            names=names or (),
            encoding=encoding,
            missing=missing,
            notes=notes,
        ),
        tuple(getattr(array, "shards", None) or array.chunks),
        tuple(array.chunks),
        described=files.described(inside),
        file_of=file_of if files.chunk_files else None,
        stamp=files.stamp,
    )


def _with_fill(attributes: Metadata, fill: Any) -> list[str]:
    """Declare the fill value of Zarr 2 as missing, as xarray does; return notes.

    A fill value of 0 is not taken: other programs write it by default, for points that were never
    written.
    """
    if fill is None or "_FillValue" in attributes:
        return []
    if fill == 0 and not {"scale_factor", "add_offset"} & attributes.keys():
        return ["its fill value 0 is not taken for missing values, as xarray does"]
    attributes["_FillValue"] = fill
    return []


def _metadata(files: Files, inside: str) -> Metadata:
    """Return the metadata files of an array or group by name, only that of Zarr 3 if it exists."""
    found: Metadata = {}
    for name in METADATA:
        content = files.read(files.file(inside, name))
        if content is not None:
            found[name] = json.loads(content)
            if not isinstance(found[name], dict):
                raise ValueError(f"damaged: {name} is no JSON object")
            if name == "zarr.json":
                break
    return found


def _is_array(metadata: Metadata) -> bool:
    return ".zarray" in metadata or metadata.get("zarr.json", {}).get("node_type") == "array"


def _attributes(metadata: Metadata) -> Metadata:
    if "zarr.json" in metadata:
        attributes = metadata["zarr.json"].get("attributes", {})
    else:
        attributes = metadata.get(".zattrs", {})
    found: Metadata = attributes.get("ome", attributes)
    return found


def _images_of(files: Files, inside: str, attributes: Metadata) -> list[str]:
    """Return the paths of the images in a well or in the output of bioformats2raw."""
    if "well" in attributes:
        return [str(image["path"]) for image in attributes["well"]["images"]]
    if "bioformats2raw.layout" not in attributes:
        return []
    listed = _attributes(_metadata(files, _join(inside, "OME"))).get("series")
    if listed:
        return [str(path) for path in listed]
    held: list[str] = []
    while _metadata(files, _join(inside, str(len(held)))):
        held.append(str(len(held)))
    return held


def _refuse_objects(value: Any) -> None:
    """Raise an error if metadata name a codec, at any depth, that some versions unpickle."""
    if isinstance(value, dict):
        codec = str(value.get("id", "")) + str(value.get("name", ""))
        if "pickle" in codec or "O" in str(value.get("dtype", "")):
            raise ValueError("holds pickled Python objects, which are never loaded")
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        _refuse_objects(part)


def _join(inside: str, more: str) -> str:
    path = PurePosixPath(more)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"a path in its description leaves the image: {more}")
    return "/".join(filter(None, (inside, *path.parts)))


def _open_archive(path: Path, request: Request, inside: str) -> Opened:
    return open_zarr(Archive(path), request, inside)


READ = frozenset({"axes", "spacing", "time", "place", "encoding", "missing", "channels"})
ZARR = Format(
    name="Zarr, OME-Zarr",
    suffixes=(".zarr",),
    open=open_zarr,
    fields=READ,
    reference="zarr, xarray",
    extra="dask",
)
ARCHIVE = Format(
    name="Zarr, OME-Zarr in ZIP",
    suffixes=(".zip",),
    open=_open_archive,
    fields=READ,
    reference="zarr",
    extra="dask",
    is_container=True,
)
FORMATS = (ZARR, ARCHIVE)
