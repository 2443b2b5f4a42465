"""The call of `ecc_core` that gives the curve on the screen."""

from __future__ import annotations

from typing import Any

from napari_ecc._controller.curves import Request
from napari_ecc._controller.layers import Selection, index_code, is_lazy
from napari_ecc._model.explorer import Curve

__all__ = ["python_call"]


def python_call(
    image: Any, selection: Selection, request: Request, curve: Curve, mask_code: str
) -> str:
    """Code for napari's console, where `viewer` is defined.

    Parameters
    ----------
    image : napari Image layer
    selection : Selection
    request : Request
    curve : Curve
    mask_code : str
        Lines that make `mask`, or "".

    Returns
    -------
    str
        Lines of Python; `t` and `chi` are the curve.
    """
    level = "[0]" if getattr(image, "multiscale", False) else ""
    lines = ["import numpy as np", "", "import ecc_core as ecc", ""]
    data = f"viewer.layers[{image.name!r}].data{level}{index_code(selection)}"
    by_blocks = is_lazy(request.levels[-1]) and not any(request.sigma)
    if by_blocks:
        lines += ["import dask.array as da", "", f"image = da.asarray({data})"]
    else:
        lines += [f"image = np.asarray({data})"]
    if any(request.sigma):
        lines += ["from scipy.ndimage import gaussian_filter", ""]
        lines += [f"image = gaussian_filter(image.astype(np.float32), {request.sigma!r})"]
    arguments = ["image", _thresholds(curve)]
    if mask_code:
        lines.append(mask_code)
        arguments.append("mask=mask")
    arguments.append(f"connectivity={request.options['connectivity']}")
    if request.superlevel:
        arguments.append("superlevel=True")
    arguments.append('nan="omit"')
    lines.append(f"t, chi = ecc.euler_curve({', '.join(arguments)})")
    if by_blocks:
        lines.append("chi = chi.compute()")
    return "\n".join(lines) + "\n"


def _thresholds(curve: Curve) -> str:
    low, high = float(curve.thresholds[0]), float(curve.thresholds[-1])
    if curve.thresholds.size == high - low + 1:
        return f"np.arange({low:.0f}, {high + 1:.0f})"
    return f"np.linspace({low!r}, {high!r}, {curve.thresholds.size})"
