"""What a command writes besides its numbers, and checks before it computes them."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._cli.version import version
from ecc_core._optional import import_optional
from ecc_core.errors import InputFileError

__all__ = ["check_measures", "check_outputs", "metadata_of", "settings_of", "settle_estimator"]

NO_SETTINGS = (
    *("input", "inputs", "out", "plot", "table", "resume", "run"),
    *("workers", "max_memory", "scheduler", "device"),
)
"""Arguments that have no effect on the numbers, or that the metadata list elsewhere."""


def check_outputs(
    arguments: argparse.Namespace, inputs: Iterable[str | None], *, printed: bool = False
) -> None:
    """Raise an error, before any work, if outputs cannot be written or would overwrite an input."""
    if not (arguments.out or arguments.plot or printed):
        raise InputFileError("nothing to write: give --out, --plot or both")
    given = [Path(path) for path in inputs if path and Path(path).exists()]
    written = arguments.out, arguments.plot, getattr(arguments, "table", None)
    for path in filter(None, written):
        if path.exists() and any(path.samefile(other) for other in given):
            raise InputFileError(f"{path}: the output would overwrite the input")
    if arguments.plot:
        import_optional("matplotlib", extra="io", purpose="plotting")


def check_measures(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be computed together."""
    if arguments.betti and arguments.minkowski:
        raise InputFileError("--betti must not be given together with --minkowski")
    if arguments.boundary != "closed" and (arguments.betti or arguments.labels):
        other = "--betti" if arguments.betti else "--labels"
        raise InputFileError(f"--boundary must be closed together with {other}")


def settle_estimator(arguments: argparse.Namespace) -> None:
    """Let --minkowski without a value be exact, and say so."""
    if arguments.minkowski is True:
        arguments.minkowski = "exact"
        sys.stderr.write(
            "ecc: --minkowski exact: perimeters and surfaces of smooth objects are up to 3/2 times "
            "too large; crofton-4 (2-D) or crofton-13 (3-D) suits these\n"
        )


def metadata_of(settings: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """Return the metadata of a table."""
    return {"software": f"napari-ecc {version()}", "settings": settings, **facts}


def settings_of(arguments: argparse.Namespace, **settled: Any) -> dict[str, Any]:
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
