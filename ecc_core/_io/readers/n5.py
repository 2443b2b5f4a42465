"""N5, a folder of blocks, through tensorstore."""

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.description import LETTERS, Description, unnamed_axes
from ecc_core._io.files import stamp_of_file
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.lazy import Array, Box, Lazy
from ecc_core._optional import import_optional

SUFFIX = ".n5"
ATTRIBUTES = "attributes.json"
REQUIRED = ("dimensions", "blockSize", "dataType")
TYPES = (*(f"{u}int{8 * n}" for u in ("", "u") for n in (1, 2, 4, 8)), "float32", "float64")
MOST_DEPTH = 4
MOST_NAMED = 20
MOST_ATTRIBUTES = 1 << 24
LEVEL = "s"
Attributes = dict[str, Any]


def is_n5(folder: Path) -> bool:
    """Whether a folder is a container of N5, or a dataset or group in one."""
    inside = any(place.suffix.lower() == SUFFIX for place in (folder, *folder.parents))
    return inside or (folder / ATTRIBUTES).is_file()


def open_n5(folder: Path, request: Request) -> Opened:
    """Open a dataset, or a group of the resolutions s0, s1 and so on."""
    attributes = _attributes(folder)
    levels = [folder]
    if not _is_dataset(attributes):
        levels = _levels(folder)
        if not levels:
            found = _datasets(folder)
            if len(found) != 1:
                inside = [str(path.relative_to(folder)) for path in found]
                names = ", ".join(inside) or "none"
                raise ValueError(
                    f"must hold one dataset or one be named, as in {folder.name}/NAME; "
                    f"datasets: {names}"
                )
            return open_n5(found[0], request)
    dataset = levels[request.pick_level(len(levels))]
    described = _attributes(dataset)
    shape, blocks, letters = _described(described)
    steps, units = _distances(attributes, described, letters, request.level)
    files = [str(place / ATTRIBUTES) for place in dict.fromkeys((folder, dataset))]
    description = Description.of("".join(letters[::-1]), steps=steps, units=units)

    def file_of(chunk: tuple[int, ...]) -> str:
        names = map(str, chunk[::-1])
        return os.path.join(dataset, *names)  # noqa: PTH118

    return Opened(
        _values(dataset, shape),
        description,
        blocks[::-1],
        levels=len(levels),
        described=files,
        file_of=file_of,
        stamp=stamp_of_file,
    )


def _values(dataset: Path, shape: tuple[int, ...]) -> Lazy:
    """Return the values. N5 stores axes in reverse order, X first."""
    tensorstore = import_optional("tensorstore", extra="n5", purpose="reading N5 files")
    place = {"driver": "file", "path": str(dataset)}
    stored = tensorstore.open({"driver": "n5", "kvstore": place}, read=True, open=True).result()
    if tuple(stored.shape) != shape:
        raise ValueError(f"damaged: it should have {shape} points, got {tuple(stored.shape)}")

    def read(box: Box) -> Array:
        part = tuple(slice(along.start, along.stop) for along in box[::-1])
        return np.asarray(stored[part].read().result()).T

    return Lazy(shape[::-1], np.dtype(stored.dtype.numpy_dtype), read)


