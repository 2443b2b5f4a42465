"""``ecc compare``: a test whether groups of the curves of a table differ, and where."""

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli import options
from ecc_core._cli.argument_types import condition, positive
from ecc_core._cli.grouping import Groups, read_groups
from ecc_core._cli.outputs import check_outputs, metadata_of, settings_of
from ecc_core.errors import InputFileError
from ecc_core.features import CurveBand, PermutationTest, mean_band, permutation_test
from ecc_core.features._replicates import REPLICATES, MixedUnitsError, check_replicates
from ecc_core.io import CurveTable, write_figure, write_table
from ecc_core.plotting import COLUMN
from ecc_core.plotting._figures import named, new_figure
from ecc_core.results import functionals_of

DESCRIPTION = (
    "Compare the mean curves of two or more groups in a table of ecc curve, ecc stack or ecc "
    "batch, or with --measure scores of ecc score, "
    "by a permutation test, and say at which thresholds they differ. P-values of thresholds are "
    "corrected for their number. Independent units are permuted, such as wells or animals: curves "
    "of one unit are averaged first, and must be replicates. Channels, time points and labels that "
    "recur in the images are none: --where chooses one of them."
)
LEVEL = 0.05
SPREAD = 0.25
"""Half of the width over which the scores of a group are spread in a figure, in groups."""
MINUS = "\N{MINUS SIGN}"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("input", type=Path, metavar="TABLE", help="a .csv, .parquet or .json file")
    by = "column that names the group of each curve, or folder for that of its image"
    parser.add_argument("--by", required=True, metavar="COLUMN", help=by)
    parser.add_argument("--groups", metavar="A,B,...", help="the groups to compare (default: all)")
    unit = (
        "column that names the independent unit of each curve, such as a well or an animal, or "
        "folder (default: each image, or each curve of a table without the column input)"
    )
    parser.add_argument("--unit", help=unit, metavar="COLUMN")
    where = (
        "only curves with this value, such as channel=DAPI or label=1, or with others, such as "
        "label!=0; may be given several times"
    )
    parser.add_argument(
        "--where", type=condition, action="append", default=[], metavar="COLUMN=VALUE", help=where
    )
    join = (
        "CSV or Parquet file with more columns, such as treatments, and one row for each value of "
        "input, name (of the file, with or without suffix), plate, well or other columns that say "
        "which curves it belongs to"
    )
    parser.add_argument("--join", type=Path, metavar="FILE", help=join)
    average = (
        "column whose values within a unit are replicates, such as the number of a section, "
        "although they recur in other units; may be given several times"
    )
    parser.add_argument("--average", action="append", default=[], metavar="COLUMN", help=average)
    paired = "with --unit: each unit is in both of two groups"
    parser.add_argument("--paired", action="store_true", help=paired)
    measure = (
        "which curves, if the table has several: euler, b0, b1, area, perimeter, ..., or all of "
        "one kind at once, each divided by its largest value (default: euler); or a column of a "
        "table of ecc score, such as dice or matched_error_b1"
    )
    parser.add_argument("--measure", metavar="NAME", help=measure, default="euler")
    most = "take all permutations up to this number, or else so many random ones (default: 9999)"
    parser.add_argument("--permutations", type=positive, default=9999, metavar="N", help=most)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of these (default: 0)")
    options.add(parser, "--out", "--plot")


def run(arguments: Namespace) -> None:
    joined = [str(arguments.join)] if arguments.join else []
    check_outputs(arguments, [str(arguments.input), *joined], printed=True)
    groups = read_groups(arguments)
    test = _test(groups, arguments)
    every = arguments.measure == "all"
    measures = [*functionals_of(_curves_of(groups))] if every else [arguments.measure]
    lines = _statement(test, groups, measures, arguments)
    sys.stdout.write("\n".join(lines) + "\n")
    if arguments.out:
        _write(arguments, test, groups, measures)
    if arguments.plot and groups.scores:
        _plot_scores(arguments, test, groups)
    elif arguments.plot:
        _plot(arguments, test, groups, measures)


def _test(groups: Groups, arguments: Namespace) -> PermutationTest:
    """Test the groups. Errors name groups and options instead of arguments."""
    try:
        return permutation_test(
            *groups.parts.values(),
            units=None if groups.units is None else tuple(groups.units),
            average=arguments.average,
            paired=arguments.paired,
            n_permutations=arguments.permutations,
            functional=_functional(_curves_of(groups), arguments.measure),
            rng=arguments.seed,
        )
    except MixedUnitsError as error:
        mixed = error.mixed
        choice = f"choose one with --where '{mixed.choice}'"
        message = mixed.in_words(choice, f"give --average {mixed.column}")
    except ValueError as error:
        message = str(error).replace("`functional`", "--measure").replace("`units`", "--unit")
        arguments_of = ["`first`", "`second`", *(f"`more[{i}]`" for i in range(len(groups.parts)))]
        for argument, name in zip(arguments_of, groups.parts, strict=False):
            message = message.replace(argument, name)
    raise InputFileError(f"{arguments.input}: {message}")


