"""Raw values without a header, which arguments describe."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ecc_core._io.description import Description, unnamed_axes
from ecc_core._io.formats import Format, Opened, Request

SUFFIXES = (".raw", ".bin", ".dat", ".vol")
ORDERS = ("C", "F")
KINDS = "buif"


class Layout(NamedTuple):
    """The place of raw values in a file, and their shape, dtype and order."""

    shape: tuple[int, ...] | None
    dtype: str | None
    offset: int
    order: str


def checked_layout(
    shape: Sequence[int] | None, dtype: DTypeLike | None, offset: int, order: str
) -> Layout:
    """Return the checked layout of raw values. It has no shape if none are requested."""
    if shape is None:
        others = {"dtype": dtype is not None, "offset": offset != 0, "order": order != "C"}
        for name, given in others.items():
            if given:
                raise ValueError(f"`{name}` must be given together with `shape`, of raw values")
        return Layout(None, None, 0, "C")
    if dtype is None:
        raise ValueError("`dtype` must be given together with `shape`, of raw values")
    lengths = tuple(int(n) for n in shape)
    if not lengths or min(lengths) < 1:
        raise ValueError(f"`shape` must be positive numbers, got {lengths}")
    if offset < 0:
        raise ValueError(f"`offset` must be 0 or more bytes, got {offset}")
    if order not in ORDERS:
        raise ValueError(f"`order` must be C or F, got {order!r}")
    return Layout(lengths, raw_dtype(dtype).str, int(offset), order)


def raw_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the dtype with a name such as uint16, >i2 or float32."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if found.kind not in KINDS or found.fields or found.subdtype:
        raise ValueError(f"`dtype` must be a type of numbers such as uint8 or >f4, got {dtype!r}")
    return found


def open_raw(path: Path, request: Request, inside: str = "") -> Opened:
    """Open the values in a file as a memory map."""
    shape = request.shape
    offset = request.offset
    if shape is None or request.dtype is None:
        raise ValueError("holds raw values: `shape` and `dtype` must say what they are")
    if inside:
        raise ValueError(f"holds raw values with `shape`, and no {inside}")
    dtype = np.dtype(request.dtype)
    wanted = math.prod(shape) * dtype.itemsize
    there = path.stat().st_size - offset
    if wanted != there:
        raise ValueError(
            f"`shape` {shape} of `dtype` {dtype} takes {wanted} bytes, but {max(there, 0)} follow "
            f"`offset` {offset}"
        )
    values = np.memmap(path, dtype, "r", offset, shape, "F" if request.order == "F" else "C")
    return Opened(values, Description.of(unnamed_axes(len(shape))))


FORMATS = (
    Format(
        name="raw values",
        suffixes=SUFFIXES,
        open=open_raw,
        fields=frozenset(),
        reference="NumPy",
        is_slice=False,
    ),
)
