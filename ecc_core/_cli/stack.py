"""``ecc stack``: the curve of an image larger than memory, block by block, that can be resumed."""

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from ecc_core._cli import options
from ecc_core._cli.blockwise import Stack, add_blockwise_arguments, open_stack, thresholds_of
from ecc_core._cli.curve_table import Curves, columns_of, described, plot
from ecc_core._cli.errors import blame
from ecc_core._cli.lengths import Lengths
from ecc_core._cli.outputs import check_outputs, metadata_of, settings_of, settle_estimator
from ecc_core._cli.summing import curves_of
from ecc_core._io.parts import Parts
from ecc_core.io import write_table
from ecc_core.results import curve_facts

__all__ = ["DESCRIPTION", "HELP", "add_arguments", "run"]

HELP = "compute the curve of an image larger than memory"
DESCRIPTION = (
    "Compute the exact Euler characteristic curve of an image that need not fit in memory. The "
    "table has a column for each axis other than Z, Y and X, then label (with --labels), "
    "threshold, euler_number, and Betti numbers (b0, b1, ...) or Minkowski functionals (area, "
    "perimeter, ...) if they are asked for, and the unit of lengths. Partial results are kept "
    "beside the table until it is written, and --resume goes on from them."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    options.add(parser, "input")
    options.add(parser, "--out", required=True)
    options.add(parser, "--resume", "--plot")
    add_blockwise_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Compute the curve and write it."""
    check_outputs(arguments, [arguments.input, arguments.labels])
    settle_estimator(arguments)
    lengths = Lengths(arguments)
    stack = open_stack(arguments.input, lengths, arguments)
    at = thresholds_of(stack, arguments)
    if stack.calibration:
        lengths.keep(arguments.input, stack.calibration)
    parts = Parts(arguments.out.with_name(arguments.out.name + ".parts"))
    with parts.locked():
        with blame(arguments.input):
            curves = curves_of(stack, at, arguments, parts.folder, resume=arguments.resume)
        _write(stack, curves, arguments)
        parts.clear()


def _write(stack: Stack, curves: Curves, arguments: argparse.Namespace) -> None:
    found = [(arguments.input, curves)]
    columns = columns_of(found, stack.batch_axes)
    del columns["input"]
    if stack.spacing is not None:
        columns["unit"] = np.full(curves.values.size, stack.unit or "")
    if arguments.minkowski:
        columns["estimator"] = np.full(curves.values.size, arguments.minkowski)
    write_table(arguments.out, columns, metadata=_metadata(stack, curves, arguments))
    if arguments.plot:
        plot(arguments.plot, found, superlevel=arguments.superlevel, unit=stack.unit)


def _metadata(stack: Stack, curves: Curves, arguments: argparse.Namespace) -> dict[str, Any]:
    image, direction = stack.blocks.image, stack.blocks.direction
    facts = curve_facts(replace(stack.filtration, direction=direction))
    if direction is not None:
        facts["spacing_units"] = stack.unit
    facts_of_input = {
        "path": arguments.input,
        "axes": stack.axes,
        "shape": image.shape,
        "dtype": image.source.dtype.name,
        "spacing": stack.spacing and list(stack.spacing),
        "unit": stack.unit,
    }
    return metadata_of(
        settings_of(arguments, thresholds=curves.thresholds),
        inputs=[facts_of_input],
        **described(curves, stack.batch, facts),
    )
