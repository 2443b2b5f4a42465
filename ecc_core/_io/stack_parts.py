"""Parts: what is added up of some of the blocks of an image, as files that can be merged.

A part is an NPZ file. Its array ``part`` is the JSON of the job, of the part, and of what each of
the other arrays is of: sums, or the pieces of boxes that are joined where they touch.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, is_zipfile

import numpy as np

from ecc_core._blocks.totals import Key, Total
from ecc_core._blocks.work import Span
from ecc_core._io.curve_columns import Curves
from ecc_core._io.stack_job import StackJob, Table
from ecc_core._io.stored import View
from ecc_core._io.write import atomic_file
from ecc_core.errors import InputFileError

FORMAT = "part of ecc stack 1"
DESCRIPTION = "part"
"""The array that describes the others."""
SAMPLED_CHUNKS = 8
MOST_NAMED = 8
NAMED_FILES = ("labels", "mask")
"""Settings that are paths, which may differ between machines but for the name of the file."""


@dataclass(frozen=True)
class Part:
    """A range of the blocks of an image: one of several of about the same length."""

    number: int
    """From 1 on."""
    count: int

    def of(self, blocks: int) -> Span:
        """Return the numbers of its blocks."""
        return (self.number - 1) * blocks // self.count, self.number * blocks // self.count

    @property
    def begin(self) -> Fraction:
        """Where it begins among all blocks."""
        return Fraction(self.number - 1, self.count)

    @property
    def end(self) -> Fraction:
        """Where the next one begins."""
        return Fraction(self.number, self.count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


WHOLE = Part(1, 1)


@dataclass(frozen=True)
class StackPart:
    """What a part of ``ecc stack`` is of.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    number, count : int
        Which part it is, from 1 on, and of how many.
    image : dict
        Path, axes, shape, dtype and spacing of the image, and the unit of the spacing.
    settings : dict
        The options of the command that the numbers depend on.
    software : str
        Name and version of what computed it.
    """

    path: Path
    number: int
    count: int
    _job: dict[str, Any]
    _keys: list[tuple[int, Key]]
    _digest: str
    """The checksum of all arrays."""
    _values: str
    """Fingerprint of some of the values of the image."""
    _side: int
    """Blocks of a column across."""

    @property
    def image(self) -> dict[str, Any]:
        """What is known of the image."""
        return dict(self._job["image"])

    @property
    def settings(self) -> dict[str, Any]:
        """The options of the command."""
        return dict(self._job["settings"])

    @property
    def software(self) -> str:
        """Name and version of what computed it."""
        return str(self._job["software"])

    @property
    def _part(self) -> Part:
        return Part(self.number, self.count)


class Cut(NamedTuple):
    """What parts must agree in, besides the job."""

    values: str
    """Fingerprint of some of the values of the image, its labels and its mask."""
    side: int
    """Blocks of a column across."""


def fingerprint_of_values(views: Iterable[View]) -> str:
    """Return what tells images apart that are described alike, from a few of their chunks."""
    digest = hashlib.blake2b(digest_size=16)
    for view in views:
        sizes = view.source.parts
        count = math.prod(len(lengths) for lengths in view.chunks(sizes))
        spread = np.linspace(0, count - 1, min(SAMPLED_CHUNKS, count))
        numbers = np.unique(spread.astype(int))
        for box in view.boxes(sizes, numbers.tolist()):
            values = view.read(box)
            digest.update(values.astype(values.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def write_part(path: Path, part: Part, job: StackJob, cut: Cut, totals: Sequence[Total]) -> None:
    """Write the totals of a part of a job, completely or not at all."""
    digest = hashlib.blake2b(digest_size=16)
    keys: list[Any] = []
    arrays: dict[str, Any] = {}
    for number, total in enumerate(totals):
        for key, values in total.arrays():
            digest.update(json.dumps([number, key]).encode())
            digest.update(np.ascontiguousarray(values).tobytes())
            arrays[str(len(keys))] = values
            keys.append([number, *key])
    facts = {
        "format": FORMAT,
        "part": [part.number, part.count],
        "job": job.to_json(),
        "cut": cut,
        "keys": keys,
        "digest": digest.hexdigest(),
    }
    arrays[DESCRIPTION] = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    with atomic_file(path) as file:
        np.savez(file, **arrays)


def read_part(path: str | os.PathLike[str]) -> StackPart:
    """Read what a part of ``ecc stack`` is of, without its numbers.

    Parameters
    ----------
    path : path-like
        A file that ``ecc stack --part`` wrote.

    Returns
    -------
    StackPart

    Raises
    ------
    ValueError
        If the file is no part, or is truncated or damaged.
    OSError
        If the file cannot be read.

    See Also
    --------
    merge_parts : the table of all parts.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from ecc_core.cli import main
    >>> from ecc_core.io import read_part
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     image, part = os.path.join(folder, "image.npy"), os.path.join(folder, "part.npz")
    ...     np.save(image, np.eye(3, dtype=np.uint8))
    ...     code = main(["stack", image, "--part", "1/1", "--out", part])
    ...     found = read_part(part)
    >>> found.number, found.count, found.image["shape"]
    (1, 1, [3, 3])
    """
    path = Path(path)

    def described(arrays: Any) -> StackPart:
        facts = json.loads(arrays[DESCRIPTION].tobytes())
        if facts["format"] != FORMAT:
            raise ValueError(f"has the format {facts['format']!r}, not {FORMAT!r}")
        number, count = facts["part"]
        keys = [(one, Key(tuple(images), _box(box))) for one, images, box in facts["keys"]]
        cut = Cut(*facts["cut"])
        return StackPart(path, number, count, facts["job"], keys, facts["digest"], *cut)

    found: StackPart = _read(path, described)
    return found


def _box(box: Any) -> Any:
    return None if box is None else tuple(map(tuple, box))


def _read(path: Path, take: Callable[[Any], Any]) -> Any:
    """Return what is taken of the arrays of a part."""
    try:
        with path.open("rb") as file:
            if not is_zipfile(file):
                raise ValueError("it is no ZIP archive, or not all of one")
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                return take(arrays)
    except (KeyError, ValueError, TypeError, EOFError, BadZipFile, zlib.error) as error:
        message = str(error.args[0] if error.args else error)
        reason = " ".join(message.split())
        raise InputFileError(
            f"{path}: is no part of ecc stack, or is truncated or damaged: {reason}"
        ) from error


def merge_parts(paths: Iterable[str | os.PathLike[str]]) -> Table:
    """Return the table of an image, from the parts of it that ``ecc stack`` computed.

    Parts are added up one after another, and their boxes are joined in a tree, so that little
    more is in memory than the result, or than the pieces of the largest cross-section.

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
        Likewise.

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
    """Return what parts are of, and the curves of all of them; say what is repeated."""
    parts = _checked([read_part(path) for path in paths], say)
    job = _job_of(parts[0])
    totals = job.totals()
    for part in parts:

        def add(arrays: Any, part: StackPart = part) -> None:
            for name, (number, key) in enumerate(part._keys):
                totals[number].add_array(key, arrays[str(name)])

        _read(part.path, add)
    return job, job.curves(totals)


