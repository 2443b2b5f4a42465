"""Partial results on the disk, from which an interrupted computation can continue."""

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from ecc_core._io.lazy import Array
from ecc_core._io.write import is_removed, lock_file, whole_file

DIGEST_BYTES = 16
"""Bytes of the checksum at the end of a part."""
MOST_HEADER_BYTES = 1 << 12
"""The most bytes of a part before its values."""
NAME = re.compile(r"([0-9a-f]{16})-(\d+)-([0-9a-f]{16})\.npy")
UNFINISHED = re.compile(rf"\.{NAME.pattern}\.[0-9a-f]{{8}}\.tmp")


def fingerprint(facts: Mapping[str, Any]) -> str:
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Parts:
    """A folder of arrays, each written completely or not at all, with a checksum.

    `job` is a fingerprint of a computation; parts of other jobs are ignored. The folder is created
    when it is locked or when the first part is kept. Other files in it are not touched.
    """

    def __init__(self, folder: Path, job: str = "") -> None:
        self.folder = folder
        self.job = job

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the parts against other runs; afterwards, remove the folder if it is empty."""
        self.folder.mkdir(exist_ok=True)
        path = self.folder / "lock"
        try:
            while True:
                with path.open("ab") as file:
                    if not lock_file(file):
                        message = f"{self.folder}: in use by another run for the same output"
                        raise BlockingIOError(message)
                    if is_removed(file):  # The last owner removed it before it was locked here.
                        continue
                    try:
                        yield
                    finally:
                        with suppress(OSError):
                            path.unlink()
                    return
        finally:
            with suppress(OSError):  # The folder stays if it has parts or other files.
                self.folder.rmdir()

    def _path(self, number: int, stamp: str) -> Path:
        return self.folder / f"{self.job}-{number}-{stamp}.npy"

    def numbers(self) -> set[int]:
        """Return the numbers of the parts of this job, whatever their stamps."""
        found = (NAME.fullmatch(path.name) for path in self.folder.glob("*"))
        return {int(match[2]) for match in found if match and match[1] == self.job}

    def load(self, number: int, stamp: str) -> Array | None:
        """Return the part with this stamp, or None if it is missing or damaged."""
        try:
            content = _content(self._path(number, stamp))
            end = len(content) - DIGEST_BYTES
            if _digest(memoryview(content)[:end]) != content[end:]:
                return None
            return _array_of(content)
        except (OSError, ValueError, EOFError):
            return None

    def keep(self, number: int, stamp: str, values: Array) -> None:
        """Write a part, completely or not at all."""
        self.folder.mkdir(exist_ok=True)
        values = np.asarray(values, order="C")
        parts = _header(values), values.reshape(-1).view(np.uint8).data
        with whole_file(self._path(number, stamp)) as file:
            for part in parts:
                file.write(part)
            file.write(_digest(*parts))

    def clear(self) -> None:
        """Remove all parts, including those of other jobs and of interrupted writes."""
        for path in self.folder.glob("*"):
            if NAME.fullmatch(path.name) or UNFINISHED.fullmatch(path.name):
                with suppress(OSError):
                    path.unlink()


def _digest(*parts: bytes | memoryview) -> bytes:
    """Return a digest of a part by SHA-256, which is fast because processors support it."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.digest()[:DIGEST_BYTES]


def _content(path: Path) -> bytearray:
    """Return the bytes of a file in a writable buffer, which an array can use without a copy."""
    with path.open("rb") as file:
        content = bytearray(os.fstat(file.fileno()).st_size)
        if file.readinto(content) != len(content):
            raise EOFError(f"{path}: became shorter")
    return content


def _header(values: Array) -> bytes:
    """Return the header of an .npy file for an array in C order."""
    stream = BytesIO()
    npy.write_array_header_1_0(stream, npy.header_data_from_array_1_0(values))
    return stream.getvalue()


def _array_of(content: bytearray) -> Array:
    """Return the array in the bytes of an .npy file, in C order, without a copy.

    Earlier versions also kept arrays in Fortran order, which are refused.
    """
    stream = BytesIO(content[:MOST_HEADER_BYTES])
    if npy.read_magic(stream) != (1, 0):
        raise ValueError("not written by this version")
    shape, in_fortran_order, dtype = npy.read_array_header_1_0(stream)
    if in_fortran_order:
        raise ValueError("not written by this version")
    return np.frombuffer(content, dtype, math.prod(shape), stream.tell()).reshape(shape)
