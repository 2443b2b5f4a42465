"""``ecc surface``: the Euler characteristic surface of two images or channels."""

from argparse import ArgumentParser, Namespace
from typing import Any

from ecc_core._cli import options
from ecc_core._cli.argument_types import channel, output
from ecc_core._cli.errors import blame
from ecc_core._cli.inputs import select_input
from ecc_core._cli.outputs import check_outputs
from ecc_core._io.same_place import check_place, check_scale
from ecc_core._io.write import printable
from ecc_core.io import RESULT_SUFFIXES, write_figure, write_result
from ecc_core.surfaces import euler_surface

DESCRIPTION = (
    "Compute the Euler characteristic of the points that are below a threshold in both of two "
    "images, for all pairs of thresholds. The table has one row for each pair."
)
SIDES = ("first", "second")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("first", metavar="FIRST", help="first image")
    second = "second image of the same shape; may be the same file"
    parser.add_argument("second", metavar="SECOND", help=second)
    selection = options.add_selection(parser)
    of_second = "channel of the second image (default: as --channel)"
    selection.add_argument("--second-channel", type=channel, metavar="C", help=of_second)
    suffixes = ", ".join(RESULT_SUFFIXES)
    options.add(parser, "--out", type=output(RESULT_SUFFIXES), help=f"file to write: {suffixes}")
    options.add(parser, "--plot")
    for which in SIDES:
        image = f"{which} image: "
        options.add(
            parser, "--thresholds", of=f"-{which}", before=image, default=64, metavar="64|a,b,c"
        )
        usual = " (default: that of its values)"
        options.add(parser, "--range", of=f"-{which}", before=image, after=usual)
    options.add(parser, "--connectivity")
    options.add(
        parser,
        "--superlevel",
        after=", of the first image, the second or both",
        action="store",
        choices=(*SIDES, "both"),
    )
    options.add(parser, "--nan")


def run(arguments: Namespace) -> None:
    paths = (arguments.first, arguments.second)
    check_outputs(arguments, paths)
    rule = "a surface is of single images"
    one = select_input(arguments.first, arguments, rule)
    first = one.read_masked()
    if arguments.second_channel is not None:
        arguments.channel = arguments.second_channel
    other = select_input(arguments.second, arguments, rule)
    second = other.read_masked()
    flags = tuple(arguments.superlevel in (which, "both") for which in SIDES)
    with blame(", ".join(paths)):  # Either image may be the cause of an error.
        if first.shape == second.shape:
            name = f"the image {arguments.second}"
            check_place(name, other.affine, one.affine, one.lengths)
            check_scale(name, other.source.distances, one.source.distances, one.lengths)
        both = (f"{name}_{which}" for name in ("thresholds", "range") for which in SIDES)
        given = {name: getattr(arguments, name) for name in (*both, "connectivity", "nan")}
        given |= {"superlevel": (flags[0], flags[1]), "axis": range(first.ndim)}
        surface = euler_surface(first, second, **given)
    if arguments.out:
        names = [printable(path) for path in paths]
        write_result(arguments.out, surface, metadata={"images": names})
    if arguments.plot:
        figure: Any = surface.plot().figure
        write_figure(arguments.plot, figure)
