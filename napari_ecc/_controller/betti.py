"""Components, tunnels and cavities of the sets at all thresholds."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
from dask import array as da
from numpy.typing import NDArray

import ecc_core as ecc
from napari_ecc._controller.curves import Field
from napari_ecc._controller.delayed import WORKERS, as_completed
from napari_ecc._workers import Step

__all__ = ["count_all"]

BLOCK = 1 << 23
"""Points of the blocks of an image in memory, about 0.1 s: a job can be cancelled between them."""


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
    data, mask = field.data, field.mask
    if isinstance(data, np.ndarray) and data.size <= BLOCK:
        yield Step(ecc.betti_curves(data, thresholds, mask=mask, workers=WORKERS, **options))
        return
    if not isinstance(data, da.Array):
        limit = BLOCK * data.dtype.itemsize
        # name=False: the name would be a hash of all values
        chunks = da.core.normalize_chunks("auto", data.shape, limit, data.dtype)
        data = da.from_array(data, chunks=chunks, name=False)
    if mask is not None:
        mask = da.from_array(mask, chunks=data.chunks, name=False)
    lazy = ecc.betti_curves(data, thresholds, mask=mask, **options)
    values: Any = lazy.values
    for found in as_completed(values.to_delayed().ravel().tolist()):
        yield Step(None if found is None else replace(lazy, values=found[1]))
