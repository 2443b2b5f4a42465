"""The tables, figures and metadata that commands write, and checks before they compute."""

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ecc_core import plotting
from ecc_core._cli.paths import pairs_of
from ecc_core._cli.version import version
from ecc_core._io.curve_columns import Curves, add_facts, heads_of, measures_of, plain
from ecc_core._io.lazy import Array
from ecc_core._io.readers.zarr_images import PLACES
from ecc_core._io.tables import result_of
from ecc_core._io.write import printable
from ecc_core._optional import import_optional
from ecc_core._request.boundary import shortest_name, words_of
from ecc_core.errors import BackendError, InputFileError
from ecc_core.io import write_figure
from ecc_core.quantities import CURVES, CurveQuantity
from ecc_core.quantities._base import EULER_NUMBER
from ecc_core.quantities.registry import quantities_of
from ecc_core.results import CurveResult

NO_SETTINGS = (
    *("input", "inputs", "out", "plot", "table", "json", "quiet", "resume", "part", "run"),
    *("workers", "max_memory", "scheduler", "device", "said"),
)
"""Arguments that have no effect on the numbers, or that are elsewhere in the metadata."""
NEEDED = {
    **{option: name for name, one in CURVES.items() for option in one.own_options},
    "direction_scale": "direction",
    "mask_label": "mask",
}
"""Options, each with another one without which it has no effect."""
OF_THE_IMAGE = "it divides by the size of the whole image, unless --boundary is half-open"
APART = {
    ("density", "labels"): OF_THE_IMAGE,
    ("density", "mask"): OF_THE_IMAGE,
    **{("density", name): one.no_density for name, one in CURVES.items() if one.no_density},
    **{
        (name, "labels"): f"regions have no {name} of their own here: --mask takes one"
        for name, one in CURVES.items()
        if not one.of_regions
    },
}
"""Options that cannot be used together, and the reason."""


def check_outputs(arguments: Namespace, images: Sequence[str], *, printed: bool = False) -> None:
    """Raise an error, before any work, if inputs are missing, or outputs cannot be written."""
    inputs = [*images, *pairs_of(images, arguments)]
    if not (arguments.out or arguments.plot or printed):
        raise InputFileError("nothing to write: give --out, --plot or both")
    given = [Path(path) for path in inputs if Path(path).exists()]
    written = arguments.out, arguments.plot, getattr(arguments, "table", None)
    for path in filter(None, written):
        if path.exists() and any(path.samefile(other) for other in given):
            raise InputFileError(f"{path}: the output would overwrite the input")
    if arguments.plot:
        import_optional("matplotlib", extra="io", purpose="plotting")


def has_lengths(arguments: Namespace) -> bool:
    """Whether the spacing of images has an effect."""
    in_units = arguments.smooth is not None and arguments.unit is not None
    measured = any(one.has_lengths for one in quantities_of(arguments))
    return measured or arguments.direction is not None or in_units


def needs_memory(arguments: Namespace) -> str:
    """Return the reason, in words, why an image cannot be computed by blocks, "" if it can."""
    if isinstance(arguments.thresholds, str):
        return "--thresholds must be a number or a list"
    wanted = quantities_of(arguments)
    for one in wanted:
        if one.joins.how == "not":
            return f"--{one.name} must not be given ({one.joins.reason})"
        names = one.joins.boundaries.names
        if not {*words_of(arguments.boundary)} <= {*names}:
            return f"--boundary must be {' or '.join(names)} together with --{one.name}"
    for one in wanted:
        if arguments.labels and not one.joins.regions:
            return f"--{one.name} must not be given together with --labels"
    return ""


def has_windows(arguments: Namespace) -> bool:
    """Whether a mask or regions are windows of the image."""
    is_window = shortest_name(words_of(arguments.boundary)) == "half-open"
    return is_window and bool(arguments.mask or arguments.labels)


def has_half_open(arguments: Namespace) -> bool:
    """Whether an image is a window of a larger one along some axis."""
    return "half-open" in words_of(arguments.boundary)


def glued_of(arguments: Namespace) -> list[CurveQuantity[Any]]:
    """Return the requested quantities whose boxes are glued."""
    return [one for one in quantities_of(arguments) if one.joins.how == "glue"]


def check_curves(arguments: Namespace, images: Sequence[str], *, printed: bool = False) -> None:
    """Check inputs and outputs. Options without a value get the usual one, with a note."""
    check_outputs(arguments, images, printed=printed)
    for one in quantities_of(arguments):
        option = one.option
        if option is not None and option.usual and getattr(arguments, one.name) is True:
            setattr(arguments, one.name, option.usual)
            sys.stderr.write(f"ecc: --{one.name} {option.usual}: {option.note}\n")


def check_together(arguments: Namespace) -> None:
    """Refuse options that cannot be used together."""
    given = {k for k, value in vars(arguments).items() if value is not None and value is not False}
    for name, other in NEEDED.items():
        if name in given and other not in given:
            raise InputFileError(
                f"--{name.replace('_', '-')} must be given together with --{other}"
            )
    for (name, other), reason in APART.items():
        if reason == OF_THE_IMAGE and has_windows(arguments):
            continue
        if {name, other} <= given:
            raise InputFileError(f"--{name} must not be given together with --{other}: {reason}")
    _check_boundary(arguments)
    _check_thresholds(arguments)
    for name in ("spacing", "unit"):
        if getattr(arguments, name) is not None and not has_lengths(arguments):
            raise InputFileError(
                f"--{name} needs --direction, --minkowski or --smooth with --unit, without which "
                "it has no effect"
            )
    _check_device(arguments)


