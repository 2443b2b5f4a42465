"""``ecc batch``: a table with a row for each of many images. Those that fail are listed."""

import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ecc_core._cli import lasting_by_boxes, options, outputs
from ecc_core._cli.blockwise import Stack, held, open_stack, thresholds_of
from ecc_core._cli.computing import curves_of, values_missed
from ecc_core._cli.errors import FailedImages, blame, failure_of
from ecc_core._cli.inputs import Images, Lengths
from ecc_core._cli.paths import matching_paths
from ecc_core._cli.progress import progress_bar
from ecc_core._cli.version import version
from ecc_core._io.curve_columns import Curves, at_common_thresholds
from ecc_core._io.lazy import Array
from ecc_core._io.parts import Parts, fingerprint
from ecc_core._io.readers.zarr_images import plate_at
from ecc_core._partition import whole_box
from ecc_core._request.thresholds import HARDLY_ANY, hardly_any
from ecc_core.errors import InputFileError
from ecc_core.io import write_table

DESCRIPTION = (
    "Compute the curves of many images. The table has a row for each image (for each index of axes "
    "that are not Z, Y or X, and each label), with a column for every threshold and, with --betti "
    "or --minkowski, columns such as 'b0 12.5' or 'area 12.5'. Images that fail are listed at the "
    "end and the exit code is then 1; the table has all others."
)
PARTS = fingerprint({"rows": "of an image"})
LEAST_KEPT_SECONDS = 0.1
"""The least time of an image whose curves are kept for --resume."""
MOST_NAMED = 3
"""The most images that a warning names."""


def add_arguments(parser: ArgumentParser) -> None:
    images = (
        "images as for ecc stack, patterns such as 'images/*.ome.zarr', or OME-Zarr plates, whose "
        "fields have columns plate, well, row, column and field"
    )
    options.add(parser, "inputs", metavar="PATTERN", help=images)
    options.add(parser, "--out", required=True, after=options.FORMULAS)
    options.add(parser, "--resume", "--plot")
    resources = options.add_curves(parser, "none: it must be given with a number of thresholds")
    options.add(resources, "--scheduler", "--device")


def run(arguments: Namespace) -> None:
    """Compute the curves and write them, then raise FailedImages if any image failed."""
    outputs.check_together(arguments)
    wanted = arguments.thresholds
    if isinstance(wanted, int) and arguments.range is None:
        raise InputFileError("--range must be given, so that all images have the same thresholds")
    if np.ndim(wanted) and np.unique(wanted).size < len(wanted):
        raise InputFileError("--thresholds must differ, because each has a column of its own")
    images, failures = _expand(arguments.inputs)
    outputs.check_curves(arguments, [*images])
    found: list[Curves] = []
    missed: dict[str, tuple[float, float]] = {}  # Ranges of images that the thresholds miss.
    lengths = Lengths(arguments)
    taken = Images()
    parts = Parts(arguments.out.with_name(arguments.out.name + ".parts"), PARTS)
    with parts.locked(), progress_bar(steps=len(images)) as start:
        if not arguments.resume:
            parts.clear()
        for path in images:
            start(f"curve of {Path(path).name}")
            try:
                stack = _open(path, lengths, arguments)
                if not taken.has(path, stack.view.source):
                    curves = _curves(path, stack, lengths, parts)
                    own = values_missed(stack, curves)
                    if own is not None:
                        missed[path] = own
                    found.append(curves)
                    lengths.keep(path, stack.calibration)
            except Exception as error:  # An error of one image does not affect the others.
                failures.append(failure_of(path, error))
        if missed:
            _warn_of_missed(missed, found)
        if found:
            found = at_common_thresholds(found, superlevel=arguments.superlevel)
            columns = outputs.wide_columns_of(found, images, lengths.unit, arguments)
            settings = outputs.settings_of(arguments, thresholds=found[-1].thresholds)
            metadata = outputs.metadata_of(settings, failed=failures)
            write_table(arguments.out, columns, metadata=metadata)
            outputs.plot(found, arguments, lengths.unit)
        if not failures:
            parts.clear()
    if failures:
        raise FailedImages(*failures)


