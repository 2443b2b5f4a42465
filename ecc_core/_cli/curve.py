"""``ecc curve``: the Euler characteristic curves of images, as a table and a figure."""

import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

from ecc_core._cli import lasting_by_boxes, options, outputs
from ecc_core._cli.blockwise import Stack, held, open_stack, range_of, thresholds_of
from ecc_core._cli.computing import curves_of
from ecc_core._cli.errors import FailedImages, blame, failure_of
from ecc_core._cli.inputs import Images, Lengths
from ecc_core._cli.meshes import curves_of_meshes
from ecc_core._cli.paths import matching_paths
from ecc_core._cli.progress import progress_bar
from ecc_core._io.curve_columns import Curves, add_facts, columns_of
from ecc_core._io.meshes import MESH_SUFFIXES, VALUE_SUFFIXES, is_mesh
from ecc_core._io.write import json_of
from ecc_core.errors import InputFileError
from ecc_core.io import write_csv, write_table
from ecc_core.quantities import CURVES
from ecc_core.quantities.registry import quantities_of

DESCRIPTION = (
    "Compute the exact Euler characteristic curve of each image. The table has the columns input, "
    "label (with --labels), threshold, euler_number, b0, b1, ... (with --betti), points, largest, "
    "spanning_0, ... (with --components), and area and "
    "perimeter, or volume, surface and mean_breadth (with --minkowski), whose unit of length is in "
    "the column unit. Settings other than the defaults, such as a connectivity, have columns, too. "
    "Without --out it is printed as CSV, or as JSON with --json."
)
MOST_READ_AT_ONCE = 1 << 26
"""The most bytes of an image that is computed as a whole, and not by blocks."""


def add_arguments(parser: ArgumentParser) -> None:
    more = (
        f". With --values, a mesh: a file in {', '.join(MESH_SUFFIXES)}. Patterns such as "
        "'images/*.tif'; - reads NPY from stdin"
    )
    options.add(parser, "inputs", after=more)
    options.add(parser, "--out", after=options.FORMULAS)
    options.add(parser, "--json", "--plot")
    values = (
        f"the input is a mesh ({', '.join(MESH_SUFFIXES)}), and this file has a value for each of "
        f"its points ({', '.join(VALUE_SUFFIXES)}). Of several meshes {{stem}} and {{name}} stand "
        "for the path without suffix, as for --mask. Of several arrays in a VTK file, one is named "
        "as in mesh.vtp/thickness. Not needed for a mesh in a VTK file with one array"
    )
    parser.add_argument("--values", help=values, metavar="PATH")
    options.add_curves(parser, "minimum and maximum, of all images together")
    reason = "ecc curve computes in this process, from images in memory: use ecc stack or ecc batch"
    options.refuse(parser, reason, "--scheduler", "--device", "--resume")
    parser.set_defaults(scheduler=None, device="cpu")


def run(arguments: Namespace) -> None:
    outputs.check_together(arguments)
    if arguments.json and arguments.out:
        raise InputFileError("--json must not be given together with --out, whose suffix says it")
    paths = matching_paths(arguments.inputs)
    outputs.check_curves(arguments, paths, printed=True)
    if arguments.values is not None or any(map(is_mesh, paths)):
        of_meshes, described = curves_of_meshes(paths, arguments)
        _write(of_meshes, described, unit="", failures=[], arguments=arguments)
        return
    found: list[Curves] = []
    facts: list[dict[str, Any]] = []
    failures: dict[str, str] = {}
    lengths = Lengths(arguments)
    images = Images()
    with progress_bar(steps=2 * len(paths)) as start:
        if len(paths) > 1 and arguments.range is None and isinstance(arguments.thresholds, int):
            arguments.range = _common_range(paths, lengths, arguments, failures)
        for path in paths:
            if path in failures:
                continue
            start(f"reading {Path(path).name}")
            with _collected(path, paths, failures):
                stack = open_stack(path, lengths, arguments, whole=True)
                if images.has(path, stack.view.source):
                    start(f"{Path(path).name} left out")
                    continue
                if lasting_by_boxes.is_needed(stack):
                    lasting_by_boxes.check(path, paths, arguments)
                    start(f"curve of {Path(path).name}")
                    stack = open_stack(path, lengths, arguments)
                    at = thresholds_of(stack, sampled=False)
                    curves = lasting_by_boxes.lasting_curves(stack, at)
                else:
                    stack = held(stack)
                    start(f"curve of {Path(path).name}")
                    with blame(path):
                        curves = _curves(stack)
                lengths.keep(path, stack.calibration)
                found.append(curves)
                facts.append(stack.facts | stack.job().described(curves))
                del stack  # Its memory is needed for the next image.
    if found:
        _write(found, facts, unit=lengths.unit, failures=[*failures.values()], arguments=arguments)
    if failures:
        raise FailedImages(*failures.values())


@contextmanager
def _collected(path: str, paths: Sequence[str], failures: dict[str, str]) -> Iterator[None]:
    """Record the error of one of several images, so that the others are computed."""
    try:
        yield
    except Exception as error:
        if len(paths) == 1:
            raise
        failures[path] = failure_of(path, error)


def _common_range(
    paths: Sequence[str], lengths: Lengths, arguments: Namespace, failures: dict[str, str]
) -> tuple[Any, Any] | None:
    """Return the minimum and maximum of all images, which are read for it."""
    ends: list[Any] = []
    for path in paths:
        # Notes are suppressed here, and printed when the image is read again.
        without_notes = redirect_stderr(StringIO())
        with _collected(path, paths, failures), blame(path), without_notes:
            ends += range_of(_read(path, lengths, arguments)) or ()
    arguments.said.clear()
    return (min(ends), max(ends)) if ends else None


def _write(
    found: list[Curves],
    facts: list[dict[str, Any]],
    unit: str,
    failures: list[str],
    arguments: Namespace,
) -> None:
    """Write or print the table, and draw the curves."""
    columns = columns_of(found)
    add_facts(columns, arguments, unit)
    failed = {"failed": failures} if failures else {}
    metadata = outputs.metadata_of(outputs.settings_of(arguments), inputs=facts, **failed)
    if arguments.out:
        write_table(arguments.out, columns, metadata=metadata)
    elif arguments.json:
        sys.stdout.write(json_of(columns, metadata))
    else:
        write_csv(sys.stdout, columns)
    outputs.plot(found, arguments, unit)


def _read(path: str, lengths: Lengths, arguments: Namespace) -> Stack:
    """Return an image in memory."""
    return held(open_stack(path, lengths, arguments, whole=True))


def _curves(stack: Stack) -> Curves:
    """Return the curves of an image in memory, by blocks if this needs less memory."""
    blocks = stack.blocks
    arguments = stack.arguments
    needs_whole = outputs.needs_memory(arguments) or arguments.persistence is not None
    # The function of a plain image needs little more memory than the image.
    is_plain = (
        quantities_of(arguments) == [CURVES["euler"]]
        and len(blocks.views) == 1
        and not blocks.is_masked
        and not blocks.direction
    )
    is_small = math.prod(blocks.image.shape) * blocks.bytes_a_point < MOST_READ_AT_ONCE
    if needs_whole or ((is_plain or is_small) and not blocks.smoothing):
        return curves_of(stack)
    return curves_of(stack, thresholds_of(stack, sampled=False))
