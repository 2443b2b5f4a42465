"""The curves of an image in memory, by the functions of the library."""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli.blockwise import Stack, range_of
from ecc_core._cli.curve_table import Curves, curves_in, joined_measures, joined_places
from ecc_core._cli.outputs import quantities_of

__all__ = ["curves_in_memory"]

Array = NDArray[Any]


def curves_in_memory(stack: Stack, arguments: argparse.Namespace) -> Curves:
    """Return the curves of an image, of which all points are in memory at once."""
    image, *kept = stack.blocks.whole()
    bounds = arguments.range
    if stack.blocks.labels and bounds is None and isinstance(arguments.thresholds, int):
        bounds = range_of(stack)  # the same for all places
    options = {
        "range": bounds,
        "connectivity": arguments.connectivity,
        "superlevel": arguments.superlevel,
        "workers": arguments.workers,
    }
    found = []
    for quantity in quantities_of(arguments):
        more: dict[str, Any] = {}
        if quantity == "minkowski":
            more = {"estimator": arguments.minkowski, "spacing": stack.spacing}
        of = _of_regions if stack.blocks.labels else _of_image
        parts = [*of(quantity, stack, image, kept, options | more, arguments)]
        found.append(joined_places(parts))
    return joined_measures(found)._replace(channels=stack.channels)


def _of_image(
    quantity: str,
    stack: Stack,
    image: Array,
    mask: list[Array],
    options: dict[str, Any],
    arguments: argparse.Namespace,
) -> Iterator[Curves]:
    from ecc_core import curves, geometry, topology

    if quantity != "betti":
        options |= {"boundary": arguments.boundary}
    elif arguments.persistence is not None:
        options |= {"min_persistence": arguments.persistence}
    function: Any = {
        "euler": curves.euler_curve,
        "betti": topology.betti_curves,
        "minkowski": geometry.minkowski_curves,
    }[quantity]
    result = function(
        image,
        arguments.thresholds,
        mask=mask[0] if mask else None,
        nan=arguments.nan,
        axis=tuple(range(image.ndim - stack.ndim, image.ndim)),
        **options,
    )
    yield curves_in(result, stack.batch_axes, stack.places)


def _of_regions(
    quantity: str,
    stack: Stack,
    image: Array,
    labels: list[Array],
    options: dict[str, Any],
    arguments: argparse.Namespace,
) -> Iterator[Curves]:
    """Yield the curves of the labels at each place on the batch axes."""
    from ecc_core import curves, geometry, topology

    function: Any = {
        "euler": curves.region_curves,
        "betti": topology.region_betti_curves,
        "minkowski": geometry.region_minkowski,
    }[quantity]
    for at, place in zip(np.ndindex(*stack.batch), stack.places, strict=True):
        values, ids = image[at], labels[0][at]
        if arguments.nan == "omit" and values.dtype.kind == "f":
            missing = np.isnan(values)  # in no region any more, so that their value has no effect
            ids = np.where(missing, ids.dtype.type(0), ids)
            values = np.where(missing, values.dtype.type(0), values)
        result = function(values, ids, arguments.thresholds, **options)
        yield curves_in(result, stack.batch_axes, np.tile(place, (len(result.labels), 1)))
