"""Compile kernels, or load them from the cache, before the first curve is computed."""

from __future__ import annotations

import threading
from functools import cache

import numpy as np
from dask import array as da

import ecc_core as ecc
from napari_ecc._controller.curves import Request, compute_curve
from napari_ecc._controller.fields import Field, count_all, find_critical_points

__all__ = ["warm"]


@cache
def warm() -> threading.Thread:
    """Run once, in the background, what is slow the first time; join the thread to wait."""
    thread = threading.Thread(target=_compute_small_ones, name="napari-ecc-warm", daemon=True)
    thread.start()
    return thread


def _compute_small_ones() -> None:
    """Curves at once and by blocks, critical points and components, in 2 and 3 dimensions."""
    ecc.warmup(block=True)
    for ndim in (2, 3):
        image = np.zeros((4,) * ndim, np.uint8)
        for array in (image, da.from_array(image, chunks=2)):
            request = Request((array,), None, (0.0, 1.0), 2, True, None, (0.0,) * ndim)
            for _ in compute_curve(request):
                pass
        field = Field(image, None)
        for _ in find_critical_points(
            field, (0.0, 1.0), superlevel=True, connectivity=None, most=1
        ):
            pass
        for _ in count_all(field, np.arange(2.0), superlevel=True, connectivity=None):
            pass
