"""The tables, figures and metadata that commands write, and what they check before they compute."""

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ecc_core import plotting
from ecc_core._cli.inputs import pairs_of
from ecc_core._cli.version import version
from ecc_core._io.lazy import Array
from ecc_core._io.readers.zarr_images import PLACES
from ecc_core._io.tables import result_of
from ecc_core._io.write import printable
from ecc_core._optional import import_optional
from ecc_core._request.boundary import shortest_name, words_of
from ecc_core._request.levels import distinct_values
from ecc_core.errors import BackendError, InputFileError
from ecc_core.io import write_figure
from ecc_core.quantities import CURVES, CurveQuantity
from ecc_core.quantities._base import EULER_NUMBER
from ecc_core.results import CurveResult

MOST_COLUMNS = 1 << 16
NO_SETTINGS = (
    *("input", "inputs", "out", "plot", "table", "json", "quiet", "resume", "run"),
    *("workers", "max_memory", "scheduler", "device", "said"),
)
"""Arguments that have no effect on the numbers, or that the metadata list elsewhere."""
NEEDED = {
    **{option: name for name, one in CURVES.items() for option in one.own_options},
    "direction_scale": "direction",
    "mask_label": "mask",
}
"""Options, and that without which each has no effect."""
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
"""Options that cannot be used together, and why."""


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
    """Return what would have to change for blocks to be enough; "" if they are."""
    if isinstance(arguments.thresholds, str):
        return "--thresholds must be a number or a list"
    wanted = quantities_of(arguments)
    for one in wanted:
        if one.joins.how == "not":
            return f"--{one.name} must not be given"
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


def quantities_of(arguments: Namespace) -> list[CurveQuantity[Any]]:
    """Return the quantities that are computed, the Euler characteristic first."""
    found = [one for name, one in CURVES.items() if getattr(arguments, name, False)]
    if any(one.with_euler for one in found):
        return found
    return [CURVES["euler"], *found]


def glued_of(arguments: Namespace) -> list[CurveQuantity[Any]]:
    """Return those of the quantities whose boxes are glued, which the host does."""
    return [one for one in quantities_of(arguments) if one.joins.how == "glue"]


def check_curves(arguments: Namespace, images: Sequence[str], *, printed: bool = False) -> None:
    """Check inputs and outputs; let options without a value have the usual one, and say so."""
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
    """Refuse thresholds that do not go with the other options."""
    inexact = [name for name, one in CURVES.items() if not one.exact]
    for name in ("labels", *inexact):
        if isinstance(arguments.thresholds, str) and getattr(arguments, name):
            raise InputFileError(f"--thresholds must be a number or a list together with --{name}")
    if arguments.range is not None and not isinstance(arguments.thresholds, int):
        raise InputFileError("--range must be left out where --thresholds are a list or exact")


def _check_boundary(arguments: Namespace) -> None:
    """Raise an error if something that is asked for is not defined for the boundary."""
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
    """Raise an error if a CUDA device is needed and there is none, or cannot be used."""
    on_host = [f"--{one.name}" for one in quantities_of(arguments) if one.joins.how != "add"]
    if needs_memory(arguments):
        on_host.append("--thresholds exact")
    if has_windows(arguments):  # of which devices compute the curve only
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


def metadata_of(settings: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {"software": f"napari-ecc {version()}", "settings": settings, **facts}


def settings_of(arguments: Namespace, **settled: Any) -> dict[str, Any]:
    """Return the arguments that the numbers depend on, as types that JSON supports."""
    given = {name: value for name, value in vars(arguments).items() if name not in NO_SETTINGS}
    return {name: _plain(value) for name, value in (given | settled).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, slice):
        return [value.start, value.stop]
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value) if value in (np.inf, -np.inf) else value


class Curves(NamedTuple):
    """Curves of an image: one for each index of its batch axes, or for each label there.

    The measures, (k, n) arrays, are the Euler characteristic, and then Betti numbers, Minkowski
    functionals or component curves, as the columns of a table are called; float64 for densities.
    """

    path: str
    thresholds: Array
    heads: Mapping[str, Array]  # columns that tell them apart: indices in the file, channel, label
    measures: Mapping[str, Array]

    @property
    def rows(self) -> int:
        return len(self.measures[EULER_NUMBER])

    def distinct(self) -> "Curves":
        """Return them without repeated thresholds, which evenly spaced ones of one value are."""
        thresholds, first = np.unique(self.thresholds, return_index=True)
        if thresholds.size == self.thresholds.size:
            return self
        measures = {name: values[:, first] for name, values in self.measures.items()}
        return self._replace(thresholds=thresholds, measures=measures)


def columns_of(found: Sequence[Curves], axes: str | None = None) -> dict[str, Array]:
    """Return columns with one row for each threshold of each curve."""
    thresholds = [own.thresholds for own in found]
    times = np.repeat([at.size for at in thresholds], [own.rows for own in found])
    columns = {name: np.repeat(column, times) for name, column in _heads_of(found, axes).items()}
    _check_one_type(thresholds)
    columns["threshold"] = np.concatenate([np.tile(own.thresholds, own.rows) for own in found])
    for name, parts in _measures_of(found).items():
        columns[name] = np.concatenate([part.ravel() for part in parts])
    return columns


