"""``ecc objects``: the objects of an image that last, as labels and a table."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from ecc_core._cli import options
from ecc_core._cli.errors import blame
from ecc_core._cli.inputs import Lengths, read_single, single_path
from ecc_core._cli.outputs import check_outputs, metadata_of, settings_of
from ecc_core._cli.values import output
from ecc_core._io.write import LABEL_SUFFIXES, write_labels
from ecc_core._request.filtration import boundary_names
from ecc_core.components import persistent_regions
from ecc_core.io import write_csv, write_figure, write_table
from ecc_core.results import PersistentRegions

ONE = "objects are those of one image"
DESCRIPTION = (
    "Label the components of the sets image <= t (with --superlevel: image >= t, for bright "
    "objects) that last for at least P as t grows, and write one row for each: its label, the "
    "values at which it is born and dies, their difference, the label of the older component that "
    "it then joins (0 if it never does), its number of points, and the indices of its extreme "
    "point. Without --out, --table and --plot the table is printed as CSV."
)


def add_arguments(parser: ArgumentParser) -> None:
    options.add(parser, "inputs")
    options.add(options.add_selection(parser), "--mask", "--smooth")
    least = "least difference of the values at which an object is born and dies"
    options.add(parser, "--persistence", required=True, help=least)
    suffixes = ", ".join(LABEL_SUFFIXES)
    labels = f"label image to write: {suffixes}"
    options.add(parser, "--out", type=output(LABEL_SUFFIXES), help=labels)
    options.add(parser, "--table", after=options.FORMULAS)
    options.add(parser, "--plot", help="persistence diagram to write: .png, .pdf or .svg")
    up_to = "label only points up to this value, or with --superlevel from it on (default: all)"
    options.add(parser, "--threshold", help=up_to)
    options.add(parser, "--connectivity", "--superlevel", "--nan")
    beyond = "the image ends at its border (default), or opposite sides touch"
    options.add(parser, "--boundary", choices=boundary_names("betti"), help=beyond)
    options.add(parser, "--spacing", "--unit", before="with --smooth: ")
    reason = "ecc curve computes this, of the objects with --labels and the image of --out"
    options.refuse(parser, reason, "--betti", "--minkowski", "--density")
    options.refuse(parser, reason, "--thresholds", "--range", "--labels")
    options.refuse(parser, "objects are found in images as they are", "--direction")


def run(arguments: Namespace) -> None:
    path = single_path(arguments.inputs, ONE)
    check_outputs(arguments, [path], printed=True)
    view, image, mask, _ = read_single(path, ONE, Lengths(arguments), arguments)
    axes = view.axes
    with blame(path):
        names = ("connectivity", "superlevel", "nan", "boundary")
        given = {name: getattr(arguments, name) for name in names}
        given["threshold"] = None if arguments.threshold is None else arguments.threshold[0]
        found = persistent_regions(image, arguments.persistence, mask=mask, **given)
    if arguments.out:
        write_labels(arguments.out, found.labels, axes)
    columns = _columns(found, axes, view.start)
    if arguments.table:
        metadata = metadata_of(settings_of(arguments), inputs=[{"path": path, "axes": axes}])
        write_table(arguments.table, columns, metadata=metadata)
    elif not (arguments.out or arguments.plot):
        write_csv(sys.stdout, columns)
    if arguments.plot:
        figure: Any = found.plot().figure
        write_figure(arguments.plot, figure)


def _columns(found: PersistentRegions, axes: str, first: tuple[int, ...]) -> dict[str, Any]:
    """Return one row for each label; indices are those in the file."""
    ids = np.arange(1, len(found.births) + 1)
    never = -np.inf if found.superlevel else np.inf
    deaths = np.where(found.essential, never, found.deaths.astype(np.float64))
    indices = found.birth_points + np.array(first, np.int64)
    return {
        "label": ids,
        "birth": found.births,
        "death": deaths,
        "persistence": found.persistence,
        "merged_into": found.merged_into,
        "points": np.bincount(found.labels.reshape(-1), minlength=ids.size + 1)[1:],
        **{letter.lower(): index for letter, index in zip(axes, indices.T, strict=True)},
    }
