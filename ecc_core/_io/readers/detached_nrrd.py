"""NRRD headers whose values are in other files (.nhdr)."""

import bz2
import gzip
import math
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from ecc_core._io.lazy import Array
from ecc_core._io.limits import check_held, check_memory
from ecc_core._io.same_folder import file_in_same_folder

MOST_HEADER_BYTES = 1 << 24
MOST_FILES = 1 << 24
BYTES_AT_ONCE = 1 << 20
"""Bytes that are read or decompressed at once."""
DATA_FILE = re.compile(r"data ?file:\s*(.*)", re.IGNORECASE)
PATTERN = re.compile(r"(.*%0?\d*d.*?)\s+(-?\d+)\s+(-?\d+)\s+(-?\d+)(?:\s+\d+)?")
RAW = ("raw",)
GZIP = ("gzip", "gz")
BZIP2 = ("bzip2", "bz2")
Header = Any


def read_detached_header(nrrd: Any, path: Path) -> tuple[Header, list[str]] | None:
    """Return the header and the names of the files with the values.

    None if the values follow the header in the same file.
    """
    with path.open("rb") as stream:
        text = stream.read(MOST_HEADER_BYTES).partition(b"\n\n")[0].partition(b"\r\n\r\n")[0]
    lines = text.decode("utf-8", "replace").splitlines()
    for number, line in enumerate(lines):
        found = DATA_FILE.match(line)
        if not found:
            continue
        names = [found[1].strip()]
        rest = lines[number + 1 :]
        if names[0].split()[:1] == ["LIST"]:
            names = [name.strip() for name in rest if name.strip()]
            rest = []
        elif pattern := PATTERN.fullmatch(names[0]):
            name, *span = pattern.groups()[:4]
            names = list(_numbered(name, *map(int, span)))
        return nrrd.read_header([*lines[:number], *rest]), names
    return None


def _numbered(pattern: str, first: int, last: int, step: int) -> Iterator[str]:
    """Yield the names of the files that a pattern numbers."""
    if step == 0 or abs(last - first) // abs(step) > MOST_FILES:
        raise ValueError(f"damaged: its files are numbered {first} to {last} by {step}")
    before, form, after = re.split(r"(%0?\d*d)", pattern, maxsplit=1)
    for number in range(first, last + (1 if step > 0 else -1), step):
        yield f"{before}{form % number}{after}"


def nrrd_dtype(nrrd: Any, header: Header) -> np.dtype[Any]:
    """Return the dtype of the values. pynrrd, which knows all names of types, reads one value."""
    one = {**header, "encoding": "raw", "dimension": 1, "sizes": np.array([1])}
    for skip in ("byte skip", "byteskip", "line skip", "lineskip"):
        one.pop(skip, None)
    if header.get("encoding") not in (*RAW, *GZIP, *BZIP2):  # Values in text have no byte order.
        one.setdefault("endian", "little")
    found: np.dtype[Any] = nrrd.read_data(one, BytesIO(bytes(16))).dtype
    return found


def open_detached(
    nrrd: Any, path: Path, header: Header, names: list[str]
) -> tuple[Header, Array, list[str]]:
    """Return the header, the values, and the files that they are in."""
    files = [file_in_same_folder(path, name.removeprefix("./")) for name in names]
    shape = tuple(int(n) for n in header["sizes"][::-1])
    dtype = nrrd_dtype(nrrd, header)
    count = math.prod(shape)
    if len(shape) != header["dimension"] or min(shape) < 1:
        raise ValueError(f"damaged: it has {header['dimension']} axes of {header['sizes']} points")
    if not files or count % len(files):
        raise ValueError(f"damaged: {len(files)} files cannot hold parts of {count} values")
    encoding = str(header.get("encoding", "")).lower()
    size = count // len(files) * dtype.itemsize
    described = [str(path), *map(str, files)]
    if len(files) == 1 and encoding in RAW:
        with files[0].open("rb") as stream:
            start = _skip(header, stream, size)
        check_held(size, files[0].stat().st_size - start, 1)
        return header, np.memmap(files[0], dtype, "r", start, shape), described
    check_memory(count * dtype.itemsize, path)
    values = np.empty(count, dtype)
    for part, file in zip(np.split(values, len(files)), files, strict=True):
        part[:] = _part(nrrd, header, file=file, count=part.size, dtype=dtype, encoding=encoding)
    return header, values.reshape(shape), described


def _part(
    nrrd: Any, header: Header, file: Path, count: int, dtype: np.dtype[Any], encoding: str
) -> Array:
    """Return the values in one file."""
    size = count * dtype.itemsize
    stored = file.stat().st_size
    with file.open("rb") as stream:
        if encoding in RAW:
            start = _skip(header, stream, size)
            check_held(size, stored - start, 1)
            return np.fromfile(stream, dtype, count)
        if encoding in GZIP or encoding in BZIP2:
            if encoding in GZIP:
                check_held(size, stored)
            for _ in range(_number(header, "line skip")):
                stream.readline()
            skipped = _number(header, "byte skip")
            opened: Any = gzip.GzipFile(fileobj=stream)
            if encoding in BZIP2:
                opened = bz2.BZ2File(stream)
            with opened as content:
                return np.frombuffer(_exactly(content, size, skipped), dtype)
        one = {**header, "dimension": 1, "sizes": np.array([count])}
        found: Array = nrrd.read_data(one, stream)
        return found


def _exactly(content: IO[bytes], size: int, skipped: int) -> bytearray:
    """Return `size` decompressed bytes after those to skip; the last bytes if `skipped` is -1."""
    found = bytearray()
    limit = size + max(0, skipped)
    # The file is read to its end, where the checksum is verified.
    while piece := content.read(BYTES_AT_ONCE):
        found += piece
        if skipped < 0:
            del found[:-size]
        elif len(found) > limit:
            raise ValueError("damaged: it holds more values than it describes")
    if len(found) < limit:
        raise ValueError(f"truncated or damaged: {limit - len(found)} bytes are missing")
    return found[max(0, skipped) :]


def _skip(header: Header, stream: IO[bytes], size: int) -> int:
    """Move the stream behind the lines and bytes to skip, and return the position."""
    for _ in range(_number(header, "line skip")):
        stream.readline(MOST_HEADER_BYTES)
    skipped = _number(header, "byte skip")
    if skipped == -1:
        stream.seek(0, 2)
        stream.seek(max(0, stream.tell() - size))
    else:
        stream.seek(skipped, 1)
    return stream.tell()


def _number(header: Header, name: str) -> int:
    found = int(header.get(name, header.get(name.replace(" ", ""), 0)))
    least = -1 if name == "byte skip" else 0
    if not least <= found:
        raise ValueError(f"damaged: {name} must be {least} or more, got {found}")
    return found
