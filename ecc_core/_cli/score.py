"""``ecc score``: scores of segmentations against targets, in particular of their topology."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._cli import options
from ecc_core._cli.errors import FailedImages, blame, failure_of
from ecc_core._cli.inputs import Lengths, read_single
from ecc_core._cli.outputs import check_outputs, metadata_of, settings_of
from ecc_core._cli.paths import matching_paths, pair_of, stem_of
from ecc_core._cli.progress import progress_bar
from ecc_core._cli.scores import Scores, masks_of, scores_of
from ecc_core._io.open import is_there
from ecc_core._io.same_place import check_place, check_scale
from ecc_core._io.stored import View
from ecc_core._optional import import_optional
from ecc_core._request.filtration import check_spacing
from ecc_core.errors import InputFileError
from ecc_core.io import write_figure, write_table
from ecc_core.plotting import COLUMN, plot_matching
from ecc_core.plotting._figures import new_figure

ONE = "scores are those of one image"
DESCRIPTION = (
    "Compare segmentations with their targets: Dice, clDice, the distance of surfaces, the errors "
    "of Betti numbers, the components, holes or tunnels, and cavities that are false or missing at "
    "a place (matched errors), and the distance of Euler characteristic curves. The table has a "
    "row for each image, or for each class of label images. The means are printed with 95 % "
    "confidence intervals over images or folders. Images that fail are listed at the end and the "
    "exit code is then 1; the table has all others."
)
IMAGES_A_ROW = 2  # In figures.
MOST_DRAWN = 6
RESAMPLES = 9999
CONFIDENCE = 0.95


class Row(NamedTuple):
    """A row of the table."""

    heads: dict[str, Any]
    scores: dict[str, float]


class Scored(NamedTuple):
    """The scores of an image, or of one of its classes."""

    heads: dict[str, Any]
    scores: Scores

    @property
    def error(self) -> int:
        """Number of classes that do not match, of all dimensions."""
        return int(np.sum(self.scores.matching.error))


def add_arguments(parser: ArgumentParser) -> None:
    predictions = (
        "masks, class indices or probabilities: a file, a folder of images, or a pattern such as "
        "'predictions/*.nii.gz'"
    )
    parser.add_argument("predictions", metavar="PREDICTIONS", help=predictions)
    targets = (
        "their targets: a file, a folder or a pattern of images of the same names, without suffix; "
        "or a rule: {name} stands for the name of a prediction, {stem} for its path without "
        "suffix, as in '{stem}_true.tif'; _pred=_true replaces _pred by _true; and a .csv file has "
        "the columns input and target"
    )
    parser.add_argument("targets", metavar="TARGETS", help=targets)
    options.add(parser, "--out", after=options.FORMULAS)
    worst = f"draw the worst images (at most {MOST_DRAWN}) with what is false and missing in them: "
    options.add(parser, "--plot", before=worst)
    inside = "the least probability of points inside of the objects (default: 0.5)"
    options.add(parser, "--threshold", help=inside, default=(0.5,))
    unit = "what is independent: each image (default), or the images of each folder"
    parser.add_argument("--units", choices=("image", "folder"), default="image", help=unit)
    options.add(options.add_selection(parser, masks=False), "--connectivity")
    options.add(parser, "--spacing", "--unit", before="of the distance of surfaces: ")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of intervals (default 0)")
    parser.set_defaults(smooth=None, mask=None, labels=None)


def run(arguments: Namespace) -> None:
    """Write and print the scores, then raise FailedImages if any image failed."""
    if not 0 < arguments.threshold[0] <= 1:
        raise InputFileError(
            f"--threshold must be above 0 and at most 1, got {arguments.threshold[0]:g}"
        )
    pairs = _pairs(arguments)
    check_outputs(arguments, [path for pair in pairs for path in pair], printed=True)
    rows: list[Row] = []
    worst: list[Scored] = []
    failures: list[str] = []
    lengths = Lengths(arguments)
    with progress_bar(steps=len(pairs)) as start:
        for prediction, target in pairs:
            start(f"scores of {Path(prediction).name}")
            try:
                found = _scored(prediction, target, lengths, arguments)
            except Exception as error:  # An error of one image does not affect the others.
                failures.append(failure_of(prediction, error))
                continue
            rows += [Row(one.heads, one.scores.columns) for one in found]
            if arguments.plot:
                worst = _worst_of([*worst, *found])
    if rows:
        _report(rows, arguments, failures)
    if worst:
        _plot(worst, arguments)
    if failures:
        raise FailedImages(*failures)


def _pairs(arguments: Namespace) -> list[tuple[str, str]]:
    """Return the paths of predictions and of their targets."""
    predictions = _images(arguments.predictions)
    given = arguments.targets
    if _is_rule(given):
        targets = [pair_of("target", given, image) or "" for image in predictions]
        for image, path in zip(predictions, targets, strict=True):
            if not path or not is_there(path):
                raise InputFileError(f"{image}: {path or given}: no such target")
        return list(zip(predictions, targets, strict=True))
    targets = _images(given)
    if len(predictions) == len(targets) == 1:
        return [(predictions[0], targets[0])]
    by_name = {Path(stem_of(path)).name: path for path in targets}
    if len(by_name) < len(targets):
        raise InputFileError(f"{given}: the targets must have different names without suffix")
    missing = [path for path in predictions if Path(stem_of(path)).name not in by_name]
    if missing:
        raise InputFileError(
            f"{missing[0]}: {given} has no target of its name "
            f"(it is one of {len(missing)} of {len(predictions)} predictions)"
        )
    _say_left_out(predictions, by_name, given)
    return [(path, by_name[Path(stem_of(path)).name]) for path in predictions]


def _say_left_out(predictions: Sequence[str], targets: dict[str, str], given: str) -> None:
    """Print a note on stderr if targets have no prediction and are therefore left out."""
    names = {Path(stem_of(path)).name for path in predictions}
    left_out = [path for name, path in targets.items() if name not in names]
    if left_out:
        sys.stderr.write(
            f"ecc: {given}: {len(left_out)} of {len(targets)} targets have no prediction and are "
            f"left out, such as {left_out[0]}\n"
        )


def _is_rule(given: str) -> bool:
    """Whether an argument is a rule by which the path of a target follows from a prediction."""
    if "{" in given or given.lower().endswith(".csv"):
        return True
    return "=" in given and not is_there(given)


def _images(given: str) -> list[str]:
    """Return the images of a path, a folder of images, or a pattern."""
    folder = Path(given)
    if folder.is_dir() and folder.suffix.lower() != ".zarr":
        return matching_paths([str(folder / "*")])
    return matching_paths([given])


def _scored(prediction: str, target: str, lengths: Lengths, arguments: Namespace) -> list[Scored]:
    """Return the scores of an image, or of each of its classes."""
    view, image, _, calibration = read_single(prediction, ONE, lengths, arguments)
    of_target, true, _, _ = read_single(target, ONE, Lengths(arguments), arguments)
    if calibration.spacing is not None:
        lengths.keep(prediction, calibration)
    with blame(target):
        _check_alike(view, of_target, arguments)
    with blame(prediction):
        masks = masks_of(image, true, arguments.threshold[0])
        probabilities = image if image.dtype.kind == "f" else None
        spacing = check_spacing(calibration.spacing, image.ndim)
        found = []
        for number, (own, objects) in masks.items():
            heads = {"input": prediction, "target": target}
            if number is not None:
                heads["class"] = str(number)
            scores = scores_of(
                own,
                objects,
                probabilities=probabilities,
                connectivity=arguments.connectivity,
                spacing=spacing,
            )
            found.append(Scored(heads, scores))
    return found


def _check_alike(view: View, target: View, arguments: Namespace) -> None:
    """Refuse a target of another shape, spacing or place."""
    if view.shape != target.shape:
        raise ValueError(f"`target` must have the shape {view.shape}, got {target.shape}")
    lengths = dict(zip(view.axes, view.shape, strict=True))
    check_place("`target`", target.affine, view.affine, lengths)
    if arguments.spacing is None:
        check_scale("`target`", target.source.distances, view.source.distances, lengths)


def _report(rows: Sequence[Row], arguments: Namespace, failures: Sequence[str]) -> None:
    """Write the table, and print the summary."""
    columns = _columns(rows)
    units = _units(rows, arguments)
    summary = {name: _summary(columns[name], units, arguments.seed) for name in rows[0].scores}
    if arguments.out:
        metadata = metadata_of(
            settings_of(arguments),
            summary=summary,
            units=len(set(units)),
            failed=list(failures),
        )
        write_table(arguments.out, columns, metadata=metadata)
    noun = "folder" if arguments.units == "folder" else "image"
    count = len(set(units))
    words = f"1 {noun}" if count == 1 else f"{count} {noun}s"
    sys.stdout.write(f"mean of {words} [{CONFIDENCE:.0%} interval]\n")
    for name, (mean, low, high) in summary.items():
        interval = "" if np.isnan(low) else f" [{low:.4g}, {high:.4g}]"
        sys.stdout.write(f"{name:<18}{mean:.4g}{interval}\n")


def _columns(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the columns of the table. Cells are NaN for dimensions that an image lacks."""
    names = dict.fromkeys(name for row in rows for name in (*row.heads, *row.scores))
    heads = ("input", "target", "class")
    names_in_order = [name for name in heads if name in names]
    names_in_order += [name for name in names if name not in heads]
    cells = [{**row.heads, **row.scores} for row in rows]
    columns = {}
    for name in names_in_order:
        missing = _missing(name)
        columns[name] = np.array([of_row.get(name, missing) for of_row in cells])
    return columns


