"""Arguments of the commands that take images larger than memory."""

import argparse
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli import options
from ecc_core._cli.lengths import add_unit_argument
from ecc_core.io import IMAGE_SUFFIXES

__all__ = ["add_stack_arguments", "labels_path"]

STEM_ENDS = (*IMAGE_SUFFIXES, ".ome", ".gz")


def add_stack_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the curve and of the resources."""
    _add_selection(parser)
    _add_filtration(parser)
    resources = parser.add_argument_group("resources")
    resources.add_argument(
        "--workers", type=positive, metavar="N", help="number of threads (default: one per core)"
    )
    resources.add_argument(
        "--max-memory",
        type=memory,
        default=1 << 30,
        metavar="SIZE",
        help="approximate memory limit, such as 600M or 4G; large blocks are processed by fewer "
        "threads (default: 1G)",
    )
    resources.add_argument(
        "--scheduler", metavar="ADDRESS", help="use this dask cluster instead of threads"
    )
    resources.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        default="cpu",
        help="device that computes the curves (default: cpu)",
    )


def _add_selection(parser: argparse.ArgumentParser) -> None:
    options.add_selection_arguments(parser).add_argument(
        "--labels",
        metavar="PATH",
        help="label image: compute one curve for each label instead of one for the image. {input} "
        "is replaced by the path of the image and {stem} by the path without suffix, as in "
        "{input}/labels/cells or {stem}_labels.tif",
    )


def _add_filtration(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("curve")
    options.add_thresholds_argument(what)
    what.add_argument(
        "--range",
        type=options.value_range,
        metavar="LO,HI",
        help="range of the thresholds (default: the range of the data type for 8-bit images, else "
        "the minimum and maximum of a few blocks, which are printed)",
    )
    what.add_argument("--connectivity", type=int, metavar="N", help="as for ecc curve")
    what.add_argument("--superlevel", action="store_true", help="use superlevel sets")
    options.add_boundary_argument(what)
    what.add_argument(
        "--betti",
        action="store_true",
        help="add the Betti numbers: components, holes (2-D) or tunnels (3-D), cavities",
    )
    options.add_minkowski_argument(what)
    what.add_argument("--nan", choices=("raise", "omit"), default="raise", help="as for ecc curve")
    what.add_argument(
        "--direction",
        type=vector,
        metavar="Z,Y,X",
        help="direction of a directional filtration, one number for each of the axes Z, Y and X",
    )
    what.add_argument(
        "--direction-scale",
        type=float,
        metavar="A",
        help="factor of the directional term, in values of the image per unit of length (default: "
        "1)",
    )
    what.add_argument(
        "--spacing",
        type=options.spacing,
        metavar="H|Z,Y,X",
        help="with --direction or --minkowski: distance between points, along each axis or along "
        "all (default: as in the file, otherwise 1)",
    )
    add_unit_argument(what, only="with --direction or --minkowski: ")


def positive(text: str) -> int:
    """Return a positive number."""
    if not re.fullmatch(r"0*[1-9]\d*", text):
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return int(text)


def memory(text: str) -> int:
    """Return a number of bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)B?", text.upper())
    size = 0 if found is None else int(float(found[1]) * 1024 ** " KMGT".index(found[2] or " "))
    if size < 1:
        raise argparse.ArgumentTypeError(f"must be a size such as 600M or 4G, got {text!r}")
    return size


def vector(text: str) -> NDArray[np.float64]:
    """Return a number for each axis."""
    try:
        return np.array([float(word) for word in text.split(",")])
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers such as 1,0,0, got {text!r}") from None


def labels_path(pattern: str, image: str) -> str:
    """Return the path of the label image of an image."""
    stem = image
    while (suffix := Path(stem).suffix.lower()) in STEM_ENDS:
        stem = stem[: -len(suffix)]
    return pattern.replace("{input}", image).replace("{stem}", stem)
