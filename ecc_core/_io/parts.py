"""Partial results on the disk, so that an interrupted computation goes on where it was."""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.write import atomic_file

__all__ = ["Parts", "fingerprint", "total_of_parts"]

Values = NDArray[np.int64]


def fingerprint(job: Mapping[str, Any]) -> str:
    """A name for a job, another one if anything about it is."""
    return hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()[:16]


class Parts:
    """A folder of arrays, each of them whole or absent.

    Parameters
    ----------
    folder : pathlib.Path
        Made when the first part is kept. Nothing else belongs in it.
    job : str
        The fingerprint; parts of other jobs are none of this one's.
    shape : tuple of int
        Shape of each part.
    """

    def __init__(self, folder: Path, job: str, shape: tuple[int, ...]) -> None:
        self.folder, self.job, self.shape = folder, job, shape

    def _path(self, number: int) -> Path:
        return self.folder / f"{self.job}-{number}.npy"

    def load(self, number: int) -> Values | None:
        """A part, or None if it is missing or damaged."""
        try:
            values = np.load(self._path(number), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        fits = isinstance(values, np.ndarray) and values.shape == self.shape
        return values if fits and values.dtype == np.int64 else None

    def keep(self, number: int, values: Values) -> None:
        """Write a part, whole or not at all."""
        self.folder.mkdir(exist_ok=True)
        with atomic_file(self._path(number)) as file:
            np.save(file, values, allow_pickle=False)

    def clear(self) -> None:
        """Remove all parts, those of other jobs too, and what an interrupted write left."""
        if not self.folder.is_dir():
            return
        for pattern in ("*-*.npy", ".*-*.npy.*.tmp"):
            for path in self.folder.glob(pattern):
                path.unlink()
        with suppress(OSError):  # somebody else's files stay
            self.folder.rmdir()


def total_of_parts(
    parts: Parts, count: int, compute: Callable[[list[int], Callable[[int, Values], None]], None]
) -> Values:
    """Sum of all parts; `compute` is asked for those that are missing."""
    total = np.zeros(parts.shape, np.int64)
    missing = []
    for number in range(count):
        values = parts.load(number)
        if values is None:
            missing.append(number)
        else:
            total += values

    def finished(number: int, values: Values) -> None:
        parts.keep(number, values)
        np.add(total, values, out=total)

    if missing:
        compute(missing, finished)
    return total
