"""The arguments of the commands, each declared once. A command adds those that it takes."""

from argparse import SUPPRESS, Action
from typing import Any

from ecc_core._cli import argument_types
from ecc_core._request.boundary import COUNTS
from ecc_core.io import FIGURE_SUFFIXES, IMAGE_SUFFIXES, TABLE_SUFFIXES
from ecc_core.quantities import CURVES, CurveQuantity

INPUT = (
    "image: a file, a folder of slices, or a Zarr or OME-Zarr image, which may be remote, such as "
    f"s3://bucket/image.zarr ({', '.join(IMAGE_SUFFIXES)}). Name an array in an HDF5, NPZ or "
    "zipped Zarr file like a file in a folder: scan.h5/raw. Raw values need --shape and --dtype"
)
FORMULAS = (
    ". In CSV, an apostrophe precedes file names that begin with =, +, - or @, which spreadsheets "
    "would take for formulas"
)
PAIRS = (
    ". For the {0} of several images: {{input}} stands for the path of the image, {{stem}} for the "
    "path without suffix, as in {{stem}}_{1}.tif, and {{name}} for that without folder too, as in "
    "{1}/{{name}}.tif; _T1w=_dseg replaces _T1w by _dseg in the path of the image; and a .csv file "
    "has the columns input and {1}"
)


def _argument(help: str, **settings: Any) -> dict[str, Any]:
    return {"help": help, **settings}


def _of_quantity(quantity: CurveQuantity[Any]) -> dict[str, Any]:
    """Return the settings of the option that adds a quantity: a flag, or one of some values."""
    option = quantity.option
    if option is None:
        return _argument(f"add {quantity.about}", action="store_true")
    if not option.choices:
        return _argument(option.help, action="store_true")
    return _argument(option.help, nargs="?", const=True, choices=option.choices)