def _missing(name: str) -> Any:
    return "" if name in ("input", "target", "class") else np.nan


def _units(rows: Sequence[Row], arguments: Namespace) -> list[str]:
    """Return the independent unit of each row."""
    paths = [str(row.heads["input"]) for row in rows]
    if arguments.units == "folder":
        return [str(Path(path).parent) for path in paths]
    return paths


def _summary(values: Any, units: Sequence[str], seed: int) -> tuple[float, float, float]:
    """Return the mean over units and its bootstrap interval, which is NaN for a single unit."""
    stats = import_optional("scipy.stats", extra="features", purpose="confidence intervals")
    names = np.array(units)
    of_units = [values[names == name] for name in dict.fromkeys(units)]
    means = np.array([np.mean(own) for own in of_units])
    mean = float(means.mean())
    if len(means) == 1 or not np.isfinite(means).all():
        return mean, float("nan"), float("nan")
    if (means == means[0]).all():
        return mean, mean, mean
    found = stats.bootstrap(
        (means,),
        np.mean,
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return mean, float(found.low), float(found.high)


def _worst_of(scored: Sequence[Scored]) -> list[Scored]:
    """Return the images to draw: those with the most classes that do not match."""
    return sorted(scored, key=lambda one: -one.error)[:MOST_DRAWN]


def _plot(worst: Sequence[Scored], arguments: Namespace) -> None:
    """Draw the false and the missing classes of images."""
    rows = ceil_div(len(worst), IMAGES_A_ROW)
    figure = new_figure(figsize=(2 * COLUMN, COLUMN * rows), layout="constrained")
    axes = np.ravel(figure.subplots(rows, IMAGES_A_ROW, squeeze=False))
    for ax, one in zip(axes, worst, strict=False):
        scores = one.scores
        plot_matching(scores.matching, np.atleast_2d(scores.prediction), ax)
        ax.set_title(f"{_name_of(one.heads)}: {one.error}", fontsize="small")
    for ax in axes:
        ax.set_axis_off()
    write_figure(arguments.plot, figure)


def _name_of(heads: dict[str, Any]) -> str:
    """Return the name of an image, and of its class if there are several."""
    name = Path(heads["input"]).name
    return f"{name}, class {heads['class']}" if "class" in heads else name
