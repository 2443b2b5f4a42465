"""``ecc batch``: one row for each of many images; those that fail are named at the end."""

import argparse
import glob
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli import options
from ecc_core._cli.blockwise import Stack, open_stack, thresholds_of
from ecc_core._cli.lengths import Lengths
from ecc_core._cli.progress import progress_bar
from ecc_core._cli.stack import settings_of
from ecc_core._cli.stack_options import add_stack_arguments
from ecc_core._cli.summing import curves_of
from ecc_core._cli.version import version
from ecc_core._io.files import is_address, matching_addresses
from ecc_core._io.open import CONTAINER_SUFFIXES
from ecc_core._io.parts import Parts, fingerprint
from ecc_core._io.plates import PlateImage, images_of_plate
from ecc_core._io.readers.folders import natural_key
from ecc_core._request.estimator import MEASURES
from ecc_core.errors import InputFileError
from ecc_core.io import write_table

__all__ = ["add_parser"]

Array = NDArray[Any]
Row = dict[str, Any]

PLACES = PlateImage._fields[1:]
PARTS = fingerprint({"rows": "of an image"})
WORTH_KEEPING = 0.1  # seconds that an image takes


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "batch",
        help="compute the curves of many images",
        description="Compute the curves of many images. The table has a row for each image, or for "
        "axes that are not Z, Y or X, and each label), with a column for every threshold and, with "
        "--betti or --minkowski, columns such as 'b0 12.5' or 'area 12.5'. Images that fail are "
        "listed at the end and the exit code is then 1; the table has all others.",
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="PATTERN",
        help="images as for ecc stack, patterns such as 'images/*.ome.zarr', or OME-Zarr plates, "
        "whose fields have columns plate, well, row, column and field",
    )
    options.add_table_argument(parser, required=True)
    parser.add_argument(
        "--resume", action="store_true", help="reuse the results of an interrupted or failed run"
    )
    add_stack_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compute the curves and write them. Return 1 if images failed."""
    if isinstance(arguments.thresholds, int) and arguments.range is None:
        raise InputFileError("--range must be given, so that all images have the same thresholds")
    if np.ndim(arguments.thresholds) and np.unique(arguments.thresholds).size < len(
        arguments.thresholds
    ):
        raise InputFileError("--thresholds must differ, because each has a column of its own")
    images, failures = _expand(arguments.inputs)
    options.settle_estimator(arguments)
    rows: list[Row] = []
    at: Array | None = None
    lengths = Lengths(arguments)
    parts = Parts(arguments.out.with_name(arguments.out.name + ".parts"), PARTS)
    with parts.locked(), progress_bar(steps=len(images)) as start:
        if not arguments.resume:
            parts.clear()
        for path, place in images.items():
            start(f"curve of {Path(path).name}")
            try:
                at, found = _rows_of(path, lengths, arguments, parts)
            except Exception as error:  # whatever one image does, the others get their rows
                failures.append(_failure(path, error))
            else:
                rows += [{"input": path, **place, **row} for row in found]
        if at is not None:
            _write(arguments, at, rows, failures, lengths)
        if not failures:
            parts.clear()
    for failure in failures:
        sys.stderr.write(f"ecc: failed: {failure}\n")
    return 1 if failures else 0


def _failure(path: str, error: Exception) -> str:
    reason = options.one_line(error)
    return reason if path in reason else f"{path}: {reason}"


def _expand(patterns: Sequence[str]) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return distinct paths in the order of the patterns, positions on plates, and failures."""
    paths: dict[str, dict[str, str]] = {}
    failures: list[str] = []
    for pattern in patterns:
        if is_address(pattern):
            found = matching_addresses(pattern)
        else:
            found = [pattern] if Path(pattern).exists() else _matches(pattern)
        if not found:
            raise InputFileError(f"{pattern}: no such file or folder")
        for path in found:
            try:
                images = images_of_plate(path)
            except Exception as error:  # the other paths are computed nevertheless
                failures.append(_failure(path, error))
                continue
            if not images:
                paths[path] = {}
            for image in images:
                place = image._asdict()
                paths[place.pop("path")] = place
    return paths, failures


def _matches(pattern: str) -> list[str]:
    """Return the paths that match a pattern, which may continue inside files of several arrays."""
    for suffix in CONTAINER_SUFFIXES:
        files, inside, name = pattern.partition(f"{suffix}/")
        if inside:
            return [f"{file}/{name}" for file in _sorted(files + suffix)]
    return _sorted(pattern)