def _attributes(folder: Path) -> Attributes:
    file = folder / ATTRIBUTES
    if not file.is_file():
        return {}
    if file.stat().st_size > MOST_ATTRIBUTES:
        raise ValueError(f"damaged: {file.name} has more than {MOST_ATTRIBUTES} bytes")
    try:
        found = json.loads(file.read_bytes())
    except ValueError as error:
        raise ValueError(f"damaged: {file.name}: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"damaged: {file.name} must hold an object, got {type(found).__name__}")
    return found


def _is_dataset(attributes: Attributes) -> bool:
    return all(name in attributes for name in REQUIRED)


def _levels(folder: Path) -> list[Path]:
    """Return the resolutions in a group, the finest first."""
    found: list[Path] = []
    while _is_dataset(_attributes(folder / f"{LEVEL}{len(found)}")):
        found.append(folder / f"{LEVEL}{len(found)}")
    return found


def _datasets(folder: Path, depth: int = 0) -> list[Path]:
    """Return the datasets and the groups of resolutions in a folder."""
    found: list[Path] = []
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        if len(found) > MOST_NAMED:
            break
        if _is_dataset(_attributes(inner)) or _levels(inner):
            found.append(inner)
        elif depth < MOST_DEPTH:
            found += _datasets(inner, depth + 1)
    return found


def _described(attributes: Attributes) -> tuple[tuple[int, ...], tuple[int, ...], list[str]]:
    """Return the shape, the blocks, and the letter of each axis, X the first one."""
    lists = []
    for name in ("dimensions", "blockSize"):
        numbers = attributes.get(name)
        if not isinstance(numbers, list) or not numbers or not all(map(_is_positive, numbers)):
            raise ValueError(f"damaged: {name} must be positive numbers, got {numbers}")
        lists.append(tuple(numbers))
    shape, blocks = lists
    if len(shape) != len(blocks):
        raise ValueError(f"damaged: it has dimensions {list(shape)}, blockSize {list(blocks)}")
    if attributes.get("dataType") not in TYPES:
        raise ValueError(f"values of dataType {attributes.get('dataType')} are not supported")
    names = attributes.get("axes")
    letters = list(unnamed_axes(len(shape))[::-1])
    if isinstance(names, list) and len(names) == len(shape):
        words = [str(name).strip() for name in names]
        told = [LETTERS.get(word.lower(), "?") for word in words]
        if len({*told} - {"?"}) == len(told):
            letters = told
    return shape, blocks, letters


def _is_positive(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0


def _distances(
    group: Attributes, dataset: Attributes, letters: list[str], level: int
) -> tuple[dict[str, float], Any]:
    """Return the spacing and its units by the attributes of a dataset, or else of its group.

    The spacing of a group is multiplied by the downsampling factors of the dataset's level.
    """
    for attributes, factor in ((dataset, 1.0), (group, None)):
        steps, units = _resolution(attributes, letters)
        if not steps:
            continue
        factors = dict.fromkeys(letters, factor or 1.0)
        given = dataset.get("downsamplingFactors", _scale_of(group, level))
        if (factor is None or "pixelResolution" in attributes) and given is not None:
            if not isinstance(given, list) or len(given) != len(letters):
                return {}, ""
            factors = dict(zip(letters, given, strict=True))
        return {a: step * factors[a] for a, step in steps.items()}, units
    return {}, ""


def _scale_of(group: Attributes, level: int) -> Any:
    scales = group.get("scales") or group.get("downsamplingFactors")
    if isinstance(scales, list) and level < len(scales):
        return scales[level]
    return None if level == 0 else [math.nan]  # The factors of a coarse level are not known.


def _resolution(attributes: Attributes, letters: list[str]) -> tuple[dict[str, float], Any]:
    """Return the spacing by axis and its units, by any of the names that tools write."""
    pixel = attributes.get("pixelResolution")
    units: Any = attributes.get("units", "")
    steps = attributes.get("resolution")
    if isinstance(pixel, dict):  # The form of Janelia's tools.
        steps = pixel.get("dimensions")
        units = pixel.get("unit", "")
    elif isinstance(pixel, list):
        steps = pixel
    if not isinstance(steps, list) or len(steps) != len(letters):
        return {}, ""
    if isinstance(units, list) and len(units) == len(letters):
        units = dict(zip(letters, map(str, units), strict=True))
    numbers = {
        axis: float(step)
        for axis, step in zip(letters, steps, strict=True)
        if isinstance(step, int | float)
    }
    return numbers, units if isinstance(units, dict | str) else ""


READ = frozenset({"axes", "spacing", "time"})
FORMATS = (
    Format(
        name="N5",
        suffixes=(SUFFIX,),
        open=open_n5,
        fields=READ,
        reference="tensorstore",
        extra="n5",
        is_slice=False,
    ),
)