def _expand(patterns: Sequence[str]) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return distinct paths in the order of the patterns, positions on plates, and failures."""
    paths: dict[str, dict[str, str]] = {}
    failures: list[str] = []
    for path in matching_paths(patterns):
        try:
            plate = plate_at(path)
            paths |= {path: {}} if plate is None else plate.images
            if plate is not None:
                failures += [f"{path}: its well {well} is missing" for well in plate.missing]
        except Exception as error:  # An error of one path does not affect the others.
            failures.append(failure_of(path, error))
    return paths, failures


def _needs_whole(arguments: Namespace) -> bool:
    return bool(outputs.needs_memory(arguments)) or arguments.persistence is not None


def _open(path: str, lengths: Lengths, arguments: Namespace) -> Stack:
    return open_stack(path, lengths, arguments, whole=_needs_whole(arguments))


def _curves(path: str, stack: Stack, lengths: Lengths, parts: Parts) -> Curves:
    """Return the curves of an image, which are loaded if an earlier run has kept them."""
    arguments = stack.arguments
    at = table = None
    if not isinstance(arguments.thresholds, str):
        at = thresholds_of(stack)
        blocks = stack.blocks
        determines = {
            "views": stack.description(),
            "files": blocks.stamps(whole_box(blocks.image.shape)),
            "settings": outputs.settings_of(arguments, thresholds=at),
            "version": version(),
        }
        stamp = fingerprint(determines)
        table = parts.load(0, stamp)
    if at is not None and table is not None:
        measures = {name: table[name] for name in table.dtype.names or ()}
        heads = {name: measures.pop(name) for name in (*stack.heads, "label") if name in measures}
        curves = Curves(path, at, heads, measures)
    else:
        started = time.monotonic()
        with blame(path):
            curves = _computed(stack, at, lengths)
        if at is not None and time.monotonic() - started > LEAST_KEPT_SECONDS:
            arrays = {**curves.heads, **curves.measures}
            types = [(name, array.dtype, array.shape[1:]) for name, array in arrays.items()]
            table = np.empty(curves.rows, types)  # A structured array, with a row for each curve.
            for name, array in arrays.items():
                table[name] = array
            parts.keep(0, stamp, table)
    return curves


def _computed(stack: Stack, at: Array | None, lengths: Lengths) -> Curves:
    """Return the curves of an image, which is read as a whole only if this is needed."""
    if not _needs_whole(stack.arguments):
        return curves_of(stack, at)
    if not lasting_by_boxes.is_needed(stack):
        return _in_memory(stack)
    lasting_by_boxes.check(stack.path, [stack.path], stack.arguments)
    assert at is not None  # `check` refuses thresholds that are not known before.
    by_boxes = open_stack(stack.path, lengths, stack.arguments)
    return lasting_by_boxes.lasting_curves(by_boxes, at)


def _in_memory(stack: Stack) -> Curves:
    """Return the curves of an image that is read as a whole.

    Warnings about its thresholds are suppressed: `_warn_of_missed` warns of all images at once.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=HARDLY_ANY)
        return curves_of(held(stack))


def _warn_of_missed(missed: Mapping[str, tuple[float, float]], found: Sequence[Curves]) -> None:
    """Warn once of all images with hardly any threshold among their values."""
    at = found[0].thresholds
    named = [f"{path} ({low:g} to {high:g})" for path, (low, high) in missed.items()]
    rest = len(named) - MOST_NAMED
    others = f", and {rest} more" if rest > 0 else ""
    listed = f"{', '.join(named[:MOST_NAMED])}{others}"
    images = f"{len(named)} of {len(found)} images: {listed}"
    warnings.warn(hardly_any(at, images), stacklevel=2)
