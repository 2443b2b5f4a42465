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

__all__ = ["Parts", "fingerprint"]

Values = NDArray[np.int64]


def fingerprint(facts: Mapping[str, Any]) -> str:
    """A name for facts, another one if any of them is another."""
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Parts:
    """A folder of arrays, each of them whole or absent.

    Parameters
    ----------
    folder : pathlib.Path
        Made when the first part is kept. Nothing else belongs in it.
    job : str
        Fingerprint of what is computed; parts of other jobs are none of this one's.
    """

    def __init__(self, folder: Path, job: str) -> None:
        self.folder, self.job = folder, job

    def _path(self, number: int, stamp: str) -> Path:
        return self.folder / f"{self.job}-{number}-{stamp}.npy"

    def numbers(self) -> set[int]:
        """Numbers of the parts of this job, whatever their stamps."""
        return {int(path.name.split("-")[1]) for path in self.folder.glob(f"{self.job}-*-*.npy")}

    def load(self, number: int, stamp: str, fits: Callable[[Values], bool]) -> Values | None:
        """A part that was computed from what `stamp` tells, or None if it is missing or damaged."""
        try:
            values = np.load(self._path(number, stamp), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        good = isinstance(values, np.ndarray) and values.dtype == np.int64 and fits(values)
        return values if good else None

    def keep(self, number: int, stamp: str, values: Values) -> None:
        """Write a part, whole or not at all."""
        self.folder.mkdir(exist_ok=True)
        with atomic_file(self._path(number, stamp)) as file:
            np.save(file, values, allow_pickle=False)

    def clear(self) -> None:
        """Remove all parts, those of other jobs too, and what an interrupted write left."""
        if not self.folder.is_dir():
            return
        for pattern in ("*-*-*.npy", ".*-*.npy.*.tmp"):
            for path in self.folder.glob(pattern):
                path.unlink()
        with suppress(OSError):  # somebody else's files stay
            self.folder.rmdir()