def wide_columns_of(
    found: Sequence[Curves],
    places: Mapping[str, Mapping[str, str]],
    unit: str,
    arguments: Namespace,
) -> dict[str, Array]:
    """Return columns with one row for each curve; `places` are those of images on a plate."""
    heads = _heads_of(found)
    columns = {"input": heads.pop("input")}
    on_plate = [places[path] for path in columns["input"].tolist()]
    for name in PLACES:  # empty where an image is not on a plate
        if any(name in place for place in on_plate):
            columns[name] = np.array([place.get(name, "") for place in on_plate], dtype=str)
    columns |= heads
    add_facts(columns, arguments, unit)
    for name, parts in _measures_of(found).items():
        prefix = "" if name == EULER_NUMBER else f"{name} "
        headers = [f"{prefix}{threshold}" for threshold in found[0].thresholds.tolist()]
        columns |= dict(zip(headers, np.concatenate(parts).T, strict=True))
    return columns


def _heads_of(found: Sequence[Curves], axes: str | None = None) -> dict[str, Array]:
    """Return what tells each curve from others: paths, indices, channels and labels."""
    heads = {"input": np.concatenate([np.full(own.rows, own.path) for own in found])}
    names = {name for own in found for name in own.heads}
    more = [name for name in ("channel", "label") if name in names]
    for name in (*(axes or sorted(names.difference(more))), *more):
        missing = "" if name == "channel" else -1  # it has no such axis, or no names of channels
        parts = [own.heads.get(name, np.full(own.rows, missing)) for own in found]
        heads[name] = np.concatenate(parts)
        if heads[name].dtype.kind == "f":  # of integers without a common type
            heads[name] = np.array([each for part in parts for each in part.tolist()])
    return heads


def _measures_of(curves: Sequence[Curves]) -> dict[str, list[Array]]:
    """Return the curves of each image by measure; zeros or NaN where it has no such measure."""
    every = {name: values.dtype for own in curves for name, values in own.measures.items()}
    found: dict[str, list[Array]] = {}
    for name, dtype in every.items():
        found[name] = []
        for own in curves:
            missing = np.full(
                own.measures[EULER_NUMBER].shape, np.nan if dtype.kind == "f" else 0, dtype
            )
            found[name].append(own.measures.get(name, missing))
    return found


def _check_one_type(thresholds: list[Array]) -> None:
    """Raise an error if a conversion to a common type would change thresholds."""
    common = np.result_type(*thresholds, np.uint8)
    if any(at.astype(common).tolist() != at.tolist() for at in thresholds):
        dtypes = sorted({at.dtype.name for at in thresholds})
        raise InputFileError(
            f"thresholds of types {', '.join(dtypes)} do not fit into one table exactly; "
            "write one table for each type"
        )


def at_common_thresholds(found: list[Curves], *, superlevel: bool) -> list[Curves]:
    """Return curves at the thresholds of all of them.

    They are the same, or each curve has every level at which it changes.
    """
    own = [curves.thresholds for curves in found]
    if all(np.array_equal(at, own[0]) for at in own):
        return found
    _check_one_type(own)
    every = distinct_values(np.concatenate(own))
    if every.size > MOST_COLUMNS:
        raise InputFileError(
            f"--thresholds exact gives {every.size} thresholds, and a table has at most "
            f"{MOST_COLUMNS}: give a number and --range"
        )
    empty = (0, 1) if superlevel else (1, 0)  # the sets beyond the last level, or before the first
    spread = []
    for curves in found:
        places = np.searchsorted(curves.thresholds, every, "left" if superlevel else "right")
        padded = {name: np.pad(of, ((0, 0), empty)) for name, of in curves.measures.items()}
        measures = {name: values[:, places] for name, values in padded.items()}
        spread.append(curves._replace(thresholds=every, measures=measures))
    return spread


def add_facts(columns: dict[str, Array], arguments: Namespace, unit: str) -> None:
    """Add what curves are not by default, the estimator, and the unit of lengths to a table."""
    direction = arguments.direction
    scale = arguments.direction_scale
    directed = direction is not None
    wanted = quantities_of(arguments)
    boundary = shortest_name(words_of(arguments.boundary))
    facts: dict[str, Any] = {
        "connectivity": arguments.connectivity,
        "superlevel": arguments.superlevel or None,
        "boundary": None if boundary == "closed" else ",".join(words_of(boundary)),
        "direction": ",".join(map(str, map(float, direction))) if directed else None,
        "direction_scale": float(1 if scale is None else scale) if directed else None,
        **_chosen(arguments),
        "density": arguments.density or None,
        "unit": unit if directed or any(one.has_lengths for one in wanted) else None,
    }
    rows = len(next(iter(columns.values())))
    columns |= {name: np.full(rows, fact) for name, fact in facts.items() if fact is not None}


def _chosen(arguments: Namespace) -> dict[str, Any]:
    """Return the values of the options of quantities that have some, by their column."""
    with_option = [one for one in quantities_of(arguments) if one.option is not None]
    return {
        one.option.column: getattr(arguments, one.name)
        for one in with_option
        if one.option is not None and one.option.column
    }


def plot(found: Sequence[Curves], arguments: Namespace, unit: str | None) -> None:
    """Draw all curves, with names that tell them apart, if a figure is wanted."""
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
