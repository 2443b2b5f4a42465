"""Whether the pairs of an image fit in memory, which is checked before the work begins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ecc_core._backends.cpu.encoders.plans import coefficient_plan
from ecc_core._request.filtration import Filtration
from ecc_core._request.resources import available_memory

GIB = 1 << 30
FEW = 1 << 20
"""Images of fewer points fit in any memory, which is not looked up: that takes as long as a small
image."""

# Bytes that each point takes beyond the image, whatever its values are.
GRADIENT = 3  # Each of the three edges of a point takes a byte.
STATES = 3  # As much again for each thread that follows paths.
RINGS_AND_LABELS = 5
TORUS = 30
TORUS_TUNNELS = 64


def least_bytes(
    dtype: np.dtype[Any], dimensions: Sequence[int], filtration: Filtration, threads: int
) -> int:
    """Return how many bytes a point takes at least beyond the image."""
    tunnels = filtration.ndim == 3 and 1 in dimensions
    if any(filtration.boundary.wraps):
        return TORUS_TUNNELS if tunnels else TORUS
    if filtration.ndim < 3:
        plan = coefficient_plan(dtype.newbyteorder("="), filtration.superlevel, False, False)
        return plan.key_dtype.itemsize + RINGS_AND_LABELS
    return GRADIENT + STATES * threads if tunnels else 0


def check_memory(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    dimensions: Sequence[int],
    filtration: Filtration,
    threads: int,
) -> None:
    """Raise if the pairs of an image of this shape cannot fit in memory, and say what would."""
    points = math.prod(shape)
    available = available_memory() if points > FEW else None
    if available is None:
        return

    def needed(dimensions: Sequence[int], threads: int) -> int:
        return points * least_bytes(dtype, dimensions, filtration, threads)

    if needed(dimensions, threads) <= available:
        return
    choices = []
    alone = needed(dimensions, 1)
    if threads > 1 and alone <= available:
        choices.append(f"`workers=1`, which needs {alone / GIB:.1f} GiB")
    if filtration.ndim == 3 and 1 in dimensions and needed([0, 2], 1) <= available:
        choices.append(f"`dimension` 0 or 2, which need {needed([0, 2], 1) / GIB:.1f} GiB")
    fitting = available // least_bytes(dtype, dimensions, filtration, 1)
    choices.append(f"blocks of at most {fitting} points")
    class_bytes = 2 * (dtype.itemsize + 8 * len(shape))
    raise MemoryError(
        f"pairs of {points} points need at least {needed(dimensions, threads) / GIB:.1f} GiB "
        f"besides the image, but {available / GIB:.1f} GiB are available; possible are "
        f"{', or '.join(choices)}. In addition, each class takes {class_bytes} bytes, unless "
        "`min_persistence` leaves it out"
    )
