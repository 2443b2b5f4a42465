"""Structures of the kernels, read from their sources, so that Python and C++ cannot disagree."""

from __future__ import annotations

import re
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SOURCE = Path(__file__).parent / "source"
NUMBERS = {
    "bool": "?",
    "int": "i4",
    "unsigned": "u4",
    "float": "f4",
    "double": "f8",
    "long long": "i8",
    "unsigned long long": "u8",
}
TYPE = r"\s*(?:const |volatile )*((?:unsigned )?long long|\w+)(.*)"
FIELD = r"[\w\s]*?(\*?)\s*(\w+)(?:\[(\d+)\])?\s*"


class Struct:
    """A structure that kernels take by value.

    It is defined in the file `source`. Its fields are those before any member function; pointers
    are addresses, and `types` those that the kernel's options define.
    """

    def __init__(self, source: str, name: str, **types: Any) -> None:
        self.dtype = _dtype(_text(source), name, NUMBERS | types)
        self._format = struct.Struct("=" + _format(self.dtype))
        numbers = np.zeros(1, self.dtype)[0].item()
        zeros = ((0,) * np.size(number) if np.ndim(number) else number for number in numbers)
        self._zero = dict(zip(self.dtype.names or (), zeros, strict=True))

    def __call__(self, **fields: Any) -> NDArray[Any]:
        """Return a structure as integers; fields that are not given are zero."""
        numbers: list[Any] = []
        for value in (self._zero | fields).values():
            numbers.extend(value) if isinstance(value, tuple | list) else numbers.append(value)
        whole = self.dtype.itemsize % 8 == 0
        return np.frombuffer(self._format.pack(*numbers), np.int64 if whole else np.int32)

    def word(self, field: str, size: int = 8) -> int:
        """Return the index of a field where the structure is seen as integers of `size` bytes."""
        assert self.dtype.fields is not None
        return int(self.dtype.fields[field][1]) // size


@cache
def _text(source: str) -> str:
    """Return a file with those that it includes, without comments."""
    text = re.sub(r"//.*", "", (SOURCE / source).read_text())
    return re.sub(r'#include "(.*)"', lambda include: _text(include[1]), text)


def _dtype(text: str, name: str, types: dict[str, Any]) -> np.dtype[Any]:
    """Return the layout of a structure, padded as in C++."""
    found = re.search(rf"struct {name} {{(.*?)(?:__device__|ECC_DEVICE|\n}};)", text, re.S)
    if found is None:
        raise LookupError(f"no structure {name}")
    fields: list[tuple[Any, ...]] = []
    for declaration in found[1].split(";")[:-1]:
        given, declared = re.fullmatch(TYPE, declaration, re.S).groups()  # type: ignore[union-attr]
        for field in declared.split(",") if given != "static" else ():
            pointer, label, length = re.fullmatch(FIELD, field, re.S).groups()  # type: ignore[union-attr]
            dtype = "i8" if pointer else types.get(given) or _dtype(text, given, types)
            fields.append((label, dtype, *([int(length)] if length else [])))
    return np.dtype(fields, align=True)


def _format(dtype: np.dtype[Any]) -> str:
    """Return a layout as the module struct describes it."""
    found, end = "", 0
    for offset, part in sorted((field[1], field[0]) for field in (dtype.fields or {}).values()):
        base, shape = part.subdtype or (part, ())
        one = _format(base) if base.names else base.char.replace("l", "q").replace("L", "Q")
        found += "x" * (offset - end) + one * int(np.prod(shape, dtype=int))
        end = offset + part.itemsize
    return found + "x" * (dtype.itemsize - end)
