"""``ecc compare``: whether groups of the curves of a table differ, and where."""

import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Set
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._cli import options
from ecc_core._cli.outputs import check_outputs, metadata_of, settings_of
from ecc_core._cli.values import positive
from ecc_core._io.tables import kinds_of, table_of
from ecc_core.errors import InputFileError
from ecc_core.features import CurveBand, PermutationTest, mean_band, permutation_test
from ecc_core.io import CurveTable, write_figure, write_table
from ecc_core.plotting import COLUMN
from ecc_core.plotting._figures import named, new_figure
from ecc_core.results import functionals_of

DESCRIPTION = (
    "Compare the mean curves of two or more groups in a table of ecc curve, ecc stack or ecc batch "
    "by a permutation test, and say at which thresholds they differ. P-values of thresholds are "
    "corrected for their number. Independent units are permuted, such as wells or animals: curves "
    "of one unit are averaged first."
)
LEVEL = 0.05


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("input", type=Path, metavar="TABLE", help="a .csv, .parquet or .json file")
    by = "column that names the group of each curve, or folder for that of its image"
    parser.add_argument("--by", required=True, metavar="COLUMN", help=by)
    parser.add_argument("--groups", metavar="A,B,...", help="the groups to compare (default: all)")
    unit = (
        "column that names the independent unit of each curve, such as a well or an animal, or "
        "folder (default: each curve is one)"
    )
    parser.add_argument("--unit", help=unit, metavar="COLUMN")
    paired = "with --unit: each unit is in both of two groups"
    parser.add_argument("--paired", action="store_true", help=paired)
    measure = (
        "which curves, if the table has several: euler, b0, b1, area, perimeter, ..., or all of "
        "one kind at once, each divided by its largest value (default: euler)"
    )
    parser.add_argument("--measure", metavar="NAME", help=measure, default="euler")
    most = "take all permutations up to this number, or else so many random ones (default: 9999)"
    parser.add_argument("--permutations", type=positive, default=9999, metavar="N", help=most)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of these (default: 0)")
    options.add(parser, "--out", "--plot")


def run(arguments: Namespace) -> None:
    check_outputs(arguments, [str(arguments.input)], printed=True)
    table = _table(arguments)
    names = _groups(table, arguments)
    parts = [table.select(_texts(table, arguments.by) == name) for name in names]
    units = None
    if arguments.unit:
        units = tuple(_texts(part, arguments.unit).tolist() for part in parts)
    elif arguments.paired:
        raise InputFileError("--paired needs --unit, which says which curves belong together")
    try:
        test = permutation_test(
            *parts,
            units=units,
            paired=arguments.paired,
            n_permutations=arguments.permutations,
            functional=_functional(table, arguments.measure),
            rng=arguments.seed,
        )
    except ValueError as error:
        message = str(error).replace("`functional`", "--measure")
        raise InputFileError(f"{arguments.input}: {message}") from None
    counts = [len(part.metadata) for part in parts]
    every = arguments.measure == "all"
    measures = [*functionals_of(table.curves)] if every else [arguments.measure]
    sys.stdout.write("\n".join(_statement(test, names, counts, measures, arguments)) + "\n")
    if arguments.out:
        size = test.thresholds.size
        columns = {"measure": np.repeat(measures, size)} if every else {}
        columns |= {
            "threshold": np.tile(test.thresholds, len(measures)),
            "difference": test.difference.ravel(),
            "pvalue": test.pvalues.ravel(),
            "effect_size": test.effect_size.ravel(),
        }
        groups = {
            name: {"units": number, "curves": count}
            for name, number, count in zip(names, test.units, counts, strict=True)
        }
        found = {"statistic": test.statistic, "pvalue": test.pvalue}
        permutations = {"permutations": test.null.size, "all_permutations": test.exact}
        facts = {"groups": groups, **found, **permutations}
        settings = settings_of(arguments) | {"table": str(arguments.input)}
        write_table(arguments.out, columns, metadata=metadata_of(settings, **facts))
    if arguments.plot:
        _plot(arguments, test, dict(zip(names, parts, strict=True)), measures)


def _table(arguments: Namespace) -> CurveTable:
    if not arguments.input.is_file():
        raise InputFileError(f"{arguments.input}: no such file")
    try:
        table = table_of(arguments.input, partial(_kind_of, arguments.measure))
    except ValueError as error:
        raise InputFileError(str(error)) from None
    if "input" in table.metadata and "folder" not in table.metadata:
        folders = [Path(str(path)).parent.name for path in table.metadata["input"]]
        table = replace(table, metadata=table.metadata.assign(folder=folders))
    for option in ("by", "unit"):
        column = getattr(arguments, option)
        if column is None:
            continue
        if column not in table.metadata:
            known = ", ".join(map(str, table.metadata.columns))
            raise InputFileError(
                f"--{option} must be a column of {arguments.input}, got {column!r}: it has {known} "
                "(what the images do not say, such as a treatment, is to be added to the table)"
            )
        cells = table.metadata[column]
        if missing := int((cells.isna() | (cells.astype(str) == "")).sum()):
            raise InputFileError(
                f"--{option} must have a value for each curve, but {column} is empty for {missing}"
            )
    return table