TABLE = _argument(
    "table to write: .csv, or .parquet or .json, which include the settings",
    type=argument_types.output(TABLE_SUFFIXES),
    metavar="FILE",
)
ARGUMENTS = {
    **{f"--{name}": _of_quantity(one) for name, one in CURVES.items() if name != "euler"},
    "input": _argument(INPUT, metavar="INPUT"),
    "inputs": _argument(INPUT, metavar="INPUT", nargs="+"),
    "--out": TABLE,
    "--table": TABLE,
    "--plot": _argument(
        "figure to write: .png, .pdf or .svg",
        type=argument_types.output(FIGURE_SUFFIXES),
        metavar="FILE",
    ),
    "--json": _argument("print the table as JSON instead of CSV", action="store_true"),
    "--quiet": _argument("print nothing but errors on stderr", action="store_true"),
    "--part": _argument(
        "compute this part of the image only, such as 3/64 for the third of 64, and write what is "
        "added up of it to an .npz file, of which ecc merge makes the table. Parts can be computed "
        "in any order and on any machine that reads the image, with the same --max-memory",
        type=argument_types.part,
        metavar="I/N",
    ),
    "--resume": _argument("reuse the results of an interrupted or failed run", action="store_true"),
    # Part of the image.
    "--series": _argument("index of the image in a file with several", type=int, metavar="N"),
    "--level": _argument(
        "resolution level of a pyramid (default: 0)", type=int, default=0, metavar="N"
    ),
    "--axes": _argument(
        "axes if the file does not name them, such as TZYX or YXC, in the order that ecc info "
        "prints without this option: Z, Y and X for space, T for time, C for channels, S for "
        "colour samples",
        metavar="LETTERS",
    ),
    "--channel": _argument(
        "channel: an index, a range such as 0:2 or a name in the file, as ecc info prints them "
        "(default: all, each by itself). Required for colour images: r, g, b, a or gray",
        type=argument_types.channel,
        metavar="C",
    ),
    "--time": _argument(
        "time point, an index or a range such as 10:20 (default: all, each by itself)",
        type=argument_types.index_or_range,
        metavar="T",
    ),
    "--roi": _argument(
        "region of interest: a range for each of the axes Z, Y and X, such as :,100:200,:. "
        "Negative numbers count from the end: :-60,: leaves out the last 60 rows",
        type=argument_types.roi,
        metavar="A:B,...",
    ),
    "--shape": _argument(
        "read raw values without a header, of this shape, the slowest axis first",
        type=argument_types.shape,
        metavar="N,...",
    ),
    "--dtype": _argument(
        "type of raw values, such as uint8, float32 or, if the most significant byte is the first, "
        "'>i2'",
        metavar="TYPE",
    ),
    "--offset": _argument(
        "bytes before raw values (default: 0)",
        type=argument_types.offset,
        default=0,
        metavar="BYTES",
    ),
    "--order": _argument(
        "whether the last axis of --shape is the fastest (C, the default) or the first one (F)",
        choices=("C", "F"),
        default="C",
    ),
    "--mask-dtype": _argument(
        "type of raw values of --mask, of the shape and order of the image", metavar="TYPE"
    ),
    "--labels-dtype": _argument(
        "type of raw values of --labels, of the shape and order of the image", metavar="TYPE"
    ),
    # Filtration.
    "--thresholds": _argument(
        "number of thresholds, evenly spaced over the range; or an increasing list of thresholds, "
        "in which 110, is the one threshold 110 (default: %(default)s)",
        type=argument_types.thresholds,
        default=256,
        metavar="256|a,b,c",
    ),
    "--threshold": _argument("least value", type=argument_types.number, metavar="T"),
    "--range": _argument(
        "range of the thresholds", type=argument_types.value_range, metavar="LO,HI"
    ),
    "--connectivity": _argument(
        "as in scikit-image: 1 for 4- or 6-connectivity; the number of axes, the default, for 8- "
        "or 26-connectivity",
        type=int,
        metavar="N",
    ),
    "--superlevel": _argument("use superlevel sets, image >= threshold", action="store_true"),
    "--boundary": _argument(
        f"{COUNTS.about}; one word, or one for each of the axes Z, Y "
        "and X: closed,periodic for latitude and longitude. With half-open, a mask or each label "
        "is a window of the image, of any shape, whose densities have no bias",
        type=argument_types.boundary,
        default="closed",
        metavar="WORD[,WORD...]",
    ),
    "--nan": _argument(
        "reject images with NaN, or omit these points (default: raise)",
        choices=("raise", "omit"),
        default="raise",
    ),
    "--direction": _argument(
        "direction of a directional filtration, one number for each of the axes Z, Y and X",
        type=argument_types.vector,
        metavar="Z,Y,X",
    ),
    "--direction-scale": _argument(
        "factor of the directional term, in values of the image per unit of length (default: 1)",
        type=float,
        metavar="A",
    ),
    "--mask": _argument(
        "mask image: use only points where it is not 0" + PAIRS.format("masks", "mask"),
        metavar="PATH",
    ),
    "--mask-label": _argument(
        "use only points where the mask is this label, or one of several (default: all but 0)",
        type=argument_types.label_ids,
        metavar="N|N,M",
    ),
    "--smooth": _argument(
        "first smooth with a Gaussian of this standard deviation, in points or, with --unit, in "
        "this unit, for all axes or for each of Z, Y and X, by scipy.ndimage.gaussian_filter in "
        "float32, or in float64 if float32 cannot represent the values. Blocks have exactly the "
        "values of the whole image. The image is continued by its reflection at the border, and "
        "along axes with --boundary periodic by the opposite side",
        type=argument_types.sigma,
        metavar="S|Z,Y,X",
    ),
    # Quantities.
    "--labels": _argument(
        "label image: compute one curve for each label instead of one for the image"
        + PAIRS.format("labels", "labels"),
        metavar="PATH",
    ),
    "--persistence": _argument(
        "count only components, holes and cavities whose values at birth and death differ by at "
        "least P, and those that never die, also in the Euler number. ecc stack reads volumes by "
        "boxes, and so do ecc curve and ecc batch if their pairs do not fit in memory",
        type=argument_types.persistence,
        metavar="P",
    ),
    "--density": _argument(
        "with --minkowski: divide all measures by the length, area or volume of the image, or of "
        "the mask or each label with --boundary half-open, as MinkowskiCurves.densities does. Area "
        "or volume is then the porosity",
        action="store_true",
    ),
    "--spacing": _argument(
        "distance between points, along each axis or along all (default: as in the file, otherwise "
        "1)",
        type=argument_types.spacing,
        metavar="H|Z,Y,X",
    ),
    "--unit": _argument(
        "unit of lengths, such as mm or um: that of the file is converted to it, and that of "
        "--spacing is said by it (default: as in the file)",
        type=argument_types.unit,
        metavar="UNIT",
    ),
    # Resources.
    "--workers": _argument(
        "number of threads (default: one per core)", type=argument_types.positive, metavar="N"
    ),
    "--max-memory": _argument(
        "approximate memory limit, such as 600M or 4G; large blocks are processed by fewer threads "
        "(default: 1G)",
        type=argument_types.memory,
        default=1 << 30,
        metavar="SIZE",
    ),
    "--scheduler": _argument("use this dask cluster instead of threads", metavar="ADDRESS"),
    "--device": _argument(
        "device that computes the curves (default: cpu)", choices=("cpu", "cuda"), default="cpu"
    ),
}


