"""Components, tunnels and cavities of the sets at all thresholds."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ecc_core as ecc
from napari_ecc._controller.curves import Field
from napari_ecc._controller.delayed import WORKERS
from napari_ecc._controller.loading import load
from napari_ecc._workers import Step

__all__ = ["count_all"]


def count_all(
    field: Field,
    thresholds: NDArray[np.float64],
    *,
    superlevel: bool,
    connectivity: int | None,
    workers: int | None = WORKERS,
) -> Generator[Step, None, None]:
    """Compute the Betti curves of a field, which is loaded if it is lazy.

    Parameters
    ----------
    field : Field
    thresholds : (n,) array
        Increasing.
    superlevel : bool
    connectivity : {1, d} or None
        None: d.
    workers : int or None
        Threads; by default, one core is left for the window.

    Yields
    ------
    Step
        The value of the last is the `ecc_core.BettiCurves`; before it is None.
    """
    image: NDArray[Any] = yield from load(field.data)
    curves = ecc.betti_curves(
        image,
        thresholds,
        superlevel=superlevel,
        connectivity=connectivity,
        mask=field.mask,
        nan="omit",
        workers=workers,
    )
    yield Step(curves)
