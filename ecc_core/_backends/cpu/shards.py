"""Curves of images in parts along their first axis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ecc_core._backends.cpu import launch
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]


def curve(shards: Sequence[Array], thresholds: Array, filtration: Filtration) -> NDArray[np.int64]:
    """Euler characteristic of the image at sorted thresholds: (n,) int64.

    Two neighbours together have the curves of both, and of their slices that meet as a pair, less
    that of each of these slices. A slice repeated has the curve of the slice.
    """
    total = np.zeros(thresholds.size, np.int64)
    for shard in shards:
        total += launch.curve(shard[None], thresholds, filtration)[0]
    for before, after in pairwise(shards):
        meeting = np.concatenate([before[-1:], before[-1:], after[:1], after[:1]])
        pairs = np.moveaxis(sliding_window_view(meeting, 2, axis=0), -1, 1)
        first, both, second = launch.curve(pairs, thresholds, filtration)
        total += both - first - second
    return total
