"""Merge the parts of ``ecc stack``: check that they make up an image, and join their totals."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from ecc_core._io.curve_columns import Curves
from ecc_core._io.stack_job import StackJob, Table
from ecc_core._io.stack_parts import Part, StackPart, read_arrays, read_part
from ecc_core.errors import InputFileError

MOST_NAMED = 8
NAMED_FILES = ("labels", "mask")
"""Settings that are paths. Between machines they may differ in all but the name of the file."""


def merge_parts(paths: Iterable[str | os.PathLike[str]]) -> Table:
    """Return the table of an image, from the parts of it that ``ecc stack`` computed.

    Parts are added up one after another, and their boxes are joined in a tree. Memory holds little
    more than the result, or than the pieces of the largest cross-section.

    Parameters
    ----------
    paths : iterable of path-like
        The files that ``ecc stack --part`` wrote, in any order. A part that is given twice is
        counted once, with a warning.

    Returns
    -------
    columns : dict of str to numpy.ndarray
        As in the table of ``ecc stack`` of the whole image.
    metadata : dict
        As in that table.

    Raises
    ------
    ValueError
        If parts are missing, overlap, or differ in image, options or version, or if a file is
        truncated or damaged.
    OSError
        If a file cannot be read.

    See Also
    --------
    write_table : write the table to a file.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from ecc_core.cli import main
    >>> from ecc_core.io import merge_parts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     image = os.path.join(folder, "image.npy")
    ...     np.save(image, np.eye(3, dtype=np.uint8))
    ...     part = os.path.join(folder, "part.npz")
    ...     code = main(["stack", image, "--part", "1/1", "--thresholds", "0,1", "--out", part])
    ...     columns, metadata = merge_parts([part])
    >>> columns["euler_number"]
    array([0, 1])
    """
    job, curves = merged_curves(paths, partial(warnings.warn, stacklevel=4))
    return job.table(curves)


def merged_curves(
    paths: Iterable[str | os.PathLike[str]], say: Callable[[str], object]
) -> tuple[StackJob, Curves]:
    """Return the job of parts, and the curves of the whole image.

    `say` is called with a message for each part that is given twice.
    """
    parts = _checked([read_part(path) for path in paths], say)
    job = _job_of(parts[0])
    totals = job.totals()
    for part in parts:

        def add(arrays: Any, part: StackPart = part) -> None:
            for name, (number, key) in enumerate(part._keys):
                totals[number].add_array(key, arrays[str(name)])

        read_arrays(part.path, add)
    return job, job.curves(totals)


def _job_of(part: StackPart) -> StackJob:
    try:
        return StackJob.from_json(part._job)
    except (KeyError, ValueError, TypeError) as error:
        raise InputFileError(f"{part.path}: is damaged or was changed by hand: {error}") from error


def _checked(parts: Sequence[StackPart], say: Callable[[str], object]) -> list[StackPart]:
    """Return the parts in order, each once; raise an error unless they make up the image."""
    if not parts:
        raise InputFileError("there are no parts to merge")
    first = parts[0]
    for part in parts[1:]:
        reason = _difference(part, first)
        if reason:
            raise InputFileError(f"{part.path}: does not belong to {first.path}: {reason}")
    kept: list[StackPart] = []
    for part in sorted(parts, key=lambda part: (part._part.begin, part._part.end)):
        if kept and kept[-1]._part.end > part._part.begin:
            _check_repeated(kept[-1], part, say)
        else:
            kept.append(part)
    missing = _missing(kept)
    if missing:
        more = f", and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
        raise InputFileError(f"parts are missing: {', '.join(missing[:MOST_NAMED])}{more}")
    return kept


def _check_repeated(first: StackPart, second: StackPart, say: Callable[[str], object]) -> None:
    """Raise an error unless two parts that overlap are the same; then call `say` with a message."""
    both = f"{second.path}, part {second._part}, and {first.path}, part {first._part}"
    if (first._part.begin, first._part.end) != (second._part.begin, second._part.end):
        raise InputFileError(f"{both}, overlap: give parts of one division into parts")
    if first._digest != second._digest:
        raise InputFileError(f"{both}, differ: compute one of them again")
    say(f"{both}, are the same: it is counted once")


def _missing(parts: Sequence[StackPart]) -> list[str]:
    """Return the names of the parts that are missing."""
    ends = [Fraction(0), *(part._part.end for part in parts)]
    begins = [*(part._part.begin for part in parts), Fraction(1)]
    gaps = [(a, b) for a, b in zip(ends, begins, strict=True) if a < b]
    counts = {part.count for part in parts}
    if len(counts) > 1:
        return [f"the blocks from {a} to {b} of all" for a, b in gaps]
    (count,) = counts
    missing = []
    for a, b in gaps:
        numbers = range(int(a * count), int(b * count))
        missing += [str(Part(number + 1, count)) for number in numbers]
    return missing


def _difference(part: StackPart, first: StackPart) -> str:
    """Return in words how the computations of two parts differ, "" if they are the same."""
    if part.software != first.software:
        return f"it was computed by {part.software}, not by {first.software}"
    other = first.image
    for name, value in part.image.items():
        if name == "path":
            own_name = Path(value).name
            other_name = Path(other[name]).name
            if own_name != other_name:
                return f"another image, it is {own_name}, not {other_name}"
        elif value != other[name]:
            return f"another image, its {name} is {value}, not {other[name]}"
    if reason := _other_options(part.settings, first.settings):
        return reason
    if part._values != first._values:
        return "another image, some of its values differ"
    if part._job["thresholds"] != first._job["thresholds"]:
        return "its thresholds are others: give --range"
    if (part._job["chunks"], part._side) != (first._job["chunks"], first._side):
        return "it was cut into other blocks: give the same --max-memory"
    if _other_facts(part) != _other_facts(first):
        return "it was computed in another way"
    return ""


def _other_facts(part: StackPart) -> dict[str, Any]:
    """Return the facts of a job without those of the image and of the options."""
    return {**part._job, "image": None, "settings": None}


def _other_options(settings: dict[str, Any], others: dict[str, Any]) -> str:
    for name in {**settings, **others}:
        value = settings.get(name)
        other = others.get(name)
        if name in NAMED_FILES and value and other:
            value = Path(value).name
            other = Path(other).name
        if value != other:
            option = name.replace("_", "-")
            return f"it was computed {_given(option, value)}, not {_given(option, other)}"
    return ""


def _given(option: str, value: Any) -> str:
    if value is None or value is False:
        return f"without --{option}"
    return f"with --{option}" if value is True else f"with --{option} {json.dumps(value)}"
