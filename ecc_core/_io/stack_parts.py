"""Parts of ``ecc stack``: files with the totals of some blocks of an image, which can be merged.

A part is an NPZ file. Its array ``part`` is JSON: the job, the number of the part, and the key of
each of the other arrays, which are sums or the pieces of boxes.
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
"""The name of the array that describes the others."""
MOST_SAMPLED_CHUNKS = 8
"""The most chunks of an image whose values are compared between parts."""


@dataclass(frozen=True)
class Part:
    """A range of the blocks of an image: one of `count` ranges of about the same length."""

    number: int
    """The number of the part; the first is 1."""
    count: int

    def of(self, blocks: int) -> Span:
        """Return the range of the numbers of its blocks."""
        return (self.number - 1) * blocks // self.count, self.number * blocks // self.count

    @property
    def begin(self) -> Fraction:
        """The fraction of all blocks that come before the part."""
        return Fraction(self.number - 1, self.count)

    @property
    def end(self) -> Fraction:
        """The fraction of all blocks up to the end of the part."""
        return Fraction(self.number, self.count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


WHOLE = Part(1, 1)


@dataclass(frozen=True)
class StackPart:
    """The description of a part of ``ecc stack``.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    number, count : int
        The number of the part, from 1 on, and the number of parts.
    image : dict
        Path, axes, shape, dtype and spacing of the image, and the unit of the spacing.
    settings : dict
        The options of the command that the numbers depend on.
    software : str
        Name and version of the program that computed it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from ecc_core.cli import main
    >>> from ecc_core.io import read_part
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/image.npy", np.zeros((4, 5), np.uint8))
    ...     arguments = ["--part", "1/1", "--out", f"{folder}/part.npz"]
    ...     _ = main(["stack", f"{folder}/image.npy", *arguments])
    ...     part = read_part(f"{folder}/part.npz")
    >>> part.path.name, part.image["shape"], part.settings["superlevel"]
    ('part.npz', [4, 5], False)
    """

    path: Path
    number: int
    count: int
    _job: dict[str, Any]
    _keys: list[tuple[int, Key]]
    _digest: str
    """The checksum of all arrays."""
    _values: str
    """A fingerprint of some of the values of the image."""
    _side: int
    """The width of a column, in blocks."""

    @property
    def image(self) -> dict[str, Any]:
        """The description of the image."""
        return dict(self._job["image"])

    @property
    def settings(self) -> dict[str, Any]:
        """The options of the command."""
        return dict(self._job["settings"])

    @property
    def software(self) -> str:
        """Name and version of the program that computed it."""
        return str(self._job["software"])

    @property
    def _part(self) -> Part:
        return Part(self.number, self.count)


class Cut(NamedTuple):
    """Facts, besides the job, in which all parts must agree."""

    values: str
    """A fingerprint of some of the values of the image, its labels and its mask."""
    side: int
    """The width of a column, in blocks."""


def fingerprint_of_values(views: Iterable[View]) -> str:
    """Return a fingerprint of images from the values of a few of their chunks."""
    digest = hashlib.blake2b(digest_size=16)
    for view in views:
        sizes = view.source.parts
        count = math.prod(len(lengths) for lengths in view.chunks(sizes))
        spread = np.linspace(0, count - 1, min(MOST_SAMPLED_CHUNKS, count))
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
    """Read the description of a part of ``ecc stack``, without its numbers.

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
    """Return what `take` returns for the arrays of a part; InputFileError if it is damaged."""
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
