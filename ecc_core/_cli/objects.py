"""``ecc objects``: the lasting components of an image, as labels and a table."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from ecc_core._cli import options
from ecc_core._cli.argument_types import INPUT, height, image_output
from ecc_core._cli.errors import blame
from ecc_core._cli.inputs import Calibration, Lengths, open_single
from ecc_core._cli.objects_by_boxes import Objects, fits_in_memory, objects_by_boxes
from ecc_core._cli.outputs import check_outputs, metadata_of, settings_of
from ecc_core._cli.paths import single_path
from ecc_core._io.affines import Affine
from ecc_core._io.blocks import Blocks
from ecc_core._io.stored import View
from ecc_core._io.units import converted
from ecc_core._io.write_image import (
    WRITTEN_SUFFIXES,
    check_image_output,
    grid_of,
    whole_grid_of,
    write_on_grid,
)
from ecc_core._io.writers.grid import Grid, Padded, Source
from ecc_core._request.filtration import check_spacing
from ecc_core.components import persistent_regions
from ecc_core.errors import InputFileError
from ecc_core.io import write_csv, write_figure, write_table
from ecc_core.quantities.persistence import PERSISTENCE

ONE = "objects are those of one image"
SIZES = {1: "length", 2: "area", 3: "volume"}
"""The column with the size of objects in world units, by the number of axes."""
DESCRIPTION = (
    "Label the components of the sets image <= t (with --superlevel: image >= t, for bright "
    "objects) that last for at least P as t grows, and write one row for each: its label, the "
    "values at which it is born and dies, their difference, the label of the older component that "
    "it then joins (0 if it never does), its number of points, and the indices of its extreme "
    "point in the file; and, where the distance of points is known, the place of that point in the "
    "world, the length, area or volume of the object, and their unit. Without --out, --table and "
    "--plot the table is printed as CSV."
)


def add_arguments(parser: ArgumentParser) -> None:
    options.add(parser, "inputs")
    options.add(options.add_selection(parser), "--mask", "--smooth")
    least = "least difference of the values at which an object is born and dies"
    options.add(parser, "--persistence", required=True, help=least)
    suffixes = ", ".join(WRITTEN_SUFFIXES)
    labels = (
        f"label image to write, with the spacing, unit and place of the image: {suffixes}; or "
        "{input}/labels/NAME in an OME-Zarr image, where {input} stands for its path"
    )
    options.add(parser, "--out", type=image_output, help=labels)
    extent = (
        "of the label image with --roi: that of the image, with 0 outside of the region (default), "
        "so that every program shows them aligned, or that of the region, placed where it is"
    )
    parser.add_argument("--extent", choices=("image", "roi"), default="image", help=extent)
    options.add(parser, "--table", after=options.FORMULAS)
    options.add(parser, "--plot", help="persistence diagram to write: .png, .pdf or .svg")
    up_to = "label only points up to this value, or with --superlevel from it on (default: all)"
    options.add(parser, "--threshold", help=up_to)
    parts = (
        "label only the points of each object up to this part of the way from the value at which "
        "it is born to that at which it dies (an object that never dies: to the last value of what "
        "it is connected with), and connected there: half, or a number from 0 to 1"
    )
    parser.add_argument("--cut", type=height, metavar="half", help=parts)
    options.add(parser, "--connectivity", "--superlevel", "--nan")
    beyond = f"{PERSISTENCE.boundaries.about}; one word, or one for each of the axes Z, Y and X"
    options.add(parser, "--boundary", help=beyond)
    options.add(parser, "--spacing", "--unit", before="of the table and of --smooth: ")
    resources = parser.add_argument_group("resources")
    limit = (
        "approximate memory limit, such as 600M or 4G: larger images are read by boxes, and labels "
        "written to .zarr (default: half of the memory that is available; boxes take 1G)"
    )
    options.add(resources, "--workers")
    options.add(resources, "--max-memory", default=None, help=limit)
    options.add(resources, "--resume", after=", of an image that is read by boxes")
    reason = "ecc curve computes this, of the objects with --labels and the image of --out"
    options.refuse(parser, reason, "--betti", "--minkowski", "--density")
    options.refuse(parser, reason, "--thresholds", "--range", "--labels")
    options.refuse(parser, "objects are found in images as they are", "--direction")


def run(arguments: Namespace) -> None:
    path = single_path(arguments.inputs, ONE)
    _name_output(path, arguments)
    check_outputs(arguments, [path], printed=True)
    lengths = Lengths(arguments)
    view, blocks, calibration = open_single(path, ONE, lengths, arguments)
    with blame(path):
        check_spacing(arguments.spacing, view.ndim)
    if calibration.spacing is not None:
        lengths.keep(path, calibration)
    if fits_in_memory(blocks, arguments):
        found = _in_memory(path, blocks, arguments)
        _write(path, found, view=view, calibration=calibration, arguments=arguments)
        return
    with objects_by_boxes(path, view, blocks, arguments) as found:
        _write(path, found, view=view, calibration=calibration, arguments=arguments)


def _in_memory(path: str, blocks: Blocks, arguments: Namespace) -> Objects:
    with blame(path):
        image, *mask = blocks.held().whole()
        names = ("connectivity", "superlevel", "nan", "boundary", "workers")
        given = {name: getattr(arguments, name) for name in names}
        given["threshold"] = None if arguments.threshold is None else arguments.threshold[0]
        given["rel_height"] = arguments.cut
        given["mask"] = mask[0] if mask else None
        found = persistent_regions(image, arguments.persistence, **given)
    points = np.bincount(found.labels.reshape(-1), minlength=len(found.births) + 1)[1:]
    return Objects(found, points, found.labels)


def _write(
    path: str, found: Objects, view: View, calibration: Calibration, arguments: Namespace
) -> None:
    """Write the labels, the table and the figure that are requested, or print the table."""
    if arguments.threshold is None and arguments.cut is None:
        sys.stderr.write(
            f"ecc: {path}: labels cover the background, too: --cut half or --threshold ends them\n"
        )
    if arguments.out:
        _write_labels(found.labels, view, arguments)
    affine = view.source.affine if arguments.spacing is None else None
    columns = _columns(found, view, calibration, affine)
    if arguments.table:
        facts = {"path": path, "axes": view.axes, "unit": calibration.unit or None}
        metadata = metadata_of(settings_of(arguments), inputs=[facts])
        write_table(arguments.table, columns, metadata=metadata)
    elif not (arguments.out or arguments.plot):
        write_csv(sys.stdout, columns)
    if arguments.plot:
        figure: Any = found.regions.plot().figure
        write_figure(arguments.plot, figure)


def _name_output(path: str, arguments: Namespace) -> None:
    """Replace {input} in the path of the labels by the path of the image."""
    if arguments.out is None or INPUT not in str(arguments.out):
        return
    try:
        arguments.out, _ = check_image_output(str(arguments.out).replace(INPUT, path))
    except (ValueError, OSError) as error:
        raise InputFileError(f"--out {error}") from None


def _write_labels(labels: Source, view: View, arguments: Namespace) -> None:
    """Write the labels of the selected part, or pad them to the extent of the image."""
    grid = grid_of(view)
    values: Any = labels
    if arguments.extent == "image" and arguments.roi:
        grid, shape = whole_grid_of(view)
        values = Padded(labels, view.start, shape)
    if arguments.spacing is not None:
        steps = check_spacing(arguments.spacing, view.ndim).tolist()
        spacing = dict(zip(view.axes, steps, strict=True))
        first = view.start if values is labels else (0,) * view.ndim
        places = (i * step for i, step in zip(first, steps, strict=True))
        origin = dict(zip(view.axes, places, strict=True))
        grid = Grid(view.axes, spacing, arguments.unit or "", origin)
    left_out = write_on_grid(arguments.out, values, grid, labels=True)
    if left_out:
        sys.stderr.write(f"ecc: {arguments.out}: {left_out}\n")


def _columns(
    objects: Objects, view: View, calibration: Calibration, affine: Affine | None
) -> dict[str, Any]:
    """Return the columns of the table, with a row for each label and indices in the file."""
    found = objects.regions
    ids = np.arange(1, len(found.births) + 1)
    never = -np.inf if found.superlevel else np.inf
    deaths = np.where(found.essential, never, found.deaths.astype(np.float64))
    indices = found.birth_points + np.array(view.start, np.int64)
    points = objects.points
    columns = {
        "label": ids,
        "birth": found.births,
        "death": deaths,
        "persistence": found.persistence,
        "merged_into": found.merged_into,
        "points": points,
        **{letter.lower(): index for letter, index in zip(view.axes, indices.T, strict=True)},
    }
    if calibration.spacing is None:
        return columns
    steps = check_spacing(calibration.spacing, view.ndim)
    if affine is None:  # Places are distances from the first point of the image.
        places = zip(view.axes, (indices * steps).T, strict=True)
        columns |= {f"world_{axis.lower()}": along for axis, along in places}
    else:
        factor = converted(1.0, affine.unit, calibration.unit)
        vectors = np.stack([affine.steps[axis] for axis in view.axes])
        world = factor * (indices @ vectors + affine.origin)
        columns |= {f"world_{axis}": world[:, "xyz".index(axis)] for axis in "zyx"}
    columns[SIZES[view.ndim]] = points * float(np.prod(steps))
    columns["unit"] = np.full(ids.size, calibration.unit)
    return columns
