"""``ecc stack``: the curve of an image larger than memory, block by block, that can be resumed."""

import argparse
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli import options
from ecc_core._cli.blockwise import Stack, open_stack, thresholds_of
from ecc_core._cli.curve_table import Curve
from ecc_core._cli.lengths import Lengths
from ecc_core._cli.stack_options import add_stack_arguments
from ecc_core._cli.summing import Curves, curves_of
from ecc_core._cli.version import version
from ecc_core._io.parts import Parts
from ecc_core._io.results import describe_result
from ecc_core._io.write import printable
from ecc_core._optional import import_optional
from ecc_core.io import write_figure, write_table
from ecc_core.results import (
    BettiCurves,
    EulerCurve,
    MinkowskiCurves,
    RegionCurves,
    curve_facts,
)

__all__ = ["add_parser", "settings_of"]

Array = NDArray[Any]


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "stack",
        help="compute the curve of an image larger than memory",
        description="Compute the exact Euler characteristic curve of an image that need not fit in "
        "memory. The table has a column for each axis other than Z, Y and X, then label (with "
        "--labels), threshold, euler_number, and Betti numbers (b0, b1, ...) or Minkowski "
        "functionals (area, perimeter, ...) if they are asked for, and the unit of lengths. "
        "Partial results are kept beside the table until it is written, and --resume goes on from "
        "them.",
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "input",
        metavar="INPUT",
        help=options.INPUT,
    )
    options.add_table_argument(parser, required=True, names=False)
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue from the partial results of an interrupted run",
    )
    add_stack_arguments(parser)
    options.add_plot_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Compute the curve and write it."""
    options.keep_inputs([arguments.plot], [arguments.input, arguments.labels])
    if arguments.plot:
        import_optional("matplotlib", extra="io", purpose="plotting")
    options.settle_estimator(arguments)
    lengths = Lengths(arguments)
    stack = open_stack(arguments.input, lengths, arguments)
    at = thresholds_of(stack, arguments)
    if stack.calibration:
        lengths.keep(arguments.input, stack.calibration)
    parts = Parts(arguments.out.with_name(arguments.out.name + ".parts"))
    with parts.locked():
        with options.blame(arguments.input):
            curves = curves_of(stack, at, arguments, parts.folder, resume=arguments.resume)
        _write(stack, at, curves, arguments)
        parts.clear()


def _write(stack: Stack, at: Array, curves: Curves, arguments: argparse.Namespace) -> None:
    image = stack.blocks.image
    metadata = {
        "software": f"napari-ecc {version()}",
        "settings": settings_of(arguments, at),
        "inputs": [
            {
                "path": arguments.input,
                "axes": stack.axes,
                "shape": image.shape,
                "dtype": image.source.dtype.name,
                "spacing": stack.spacing and list(stack.spacing),
                "unit": stack.unit,
            }
        ],
        **_described(stack, at, curves),
    }
    columns = _columns(stack, at, curves)
    if arguments.minkowski:
        columns["estimator"] = np.full(curves.values.size, arguments.minkowski)
    write_table(arguments.out, columns, metadata=metadata)
    if arguments.plot:
        _plot(arguments.plot, stack, at, curves, arguments)


def _described(stack: Stack, at: Array, curves: Curves) -> dict[str, Any]:
    """Return what `ecc_core.io.read_result` needs; {} for labels along batch axes."""
    facts = curve_facts(replace(stack.filtration, direction=stack.blocks.direction))
    if stack.blocks.direction is not None:
        facts["spacing_units"] = stack.unit
    if curves.labels is None:
        values = curves.values.reshape((*stack.batch, at.size))
        return {"result": describe_result(EulerCurve(at, values, **facts))}
    if stack.batch:
        return {}
    return {"result": describe_result(RegionCurves(curves.labels, at, curves.values, **facts))}


def _columns(stack: Stack, at: Array, curves: Curves) -> dict[str, Array]:
    """Return columns with one row for each threshold of each curve."""
    columns = {
        letter: np.repeat(index, at.size)
        for letter, index in zip(stack.batch_axes, curves.places.T, strict=True)
    }
    if curves.labels is not None:
        columns["label"] = np.repeat(curves.labels, at.size)
    columns["threshold"] = np.tile(at, len(curves.values))
    columns["euler_number"] = curves.values.ravel()
    columns |= {name: values.ravel() for name, values in curves.others.items()}
    if stack.spacing is not None:
        columns["unit"] = np.full(curves.values.size, stack.unit or "")
    return columns


def settings_of(arguments: argparse.Namespace, at: Array) -> dict[str, Any]:
    names = (
        "labels",
        "connectivity",
        "superlevel",
        "boundary",
        "betti",
        "minkowski",
        "nan",
        "direction_scale",
        "spacing",
        "unit",
    )
    settings = {name: getattr(arguments, name) for name in names} | options.selection_of(arguments)
    given = arguments.direction
    settings["direction"] = None if given is None else given.tolist()
    settings["thresholds"] = [str(t) if math.isinf(t) else t for t in at.tolist()]
    return settings


def _plot(
    path: Path, stack: Stack, at: Array, curves: Curves, arguments: argparse.Namespace
) -> None:
    from ecc_core.plotting import plot_curves

    others = [*curves.others.values()]
    facts: dict[str, Any] = {"superlevel": arguments.superlevel}
    named: dict[str, Curve] = {}
    for row, (place, euler) in enumerate(zip(curves.places.tolist(), curves.values, strict=True)):
        pairs = zip(stack.batch_axes.upper(), place, strict=True)
        words = [f"{letter} {i}" for letter, i in pairs]
        if curves.labels is not None:
            words.append(f"label {curves.labels[row]}")
        curve: Curve = EulerCurve(at, euler, **facts)
        if arguments.betti:
            curve = BettiCurves(at, np.stack([own[row] for own in others]), **facts)
        elif arguments.minkowski:
            curve = MinkowskiCurves(at, np.stack([*(own[row] for own in others), euler]), **facts)
        named[" ".join(words) or printable(Path(arguments.input).name)] = curve
    write_figure(path, plot_curves(named))
