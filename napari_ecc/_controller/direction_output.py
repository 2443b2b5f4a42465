"""What leaves the direction explorer: tables, and the calls of `ecc_core` behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core import EulerCurve, EulerTransform
from napari_ecc._controller.direction_sweep import Sweep
from napari_ecc._controller.layers import Selection, index_code
from napari_ecc._model.directions import DirectionModel

__all__ = ["curve_columns", "direction_code", "transform_columns"]

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


def direction_code(sweep: Sweep, selection: Selection, layer: Any, model: DirectionModel) -> str:
    """Code for napari's console that gives the curve and the transform that are shown.

    Parameters
    ----------
    sweep : Sweep
    selection : Selection
    layer : napari Image layer
    model : DirectionModel

    Returns
    -------
    str
        Lines of Python; `levels` and `chi` are the curve, `transform` the rows of all directions.
    """
    level = f"[{sweep.level.number}]" if getattr(layer, "multiscale", False) else ""
    data = f"viewer.layers[{layer.name!r}].data{level}{index_code(selection)}"
    direction = model.direction.tolist()
    options = f"connectivity={sweep.connectivity}, spacing={sweep.level.spacing.tolist()}"
    lines = ["import numpy as np", "", "import ecc_core as ecc", "", f"image = np.asarray({data})"]
    around = str(model.n_directions)
    if model.ndim == 3:
        lines += _circle_code(model)
        around = "directions"
    if sweep.filtration == "height":
        sign = ">=" if sweep.superlevel else "<="
        call = f"{sweep.n_heights}, {options}"
        lines += [
            f"inside = image {sign} {sweep.threshold!r}",
            f"_, levels, (chi,) = ecc.euler_transform(inside, [{direction}], {call})",
            f"transform = ecc.euler_transform(inside, {around}, {call})",
        ]
    else:
        lines += _tilt_code(sweep, model, direction, around, options)
    return "\n".join(lines) + "\n"


def _circle_code(model: DirectionModel) -> list[str]:
    """Directions of one elevation."""
    n, up = model.n_directions, np.round(np.sin(np.deg2rad(model.elevation)), 15).item()
    along = np.round(np.cos(np.deg2rad(model.elevation)), 15).item()
    plane = f"{along!r} * ecc.sample_directions({n}, 2)"
    return [f"directions = np.column_stack([np.full({n}, {up!r}), {plane}])"]


def _tilt_code(
    sweep: Sweep, model: DirectionModel, direction: list[float], around: str, options: str
) -> list[str]:
    levels: NDArray[Any] = np.zeros(1) if model.curve is None else model.curve.thresholds
    bounds = (levels[0].item(), levels[-1].item())
    call = f"{sweep.n_heights}, range={bounds!r}, direction_scale={sweep.tilt!r}, {options}"
    call += f', superlevel={sweep.superlevel}, nan="omit"'
    if around != "directions":
        around = f"ecc.sample_directions({around}, 2)"
    curve = "ecc.euler_curve(image, direction=u, **filtration).values"
    return [
        f"filtration = dict(thresholds={call})",
        f"levels, chi = ecc.euler_curve(image, direction={direction}, **filtration)",
        f"transform = np.stack([{curve} for u in {around}])",
    ]
