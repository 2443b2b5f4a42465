"""``ecc curve``: the Euler characteristic curves of images, as a table and a figure."""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli import options
from ecc_core._cli.curve_table import Curve, NamedCurve, columns_of, plot
from ecc_core._cli.lengths import Calibration, Lengths, add_unit_argument
from ecc_core._cli.progress import progress_bar
from ecc_core._cli.version import version
from ecc_core._io.affines import Affine, check_place
from ecc_core._io.results import describe_result
from ecc_core._optional import import_optional
from ecc_core.errors import InputFileError
from ecc_core.io import open_image, write_csv, write_table
from ecc_core.results import BettiCurves, EulerCurve, MinkowskiCurves, RegionCurves

__all__ = ["add_parser"]

Array = NDArray[Any]


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "curve",
        help="compute curves",
        description="Compute the exact Euler characteristic curve of each image. The table has the "
        "columns input, label (with --labels), threshold, euler_number, b0, b1, ... (with "
        "--betti), and area and perimeter, or volume, surface and mean_breadth (with --minkowski), "
        "whose unit of length is in the column unit. "
        "Without --out it is printed as CSV.",
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    options.add_image_arguments(parser)
    _add_outputs(parser)
    _add_filtration(parser)
    _add_measures(parser)
    _add_points(parser)


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    options.add_table_argument(parser)
    options.add_plot_argument(parser)


def _add_filtration(parser: argparse.ArgumentParser) -> None:
    options.add_thresholds_argument(parser, exact=True)
    parser.add_argument(
        "--range",
        type=options.value_range,
        metavar="LO,HI",
        help="range of the thresholds (default: minimum and maximum of each image)",
    )
    options.add_connectivity_argument(parser)
    parser.add_argument(
        "--superlevel", action="store_true", help="use superlevel sets, image >= threshold"
    )
    options.add_boundary_argument(parser)


def _add_measures(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--betti",
        action="store_true",
        help="add the Betti numbers: components, holes (2-D) or tunnels (3-D), cavities",
    )
    options.add_minkowski_argument(parser)
    parser.add_argument(
        "--spacing",
        type=options.spacing,
        metavar="H|Z,Y,X",
        help="with --minkowski: distance between points (default: as in the file, otherwise 1)",
    )
    add_unit_argument(parser, only="with --minkowski: ")


