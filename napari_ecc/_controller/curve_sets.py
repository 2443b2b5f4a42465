"""Named curves of several layers, frames or objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from ecc_core.features import align_curves, curve_descriptors
from napari_ecc._controller.curves import Request, compute_curve, result_of
from napari_ecc._controller.layers import Part, axis_name, levels_of
from napari_ecc._model.compare import Curves, joined
from napari_ecc._workers import Step

__all__ = ["compute_curves", "curve_table", "frames_of"]


def frames_of(layer: Any, part: Part, axis: int = 0) -> dict[str, Part]:
    """Return the frames of a layer along an axis by name."""
    length = levels_of(layer)[0].shape[axis]
    parts = [(*part[:axis], frame, *part[axis + 1 :]) for frame in range(length)]
    width = len(str(length - 1))
    name = axis_name(layer, axis)
    return {f"{layer.name} {name} {k:0{width}}": at for k, at in enumerate(parts)}


def compute_curves(wanted: dict[str, Request]) -> Iterator[Step]:
    """Compute the curve of each request; each step yields all curves found so far."""
    found: Curves = {}
    for name, request in wanted.items():
        for step in compute_curve(request):
            curve, _ = step.value
            if not curve.complete:
                yield Step(dict(found), len(found), len(wanted))
        found[name] = result_of(curve, request)
        yield Step(dict(found), len(found), len(wanted))


def curve_table(curves: Curves, features: Any = None) -> pd.DataFrame:
    """Return a table of descriptors with a row for each curve.

    Parameters
    ----------
    curves : dict of str to EulerCurve
    features : DataFrame, or mapping of str to columns, optional
        What else is known of them, with their names in the column ``name``.

    Returns
    -------
    DataFrame
        The name, the features, descriptors (see `ecc_core.features.curve_descriptors`), and the
        values at the thresholds of all curves.

    Raises
    ------
    ValueError
        If `features` have no column ``name``, or several rows for one.
    """
    rows = {name: curve_descriptors(curve)._asdict() for name, curve in curves.items()}
    table = pd.DataFrame.from_dict(rows, orient="index").astype(float)
    aligned = align_curves(list(curves.values()))
    names = [f"ecc_t{t:.6g}" for t in np.asarray(aligned.thresholds)]
    values = pd.DataFrame(np.asarray(aligned.values), index=table.index, columns=names)
    described = pd.concat([table, values], axis=1).rename_axis("name").reset_index()
    if features is None:
        return described
    return joined(described[["name"]], features).merge(described, on="name")