def _sorted(pattern: str) -> list[str]:
    return sorted(glob.glob(pattern), key=natural_key)  # noqa: PTH207


def _rows_of(
    path: str, lengths: Lengths, arguments: argparse.Namespace, parts: Parts
) -> tuple[Array, list[Row]]:
    """Return the thresholds, and a row for each index of the batch axes."""
    stack = open_stack(path, lengths, arguments)
    at = thresholds_of(stack, arguments)
    lead, labelled = len(stack.batch), stack.blocks.labels is not None
    names = [""]  # of the Euler characteristic
    if arguments.betti:
        names += [f"b{k}" for k in range(stack.ndim)]
    elif arguments.minkowski:
        names += MEASURES[stack.ndim][:-1]
    width = lead + labelled + len(names) * at.size
    stamp = _stamp(stack, arguments, at)
    table = parts.load(0, stamp, lambda kept: kept.ndim == 2 and kept.shape[1] == width)
    if table is None:
        started = time.monotonic()
        with options.blame(path):
            curves = curves_of(stack, at, arguments)
        labels = [] if curves.labels is None else [curves.labels.astype(np.int64)[:, None]]
        # parts are integers: floats are kept as their bits
        others = [values.view(np.int64) for values in curves.others.values()]
        table = np.hstack([curves.places, *labels, curves.values, *others])
        if time.monotonic() - started > WORTH_KEEPING:
            parts.keep(0, stamp, table)
    if stack.calibration:
        lengths.keep(path, stack.calibration)
    numbers = dict(
        zip(names, np.split(table[:, lead + labelled :], len(names), axis=1), strict=True)
    )
    if arguments.minkowski:
        numbers |= {name: numbers[name].view(np.float64) for name in names[1:]}
    rows: list[Row] = [
        {
            **dict(zip(stack.batch_axes, row, strict=False)),
            "numbers": {name: found[i] for name, found in numbers.items()},
        }
        for i, row in enumerate(table.tolist())
    ]
    if stack.blocks.labels is not None:
        kept = table[:, lead].astype(stack.blocks.labels.source.dtype)  # as uint64, if it was
        for named, label in zip(rows, kept.tolist(), strict=True):
            named["label"] = int(label)
    return at, rows


def _stamp(stack: Stack, arguments: argparse.Namespace, at: Array) -> str:
    """Return a hash of everything that determines the rows of an image."""
    blocks = stack.blocks
    views = [view for view in (blocks.image, blocks.labels) if view is not None]
    return fingerprint(
        {
            "views": [[view.source.description(), *view[1:]] for view in views],
            "files": blocks.stamps(tuple(slice(0, n) for n in blocks.image.shape)),
            "settings": settings_of(arguments, at),
            "direction": blocks.direction,
            "version": version(),
        }
    )


def _write(
    arguments: argparse.Namespace,
    at: Array,
    rows: list[Row],
    failures: list[str],
    lengths: Lengths,
) -> None:
    known = ("input", *PLACES, "label", "numbers")
    columns: dict[str, Array] = {"input": np.array([row["input"] for row in rows], dtype=str)}
    for name in PLACES:  # empty where an image is not on a plate
        if any(name in row for row in rows):
            columns[name] = np.array([row.get(name, "") for row in rows], dtype=str)
    for name in sorted({name for row in rows for name in row} - {*known}):
        # -1 where an image has no such axis
        columns[name] = np.array([row.get(name, -1) for row in rows], dtype=np.int64)
    if arguments.labels:
        labels = [row["label"] for row in rows]
        columns["label"] = np.array(labels, None if labels else np.int64)
    if arguments.minkowski or arguments.direction is not None:
        columns["unit"] = np.full(len(rows), lengths.unit)
    if arguments.minkowski:
        columns["estimator"] = np.full(len(rows), arguments.minkowski)
    for name in dict.fromkeys(["", *(name for row in rows for name in row["numbers"])]):
        dtype, missing = (np.float64, np.nan) if name and arguments.minkowski else (np.int64, 0)
        values = np.full((len(rows), at.size), missing, dtype)  # for images with fewer axes
        for own, row in zip(values, rows, strict=True):
            own[:] = row["numbers"].get(name, missing)
        headers = [f"{name} {threshold}".lstrip() for threshold in at.tolist()]
        columns |= dict(zip(headers, values.T, strict=True))
    metadata = {
        "software": f"napari-ecc {version()}",
        "settings": settings_of(arguments, at),
        "failed": failures,
    }
    write_table(arguments.out, columns, metadata=metadata)