def _curves_of(groups: Groups) -> Any:
    """Return the curves of the first group, which are of the same kind as all others."""
    return next(iter(groups.parts.values())).curves


def _functional(curves: Any, measure: str) -> str | None:
    return None if measure != "all" and np.ndim(curves.values) == 2 else measure


def _write(
    arguments: Namespace, test: PermutationTest, groups: Groups, measures: list[str]
) -> None:
    """Write a row for each threshold, and what was compared."""
    size = test.thresholds.size
    columns = {"measure": np.repeat(measures, size)} if len(measures) > 1 else {}
    columns |= {
        "threshold": np.tile(test.thresholds, len(measures)),
        "difference": test.difference.ravel(),
        "pvalue": test.pvalues.ravel(),
        "effect_size": test.effect_size.ravel(),
    }
    if groups.scores:  # Scores have no thresholds: all rows are equal.
        columns = {name: values[:1] for name, values in columns.items() if name != "threshold"}
    sizes = {
        name: {"units": number, "curves": len(part.metadata)}
        for (name, part), number in zip(groups.parts.items(), test.units, strict=True)
    }
    facts = {
        "groups": sizes,
        "difference": _difference(groups),
        "statistic": test.statistic,
        "pvalue": test.pvalue,
        "least_pvalue": test.least_pvalue,
        "permutations": test.null.size,
        "all_permutations": test.exact,
    }
    settings = settings_of(arguments) | {"table": str(arguments.input)}
    settings["where"] = [str(one) for one in arguments.where]
    settings["join"] = None if arguments.join is None else str(arguments.join)
    write_table(arguments.out, columns, metadata=metadata_of(settings, **facts))


def _difference(groups: Groups) -> str:
    """Return the difference of the groups in words."""
    names = [*groups.parts]
    if len(names) == 2:
        return f"{names[0]} {MINUS} {names[1]}"
    return "standard deviation of the means"


def _statement(
    test: PermutationTest, groups: Groups, measures: list[str], arguments: Namespace
) -> list[str]:
    """Return the lines that describe the comparison and its result."""
    sizes = []
    for (name, part), number in zip(groups.parts.items(), test.units, strict=True):
        count = len(part.metadata)
        of_units = "" if groups.units is None else f"{number} x {groups.unit}, "
        sizes.append(f"{name} ({of_units}{_counted(count, groups.row)})")
    lines = [
        f"{', '.join(sizes[:-1])} and {sizes[-1]}",
        *_averages(groups, arguments),
        _result(test, groups),
    ]
    if test.least_pvalue > LEVEL:
        lines.append(
            f"no result can be significant: with so few units p is at least "
            f"{test.least_pvalue:.2g}, whatever the curves are"
        )
    if groups.scores:
        return lines + _means(test, groups, arguments)
    rows = zip(measures, *map(np.atleast_2d, (test.pvalues, test.effect_size)), strict=True)
    for measure, pvalues, effects in rows:
        where = pvalues <= LEVEL
        ranges = test._replace(pvalues=pvalues).differing(LEVEL)
        words = [_range_in_words(first, last) for first, last in ranges]
        found = ", ".join(words) or "none"
        of = f" in {measure}" if len(measures) > 1 else ""
        lines.append(f"thresholds that differ{of} (p <= {LEVEL}, corrected): {found}")
        if where.any():
            best = np.flatnonzero(where)[np.abs(effects[where]).argmax()]
            size = effects[best]
            at = test.thresholds[best]
            minus = f" ({_difference(groups)})" if len(groups.parts) == 2 else ""
            lines.append(f"largest effect there{minus}: {size:.3g} standard deviations at {at:g}")
    return lines


def _means(test: PermutationTest, groups: Groups, arguments: Namespace) -> list[str]:
    """Return the lines with the mean score of each group and their difference."""
    means = []
    for number, (name, part) in enumerate(groups.parts.items()):
        ids = None if groups.units is None else groups.units[number]
        band = _band(part, ids, arguments.measure, arguments)
        means.append(f"{name} {np.ravel(band.mean)[0]:.4g}")
    lines = [f"mean {arguments.measure}: {', '.join(means)}"]
    if len(groups.parts) == 2:
        difference = np.ravel(test.difference)[0]
        effect = np.ravel(test.effect_size)[0]
        words = f"{difference:.4g}, {effect:.3g} standard deviations"
        lines.append(f"difference ({_difference(groups)}): {words}")
    return lines