def _check_thresholds(arguments: Namespace) -> None:
    """Refuse thresholds that cannot be combined with the other options."""
    inexact = [name for name, one in CURVES.items() if not one.exact]
    for name in ("labels", *inexact):
        if isinstance(arguments.thresholds, str) and getattr(arguments, name):
            raise InputFileError(f"--thresholds must be a number or a list together with --{name}")
    if arguments.range is not None and not isinstance(arguments.thresholds, int):
        raise InputFileError("--range must be left out where --thresholds are a list or exact")


def _check_boundary(arguments: Namespace) -> None:
    """Raise an error if a requested quantity is not defined for the boundary."""
    words = words_of(arguments.boundary)
    for one in reversed(quantities_of(arguments)):
        allowed = one.boundaries.names
        if not {*words} <= {*allowed}:
            raise InputFileError(
                f"--boundary must be {' or '.join(allowed)} together with --{one.name}, "
                f"got {','.join(words)}"
            )
    for name in ("mask", "labels"):
        if getattr(arguments, name) and has_half_open(arguments) and not has_windows(arguments):
            raise InputFileError(
                "--boundary must be half-open along all axes or along none together with "
                f"--{name}, which is a window of the image along half-open axes, and stands alone "
                f"along others, got {','.join(words)}"
            )


def _check_device(arguments: Namespace) -> None:
    """Raise an error if a CUDA device is requested but missing, or cannot compute a quantity."""
    on_host = [f"--{one.name}" for one in quantities_of(arguments) if one.joins.how != "add"]
    if needs_memory(arguments):
        on_host.append("--thresholds exact")
    if has_windows(arguments):  # On devices, only the curve of windows is implemented.
        on_host += [f"--{one.name} of windows" for one in quantities_of(arguments) if one.option]
    if on_host and arguments.device != "cpu":
        name = on_host[0]
        raise InputFileError(f"{name} must be given with --device cpu, got {arguments.device}")
    if arguments.device == "cpu" or arguments.scheduler:
        return
    cupy = import_optional("cupy", extra="cuda12", purpose="--device cuda")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise BackendError(f"--device cuda needs a CUDA device: {error}") from None


def software() -> str:
    return f"napari-ecc {version()}"


def metadata_of(settings: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {"software": software(), "settings": settings, **facts}


def settings_of(arguments: Namespace, **settled: Any) -> dict[str, Any]:
    """Return the arguments that the numbers depend on, as types that JSON supports."""
    given = {name: value for name, value in vars(arguments).items() if name not in NO_SETTINGS}
    return {name: plain(value) for name, value in (given | settled).items()}


def wide_columns_of(
    found: Sequence[Curves],
    places: Mapping[str, Mapping[str, str]],
    unit: str,
    arguments: Namespace,
) -> dict[str, Array]:
    """Return columns with one row for each curve; `places` are those of images on a plate."""
    heads = heads_of(found)
    columns = {"input": heads.pop("input")}
    on_plate = [places[path] for path in columns["input"].tolist()]
    for name in PLACES:  # A cell is empty if the image is not on a plate.
        if any(name in place for place in on_plate):
            columns[name] = np.array([place.get(name, "") for place in on_plate], dtype=str)
    columns |= heads
    add_facts(columns, arguments, unit)
    for name, parts in measures_of(found).items():
        prefix = "" if name == EULER_NUMBER else f"{name} "
        headers = [f"{prefix}{threshold}" for threshold in found[0].thresholds.tolist()]
        columns |= dict(zip(headers, np.concatenate(parts).T, strict=True))
    return columns


def plot(found: Sequence[Curves], arguments: Namespace, unit: str | None) -> None:
    """Draw all curves, with distinct names, if a figure is requested."""
    if not arguments.plot:
        return
    kinds = [one.name for one in quantities_of(arguments)]
    facts = {name: getattr(arguments, name) for name in ("superlevel", "density")}
    facts["spacing_units"] = unit
    inputs = {curves.path for curves in found}
    distinct = len({Path(name).name for name in inputs}) == len(inputs)
    named: dict[str, Any] = {}
    for curves in found:
        shown = Path(curves.path).name if distinct else curves.path
        for row in range(curves.rows):
            words = [
                f"{head if head == 'label' else head.upper()} {values[row]}"
                for head, values in curves.heads.items()
                if head != "channel"
            ]
            if len(inputs) > 1 or not words:
                words.insert(0, shown)
            values = {name: of[row] for name, of in curves.measures.items()}
            results = [result_of(curves.thresholds, values, kind, facts) for kind in kinds]
            named[printable(" ".join(words))] = _Drawn(results)
    write_figure(arguments.plot, plotting.plot_curves(named))


class _Drawn(NamedTuple):
    """The results of a curve, which are drawn in one figure."""

    results: list[CurveResult[Any]]

    def _quantities(self) -> dict[str, Any]:
        return {k: curve for result in self.results for k, curve in result._quantities().items()}
