"""Tables of directional curves and transforms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ecc_core import EulerCurve, EulerTransform

__all__ = ["curve_columns", "transform_columns"]

COMPONENTS = ("u_z", "u_y", "u_x")


def curve_columns(curve: EulerCurve, filtration: str) -> dict[str, ArrayLike]:
    """Columns of a table of one curve."""
    level = "height" if filtration == "height" else "threshold"
    return {level: curve.thresholds, "euler_characteristic": curve.values}


def transform_columns(transform: EulerTransform, filtration: str) -> dict[str, ArrayLike]:
    """Columns of a table with a row for each direction and level.

    Raises
    ------
    ValueError
        If the transform is not complete.
    """
    if np.isnan(transform.values).any():
        raise ValueError("The transform is not complete yet.")
    directions, levels, values = transform
    names = COMPONENTS[3 - directions.shape[1] :]
    columns: dict[str, ArrayLike] = {
        name: np.repeat(part, len(levels)) for name, part in zip(names, directions.T, strict=True)
    }
    columns["height" if filtration == "height" else "threshold"] = np.tile(levels, len(directions))
    columns["euler_characteristic"] = values.ravel().astype(np.int64)
    return columns
