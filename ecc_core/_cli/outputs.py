"""What a command writes besides its numbers, and checks before it computes them."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._blocks.quantities import QUANTITIES
from ecc_core._cli.inputs import pairs_of
from ecc_core._cli.version import version
from ecc_core._optional import import_optional
from ecc_core._request.filtration import boundary_names
from ecc_core.errors import BackendError, InputFileError
from ecc_core.results import STATISTICS

NO_SETTINGS = (
    *("input", "inputs", "out", "plot", "table", "json", "quiet", "resume", "run"),
    *("workers", "max_memory", "scheduler", "device"),
)
"""Arguments that have no effect on the numbers, or that the metadata list elsewhere."""


NEEDED = {"persistence": "betti", "density": "minkowski", "direction_scale": "direction"}
"""Options, and that without which each has no effect."""
OF_THE_IMAGE = "it divides by the size of the whole image"
JOINED = [name for name in STATISTICS if name not in QUANTITIES]
"""The `STATISTICS` whose values for blocks do not add up, so that pieces are joined."""
APART = {
    ("density", "labels"): OF_THE_IMAGE,
    ("density", "mask"): OF_THE_IMAGE,
    ("density", "betti"): "it divides measures, and Betti numbers are counts",
    ("density", "components"): "it divides measures, and components are counted",
    **{
        (name, "labels"): f"regions have no {name} of their own here: --mask takes one"
        for name, one in STATISTICS.items()
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
    return bool(arguments.minkowski) or arguments.direction is not None or in_units


def needs_memory(arguments: Namespace) -> str:
    """Return what would have to change for blocks to be enough; "" if they are."""
    if isinstance(arguments.thresholds, str):
        return "--thresholds must be a number or a list"
    if arguments.betti and arguments.boundary != "closed":
        return "--boundary must be closed together with --betti"
    both = arguments.betti and arguments.labels
    return "--betti must not be given together with --labels" if both else ""


def quantities_of(arguments: Namespace) -> list[str]:
    """Return the names of the `STATISTICS` that are computed, the Euler characteristic first."""
    found = [name for name in STATISTICS if getattr(arguments, name, False)]
    return ["euler"] * (not any(STATISTICS[name].with_euler for name in found)) + found


def check_curves(arguments: Namespace, images: Sequence[str], *, printed: bool = False) -> None:
    """Check inputs and outputs, and let --minkowski without a value be exact, and say so."""
    check_outputs(arguments, images, printed=printed)
    if arguments.minkowski is True:
        arguments.minkowski = "exact"
        sys.stderr.write(
            "ecc: --minkowski exact: perimeters and surfaces of smooth objects are up to 3/2 times "
            "too large; crofton-4 (2-D) or crofton-13 (3-D) suits these\n"
        )


def check_together(arguments: Namespace) -> None:
    """Refuse options that cannot be used together."""
    given = {k for k, value in vars(arguments).items() if value is not None and value is not False}
    for name, other in NEEDED.items():
        if name in given and other not in given:
            raise InputFileError(
                f"--{name.replace('_', '-')} must be given together with --{other}"
            )
    for (name, other), reason in APART.items():
        if {name, other} <= given:
            raise InputFileError(f"--{name} must not be given together with --{other}: {reason}")
    for name in reversed(JOINED):
        allowed = boundary_names(name)
        if getattr(arguments, name) and arguments.boundary not in allowed:
            raise InputFileError(
                f"--boundary must be {' or '.join(allowed)} together with --{name}"
            )
    for name in ("labels", "minkowski", "components"):
        if isinstance(arguments.thresholds, str) and getattr(arguments, name):
            raise InputFileError(f"--thresholds must be a number or a list together with --{name}")
    for name in ("spacing", "unit"):
        if getattr(arguments, name) is not None and not has_lengths(arguments):
            raise InputFileError(
                f"--{name} needs --direction, --minkowski or --smooth with --unit, without which "
                "it has no effect"
            )
    _check_device(arguments)


def _check_device(arguments: Namespace) -> None:
    """Raise an error if a CUDA device is needed and there is none, or cannot be used."""
    on_host = [f"--{name}" for name in JOINED if getattr(arguments, name)]
    on_host += ["--thresholds exact"] * bool(needs_memory(arguments))
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
