"""Decode arrays in Zarr and HDF5 by attributes of the CF conventions.

The attributes ``scale_factor``, ``add_offset``, ``_FillValue``, ``missing_value`` and ``_Unsigned``
are defined in https://cfconventions.org, chapter 8 and section 2.5. Dtypes of results are those of
xarray, except that unscaled integers of which some are missing stay integers, as in netCDF4.
"""

import base64
import binascii
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ecc_core._io.description import Encoding, Missing, declared_missing
from ecc_core._io.lazy import Array, Box, Lazy, nan_where_missing

CONVENTIONS = ("units", "_Unsigned", "scale_factor", "add_offset", "_FillValue", "missing_value")
"""The attributes that are read."""
FILLS = ("_FillValue", "missing_value")
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
FLOAT_BYTES = 8
"""The bytes of a fill value in Zarr 3, which xarray writes as base64."""


class Decoded(NamedTuple):
    """An array of values, and how they were stored."""

    array: Any
    encoding: Encoding
    missing: Missing | None


def decoded(array: Any, attributes: Mapping[str, Any]) -> Decoded:
    """Return the values of a stored array by its attributes; nothing is read."""
    stored = np.dtype(array.dtype).newbyteorder("=")
    unit = _text(attributes.get("units"))
    if stored.kind not in "iuf":
        return Decoded(array, Encoding(unit=unit), None)
    dtype, signedness = _by_sign(stored, _text(attributes.get("_Unsigned")))
    fills = {name: _numbers(attributes[name], stored) for name in FILLS if name in attributes}
    numbers = _joined(fills)
    if signedness:
        numbers = [number.astype(stored).view(dtype) for number in numbers]
    words = [f"{name} {_in_words(values)}" for name, values in fills.items()]
    missing = declared_missing(dtype, numbers, ", ".join(words))
    slope, offset = (_scalar(attributes.get(name)) for name in ("scale_factor", "add_offset"))
    if slope is None and offset is None:
        encoding = Encoding(stored.name if signedness else "", signedness=signedness, unit=unit)
        plain = array if dtype == stored else _viewed(array, stored, dtype)
        return Decoded(nan_where_missing(plain, missing), encoding, missing)
    result = _float_dtype(dtype, slope, offset)

    def read(box: Box) -> Array:
        there = np.asarray(array[box]).astype(stored, copy=False).view(dtype)
        values = there.astype(result)
        if missing is not None:
            values[_where(missing, there)] = np.nan
        if slope is not None:
            values *= slope
        if offset is not None:
            values += offset
        return values

    encoding = Encoding(
        dtype=stored.name,
        slopes=(1.0 if slope is None else float(slope),),
        offsets=(0.0 if offset is None else float(offset),),
        signedness=signedness,
        unit=unit,
    )
    # Scaled values are floats, in which missing ones are NaN.
    missing_scaled = None if missing is None else Missing((), missing.source)
    return Decoded(Lazy(tuple(map(int, array.shape)), result, read), encoding, missing_scaled)


def _where(missing: Missing, stored: Array) -> Array:
    """Return which stored values are missing, of integers or floating-point numbers."""
    found = np.isnan(stored) if stored.dtype.kind == "f" else np.zeros(stored.shape, np.bool_)
    for low, _ in missing.ranges:
        found |= stored == low
    return found


def _by_sign(stored: np.dtype[Any], unsigned: str) -> tuple[np.dtype[Any], str]:
    """Return the dtype that `_Unsigned` gives to integers, and the words for `Encoding`."""
    if stored.kind == "i" and unsigned.lower() == "true":
        return np.dtype(f"u{stored.itemsize}"), "unsigned by _Unsigned"
    if stored.kind == "u" and unsigned.lower() == "false":
        return np.dtype(f"i{stored.itemsize}"), "signed by _Unsigned"
    return stored, ""


def _viewed(array: Any, stored: np.dtype[Any], dtype: np.dtype[Any]) -> Lazy:
    def read(box: Box) -> Array:
        return np.asarray(array[box]).astype(stored, copy=False).view(dtype)

    return Lazy(tuple(map(int, array.shape)), dtype, read)


def _float_dtype(dtype: np.dtype[Any], slope: Any, offset: Any) -> np.dtype[Any]:
    """Return the dtype of scaled values, as xarray chooses it.

    That is the floating-point dtype of the attributes, or float64 if their dtypes differ, or if
    an offset is added to integers of 32 or 64 bits.
    """
    types = {np.asarray(number).dtype for number in (slope, offset) if number is not None}
    if offset is None:
        (found,) = types
        return found if found in FLOATS else np.dtype(np.float64)
    same = len(types) == 1 and slope is not None and types <= {*FLOATS}
    if not same or (dtype.kind in "iu" and dtype.itemsize >= 4):
        return np.dtype(np.float64)
    return types.pop()


def _scalar(value: Any) -> Any:
    """Return the single number of an attribute with its dtype, or None if it is absent."""
    if value is None:
        return None
    found = np.asarray(value)
    if found.size != 1 or found.dtype.kind not in "iuf":
        raise ValueError(f"its scale must be one number, got {value!r}")
    return found.reshape(())[()]


def _numbers(value: Any, stored: np.dtype[Any]) -> Array:
    """Return the numbers of an attribute, which xarray writes as base64 in Zarr 3."""
    if isinstance(value, bytes):
        value = value.decode("ascii", "replace")
    if isinstance(value, str):
        value = _float_of(value)
    found = np.ravel(np.asarray(value))
    if found.dtype.kind not in "iuf":
        raise ValueError(f"its missing values must be numbers, got {value!r}")
    if stored.kind in "iu":
        found = found[np.isfinite(found)]
    return found


def _float_of(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        content = base64.standard_b64decode(text)
    except (binascii.Error, ValueError):
        content = b""
    if len(content) != FLOAT_BYTES:
        raise ValueError(f"its missing values must be numbers, got {text!r}")
    return float(struct.unpack("<d", content)[0])


def _joined(fills: Mapping[str, Array]) -> list[Any]:
    return [number for values in fills.values() for number in values]


def _in_words(numbers: Array) -> str:
    return " ".join(f"{number:g}" for number in numbers)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray) and value.size == 1:
        return _text(value.reshape(())[()])
    return "" if value is None else str(value)
