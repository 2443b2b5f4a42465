"""``ecc transform``: the Euler characteristic transform of a mask or of labelled regions."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli import options
from ecc_core._cli.lengths import Lengths, add_unit_argument
from ecc_core._io.write import printable
from ecc_core._optional import import_optional
from ecc_core._request.levels import round_to_levels
from ecc_core.errors import InputFileError
from ecc_core.io import write_figure, write_result
from ecc_core.transforms import (
    EulerTransform,
    RegionTransforms,
    euler_transform,
    region_transforms,
)

__all__ = ["add_parser"]

MOST_PANELS = 12


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "transform",
        help="compute the transform of a shape",
        description="Compute the Euler characteristic transform of a shape: for each direction, "
        "the Euler characteristic of the part below each height. The shape is an image of 0 and "
        "one other value, or the points of an image at or above a --threshold. The .npz file "
        "contains the arrays directions, heights and values, and labels with --labels; read_result "
        "also reads the axes and the unit.",
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    options.add_image_arguments(parser)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--labels",
        action="store_true",
        help="the image is a label image: compute one transform for each label",
    )
    kind.add_argument(
        "--weighted", action="store_true", help="use the values of the image as weights"
    )
    kind.add_argument(
        "--threshold",
        type=options.number,
        metavar="T",
        help="the shape is the points whose value is at least T",
    )
    parser.add_argument(
        "--out", type=options.output((".npz",)), metavar="FILE", help="file to write: .npz"
    )
    options.add_plot_argument(parser, f"; the first {MOST_PANELS} labels with --labels")
    parser.add_argument(
        "--directions",
        type=_count,
        default=64,
        metavar="N",
        help="number of directions (default: 64)",
    )
    parser.add_argument(
        "--heights", type=_count, default=128, metavar="N", help="number of heights (default: 128)"
    )
    parser.add_argument(
        "--range",
        type=options.value_range,
        metavar="LO,HI",
        help="range of the heights (default: plus and minus half the diagonal of the image, or of "
        "the bounding box of the largest label)",
    )
    parser.add_argument(
        "--normalize",
        choices=("radius",),
        help="with --labels: divide heights by the radius of each label",
    )
    options.add_connectivity_argument(parser)
    parser.add_argument(
        "--spacing",
        type=options.spacing,
        metavar="S|Z,Y,X",
        help="distance between neighbouring points, or along each axis (default: as in the file, "
        "otherwise 1)",
    )
    add_unit_argument(parser)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return int(text)


def run(arguments: argparse.Namespace) -> None:
    """Compute the transform and write it."""
    path = _only_input(arguments)
    if arguments.plot:
        import_optional("matplotlib", extra="io", purpose="plotting")
    stored, view, axes = options.select_single(path, arguments, "a transform is of one image")
    lengths = Lengths(arguments)
    found = lengths.of(stored, axes)
    image = view.read_all()
    with options.blame(path):
        result = _transform(image, found.spacing, arguments)
    lengths.keep(path, found)
    # heights in radii have no unit
    result = replace(result, axes=axes, units=None if arguments.normalize else found.unit or None)
    if arguments.out:
        write_result(arguments.out, result)
    if arguments.plot:
        _plot(arguments.plot, printable(Path(path).name), result)


def _only_input(arguments: argparse.Namespace) -> str:
    if len(arguments.inputs) > 1:
        raise InputFileError(f"{arguments.inputs[1]}: a transform is of one image, got more")
    if arguments.out is None and arguments.plot is None:
        raise InputFileError("nothing to write: give --out, --plot or both")
    if arguments.normalize and not arguments.labels:
        raise InputFileError("--normalize needs --labels")
    path: str = arguments.inputs[0]
    options.keep_inputs((arguments.out, arguments.plot), [path])
    return path


def _transform(
    image: NDArray[Any], spacing: Any, arguments: argparse.Namespace
) -> EulerTransform | RegionTransforms:
    common = {
        "directions": arguments.directions,
        "heights": arguments.heights,
        "range": arguments.range,
        "connectivity": arguments.connectivity,
        "spacing": spacing,
    }
    if arguments.labels:
        return region_transforms(image, normalize=arguments.normalize, **common)
    if arguments.weighted:
        return euler_transform(image, weighted=True, **common)
    if image.dtype.kind == "f" and np.isnan(image).any():
        raise ValueError("a shape must have no NaN")
    if arguments.threshold is not None:
        return euler_transform(_at_least(arguments.threshold, image), **common)
    values = image[image != 0]
    if (values != values[:1]).any():
        raise ValueError(
            "a shape must have 0 and one other value; --threshold T takes the points of at least "
            "T, --labels each label, --weighted the values as weights"
        )
    return euler_transform(image, **common)


def _at_least(threshold: NDArray[Any], image: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where an image reaches a threshold, without rounding either."""
    levels = round_to_levels(threshold, image.dtype.newbyteorder("="), True)
    if levels.values.size == 0:
        return np.zeros(image.shape, np.bool_)
    reached: NDArray[np.bool_] = image >= levels.values
    return reached


def _plot(path: Path, name: str, result: EulerTransform | RegionTransforms) -> None:
    from ecc_core.plotting import plot_transforms

    if isinstance(result, EulerTransform):
        write_figure(path, plot_transforms({name: result}))
        return
    shown = result.labels[:MOST_PANELS].tolist()
    named = {f"label {label}": result.select(label) for label in shown}
    write_figure(path, plot_transforms(named))
