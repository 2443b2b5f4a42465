"""Descriptions of images by the metadata of OME-Zarr, versions 0.3 to 0.6."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.description import Description, letter_of, unnamed_axes

KINDS = {"channel": "C", "time": "T"}
OTHER_SYSTEMS = "only its first coordinate system is read, and not those it is transformed to"

Metadata = Mapping[str, Any]


def multiscale_description(image: Metadata, level: Metadata) -> Description:
    """Return the description of one resolution level of an image.

    It has no axes if the metadata describe none.
    """
    systems = image.get("coordinateSystems", ())
    described = image.get("axes") or (systems[0]["axes"] if systems else ())
    axes = [{"name": axis} if isinstance(axis, str) else axis for axis in described]
    letters = _letters(axes)
    if len({*letters} - {"?"}) < len(letters.replace("?", "")):
        raise ValueError(f"two of its axes are {letters}")
    steps = [*level.get("coordinateTransformations", ())]
    notes = []
    if systems:  # Version 0.6, in which transformations of the image lead to other systems.
        if len(systems) > 1 or image.get("coordinateTransformations"):
            notes.append(OTHER_SYSTEMS)
    else:
        steps += image.get("coordinateTransformations", ())
    scale = np.ones(len(axes))
    origin = np.zeros(len(axes))
    is_scaled = False
    for step in _flat(steps):
        kind = step.get("type")
        if kind == "scale":
            factor = _vector(step["scale"], len(axes))
            scale = scale * factor
            origin = origin * factor
            is_scaled = True
        elif kind == "translation":
            origin = origin + _vector(step["translation"], len(axes))
        elif kind != "identity":
            notes.append(f"its coordinate transformation of type {kind} is not read")
            is_scaled = False
            break
    distances = dict(zip(letters, scale.tolist(), strict=True))
    units = [str(axis.get("unit") or "") for axis in axes]
    description = Description.of(
        letters,
        steps=distances if is_scaled else {},
        units=dict(zip(letters, units, strict=True)),
        names=[str(axis["name"]) for axis in axes],
        notes=notes,
    )
    if not is_scaled:
        return description
    return description.aligned(dict(zip(letters, origin.tolist(), strict=True)))


def _letters(axes: Sequence[Metadata]) -> str:
    """Return the letters of axes by their types, those of spatial axes by their names.

    If the name of a spatial axis is not known, all are taken to be in the order Z, Y, X.
    """
    names = [letter_of(str(axis["name"])) for axis in axes]
    kinds = [str(axis.get("type") or "") for axis in axes]
    spatial = [i for i, kind in enumerate(kinds) if kind == "space"]
    in_order = dict(zip(spatial, unnamed_axes(len(spatial)), strict=True))
    if all(names[i] in "ZYX" for i in spatial):
        in_order = {i: names[i] for i in spatial}
    letters = []
    for i, kind in enumerate(kinds):
        if i in in_order:
            letters.append(in_order[i])
        elif kind in KINDS or not kind:
            letters.append(KINDS.get(kind, names[i]))
        else:
            letters.append("?")
    return "".join(letters)


def _flat(steps: Sequence[Metadata]) -> Iterator[Metadata]:
    """Yield transformations one by one, also those of sequences."""
    for step in steps:
        if step.get("type") == "sequence":
            yield from _flat(step["transformations"])
        else:
            yield step


def _vector(values: Any, count: int) -> NDArray[np.float64]:
    vector = np.array(values, np.float64)
    if vector.shape != (count,):
        raise ValueError(f"damaged: a transformation has {vector.shape} numbers for {count} axes")
    return vector