def add(
    parser: Any, *names: str, of: str = "", before: str = "", after: str = "", **changes: Any
) -> None:
    """Add arguments to a parser or a group, with some of their settings changed.

    `of` is appended to the names, such as "-first"; `before` and `after` are added to the help.
    """
    for name in names:
        settings = ARGUMENTS[name] | changes
        settings["help"] = before + settings["help"] + after
        parser.add_argument(name + of, **settings)


def add_selection(parser: Any, *, masks: bool = True) -> Any:
    """Add the arguments that select a part of an image; return their group."""
    group = parser.add_argument_group("part of the image")
    add(group, "--series", "--level", "--axes", "--channel", "--time", "--roi")
    raw = parser.add_argument_group("raw values")
    add(raw, "--shape", "--dtype", "--offset", "--order")
    if masks:
        add(raw, "--mask-dtype")
    return group


def add_curves(parser: Any, usual_range: str, *, exact: bool = True) -> Any:
    """Add the arguments of curves; return the group of resources."""
    add(add_selection(parser), "--labels", "--mask", "--mask-label", "--smooth", "--labels-dtype")
    curve = parser.add_argument_group("curve")
    metavar = "256|exact|a,b,c" if exact else "256|a,b,c"
    every = "exact for every level at which a curve changes; or the " if exact else ""
    add(curve, "--thresholds", before=every, metavar=metavar)
    add(curve, "--range", after=f" (default: {usual_range})")
    add(curve, "--connectivity", "--superlevel", "--boundary", "--nan", "--betti")
    add(curve, "--persistence", before="with --betti: ")
    placed = ("euler", "betti", "components", "minkowski")
    others = [f"--{name}" for name in CURVES if name not in placed]
    add(curve, "--components", "--minkowski", *others, "--density")
    add(curve, "--direction", "--direction-scale")
    add(curve, "--spacing", "--unit", before="with --minkowski, --direction or --smooth: ")
    resources = parser.add_argument_group("resources")
    add(resources, "--workers", "--max-memory")
    return resources


def refuse(parser: Any, reason: str, *names: str) -> None:
    """Add arguments that end the command with the reason why it does not take them."""
    for name in names:
        parser.add_argument(
            name, action=_Refusal, nargs="?", reason=reason, default=SUPPRESS, help=SUPPRESS
        )


class _Refusal(Action):
    """Ends the command with a reason."""

    def __init__(self, *names: Any, reason: str, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.reason = reason

    def __call__(self, parser: Any, *_: object) -> None:
        parser.error(f"argument {self.option_strings[0]}: {self.reason}")
