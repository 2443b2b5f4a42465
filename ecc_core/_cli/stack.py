"""``ecc stack``: the curve of an image larger than memory, block by block, that can be resumed."""

from argparse import ArgumentParser, Namespace

from ecc_core._cli import options, outputs
from ecc_core._cli.blockwise import open_stack, thresholds_of
from ecc_core._cli.computing import curves_of
from ecc_core._cli.errors import blame
from ecc_core._cli.inputs import Lengths
from ecc_core._io.parts import Parts
from ecc_core.errors import InputFileError
from ecc_core.io import write_table

DESCRIPTION = (
    "Compute the exact Euler characteristic curve of an image that need not fit in memory. The "
    "table has a column for each axis other than Z, Y and X, then label (with --labels), "
    "threshold, euler_number, and Betti numbers (b0, b1, ...) or Minkowski functionals (area, "
    "perimeter, ...) if they are asked for, and the unit of lengths. Partial results are kept "
    "beside the table until it is written, and --resume goes on from them."
)


def add_arguments(parser: ArgumentParser) -> None:
    options.add(parser, "input")
    options.add(parser, "--out", required=True)
    options.add(parser, "--resume", "--plot")
    usual = (
        "the range of the data type for 8-bit images, else the minimum and maximum of a few "
        "blocks, which are printed"
    )
    resources = options.add_curves(parser, usual, exact=False)
    options.add(resources, "--scheduler", "--device")


def run(arguments: Namespace) -> None:
    outputs.check_together(arguments)
    if whole := outputs.needs_memory(arguments):
        raise InputFileError(
            f"{whole}, since the image is not in memory: use ecc curve or ecc batch"
        )
    path = arguments.input
    outputs.check_curves(arguments, [path])
    lengths = Lengths(arguments)
    stack = open_stack(path, lengths, arguments)
    at = thresholds_of(stack)
    lengths.keep(path, stack.calibration)
    parts = Parts(arguments.out.with_name(arguments.out.name + ".parts"))
    with parts.locked():
        if not arguments.resume:
            parts.clear()
        with blame(path):
            curves = curves_of(stack, at, parts.folder)
        columns = outputs.columns_of([curves], stack.view.axes[: -stack.view.ndim].lower())
        del columns["input"]
        outputs.add_facts(columns, arguments, stack.unit or "")
        settings = outputs.settings_of(arguments, thresholds=curves.thresholds)
        metadata = outputs.metadata_of(settings, inputs=[stack.facts], **stack.described(curves))
        write_table(arguments.out, columns, metadata=metadata)
        outputs.plot([curves], arguments, stack.unit)
        parts.clear()