def _result(test: PermutationTest, groups: Groups) -> str:
    """Return the p-value in words, with the permutations and whether it is the least possible."""
    drawn = "all" if test.exact else "random"
    words = f"p = {test.pvalue:.4g} ({drawn} {test.null.size} permutations, by {groups.unit})"
    if not test.is_least:
        return words
    least = "these units" if test.exact else "so many permutations"
    return f"{words}, the smallest that {least} can give"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _averages(groups: Groups, arguments: Namespace) -> list[str]:
    """Return the line that says over which columns the curves of a unit were averaged, if any."""
    if groups.units is None:
        return []
    counts = [*Counter(unit for own in groups.units for unit in own).values()]
    if max(counts) == 1:
        return []
    columns = check_replicates(groups.frames, groups.units, arguments.average)
    shown = [name for name in columns if name not in REPLICATES or name in ("field", "folder")]
    words = [
        "label (objects without names, as their labels differ between images)"
        if name == "label" and name not in arguments.average
        else name
        for name in shown
    ]
    over = f", over {', '.join(words)}" if words else ""
    number = f"{min(counts)}" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"
    return [f"averaged within each {groups.unit}: {number} {groups.row}s{over}"]


def _plot(arguments: Namespace, test: PermutationTest, groups: Groups, measures: list[str]) -> None:
    """Draw the mean curves of the groups with bands, above their difference."""
    rows = len(measures)
    size = 1.5 * COLUMN, 1.5 * COLUMN * (3 * rows + 2) / 5
    figure = new_figure(figsize=size, layout="constrained")
    *above, below = figure.subplots(rows + 1, 1, sharex=True, height_ratios=[3] * rows + [2])
    for ax, measure in zip(above, measures, strict=True):
        for number, (name, part) in enumerate(groups.parts.items()):
            ids = None if groups.units is None else groups.units[number]
            band = _band(part, ids, measure, arguments)
            units = _counted(test.units[number], groups.unit)
            band.plot(ax, label=f"{name} (n = {units})")
        ax.set(ylabel=band.quantity)
    above[0].legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    colours: Any = {"color": "black"} if rows == 1 else {"label": measures}
    test.plot(below, level=LEVEL, linewidth=0.8, **colours)
    if rows > 1:
        below.legend(frameon=False, fontsize="small")
    what = "difference\n" if len(groups.parts) == 2 else ""
    label = f"{what}{_difference(groups)}".replace("deviation of", "deviation\nof")
    below.set(xlabel=named("threshold", test.threshold_units), ylabel=label)
    for ax in (*above, below):
        ax.spines[["top", "right"]].set_visible(False)
    bands = f"means with 95 % bands; grey: p \N{LESS-THAN OR EQUAL TO} {LEVEL}, corrected"
    figure.suptitle(f"{_result(test, groups)}\n{bands}", fontsize="small")
    write_figure(arguments.plot, figure)


def _plot_scores(arguments: Namespace, test: PermutationTest, groups: Groups) -> None:
    """Draw the score of each unit, and the mean of each group with its 95 % interval."""
    figure = new_figure(figsize=(COLUMN, COLUMN), layout="constrained")
    ax = figure.subplots()
    names = []
    for number, (name, part) in enumerate(groups.parts.items()):
        ids = None if groups.units is None else groups.units[number]
        scores = _unit_means(part, ids)
        band = _band(part, ids, arguments.measure, arguments)
        low, mean, high = (float(np.ravel(at)[0]) for at in (band.lower, band.mean, band.upper))
        places = number - SPREAD + 2 * SPREAD * (np.arange(scores.size) + 0.5) / scores.size
        ax.plot(places, scores, "o", color=f"C{number}", alpha=0.5, markersize=4)
        ends = [[mean - low], [high - mean]]
        ax.errorbar(number, mean, ends, fmt="_", color="black", markersize=24, capsize=4)
        names.append(f"{name}\n(n = {_counted(test.units[number], groups.unit)})")
    ax.set(xticks=range(len(names)), xlim=(-0.6, len(names) - 0.4), ylabel=arguments.measure)
    ax.set_xticklabels(names)
    ax.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{_result(test, groups)}\nmeans with 95 % intervals", fontsize="small")
    write_figure(arguments.plot, figure)


def _unit_means(part: CurveTable, ids: list[str] | None) -> NDArray[np.float64]:
    """Return the mean score of each unit."""
    values = np.asarray(part.curves.values, np.float64)
    scores = values.reshape(len(part.metadata), -1)[:, 0]
    if ids is None:
        return scores
    units = np.array(ids)
    means = [scores[units == unit].mean() for unit in np.unique(units)]
    return np.array(means)


def _range_in_words(first: float, last: float) -> str:
    return f"{first:g}" if first == last else f"{first:g} to {last:g}"


def _band(part: CurveTable, ids: list[str] | None, measure: str, arguments: Namespace) -> CurveBand:
    """Return the mean curve of the units and its band. That of a single unit has no width."""
    functional = _functional(part.curves, measure)
    values = np.asarray(part.curves.values, np.float64)
    units = np.arange(len(values)) if ids is None else np.array(ids)
    if len(np.unique(units)) == 1:
        values = np.repeat(values.mean(axis=0, keepdims=True), 2, axis=0)
        single = part.curves._replace(values=values)
        return mean_band(single, functional=functional, rng=arguments.seed)
    return mean_band(part.curves, units=units, functional=functional, rng=arguments.seed)
