"""Curves of periodic dask arrays and half-open windows, corrected by planes at the border."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ecc_core._backends.borders import Box, Side, border_boxes, closed, signed_sides_of
from ecc_core._blocks.blocks import Settings
from ecc_core._dask.graph import da

__all__ = ["bordered"]

Values = Callable[[Any, Any | None, Settings], Any]


def bordered(values_of: Values, image: Any, mask: Any | None, settings: Settings) -> Any:
    """Return the curve of an image, whose last axes are spatial, for any boundary.

    `values_of` takes the same arguments, and returns the curve of a closed image.
    """
    filtration = settings.filtration
    ndim = filtration.ndim
    total = values_of(image, mask, settings._replace(filtration=closed(filtration, ndim)))
    sides = signed_sides_of(filtration)
    if filtration.boundary.is_closed or image.size == 0:
        return total
    box = (image,) if mask is None else (image, mask)
    alike: dict[tuple[bool, ...], list[tuple[tuple[Side | None, ...], Box]]] = {}
    for across, part in border_boxes(box, filtration, sides, lead=image.ndim - ndim):
        alike.setdefault(tuple(side is None for side in across), []).append((across, part))
    for kept, parts in alike.items():
        left = sum(kept)
        stacked = [da.stack(arrays) for arrays in zip(*(part for _, part in parts), strict=True)]
        if not left:  # points
            stacked, left = [array[..., None] for array in stacked], 1
        plane, shown = stacked if len(stacked) == 2 else (stacked[0], None)
        values = values_of(plane, shown, settings._replace(filtration=closed(filtration, left)))
        for (across, _), value in zip(parts, values, strict=True):
            total = total + int(np.prod([side.sign for side in across if side])) * value
    return total
