"""The curves of an image in memory, by the functions of the library."""

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli.blockwise import Stack, range_of
from ecc_core._cli.curve_table import Curves, curves_in, joined_measures, joined_places
from ecc_core._cli.outputs import quantities_of

__all__ = ["curves_in_memory"]

Array = NDArray[Any]

COMMON = ("thresholds", "range", "connectivity", "superlevel", "workers")


def curves_in_memory(stack: Stack, arguments: argparse.Namespace) -> Curves:
    """Return the curves of an image, of which all points are in memory at once."""
    from ecc_core import curves, geometry, topology

    functions: dict[str, tuple[Any, Any]] = {
        "euler": (curves.euler_curve, curves.region_curves),
        "betti": (topology.betti_curves, topology.region_betti_curves),
        "minkowski": (geometry.minkowski_curves, geometry.region_minkowski),
    }
    image, *kept = stack.blocks.whole()
    common = {name: getattr(arguments, name) for name in COMMON}
    if stack.blocks.labels and common["range"] is None and isinstance(arguments.thresholds, int):
        common["range"] = range_of(stack)  # the same for all places
    found = []
    for quantity in quantities_of(arguments):
        options = dict(common)
        if quantity == "minkowski":
            options |= {"estimator": arguments.minkowski, "spacing": stack.spacing}
        of_image, of_regions = functions[quantity]
        if stack.blocks.labels:
            found.append(_of_regions(of_regions, stack, image, kept[0], options))
            continue
        options["boundary"] = arguments.boundary
        if quantity == "betti" and arguments.persistence is not None:
            options["min_persistence"] = arguments.persistence
        axes = tuple(range(image.ndim - stack.ndim, image.ndim))
        mask = kept[0] if kept else None
        result = of_image(image, mask=mask, nan=arguments.nan, axis=axes, **options)
        found.append(curves_in(result, stack.batch_axes, stack.places))
    return joined_measures(found)._replace(channels=stack.channels)


def _of_regions(
    function: Any, stack: Stack, image: Array, labels: Array, options: dict[str, Any]
) -> Curves:
    """Return the curves of the labels at all places on the batch axes."""
    parts = []
    for at, place in zip(np.ndindex(*stack.batch), stack.places, strict=True):
        values, ids = image[at], labels[at]
        if stack.filtration.nan == "omit" and values.dtype.kind == "f":
            missing = np.isnan(values)  # in no region any more, so that their value has no effect
            ids = np.where(missing, ids.dtype.type(0), ids)
            values = np.where(missing, values.dtype.type(0), values)
        result = function(values, ids, **options)
        rows = np.tile(place, (len(result.labels), 1))
        parts.append(curves_in(result, stack.batch_axes, rows))
    return joined_places(parts)
