"""Curves at even thresholds over the range of an image, found on the device (even.cu)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from ecc_core._backends.cuda.arrays import Placement
from ecc_core._backends.cuda.bins import BINS, Prepared, Rules
from ecc_core._backends.cuda.calls import Call, take_reply
from ecc_core._backends.cuda.guesses import UNIFORM
from ecc_core._backends.cuda.samples import DATA, plan_range
from ecc_core._backends.cuda.scan import Scan, plan_scan
from ecc_core._backends.cuda.structures import Struct
from ecc_core._backends.cuda.variants import Variant
from ecc_core.errors import NAN_MESSAGE

EVEN = Struct("even.cu", "Even")
SOME, NAN, FITS = 1, 2, 4  # as in even.cu
MOST_EVEN = 1024  # thresholds


class EvenCurve:
    """The curves of float32 images of one layout at so many thresholds over the range of each.

    Parameters
    ----------
    scan : Scan
        Whose rule is UNIFORM.
    find : Call
        Launch of the kernel that finds the thresholds.
    omits_nan : bool
        Whether NaN are omitted; they are an error otherwise.
    """

    def __init__(self, scan: Scan, find: Call, omits_nan: bool) -> None:
        self._scan, self._find, self._omits_nan = scan, find, omits_nan
        self._count = scan.prepared.rules.levels

    def __call__(self, data: int) -> tuple[Any, Any] | None:
        """Return the thresholds (count,) and the curve (count,) of the image at this address.

        None for images without two finite values, or of a range with too few values of float32.
        Raises ValueError for NaN. The kernel of the curve is launched before the answer of the
        other one is known. If the thresholds do not fit, its result is dropped.
        """
        count = self._count
        reply = take_reply(self._scan.device)
        memory = cupy.cuda.alloc(8 * count + 4 * (count + 3))
        table = memory.ptr + 8 * count
        samples, found, answer, even = self._find.places
        words = (
            (samples + DATA, data),
            (found, reply.memory.data.ptr),
            (answer, reply.address),
            *((even, memory.ptr), (even + 1, table)),
        )
        self._find.launch(words)
        values = self._scan.single(data, table=table)
        thresholds = cupy.ndarray((count,), np.float64, memory)
        (state,) = reply.wait(1)
        reply.release()
        if state & NAN and not self._omits_nan:
            raise ValueError(NAN_MESSAGE)
        return (thresholds, values) if state & FITS else None


@lru_cache(maxsize=128)
def even_scan(
    placement: Placement, count: int, variant: Variant, omits_nan: bool, device: int
) -> EvenCurve | None:
    """Return what computes curves of images (1, *spatial), or None if no kernel of pairs does.

    The variant omits NaN.
    """
    rules = Rules(UNIFORM, count, 4, 0, UNIFORM, count + 1, 4 * (count + 1), 0, found=True)
    found = plan_scan(placement, None, variant, rules, device)
    if found is None or found.accumulate:
        return None
    bins = BINS(count=count, last=count)
    scan = Scan(found, Prepared(rules, bins, bins), device)
    call = plan_range("even", "find_even", placement, variant, device, EVEN(count=count))
    return EvenCurve(scan, call, omits_nan)
