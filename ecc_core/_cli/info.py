"""``ecc info``: the description of a file, and of the curve that would be computed."""

import json
import sys
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

import numpy as np

from ecc_core._cli import options
from ecc_core._cli.described import described, texts_of
from ecc_core._cli.errors import blame, one_line
from ecc_core._cli.inputs import open_input
from ecc_core._cli.paths import matching_paths
from ecc_core._cli.version import system
from ecc_core._io.readers.zarr_images import plate_at
from ecc_core._io.select import select, shown
from ecc_core._io.stored import View, grown_chunks

DESCRIPTION = (
    "Print the shape, axes, data type, spacing, range and number of NaN of images, and the curve "
    "that `ecc curve` computes by default."
)

BYTES_AT_ONCE = 1 << 26
"""Bytes that are read at once."""


def add_arguments(parser: ArgumentParser) -> None:
    options.add(parser, "inputs")
    options.add(parser, "--json", help="print the same as JSON, a list with an object for each")
    help = "print the versions and devices that a report of a fault needs, and exit"
    parser.add_argument("--system", action=_PrintSystem, nargs=0, help=help)
    options.add_selection(parser, masks=False)


class _PrintSystem(Action):
    """Print the system and exit, without any input, as ``--version`` does."""

    def __call__(self, parser: ArgumentParser, *_: Any) -> None:
        sys.stdout.write("\n".join(system()) + "\n")
        parser.exit()


def run(arguments: Namespace) -> None:
    """Print a few lines for each input."""
    described = []
    for path in matching_paths(arguments.inputs):
        facts = _plate(path) or _facts(path, arguments)
        described.append({"path": path} | facts)
        if not arguments.json:
            lines = [path, *(f"  {name:<7} {text}" for name, text in _lines(facts))]
            sys.stdout.write("\n".join(lines) + "\n")
    if arguments.json:
        text = json.dumps(described, allow_nan=False, default=_as_python)
        sys.stdout.write(text + "\n")


def _as_python(value: Any) -> Any:
    """Return a NumPy number as a Python number."""
    return value.item()


def _plate(path: str) -> dict[str, Any]:
    """Return the wells of a plate and the paths of their fields; {} if the path is no plate."""
    with blame(path):
        plate = plate_at(path)
    if plate is None:
        return {}
    wells: dict[str, list[str]] = {}
    for field, place in plate.images.items():
        wells.setdefault(place["well"], []).append(field)
    return {"plate": plate.name, "wells": wells, "missing_wells": plate.missing}


def _facts(path: str, arguments: Namespace) -> dict[str, Any]:
    """Return the description of an image, and statistics of its values."""
    image = open_input(path, arguments)
    facts: dict[str, Any] = {
        "shape": image.shape,
        "axes": image.axes,
        "dtype": str(image.dtype),
        "series": [arguments.series or 0, image.series],
        "level": [arguments.level, image.levels],
        "spacing": dict(image.spacing),
        "unit": image.unit,
        "channels": image.channels,
        **described(image),
        "notes": image.notes,
    }
    if image.dtype.kind not in "buif":
        return facts | {"curve": "none: values are not real numbers"}
    if not image.shape:
        return facts | {"curve": "none: needs 1 to 3 axes, got 0"}
    try:
        view = select(image, channel=arguments.channel, time=arguments.time, roi=arguments.roi)
    except ValueError as error:
        return facts | {"curve": f"none: {one_line(error)}"}
    for name in ("channel", "time"):
        if getattr(arguments, name) is not None:
            facts[name] = shown(getattr(arguments, name))
    with blame(path):
        low, high, nans, infinities = _statistics(view)
    if low is not None:
        facts["range"] = [low, high]
    counts = {"NaN": nans, "inf": infinities} if view.dtype.kind == "f" else {}
    if view.missing is not None:
        counts = {"left out": nans, "inf": infinities}
        nans = 0
    return facts | counts | {"curve": _default_curve(view, low, high, nans)}


def _lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each line to print for facts."""
    if "wells" in facts:
        yield "plate", facts["plate"]
        yield from (("well", f"{well}: {', '.join(of)}") for well, of in facts["wells"].items())
        yield from (("missing", f"well {well}") for well in facts["missing_wells"])
        return
    shape = " x ".join(map(str, facts["shape"])) or "none"
    steps = ", ".join(f"{axis} {step}" for axis, step in facts["spacing"].items())
    texts = {
        "shape": [f"{shape} ({facts['axes']})" if facts["axes"] else shape],
        "series": [f"{i} of {n}" for i, n in [facts["series"]] if n > 1],
        "level": [f"{i} of {n}" for i, n in [facts["level"]] if n > 1],
        "spacing": [f"{steps} {facts['unit'] or '(unknown unit)'}"] if steps else [],
        "channels": [", ".join(facts["channels"])] if facts["channels"] else [],
        "notes": facts["notes"],
        **texts_of(facts),
        "range": [f"{low} to {high}" for low, high in [facts.get("range", (None, None))]],
        "axes": [],
        "unit": [],
    }
    shown_names = {"channels": "names", "notes": "note", "axis_names": "named"}
    for name, fact in facts.items():
        for text in texts.get(name, [str(fact)]):
            yield shown_names.get(name, name), text


def _statistics(view: View) -> tuple[Any, Any, int, int]:
    """Return the finite minimum and maximum, or None, and the numbers of NaN and infinite values.

    If the file declares missing values, these are counted in place of NaN.
    """
    low = high = None
    nans = infinities = 0
    source = view.source
    sizes = grown_chunks(
        source.chunks,
        source.shape,
        grow=view.order,
        itemsize=view.dtype.itemsize,
        limit=BYTES_AT_ONCE,
    )
    for part in map(view.read, view.boxes(sizes)):
        if view.missing is not None:
            is_missing = view.missing.where(part)
            nans += int(is_missing.sum())
            part = part[~is_missing]
        if part.dtype.kind == "f":
            nans += int(np.isnan(part).sum())
            infinities += int(np.isinf(part).sum())
            part = part[np.isfinite(part)]
        if part.size:
            low = part.min() if low is None else min(low, part.min())
            high = part.max() if high is None else max(high, part.max())
    return low, high, nans, infinities


def _default_curve(view: View, low: Any, high: Any, nans: int) -> str:
    if low is None:
        return "none: no finite value"
    if nans:
        return "none: has NaN, choose --nan omit"
    batch = zip(view.axes[: -view.ndim], view.shape, strict=False)
    each = "".join(f", one for each of {n} along {letter}" for letter, n in batch)
    connected = {1: "2-connected", 2: "8-connected", 3: "26-connected"}[view.ndim]
    return f"256 thresholds from {low} to {high}, {connected}, sublevel sets{each}"
