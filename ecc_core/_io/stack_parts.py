"""Parts: what is added up of some of the blocks of an image, as files that can be merged.

A part is an NPZ file. Its array ``part`` is the JSON of the job, of the part, and of what each of
the other arrays is of: sums, or the pieces of boxes that are joined where they touch.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, is_zipfile

import numpy as np

from ecc_core._blocks.totals import Key, Total
from ecc_core._blocks.work import Span
from ecc_core._io.stack_job import StackJob
from ecc_core._io.stored import View
from ecc_core._io.write import atomic_file
from ecc_core.errors import InputFileError

FORMAT = "part of ecc stack 1"
DESCRIPTION = "part"
"""The array that describes the others."""
SAMPLED_CHUNKS = 8


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

    found: StackPart = read_arrays(path, described)
    return found


def _box(box: Any) -> Any:
    return None if box is None else tuple(map(tuple, box))


def read_arrays(path: Path, take: Callable[[Any], Any]) -> Any:
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