def _kind_of(measure: str, columns: Set[str]) -> Any:
    """Return the kind of curves that `--measure` names, None if a table has no curves."""
    held = kinds_of(columns)
    names = {"euler": "euler"} if "euler" in held else {}
    for kind, own in held.items():
        names |= {name: kind for name in own if name != "euler_number"}
    several = [kind for kind in ("betti", "minkowski") if kind in held]
    every = several or [kind for kind in ("components", "euler") if kind in held][:1]
    kinds = every if measure == "all" else [names[measure]] if measure in names else []
    if len(kinds) == 1 or not held:
        return kinds[0] if kinds else None
    message = f"--measure must be one of {', '.join(map(repr, names))}, got {measure!r}"
    more = " of a table with several kinds of curves" if kinds else ""
    raise ValueError(message + more)


def _functional(table: CurveTable, measure: str) -> str | None:
    return None if measure == "euler" and np.ndim(table.curves.values) == 2 else measure


def _texts(table: CurveTable, column: str) -> Any:
    return table.metadata[column].astype(str).to_numpy()


def _groups(table: CurveTable, arguments: Namespace) -> list[str]:
    known = sorted(set(_texts(table, arguments.by).tolist()))
    names = arguments.groups.split(",") if arguments.groups else known
    if len(names) < 2 or len(set(names)) < len(names):
        option = "--groups" if arguments.groups else "--by"
        raise InputFileError(
            f"{option} must name two or more groups in {arguments.by}, got {', '.join(names[:8])}"
        )
    if missing := [name for name in names if name not in known]:
        raise InputFileError(
            f"--groups must be in the column {arguments.by}, got {missing[0]!r}: it has "
            f"{', '.join(known[:8])}"
        )
    return [*names]


def _statement(
    test: PermutationTest,
    names: list[str],
    counts: list[int],
    measures: list[str],
    arguments: Namespace,
) -> list[str]:
    """Say what was compared, and what came out."""
    sizes = []
    for name, number, count in zip(names, test.units, counts, strict=True):
        of_units = f"{number} x {arguments.unit}, " if arguments.unit else ""
        sizes.append(f"{name} ({of_units}{count} curve{'s' * (count != 1)})")
    permuted = arguments.unit or "curve"
    drawn = "all" if test.exact else "random"
    lines = [
        f"{', '.join(sizes[:-1])} and {sizes[-1]}",
        f"p = {test.pvalue:.4g} ({drawn} {test.null.size} permutations, by {permuted})",
    ]
    least = _least_pvalue(test, arguments.paired)
    if least > LEVEL:
        lines.append(
            f"no result can be significant: with so few units p is at least {least:.2g}, whatever "
            "the curves are"
        )
    rows = zip(measures, *map(np.atleast_2d, (test.pvalues, test.effect_size)), strict=True)
    for measure, pvalues, effects in rows:
        where = pvalues <= LEVEL
        ranges = test._replace(pvalues=pvalues).differing(LEVEL)
        found = ", ".join(f"{a:g}" if a == b else f"{a:g} to {b:g}" for a, b in ranges) or "none"
        of = f" in {measure}" if len(measures) > 1 else ""
        lines.append(f"thresholds that differ{of} (p <= {LEVEL}, corrected): {found}")
        if where.any():
            best = np.flatnonzero(where)[np.abs(effects[where]).argmax()]
            size, at = effects[best], test.thresholds[best]
            lines.append(f"largest effect there: {size:.3g} standard deviations at {at:g}")
    return lines


def _least_pvalue(test: PermutationTest, paired: bool) -> float:
    """Return the smallest p-value that any curves of so many units can have."""
    if not test.exact:
        return 1 / (1 + test.null.size)
    if paired:
        return float(2 / 2 ** test.units[0])
    # Groups of one size can be exchanged as a whole, which gives the same distance.
    same = math.prod(math.factorial(test.units.count(size)) for size in set(test.units))
    return same / test.null.size


def _plot(
    arguments: Namespace, test: PermutationTest, parts: dict[str, CurveTable], measures: list[str]
) -> None:
    """Draw the mean curves of the groups with bands, above their difference."""
    rows = len(measures)
    size = 1.5 * COLUMN, 1.5 * COLUMN * (3 * rows + 2) / 5
    figure = new_figure(figsize=size, layout="constrained")
    *above, below = figure.subplots(rows + 1, 1, sharex=True, height_ratios=[3] * rows + [2])
    for ax, measure in zip(above, measures, strict=True):
        for name, part in parts.items():
            band = _band(part, measure, arguments)
            band.plot(ax, label=name)
        ax.set(ylabel=band.quantity)
    above[0].legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    colours: Any = {"color": "black"} if rows == 1 else {"label": measures}
    test.plot(below, level=LEVEL, linewidth=0.8, **colours)
    if rows > 1:
        below.legend(frameon=False, fontsize="small")
    below.set(xlabel=named("threshold", test.threshold_units), ylabel="difference")
    for ax in (*above, below):
        ax.spines[["top", "right"]].set_visible(False)
    write_figure(arguments.plot, figure)


def _band(part: CurveTable, measure: str, arguments: Namespace) -> CurveBand:
    """Return the mean curve of the units and its band, which has no width for a single one."""
    options = {"functional": _functional(part, measure), "rng": arguments.seed}
    values = np.asarray(part.curves.values, np.float64)
    units = _texts(part, arguments.unit) if arguments.unit else np.arange(len(values))
    if len(np.unique(units)) == 1:
        values = np.repeat(values.mean(axis=0, keepdims=True), 2, axis=0)
        return mean_band(part.curves._replace(values=values), **options)
    return mean_band(part.curves, units=units, **options)
