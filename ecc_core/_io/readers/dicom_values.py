"""Decode the stored values of DICOM frames by rescaling, lookup tables and padding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ecc_core._io.description import Encoding, Missing, declared_missing
from ecc_core._io.lazy import Array
from ecc_core._optional import import_optional

PURPOSE = {"extra": "dicom", "purpose": "reading DICOM files"}
IDENTITY = (1.0, 0.0)
WITHOUT_TABLES = ("XA", "XRF")
"""Modalities whose lookup table is for display only, and does not change values."""


@dataclass(frozen=True)
class Decoder:
    """Decodes the frames of an image, each with a slope of its own."""

    scales: Sequence[tuple[float, float]]
    """Slope and intercept of each frame."""
    table: Any
    """The header with a lookup table, or None."""
    padding: tuple[int, int] | None
    """First and last stored value of the range that marks points outside the image, or None."""
    dtype: np.dtype[Any] | None
    """The dtype of the values; None if it is that of stored values or of the table."""

    @classmethod
    def of(cls, headers: Sequence[Any], scales: Sequence[tuple[float, float]]) -> "Decoder":
        """Return the decoder of files of one frame each, or of a file of several."""
        first = headers[0]
        table = first if _has_table(first) else None
        padding = _padding(first)
        uniform = len(set(scales)) == 1
        dtype: np.dtype[Any] | None = None
        if table is not None:
            dtype = np.dtype(np.float32) if padding else None
        elif set(scales) != {IDENTITY}:
            size = 1 << max(header.BitsAllocated for header in headers)
            reached = [size * abs(slope) + abs(intercept) for slope, intercept in scales]
            largest = max(reached)
            whole = all(number.is_integer() for scale in scales for number in scale)
            fits = largest <= np.iinfo(np.int32).max and (uniform or not padding)
            dtype = np.dtype(np.int32 if whole and fits else np.float64)
        return cls(scales, table, padding, dtype)

    def __call__(self, stored: Array, number: int) -> Array:
        """Return the values of a frame. Missing ones are NaN if the dtype is floating-point."""
        values = stored
        if self.table is not None:
            values = import_optional("pydicom.pixels", **PURPOSE).apply_modality_lut(
                stored, self.table
            )
        if self.dtype is None:
            return values
        values = values.astype(self.dtype)
        if self.table is None:
            slope, intercept = map(self.dtype.type, self.scales[number])
            values = values * slope + intercept
        if self.padding is not None and self.dtype.kind == "f":
            low, high = self.padding
            values[(stored >= low) & (stored <= high)] = np.nan
        return values

    def missing(self, dtype: np.dtype[Any]) -> Missing | None:
        """Return which values of this dtype are missing."""
        if self.padding is None:
            return None
        low, high = self.padding
        source = f"PixelPaddingValue {low}" + (f" to {high}" if high != low else "")
        if dtype.kind == "f":
            return Missing((), source)
        slope, intercept = self.scales[0]
        first, last = sorted((low * slope + intercept, high * slope + intercept))
        return declared_missing(dtype, [(first, last)], source)

    def encoding(self, stored: np.dtype[Any], unit: str) -> Encoding:
        """Return how stored values became values."""
        slopes, offsets = zip(*self.scales, strict=True)
        if self.table is not None:
            return Encoding(stored.name, table=unit or "values")
        if set(self.scales) == {IDENTITY}:
            return Encoding(unit=unit)
        if len(set(self.scales)) == 1:
            slopes = slopes[:1]
            offsets = offsets[:1]
        return Encoding(stored.name, slopes, offsets, unit=unit)


def _has_table(header: Any) -> bool:
    return bool(header.get("ModalityLUTSequence")) and header.get("Modality") not in WITHOUT_TABLES


def value_unit(header: Any) -> str:
    """Return the unit that the modality gives to values, such as HU; empty if unknown."""
    if _has_table(header):
        kind = header.ModalityLUTSequence[0].get("ModalityLUTType")
    else:
        kind = header.get("RescaleType")
    return "" if kind in (None, "", "US") else str(kind)


def _padding(header: Any) -> tuple[int, int] | None:
    value = header.get("PixelPaddingValue")
    if value is None or header.get("SamplesPerPixel", 1) != 1:
        return None
    limit = header.get("PixelPaddingRangeLimit")
    ends = sorted((int(value), int(value if limit is None else limit)))
    return ends[0], ends[1]
