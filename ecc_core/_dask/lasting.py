"""Betti curves of the lasting classes of dask arrays in 3-D, from their persistence pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays.request import Request
from ecc_core._backends.pair_options import PairOptions
from ecc_core._dask.graph import da, dask
from ecc_core._dask.pairs import PairBoxes, pair_arrays
from ecc_core._request.levels import Levels, count_alive, round_to_levels

DIMENSIONS = 0, 1, 2
"""The dimensions of components, tunnels and cavities."""


def lasting_curves(request: Request, least: float) -> Any:
    """Return the numbers of classes whose persistence is at least `least`, (*batch, 3, n).

    They are a dask array, computed from the persistence pairs of each dimension.
    """
    image = request.images
    at = request.thresholds()
    batch = image.shape[: len(request.geometry.batch)]
    if image.size == 0:
        return da.zeros((*batch, len(DIMENSIONS), at.size), dtype=np.int64, chunks=-1)
    dtype = image.dtype.newbyteorder("=")
    levels = round_to_levels(at, dtype, request.filtration.superlevel)
    curves = []
    for place in np.ndindex(*batch):
        mask = None if request.mask is None else request.mask[place]
        curves += [_curve(image[place], mask, k, levels, request, least) for k in DIMENSIONS]
    return da.stack(curves).reshape(*batch, len(DIMENSIONS), at.size)


def _curve(
    volume: Any, mask: Any, dimension: int, levels: Levels, request: Request, least: float
) -> Any:
    """Return the number of classes of a dimension that are alive at each level."""
    options = PairOptions(
        dtype=volume.dtype.newbyteorder("="),
        filtration=request.filtration,
        dimension=dimension,
        masked=mask is not None,
        least=least,
    )
    births, deaths, _, death_points = pair_arrays(PairBoxes(options, volume.shape), volume, mask)
    alive = dask.delayed(_alive, pure=True)(births, deaths, death_points, levels)
    return da.from_delayed(alive, (levels.entered.size,), np.int64)


def _alive(
    births: NDArray[Any], deaths: NDArray[Any], death_points: NDArray[np.int64], levels: Levels
) -> NDArray[np.int64]:
    """Count the classes that are alive at each level."""
    dies = death_points[:, 0] >= 0
    return count_alive(births, deaths[dies], levels)
