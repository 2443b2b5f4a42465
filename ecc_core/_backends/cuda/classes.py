"""Which classes last, and in which order they are returned."""

from typing import Any

import cupy
import numpy as np

SIGNED = 1 << 31  # Keys less this are signed numbers in the same order.


def lasting_classes(keys: Any, never: int, births: Any, deaths: Any) -> tuple[Any, Any]:
    """Return the classes whose points have different keys, by birth, and of one birth by death.

    `keys` are those of the image. Points of the last one, `never`, do not enter: no class is born
    at them, and the death of one that would die there is -1.
    """
    flat = keys.ravel()
    deaths = cupy.where((deaths >= 0) & (flat[deaths] == never), -1, deaths)
    born = flat[births]
    lasts = cupy.flatnonzero((born < never) & ((deaths < 0) | (born != flat[deaths])))
    births = births[lasts]
    deaths = deaths[lasts]
    entries = (born[lasts].astype(np.int64) - SIGNED) << 32 | births
    order = cupy.lexsort(cupy.stack([deaths, entries]))
    return births[order], deaths[order]