def _add_points(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="label image: compute one curve for each label instead of one for the image",
    )
    parser.add_argument(
        "--mask", metavar="FILE", help="mask image: use only points where it is not 0"
    )
    options.add_nan_argument(parser)
    parser.add_argument(
        "--smooth",
        type=options.sigma,
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

    def places(self) -> Iterator[tuple[tuple[int, ...], dict[str, int]]]:
        """Yield indices along the batch axes, and the name and the index in the file of each."""
        lead = self.values.ndim - self.ndim
        for place in np.ndindex(*self.values.shape[:lead]):
            named = zip(self.axes.lower(), np.add(place, self.first[:lead]).tolist(), strict=False)
            yield place, dict(named)


def _read(path: str, lengths: Lengths, arguments: argparse.Namespace) -> Input:
    stored = options.open_input(path, arguments)
    view, axes = options.select_input(path, stored, arguments)
    calibration = Calibration()
    if arguments.minkowski:
        calibration = lengths.of(stored, axes)
    affine = options.affine_of(stored, view, axes)
    return Input(path, view.read_all(), axes, view.start, calibration, affine)


def run(arguments: argparse.Namespace) -> None:
    """Compute the curves and write them."""
    if arguments.boundary != "closed" and (arguments.betti or arguments.labels):
        other = "--betti" if arguments.betti else "--labels"
        raise InputFileError(f"--boundary must be closed together with {other}")
    if arguments.betti and arguments.minkowski:
        raise InputFileError("--betti must not be given together with --minkowski")
    for name in ("spacing", "unit"):
        if getattr(arguments, name) is not None and not arguments.minkowski:
            raise InputFileError(f"--{name} must be given together with --minkowski")
    inputs = [*arguments.inputs, arguments.labels, arguments.mask]
    options.keep_inputs([arguments.plot], inputs)
    if arguments.plot:
        import_optional("matplotlib", extra="io", purpose="plotting")
    options.settle_estimator(arguments)
    mask = _read_region(arguments.mask)
    labels = _read_region(arguments.labels)
    curves: list[NamedCurve] = []
    facts: list[dict[str, Any]] = []
    lengths = Lengths(arguments)
    with progress_bar(steps=2 * len(arguments.inputs)) as start:
        for path in arguments.inputs:
            start(f"reading {Path(path).name}")
            image = _read(path, lengths, arguments)
            start(f"curve of {Path(path).name}")
            with options.blame(path):
                found = list(_curves(image, mask, labels, arguments))
            if arguments.minkowski:
                lengths.keep(path, image.calibration)
            curves += found
            facts.append(
                {
                    "path": path,
                    "axes": image.axes,
                    "shape": image.values.shape,
                    "dtype": image.values.dtype.name,
                    **(image.calibration.facts if arguments.minkowski else {}),
                    **_described(found, image),
                }
            )
    columns = columns_of(curves, labelled=labels is not None, estimator=arguments.minkowski)
    if arguments.minkowski:
        columns["unit"] = np.full(columns["threshold"].size, lengths.unit)
    if arguments.out:
        metadata = {
            "software": f"napari-ecc {version()}",
            "settings": _settings(arguments),
            "inputs": facts,
        }
        write_table(arguments.out, columns, metadata=metadata)
    else:
        write_csv(sys.stdout, columns)
    if arguments.plot:
        plot(arguments.plot, curves, arguments)


class Region(NamedTuple):
    """A mask or a label image."""

    path: str
    values: Array
    affine: Affine | None


def _read_region(path: str | None) -> Region | None:
    """Read a mask or a label image."""
    if path is None:
        return None
    image = open_image(path)
    if "S" in image.axes or "C" in image.axes:
        raise InputFileError(
            f"{path}: a mask or label image must have one channel, got shape {image.shape}"
        )
    return Region(path, image.read(), image.affine)


class Functions(NamedTuple):
    """What computes the curves of an image, and of its regions, and what holds one of them."""

    of_image: Callable[..., Any]
    of_regions: Callable[..., Any]
    one: type[Curve]


def _functions(arguments: argparse.Namespace) -> Functions:
    from ecc_core import curves, geometry, topology

    if arguments.minkowski:
        return Functions(geometry.minkowski_curves, geometry.region_minkowski, MinkowskiCurves)
    if arguments.betti:
        return Functions(topology.betti_curves, topology.region_betti_curves, BettiCurves)
    return Functions(curves.euler_curve, curves.region_curves, EulerCurve)


def _curves(
    image: Input, mask: Region | None, labels: Region | None, arguments: argparse.Namespace
) -> Iterator[NamedCurve]:
    values, ndim = image.values, image.ndim
    inside = None if mask is None else _fitting("--mask", mask, image) != 0
    if arguments.smooth:
        values = _smooth(values, arguments.smooth, ndim, arguments.boundary)
    common = {"connectivity": arguments.connectivity, "superlevel": arguments.superlevel}
    if arguments.minkowski:
        common |= {"estimator": arguments.minkowski, "spacing": image.calibration.spacing}
    if labels is not None:
        regions = _fitting("--labels", labels, image)
        regions = regions if inside is None else np.where(inside, regions, 0)
        yield from _region_curves(image._replace(values=values), regions, common, arguments)
        return
    axes = tuple(range(values.ndim - ndim, values.ndim))
    if arguments.boundary != "closed":
        common["boundary"] = arguments.boundary
    curve = _functions(arguments).of_image(
        values,
        arguments.thresholds,
        range=arguments.range,
        mask=inside,
        nan=arguments.nan,
        axis=axes,
        **common,
    )
    curve = _with_unit(curve, image)
    at = _as_numbers(curve.thresholds)
    for place, named in image.places():
        one = replace(curve, thresholds=at, values=curve.values[place])
        yield NamedCurve(image.path, named, None, one)


def _with_unit(found: Any, image: Input) -> Any:
    """Return Minkowski functionals with their unit."""
    unit = image.calibration.unit
    return replace(found, spacing_units=unit) if unit else found


def _fitting(name: str, region: Region, image: Input) -> Array:
    """Return a mask or labels, broadcast to the shape of the image."""
    shape, found = image.values.shape, region.values.shape
    if found not in (shape, shape[-image.ndim :]):
        raise ValueError(f"{name} must have the image's shape {shape}, got {found}")
    lengths = dict(zip(image.axes, shape, strict=True))
    check_place(f"{name} {region.path}", region.affine, image.affine, lengths)
    return np.broadcast_to(region.values, shape)


def _region_curves(
    image: Input, labels: Array, common: dict[str, Any], arguments: argparse.Namespace
) -> Iterator[NamedCurve]:
    values, bounds = image.values, arguments.range
    if arguments.nan == "omit" and values.dtype.kind == "f":
        missing = np.isnan(values)  # not in a region any more, so that their value has no effect
        labels, values = (
            np.where(missing, 0, labels),
            np.where(missing, values.dtype.type(0), values),
        )
    places = list(image.places())
    if len(places) > 1 and bounds is None and isinstance(arguments.thresholds, int):
        finite = values[np.isfinite(values)]
        if finite.size:  # one range for all places
            bounds = finite.min().item(), finite.max().item()
    functions = _functions(arguments)
    for place, named in places:
        regions = functions.of_regions(
            values[place], labels[place], arguments.thresholds, range=bounds, **common
        )
        regions = _with_unit(regions, image)
        at = _as_numbers(regions.thresholds)
        for label, own in zip(regions.labels, regions.values, strict=True):
            yield NamedCurve(image.path, named, label, functions.one(at, own, **regions.facts))


def _described(curves: list[NamedCurve], image: Input) -> dict[str, Any]:
    """Return what `ecc_core.io.read_result` needs; {} for labels along batch axes."""
    if not curves:
        return {}
    first, values = curves[0], np.stack([curve.euler for curve in curves])
    at = first.thresholds
    if first.label is None:
        batch = image.values.shape[: -image.ndim]
        facts = _facts(first.curve, EulerCurve)
        curve = EulerCurve(at, values.reshape((*batch, at.size)), **facts)
        return {"result": describe_result(curve)}
    if first.place:
        return {}
    labels = np.array([curve.label for curve in curves])
    regions = RegionCurves(labels, at, values, **_facts(first.curve, RegionCurves))
    return {"result": describe_result(regions)}


def _facts(found: Curve, kind: type[EulerCurve | RegionCurves]) -> dict[str, Any]:
    """Return the facts of a result that curves of its Euler characteristic have too."""
    known = {field.name for field in fields(kind)}
    return {name: fact for name, fact in found.facts.items() if name in known}


def _as_numbers(thresholds: Array) -> Array:
    """Return the thresholds of a binary image as 0 and 1."""
    return thresholds.astype(np.uint8) if thresholds.dtype == np.bool_ else thresholds


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


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    thresholds = arguments.thresholds
    if isinstance(thresholds, np.ndarray):
        thresholds = [str(t) if t in (np.inf, -np.inf) else t for t in thresholds.tolist()]
    names = (
        "connectivity",
        "superlevel",
        "boundary",
        "betti",
        "minkowski",
        "spacing",
        "unit",
        "labels",
        "mask",
        "nan",
        "smooth",
    )
    given = {name: getattr(arguments, name) for name in names} | options.selection_of(arguments)
    return {"thresholds": thresholds, "range": arguments.range, **given}
