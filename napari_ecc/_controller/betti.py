"""Components, tunnels and cavities of the sets at all thresholds."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ecc_core as ecc
from napari_ecc._controller.curves import Field
from napari_ecc._controller.delayed import WORKERS, as_completed
from napari_ecc._workers import Step

__all__ = ["count_all"]

BLOCK = 1 << 23
"""Points per block of an image in memory, about 0.1 s: a job can be cancelled between blocks."""


def count_all(
    field: Field,
    thresholds: NDArray[np.float64],
    *,
    superlevel: bool,
    connectivity: int | None,
) -> Generator[Step, None, None]:
    """Compute the Betti curves of a field, block by block if it is large or lazy.

    Parameters
    ----------
    field : Field
    thresholds : (n,) array
        Increasing.
    superlevel : bool
    connectivity : {1, d} or None
        None: d.

    Yields
    ------
    Step
        The value of the last is the `ecc_core.BettiCurves`; before it is None.
    """
    options: dict[str, Any] = {
        "superlevel": superlevel,
        "connectivity": connectivity,
        "nan": "omit",
        "axis": range(field.data.ndim),
    }
    if isinstance(field.data, np.ndarray) and field.data.size <= BLOCK:
        options |= {"mask": field.mask, "workers": WORKERS}
        yield Step(ecc.betti_curves(field.data, thresholds, **options))
        return
    data, mask = field.blocks(BLOCK)
    lazy = ecc.betti_curves(data, thresholds, mask=mask, **options)
    values: Any = lazy.values
    for found in as_completed(values.to_delayed().ravel().tolist()):
        yield Step(None if found is None else replace(lazy, values=found[1]))
