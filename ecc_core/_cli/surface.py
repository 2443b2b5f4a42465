"""``ecc surface``: the Euler characteristic surface of two images or channels."""

import argparse
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ecc_core._cli import options
from ecc_core._io.write import printable
from ecc_core._optional import import_optional
from ecc_core.errors import InputFileError
from ecc_core.io import FIGURE_SUFFIXES, RESULT_SUFFIXES, write_figure, write_result
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
        metavar="N|NAME",
        help="channel of the second image (default: as --channel)",
    )
    parser.add_argument(
        "--out",
        type=options.output(RESULT_SUFFIXES),
        metavar="FILE",
        help=f"file to write: {', '.join(RESULT_SUFFIXES)}",
    )
    parser.add_argument(
        "--plot",
        type=options.output(FIGURE_SUFFIXES),
        metavar="FILE",
        help="figure to write: .png, .pdf or .svg",
    )
    for which in ("first", "second"):
        parser.add_argument(
            f"--thresholds-{which}",
            type=options.thresholds,
            default=64,
            metavar="N|A,B,...",
            help=f"number of thresholds of the {which} image, or the thresholds (default: 64)",
        )
        parser.add_argument(
            f"--range-{which}",
            type=options.value_range,
            metavar="LO,HI",
            help=f"range of the thresholds of the {which} image (default: that of its values)",
        )
    parser.add_argument(
        "--connectivity",
        type=int,
        metavar="N",
        help="as in scikit-image: 1 for 4- or 6-connectivity; the number of axes, the default, for "
        "8- or 26-connectivity",
    )
    parser.add_argument(
        "--superlevel",
        choices=("first", "second", "both"),
        help="use superlevel sets, image >= threshold, of the first image, the second or both",
    )
    parser.add_argument(
        "--nan",
        choices=("raise", "omit"),
        default="raise",
        help="reject images with NaN, or omit these points (default: raise)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Compute the surface and write it."""
    if arguments.out is None and arguments.plot is None:
        raise InputFileError("nothing to write: give --out, --plot or both")
    if arguments.plot:
        import_optional("matplotlib", extra="io", purpose="plotting")
    paths = (arguments.first, arguments.second)
    for output in filter(None, (arguments.out, arguments.plot)):
        for path in paths:
            if output.exists() and Path(path).exists() and output.samefile(path):
                raise InputFileError(f"{output}: the output would overwrite the input")
    first = _read(arguments.first, arguments)
    if arguments.second_channel is not None:
        arguments.channel = arguments.second_channel
    second = _read(arguments.second, arguments)
    flags = tuple(arguments.superlevel in (which, "both") for which in ("first", "second"))
    with options.blame(", ".join(paths)):  # either may be the cause
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
        )
    if arguments.out:
        names = [printable(path) for path in paths]
        write_result(arguments.out, surface, metadata={"images": names})
    if arguments.plot:
        figure: Any = surface.plot().figure
        write_figure(arguments.plot, figure)


def _read(path: str, arguments: argparse.Namespace) -> NDArray[Any]:
    """One image without batch axes."""
    stored = options.open_input(path, arguments)
    view, axes = options.select_input(path, stored, arguments)
    for letter, length in zip(axes, view.shape, strict=True):
        if letter not in "ZYX":
            choice = {"T": "; choose one with --time", "C": "; choose one with --channel"}
            raise InputFileError(
                f"{path}: a surface is of single images, but its axis {letter} has {length}"
                f"{choice.get(letter, '')}"
            )
    image: NDArray[Any] = view.read_all()
    return image