def _job_of(part: StackPart) -> StackJob:
    try:
        return StackJob.from_json(part._job)
    except (KeyError, ValueError, TypeError) as error:
        raise InputFileError(f"{part.path}: is damaged or was changed by hand: {error}") from error


def _checked(parts: Sequence[StackPart], say: Callable[[str], object]) -> list[StackPart]:
    """Return parts in their order, each once; raise an error unless they make up the whole."""
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
    """Raise an error unless a part is the same as another one, which is then said."""
    told = f"{second.path}, part {second._part}, and {first.path}, part {first._part}"
    if (first._part.begin, first._part.end) != (second._part.begin, second._part.end):
        raise InputFileError(f"{told}, overlap: give parts of one division into parts")
    if first._digest != second._digest:
        raise InputFileError(f"{told}, differ: compute one of them again")
    say(f"{told}, are the same: it is counted once")


def _missing(parts: Sequence[StackPart]) -> list[str]:
    """Return the names of the parts between those that are there."""
    edges = [Fraction(0), *(end for part in parts for end in (part._part.begin, part._part.end))]
    gaps = [(a, b) for a, b in pairwise([*edges, Fraction(1)]) if a < b]
    gaps = [gap for gap in gaps if gap not in {(p._part.begin, p._part.end) for p in parts}]
    counts = {part.count for part in parts}
    if len(counts) > 1:
        return [f"the blocks from {a} to {b} of all" for a, b in gaps]
    (count,) = counts
    spans = [(int(a * count), int(b * count)) for a, b in gaps]
    return [str(Part(number + 1, count)) for a, b in spans for number in range(a, b)]


def _difference(part: StackPart, first: StackPart) -> str:
    """Return in which way two parts are not of the same computation; "" if they are."""
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
    facts = [{**of._job, "image": None, "settings": None} for of in (part, first)]
    return "" if facts[0] == facts[1] else "it was computed in another way"


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
