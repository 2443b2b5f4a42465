"""``ecc surface``: the Euler characteristic surface of two images or channels."""

import argparse
from typing import Any

from numpy.typing import NDArray

from ecc_core._cli import options
from ecc_core._io.affines import Affine, check_place
from ecc_core._io.write import printable
from ecc_core._optional import import_optional
from ecc_core.errors import InputFileError
from ecc_core.io import RESULT_SUFFIXES, write_figure, write_result
from ecc_core.surfaces import euler_surface

__all__ = ["add_parser"]


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "surface",
        help="compute the surface of two images or channels",
        description="Compute the Euler characteristic of the points that are below a threshold in "
        "both of two images, for all pairs of thresholds. The table has one row for each pair.",
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    parser.add_argument("first", metavar="FIRST", help="first image")
    parser.add_argument(
        "second", metavar="SECOND", help="second image of the same shape; may be the same file"
    )
    group = options.add_selection_arguments(parser)
    group.add_argument(
        "--second-channel",
        type=options.channel,
        metavar="C",
        help="channel of the second image (default: as --channel)",
    )
    parser.add_argument(
        "--out",
        type=options.output(RESULT_SUFFIXES),
        metavar="FILE",
        help=f"file to write: {', '.join(RESULT_SUFFIXES)}",
    )
    options.add_plot_argument(parser)
    for which in ("first", "second"):
        options.add_thresholds_argument(
            parser, f"--thresholds-{which}", count=64, of=f" of the {which} image"
        )
        parser.add_argument(
            f"--range-{which}",
            type=options.value_range,
            metavar="LO,HI",
            help=f"range of the thresholds of the {which} image (default: that of its values)",
        )
    options.add_connectivity_argument(parser)
    parser.add_argument(
        "--superlevel",
        choices=("first", "second", "both"),
        help="use superlevel sets, image >= threshold, of the first image, the second or both",
    )
    options.add_nan_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Compute the surface and write it."""
    if arguments.out is None and arguments.plot is None:
        raise InputFileError("nothing to write: give --out, --plot or both")
    if arguments.plot:
        import_optional("matplotlib", extra="io", purpose="plotting")
    paths = (arguments.first, arguments.second)
    options.keep_inputs((arguments.out, arguments.plot), paths)
    first, place, lengths = _read(arguments.first, arguments)
    if arguments.second_channel is not None:
        arguments.channel = arguments.second_channel
    second, other, _ = _read(arguments.second, arguments)
    flags = tuple(arguments.superlevel in (which, "both") for which in ("first", "second"))
    with options.blame(", ".join(paths)):  # either may be the cause
        if first.shape == second.shape:
            check_place(f"the image {arguments.second}", other, place, lengths)
        surface = euler_surface(
            first,
            second,
            arguments.thresholds_first,
            arguments.thresholds_second,
            range_first=arguments.range_first,
            range_second=arguments.range_second,
            connectivity=arguments.connectivity,
            superlevel=(flags[0], flags[1]),
            nan=arguments.nan,
            axis=range(first.ndim),
        )
    if arguments.out:
        names = [printable(path) for path in paths]
        write_result(arguments.out, surface, metadata={"images": names})
    if arguments.plot:
        figure: Any = surface.plot().figure
        write_figure(arguments.plot, figure)


def _read(
    path: str, arguments: argparse.Namespace
) -> tuple[NDArray[Any], Affine | None, dict[str, int]]:
    """Return an image, where it lies, and its length along each axis."""
    stored, view, axes = options.select_single(path, arguments, "a surface is of single images")
    lengths = dict(zip(axes, view.shape, strict=True))
    return view.read_all(), options.affine_of(stored, view, axes), lengths
