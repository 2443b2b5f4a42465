"""Images of software for persistent homology: DIPHA, and Perseus' text, which GUDHI reads."""

import math
from pathlib import Path

import numpy as np

from ecc_core._io.description import Description, unnamed_axes
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.limits import check_held, check_memory
from ecc_core._request.boundary import shortest_name, words_of

DIPHA_SUFFIXES = (".complex", ".dipha")
PERSEUS_SUFFIXES = (".perseus", ".txt")
DIPHA = 8067171840
"""The first number of every file of DIPHA."""
KINDS = {
    0: "a boundary matrix",
    1: "an image",
    2: "a persistence diagram",
    7: "a distance matrix",
    8: "a sparse distance matrix",
}
IMAGE = 1
DIAGRAM = 2
MOST_AXES = 32
LEAST_TEXT = 2
"""The fewest characters of a value, with the space behind it."""


def open_dipha(path: Path, _: Request) -> Opened:
    """Open an image as a memory map. Its first axis, X, is the fastest."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = np.frombuffer(stream.read(8 * 4), "<i8").tolist()
        if len(head) < 4 or head[0] != DIPHA:
            raise ValueError("not a file of DIPHA, or truncated")
        _, kind, count, ndim = head
        if kind != IMAGE:
            raise ValueError(f"holds {KINDS.get(kind, f'type {kind}')} of DIPHA, not an image")
        if not 1 <= ndim <= MOST_AXES:
            raise ValueError(f"damaged: it has {ndim} axes")
        lengths = np.frombuffer(stream.read(8 * ndim), "<i8").tolist()
        start = stream.tell()
    if len(lengths) != ndim or min(lengths) < 1 or math.prod(lengths) != count:
        raise ValueError(f"damaged: its axes of {lengths} points must have {count} values")
    check_held(8 * count, size - start, 1)
    if size - start != 8 * count:
        raise ValueError(f"damaged: {size - start - 8 * count} bytes follow the values")
    values = np.memmap(path, "<f8", "r", start, tuple(lengths[::-1]))
    return Opened(values, Description.of(unnamed_axes(ndim)))


def open_perseus(path: Path, _: Request) -> Opened:
    """Read an image in text: the number of axes, their lengths, and the values, X the fastest.

    A negative length stands for a periodic axis, as GUDHI writes it.
    """
    size = path.stat().st_size
    check_memory(8 * size // LEAST_TEXT, path)
    words = path.read_bytes().split()
    try:
        ndim = int(words[0])
        lengths = [int(word) for word in words[1 : ndim + 1]]
    except (ValueError, IndexError):
        raise ValueError("not a cubical complex of Perseus, or truncated") from None
    if not 1 <= ndim <= MOST_AXES or len(lengths) != ndim or 0 in lengths:
        raise ValueError(f"not a cubical complex of Perseus, or damaged: its axes are {lengths}")
    shape = tuple(abs(n) for n in lengths[::-1])
    found = len(words) - 1 - ndim
    if found != math.prod(shape):
        raise ValueError(
            f"truncated or damaged: {found} values instead of {math.prod(shape)} for {shape}"
        )
    try:
        values = np.array(words[1 + ndim :], np.float64).reshape(shape)
    except ValueError as error:
        raise ValueError(f"damaged: {error}") from None
    axes = unnamed_axes(ndim)
    borders = ["periodic" if n < 0 else "closed" for n in lengths[::-1]]
    periodic = [axis for axis, word in zip(axes, borders, strict=True) if word == "periodic"]
    notes = []
    if periodic:
        boundary = ",".join(words_of(shortest_name(borders)))
        notes = [f"periodic along {', '.join(periodic)}, which only --boundary {boundary} follows"]
    return Opened(values, Description.of(axes, notes=notes))


READ = frozenset({"axes"})
FORMATS = (
    Format(name="DIPHA", suffixes=DIPHA_SUFFIXES, open=open_dipha, fields=READ, reference=""),
    Format(
        name="Perseus",
        suffixes=PERSEUS_SUFFIXES,
        open=open_perseus,
        fields=READ,
        reference="GUDHI",
        is_slice=False,
    ),
)
