"""The description of an image, as ``ecc info`` prints it."""

from typing import Any

import numpy as np

from ecc_core._io.affines import Affine
from ecc_core._io.description import FIELDS, Description
from ecc_core.io import StoredImage

DIGITS = 6


def described(image: StoredImage) -> dict[str, Any]:
    """Return the description of an image as types that JSON supports."""
    description: Description = image.description
    encoding = description.encoding
    missing = description.missing
    times = [axis for axis in description.axes if axis.kind == "time" and axis.step is not None]
    names = [axis.name for axis in description.axes]
    facts: dict[str, Any] = {}
    if any(names):
        facts["axis_names"] = names
    for axis in times:
        facts["time_step"] = [axis.step, axis.unit]
    if description.place is not None:
        facts["place"] = _place(description.place)
    if encoding.words():
        facts["values"] = encoding.words()
    if missing is not None:
        facts["missing"] = missing.source
    return facts | {"unsaid": description.unsaid(), "unread": description.unread()}


def _place(place: Affine) -> dict[str, Any]:
    return {
        "space": place.space,
        "origin": place.origin.tolist(),
        "steps": {axis: np.asarray(step).tolist() for axis, step in place.steps.items()},
        "shear": place.shear(),
    }


def texts_of(facts: dict[str, Any]) -> dict[str, list[str]]:
    """Return the lines to print for the facts that `described` returns."""
    texts: dict[str, list[str]] = {}
    if "axis_names" in facts:
        texts["axis_names"] = [", ".join(name or "-" for name in facts["axis_names"])]
    if "time_step" in facts:
        step, unit = facts["time_step"]
        texts["time_step"] = [f"{step:g} {unit or '(unknown unit)'}"]
    if "place" in facts:
        texts["place"] = _place_lines(facts["place"])
    for name in ("unsaid", "unread"):
        fields = ", ".join(FIELDS[field] for field in facts[name])
        texts[name] = [fields] if fields else []
    return texts


def _place_lines(place: dict[str, Any]) -> list[str]:
    lines = [f"origin {_numbers(place['origin'])} ({place['space']})"]
    steps = place["steps"].items()
    lines += [f"{axis} step {_numbers(step)}" for axis, step in steps]
    return lines


def _numbers(values: list[float]) -> str:
    return ", ".join(f"{round(value, DIGITS) + 0.0:g}" for value in values)
