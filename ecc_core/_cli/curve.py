"""``ecc curve``: the Euler characteristic curves of images, as a table and a figure."""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli import options
from ecc_core._cli.curve_table import Curves, columns_of, curves_in, described, places_of, plot
from ecc_core._cli.errors import blame
from ecc_core._cli.inputs import Region, affine_of, open_input, read_region, select_input
from ecc_core._cli.lengths import Calibration, Lengths
from ecc_core._cli.outputs import (
    check_measures,
    check_outputs,
    metadata_of,
    settings_of,
    settle_estimator,
)
from ecc_core._cli.progress import progress_bar
from ecc_core._cli.values import sigma
from ecc_core._io.affines import Affine
from ecc_core._optional import import_optional
from ecc_core.errors import InputFileError
from ecc_core.io import write_csv, write_table

__all__ = ["DESCRIPTION", "HELP", "add_arguments", "run"]

Array = NDArray[Any]
Places = NDArray[np.int64]

HELP = "compute curves"
DESCRIPTION = (
    "Compute the exact Euler characteristic curve of each image. The table has the columns input, "
    "label (with --labels), threshold, euler_number, b0, b1, ... (with --betti), and area and "
    "perimeter, or volume, surface and mean_breadth (with --minkowski), whose unit of length is in "
    "the column unit. Without --out it is printed as CSV."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    options.add(parser, "inputs")
    options.add_selection(parser)
    options.add(parser, "--out", after=options.FORMULAS)
    options.add(parser, "--plot")
    exact = "exact for every level at which a curve changes; or the "
    options.add(parser, "--thresholds", before=exact, metavar="256|exact|a,b,c")
    options.add(parser, "--range", after=" (default: minimum and maximum of each image)")
    options.add(parser, "--connectivity", "--superlevel", "--boundary", "--betti", "--minkowski")
    options.add(parser, "--spacing", "--unit", before="with --minkowski: ")
    options.add(parser, "--labels")
    options.add(parser, "--mask", "--nan")
    options.add(parser, "--persistence", before="with --betti: ")
    parser.add_argument(
        "--smooth",
        type=sigma,
        metavar="SIGMA",
        help="first smooth with a Gaussian of this standard deviation in pixels, by "
        "scipy.ndimage.gaussian_filter in float32, or in float64 if float32 cannot represent the "
        "values. The image is continued by its reflection at the border, and with --boundary "
        "periodic by the opposite side",
    )


class Input(NamedTuple):
    """The selected part of an image, batch axes first."""

    path: str
    values: Array
    axes: str
    first: tuple[int, ...]
    calibration: Calibration
    affine: Affine | None

    @property
    def ndim(self) -> int:
        return sum(letter in "ZYX" for letter in self.axes)

    @property
    def batch(self) -> tuple[int, ...]:
        return self.values.shape[: -self.ndim]

    @property
    def places(self) -> Places:
        return places_of(self.batch, self.first[: -self.ndim])

    def fitted(self, name: str, region: Region) -> Array:
        """Return a mask or labels, broadcast to the shape of the image."""
        return region.fitted(name, self.values.shape, self.axes, self.affine)


def _read(path: str, lengths: Lengths, arguments: argparse.Namespace) -> Input:
    stored = open_input(path, arguments)
    view, axes = select_input(path, stored, arguments)
    calibration = Calibration()
    if arguments.minkowski:
        calibration = lengths.of(stored, axes)
    affine = affine_of(stored, view, axes)
    return Input(path, view.read_all(), axes, view.start, calibration, affine)


def run(arguments: argparse.Namespace) -> None:
    """Compute the curves and write them."""
    _check(arguments)
    settle_estimator(arguments)
    mask = read_region(arguments.mask)
    labels = read_region(arguments.labels)
    curves: list[tuple[str, Curves]] = []
    facts: list[dict[str, Any]] = []
    lengths = Lengths(arguments)
    with progress_bar(steps=2 * len(arguments.inputs)) as start:
        for path in arguments.inputs:
            start(f"reading {Path(path).name}")
            image = _read(path, lengths, arguments)
            start(f"curve of {Path(path).name}")
            with blame(path):
                results = list(_results(image, mask, labels, arguments))
            if arguments.minkowski:
                lengths.keep(path, image.calibration)
            letters = image.axes[: -image.ndim].lower()
            found = [curves_in(result, letters, places) for result, places in results]
            curves += [(path, own) for own in found]
            facts.append(_facts(image, arguments))
            if found:
                spacing = {"spacing_units": image.calibration.unit or None}
                facts[-1] |= described(found[0], image.batch, results[0][0].facts | spacing)
    columns = columns_of(curves)
    if arguments.minkowski:
        columns["estimator"] = np.full(columns["threshold"].size, arguments.minkowski)
        columns["unit"] = np.full(columns["threshold"].size, lengths.unit)
    if arguments.out:
        metadata = metadata_of(settings_of(arguments), inputs=facts)
        write_table(arguments.out, columns, metadata=metadata)
    else:
        write_csv(sys.stdout, columns)
    if arguments.plot:
        plot(arguments.plot, curves, superlevel=arguments.superlevel, unit=lengths.unit)


def _check(arguments: argparse.Namespace) -> None:
    check_measures(arguments)
    for name in ("spacing", "unit"):
        if getattr(arguments, name) is not None and not arguments.minkowski:
            raise InputFileError(f"--{name} must be given together with --minkowski")
    if arguments.persistence is not None:
        if not arguments.betti:
            raise InputFileError("--persistence must be given together with --betti")
        if arguments.labels:
            raise InputFileError("--persistence must not be given together with --labels")
    inputs = [*arguments.inputs, arguments.labels, arguments.mask]
    check_outputs(arguments, inputs, printed=True)


def _facts(image: Input, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the metadata say about an image."""
    return {
        "path": image.path,
        "axes": image.axes,
        "shape": image.values.shape,
        "dtype": image.values.dtype.name,
        **(image.calibration.facts if arguments.minkowski else {}),
    }


def _functions(arguments: argparse.Namespace) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return what computes the curves of an image, and of its regions."""
    from ecc_core import curves, geometry, topology

    if arguments.minkowski:
        return geometry.minkowski_curves, geometry.region_minkowski
    if arguments.betti:
        return topology.betti_curves, topology.region_betti_curves
    return curves.euler_curve, curves.region_curves


def _results(
    image: Input, mask: Region | None, labels: Region | None, arguments: argparse.Namespace
) -> Iterator[tuple[Any, Places]]:
    """Yield results, and where on the batch axes their curves are."""
    values, ndim = image.values, image.ndim
    inside = None if mask is None else image.fitted("--mask", mask) != 0
    if arguments.smooth:
        values = _smooth(values, arguments.smooth, ndim, arguments.boundary)
    common = {"connectivity": arguments.connectivity, "superlevel": arguments.superlevel}
    if arguments.minkowski:
        common |= {"estimator": arguments.minkowski, "spacing": image.calibration.spacing}
    if labels is not None:
        regions = image.fitted("--labels", labels)
        regions = regions if inside is None else np.where(inside, regions, 0)
        yield from _region_results(image._replace(values=values), regions, common, arguments)
        return
    axes = tuple(range(values.ndim - ndim, values.ndim))
    if arguments.boundary != "closed":
        common["boundary"] = arguments.boundary
    if arguments.persistence is not None:
        common["min_persistence"] = arguments.persistence
    of_image, _ = _functions(arguments)
    result = of_image(
        values,
        arguments.thresholds,
        range=arguments.range,
        mask=inside,
        nan=arguments.nan,
        axis=axes,
        **common,
    )
    yield result, image.places


def _region_results(
    image: Input, labels: Array, common: dict[str, Any], arguments: argparse.Namespace
) -> Iterator[tuple[Any, Places]]:
    values, bounds = image.values, arguments.range
    if arguments.nan == "omit" and values.dtype.kind == "f":
        missing = np.isnan(values)  # not in a region any more, so that their value has no effect
        labels, values = (
            np.where(missing, 0, labels),
            np.where(missing, values.dtype.type(0), values),
        )
    places = image.places
    if len(places) > 1 and bounds is None and isinstance(arguments.thresholds, int):
        finite = values[np.isfinite(values)]
        if finite.size:  # one range for all places
            bounds = finite.min().item(), finite.max().item()
    _, of_regions = _functions(arguments)
    for at, place in zip(np.ndindex(*image.batch), places, strict=True):
        result = of_regions(values[at], labels[at], arguments.thresholds, range=bounds, **common)
        yield result, np.tile(place, (len(result.labels), 1))


def _smooth(image: Array, sigma: float, ndim: int, boundary: str) -> Array:
    ndimage = import_optional("scipy.ndimage", extra="io", purpose="--smooth")
    if image.dtype.kind not in "buif":
        raise TypeError(f"--smooth needs an image of real numbers, got {image.dtype}")
    if not np.isfinite(image).all():
        raise ValueError("--smooth needs an image without NaN and infinity, which would spread")
    precision = np.float32 if np.can_cast(image.dtype, np.float32) else np.float64
    return np.asarray(
        ndimage.gaussian_filter(
            image.astype(precision),
            sigma,
            mode="wrap" if boundary == "periodic" else "reflect",
            axes=range(image.ndim - ndim, image.ndim),
        )
    )
