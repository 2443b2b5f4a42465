"""The curves of an image: by blocks, or in memory by the functions of the library."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ecc_core
from ecc_core._blocks.regions import without_missing
from ecc_core._cli.blockwise import Stack, range_of
from ecc_core._cli.curve_table import Curves, curves_in, joined_places
from ecc_core._cli.outputs import quantities_of
from ecc_core._cli.summing import sums_of_blocks
from ecc_core.results import STATISTICS

Array = NDArray[Any]

COMMON = ("thresholds", "range", "connectivity", "superlevel", "boundary", "workers")


def curves_of(
    stack: Stack,
    arguments: argparse.Namespace,
    at: Array | None = None,
    folder: Path | None = None,
) -> Curves:
    """Return the curves of an image.

    Parameters
    ----------
    stack : Stack
    arguments : argparse.Namespace
    at : array, optional
        Thresholds, for which the image is read by blocks, once for each quantity. Without them, it
        is in memory as a whole.
    folder : pathlib.Path, optional
        Where partial sums of blocks are kept, and taken from if they are there.
    """
    found = [
        _in_memory(stack, quantity, arguments)
        if at is None
        else sums_of_blocks(stack, at, quantity, arguments, folder)
        for quantity in quantities_of(arguments)
    ]
    measures = {name: values for own in found for name, values in own.measures.items()}
    curves = found[0]._replace(measures=measures, channels=stack.channels)
    return curves.divided(stack.window(arguments.minkowski)) if arguments.density else curves


def _in_memory(stack: Stack, quantity: str, arguments: argparse.Namespace) -> Curves:
    statistic = STATISTICS[quantity]
    image, *kept = stack.blocks.whole()
    options: dict[str, Any] = {name: getattr(arguments, name) for name in COMMON}
    if statistic.has_lengths:
        options |= {"estimator": arguments.minkowski, "spacing": stack.spacing}
    if quantity == "betti" and arguments.persistence is not None:
        options["min_persistence"] = arguments.persistence
    if stack.blocks.labels:
        if options["range"] is None and isinstance(arguments.thresholds, int):
            options["range"] = range_of(stack)  # the same for all places
        of_regions = getattr(ecc_core, statistic.of_regions)
        return _of_regions(of_regions, stack, image, kept[0], options)
    axes = tuple(range(image.ndim - stack.ndim, image.ndim))
    options |= {"nan": arguments.nan, "axis": axes}
    of_image = getattr(ecc_core, statistic.of_image)
    result = of_image(image, mask=kept[0] if kept else None, **options)
    return curves_in(result, stack.batch_axes, stack.places)


def _of_regions(
    function: Any, stack: Stack, image: Array, labels: Array, options: dict[str, Any]
) -> Curves:
    """Return the curves of the labels at all places on the batch axes."""
    parts = []
    for at, place in zip(np.ndindex(*stack.batch), stack.places, strict=True):
        result = function(*without_missing(image[at], labels[at], stack.filtration.nan), **options)
        rows = np.tile(place, (len(result.labels), 1))
        parts.append(curves_in(result, stack.batch_axes, rows))
    return joined_places(parts)
