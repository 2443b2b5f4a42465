"""Curves of images in parts along their first axis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu import curves
from ecc_core._backends.signed_boxes import meeting, signed_sum
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]


def curve(shards: Sequence[Array], thresholds: Array, filtration: Filtration) -> NDArray[np.int64]:
    """Return the Euler characteristic of the image at sorted thresholds, (n,) int64.

    Shards are counted one after another, each by all threads, and then the slices that meet.
    """

    def of_images(images: Array) -> NDArray[np.int64]:
        return curves.curve(images, thresholds, filtration)

    total = np.zeros(thresholds.size, np.int64)
    for shard in shards:
        total += of_images(shard[None])[0]
    for before, after in pairwise(shards):
        last = (before[None, -1:],)
        first = (after[None, :1],)
        total += signed_sum(meeting(last, first, axis=1), of_images)[0]
    return total
