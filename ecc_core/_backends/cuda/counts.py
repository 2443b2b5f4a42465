"""Curves by the coefficients of all samples, for any number of thresholds (counts.cu)."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ecc_core._backends.cuda.arrays import ArrayView
from ecc_core._backends.cuda.bins import Prepared, table_memory
from ecc_core._backends.cuda.coefficients import image_coefficients, scanned_counts
from ecc_core._backends.cuda.samples import samples_of
from ecc_core._backends.cuda.scan import running_sums
from ecc_core._backends.cuda.structures import Struct
from ecc_core._backends.cuda.variants import NAN_NONE, NAN_OMIT, Variant

__all__ = ["counted_curves"]

FEW = 12_000  # levels, whose sums leave a block room for others on a multiprocessor
COUNTS = Struct("counts.cu", "Counts")


def counted_curves(
    view: ArrayView,
    mask: Any,
    variant: Variant,
    prepared: Prepared,
    direction: Any,
    own: tuple[int, int] | None,
) -> tuple[Any, Any, Any]:
    """Return curves at the levels, a flag that is set if there may be a NaN, and their memory."""
    scans = variant.nan != NAN_OMIT
    whole = mask is None and direction is None and own is None
    counted = scanned_counts(view, variant, prepared) if scans and whole else None
    if counted is not None:
        values = cupy.ascontiguousarray(running_sums(counted[0], variant.superlevel))
        return values, counted[1], counted
    found, flag = image_coefficients(view, mask, variant, direction, scans=scans)
    if own is not None:
        part = slice(None), slice(*own)
        view = view._replace(array=view.array[part])
        found = cupy.ascontiguousarray(found[part])
    bins = cupy.zeros((len(found), prepared.rules.levels + 1), np.int64)
    plain = variant._replace(nan=NAN_NONE, masked=False)  # other samples have the coefficient 0
    samples = samples_of(view, None, plain, prepared, direction)
    shared, macros = table_memory(prepared.rules)
    own_sums = len(found) == 1 and prepared.rules.levels <= FEW
    if own_sums:
        shared += 16 * (prepared.rules.levels // 8 + 1)
    macros |= {"COUNTS": int(own_sums)}
    given = COUNTS(coefficients=found.data.ptr, bins=bins.data.ptr), prepared.bins
    samples.launch("counts", "count", macros, *given, shared=shared)
    values = cupy.ascontiguousarray(running_sums(bins, variant.superlevel))
    return values, flag, (found, flag, bins, samples.memory)
