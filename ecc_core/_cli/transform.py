"""``ecc transform``: the Euler characteristic transform of a mask or of labelled regions."""

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli import options
from ecc_core._cli.argument_types import output, positive
from ecc_core._cli.errors import blame
from ecc_core._cli.inputs import Lengths, read_single, say_labels_of_floats
from ecc_core._cli.meshes import transform_mesh
from ecc_core._cli.outputs import check_outputs
from ecc_core._cli.paths import single_path
from ecc_core._io.labels import whole_numbers
from ecc_core._io.meshes import MESH_SUFFIXES, is_mesh
from ecc_core._io.write import printable
from ecc_core._request.levels import round_to_levels
from ecc_core.errors import InputFileError
from ecc_core.io import RESULT_SUFFIXES, write_figure, write_result
from ecc_core.transforms import EulerTransform, RegionTransforms, euler_transform, region_transforms

MOST_PANELS = 12
ONE = "a transform is of one image"
DESCRIPTION = (
    "Compute the Euler characteristic transform of a shape: for each direction, the Euler "
    "characteristic of the part below each height. The shape is an image of 0 and one other value, "
    "or the points of an image at or above a --threshold, or a mesh "
    f"({', '.join(MESH_SUFFIXES)}). A .npz file contains the arrays "
    "directions, heights and values, and labels with --labels; a table has a row for each height "
    "of each direction. read_result also reads the axes and the unit."
)


def add_arguments(parser: ArgumentParser) -> None:
    options.add(parser, "inputs", after=f". Or a mesh: a file in {', '.join(MESH_SUFFIXES)}")
    options.add(options.add_selection(parser), "--mask", "--smooth")
    kind = parser.add_mutually_exclusive_group()
    labels = "the image is a label image: compute one transform for each label"
    kind.add_argument("--labels", action="store_true", help=labels)
    weighted = "use the values of the image as weights"
    kind.add_argument("--weighted", action="store_true", help=weighted)
    options.add(kind, "--threshold", help="the shape is the points whose value is at least T")
    suffixes = ", ".join(RESULT_SUFFIXES)
    options.add(parser, "--out", type=output(RESULT_SUFFIXES), help=f"file to write: {suffixes}")
    options.add(parser, "--plot", after=f"; the first {MOST_PANELS} labels with --labels")
    for name, count in {"directions": 64, "heights": 128}.items():
        number = f"number of {name} (default: {count})"
        parser.add_argument(f"--{name}", type=positive, default=count, metavar="N", help=number)
    heights = (
        "range of the heights (default: plus and minus half the diagonal of the image, or of the "
        "bounding box of the largest label)"
    )
    options.add(parser, "--range", help=heights)
    radius = (
        "with --labels: divide heights by the radius of each label; of a mesh: divide coordinates "
        "by the largest distance from the origin"
    )
    parser.add_argument("--normalize", choices=("radius",), help=radius)
    center = "of a mesh: move the mean of the points, or the centre of their box, to the origin"
    parser.add_argument("--center", choices=("mean", "box"), help=center)
    options.add(parser, "--connectivity", "--spacing", "--unit")
    reason = "a transform counts the cells of a shape at all heights of all directions"
    options.refuse(parser, reason, "--thresholds", "--direction", "--betti")
    options.refuse(parser, reason, "--persistence", "--minkowski", "--density")
    reason = "a shape is given by --threshold, and ends at its border"
    options.refuse(parser, reason, "--superlevel", "--boundary", "--nan")


def run(arguments: Namespace) -> None:
    if is_mesh(path := single_path(arguments.inputs, ONE)):
        transform_mesh(path, arguments)
        return
    if arguments.center:
        raise InputFileError(f"{path}: --center must not be given for an image")
    if arguments.normalize and not arguments.labels:
        raise InputFileError("--normalize needs --labels")
    if arguments.smooth and not (arguments.weighted or arguments.threshold is not None):
        raise InputFileError("--smooth needs --threshold or --weighted")
    check_outputs(arguments, [path])
    lengths = Lengths(arguments)
    view, image, mask, found = read_single(path, ONE, lengths, arguments)
    if arguments.labels and image.dtype.kind == "f":
        stored_dtype = image.dtype
        image = whole_numbers(image, path)
        say_labels_of_floats(path, stored_dtype, arguments)
    with blame(path):
        shape = _shape(image, mask, arguments)
        names = ("directions", "heights", "range", "connectivity")
        common = {name: getattr(arguments, name) for name in names} | {"spacing": found.spacing}
        result: EulerTransform | RegionTransforms = (
            region_transforms(shape, normalize=arguments.normalize, **common)
            if arguments.labels
            else euler_transform(shape, weighted=arguments.weighted, **common)
        )
    lengths.keep(path, found)
    # Heights in multiples of the radius have no unit.
    unit = None if arguments.normalize else found.unit or None
    result = replace(result, axes=view.axes, units=unit)
    if arguments.out:
        write_result(arguments.out, result)
    if arguments.plot:
        _plot(arguments.plot, printable(Path(path).name), result, shape)


def _shape(image: NDArray[Any], mask: NDArray[Any] | None, arguments: Namespace) -> NDArray[Any]:
    """Return the shape, the weights or the labels, which are 0 outside the mask."""
    if mask is not None:
        image = np.where(mask, image, image.dtype.type(0))
    if arguments.labels or arguments.weighted:
        return image
    if image.dtype.kind == "f" and np.isnan(image).any():
        raise ValueError("a shape must have no NaN")
    if arguments.threshold is not None:
        # The least value of the image's dtype that is not below the threshold.
        least = round_to_levels(arguments.threshold, image.dtype.newbyteorder("="), True).values
        shape: NDArray[np.bool_] = image >= least if least.size else np.zeros(image.shape, np.bool_)
        return shape if mask is None else shape & mask
    values = image[image != 0]
    if (values != values[:1]).any():
        raise ValueError(
            "a shape must have 0 and one other value; --threshold T takes the points of at least "
            "T, --labels each label, --weighted the values as weights"
        )
    return image


def _plot(
    path: Path, name: str, result: EulerTransform | RegionTransforms, shape: NDArray[Any]
) -> None:
    from ecc_core.plotting import plot_transforms

    if isinstance(result, EulerTransform):
        drawn = {name: result}
        shapes = {name: shape}
    else:
        names = {label: f"label {label}" for label in result.labels[:MOST_PANELS].tolist()}
        drawn = {name: result.select(label) for label, name in names.items()}
        shapes = {}
        for label, name in names.items():
            region = shape == label
            box = [slice(places.min(), places.max() + 1) for places in region.nonzero()]
            shapes[name] = region[tuple(box)]
    write_figure(path, plot_transforms(drawn, shapes if shape.ndim > 1 else None))
