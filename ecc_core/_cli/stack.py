"""``ecc stack``: the curve of an image larger than memory, computed block by block."""

import warnings
from argparse import ArgumentParser, Namespace

from ecc_core._cli import argument_types, lasting_by_boxes, options, outputs
from ecc_core._cli.blockwise import MOST_SAMPLED_BLOCKS, Stack, open_stack, thresholds_of
from ecc_core._cli.computing import totals_of, values_missed
from ecc_core._cli.errors import blame
from ecc_core._cli.inputs import Lengths
from ecc_core._io.curve_columns import Curves
from ecc_core._io.lazy import Array
from ecc_core._io.parts import Parts
from ecc_core._io.stack_job import StackJob
from ecc_core._io.stack_parts import WHOLE, Cut, fingerprint_of_values, write_part
from ecc_core._request.thresholds import hardly_any
from ecc_core.errors import InputFileError
from ecc_core.io import TABLE_SUFFIXES, write_table

DESCRIPTION = (
    "Compute the exact Euler characteristic curve of an image that need not fit in memory. The "
    "table has a column for each axis other than Z, Y and X, then label (with --labels), "
    "threshold, euler_number, and Betti numbers (b0, b1, ...) or Minkowski functionals (area, "
    "perimeter, ...) if they are asked for, and the unit of lengths. Partial results are kept "
    "beside the table until it is written, and --resume goes on from them. With --part, several "
    "jobs compute an image without knowing of each other."
)
PART_SUFFIX = ".npz"


def add_arguments(parser: ArgumentParser) -> None:
    options.add(parser, "input")
    written = argument_types.output((*TABLE_SUFFIXES, PART_SUFFIX))
    options.add(parser, "--out", required=True, type=written, after="; with --part, .npz")
    options.add(parser, "--part", "--resume", "--plot")
    usual = (
        "the range of the data type for 8-bit images, else the minimum and maximum of a few "
        "blocks, which are printed"
    )
    resources = options.add_curves(parser, usual, exact=False)
    options.add(resources, "--scheduler", "--device")


def run(arguments: Namespace) -> None:
    outputs.check_together(arguments)
    _check_part(arguments)
    if whole := outputs.needs_memory(arguments):
        raise InputFileError(
            f"{whole}, since the image is not in memory: use ecc curve or ecc batch"
        )
    path = arguments.input
    outputs.check_curves(arguments, [path])
    lengths = Lengths(arguments)
    stack = open_stack(path, lengths, arguments)
    of_pairs = lasting_by_boxes.lasts_in_volume(stack)
    if of_pairs:
        lasting_by_boxes.check_stack(path, arguments)
    at = thresholds_of(stack)
    lengths.keep(path, stack.calibration)
    if of_pairs:
        job = stack.job(at)
        _write(stack, job, job.joined([lasting_by_boxes.lasting_curves(stack, at)]))
        return
    parts = Parts(arguments.out.with_name(arguments.out.name + ".parts"))
    with parts.locked():
        if not arguments.resume:
            parts.clear()
        _compute(stack, at, parts)
        parts.clear()


def _check_part(arguments: Namespace) -> None:
    is_part = arguments.out.suffix.lower() == PART_SUFFIX
    if arguments.part is None and is_part:
        raise InputFileError(f"{arguments.out}: --part must be given, whose file this can be")
    if arguments.part is not None and not is_part:
        raise InputFileError(
            f"{arguments.out}: type not supported together with --part, must be {PART_SUFFIX}"
        )
    if arguments.part is not None and arguments.plot:
        raise InputFileError("--plot must be given to ecc merge instead of together with --part")


def _compute(stack: Stack, at: Array, parts: Parts) -> None:
    """Write the table of an image, or the totals of a part of it."""
    arguments = stack.arguments
    job = stack.job(at)
    with blame(stack.path):
        totals = totals_of(stack, job, parts.folder, arguments.part or WHOLE)
        if arguments.part is not None:
            across = max(map(len, job.chunks[1 - stack.view.ndim :]))
            cut = Cut(fingerprint_of_values(stack.blocks.views), min(stack.sizes.across, across))
            write_part(arguments.out, arguments.part, job=job, cut=cut, totals=totals)
            return
        curves = job.curves(totals)
    _write(stack, job, curves)


def _write(stack: Stack, job: StackJob, curves: Curves) -> None:
    """Write the table of an image."""
    arguments = stack.arguments
    with blame(stack.path):
        missed = values_missed(stack, curves, MOST_SAMPLED_BLOCKS)
        if missed is not None:
            low, high = missed
            values = f"which are from {low:g} to {high:g} in up to {MOST_SAMPLED_BLOCKS} blocks"
            warnings.warn(hardly_any(job.thresholds, f"the image, {values}"), stacklevel=2)
    table = job.table(curves)
    write_table(arguments.out, table.columns, metadata=table.metadata)
    outputs.plot([curves], arguments, stack.unit)
