"""What the texts say of times is what the committed results of the benchmarks say."""

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TOLERANCE = 1.25
"""The factor by which a rounded number may differ from a measured one."""
LIKE = ("image", "connectivity", "shape")
"""The columns whose values two rows share when they are compared."""
GROUPS, OTHERS = yaml.safe_load_all(
    Path(__file__).with_name("claims.yaml").read_text(encoding="utf-8")
)
UNITS = "\N{MULTIPLICATION SIGN}|%|times\\b|ms\\b|\N{MICRO SIGN}s\\b|s\\b|GiB|MiB"
MEASURED = re.compile(rf"\d[\d.,]*(?=\s*(?:{UNITS}))")
"""A number that looks measured: it is followed by a unit, or compares."""


def rows_of(name):
    """The results of a benchmark: a JSON file, or the tables of a Markdown file."""
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    rows = []
    header = None
    for line in path.with_suffix(".md").read_text(encoding="utf-8").splitlines():
        cells = None
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells and header and not line.startswith("|---"):
            name, *values = cells
            rows.append(dict(zip(header, [name, *map(number_or_text, values)], strict=True)))
        header = cells and (header or cells)
    return rows


def number_or_text(cell):
    """The value of a cell: a number, unless it says more than that."""
    return float(cell) if cell[:1].isdecimal() and " " not in cell else cell


def listed(found, path):
    """The rows at a path, in which * stands for all keys."""
    for key in filter(None, path.split(".")):
        found = [row for rows in found.values() for row in rows] if key == "*" else found[key]
    return found if isinstance(found, list) else [found]


def meets(row, conditions):
    def one(found, wanted):
        if isinstance(wanted, list):
            patterns = [pattern for pattern in wanted if isinstance(pattern, str)]
            return found in wanted or any(one(found, pattern) for pattern in patterns)
        return fnmatchcase(str(found), wanted) if isinstance(wanted, str) else found == wanted

    return all(one(row.get(name), wanted) for name, wanted in conditions.items())


def value_of(row, formula):
    """A value of a row, or how many times it is another one, or a number."""
    if formula in row:
        return row[formula]
    first, *others = formula.split(" / ")
    value = row
    for key in first.split("."):
        value = value[key]
    for other in others:
        value /= float(other) if other[0].isdecimal() else value_of(row, other)
    return value


def measured(group, more, formula):
    names = group["file"] if isinstance(group["file"], list) else [group["file"]]
    rows = [row for name in names for row in listed(rows_of(name), group["rows"])]
    conditions = group.get("where", {}) | more
    figures = []
    for row in rows:
        if meets(row, conditions):
            figures.append(value_of(row, formula))
            if "over" in group:
                like = {name: [row[name]] for name in LIKE if name in row} | group["over"]
                (base,) = (other for other in rows if meets(other, like))
                figures[-1] /= value_of(base, formula)
    return figures


def occurrences(phrase, page):
    pattern = re.escape(phrase).replace(r"\#", r"(\d[\d.,]*)").replace(r"\ ", r"\s+")
    return list(re.finditer(pattern, (ROOT / page).read_text(encoding="utf-8")))


CLAIMS = [
    (group, page, phrase, *[*rest, *[{}, group.get("value")][len(rest) :]])
    for group in GROUPS
    for page, phrase, *rest in group["claims"]
]


@pytest.mark.parametrize(("group", "page", "phrase", "more", "formula"), CLAIMS)
def test_claim_is_measured(group, page, phrase, more, formula):
    said = occurrences(phrase, page)
    assert said, f"{page} no longer says {phrase}"
    numbers = [float(number.replace(",", "")) for number in said[0].groups()]
    figures = measured(group, more, formula)
    tolerance = group.get("tolerance", TOLERANCE)
    assert min(numbers) / tolerance < min(figures)
    assert max(figures) < max(numbers) * tolerance
    if len(numbers) > 1:  # A range is as wide as the measurements are.
        assert min(figures) < numbers[0] * tolerance
        assert max(figures) > numbers[1] / tolerance


@pytest.mark.parametrize("page", OTHERS)
def test_every_number_that_looks_measured_is_compared(page):
    phrases = [phrase for _, where, phrase, *_ in CLAIMS if where == page] + OTHERS[page]
    said = [found for phrase in phrases for found in occurrences(phrase, page)]
    text = (ROOT / page).read_text(encoding="utf-8")
    spans = [range(*found.span()) for found in said]
    unsaid = [
        number
        for number in MEASURED.finditer(text)
        if not any(number.start() in span for span in spans)
    ]
    left = [text[max(0, number.start() - 30) : number.end() + 20] for number in unsaid]
    assert left == []


def found_in(path, pattern):
    return re.findall(pattern, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "row", "count"),
    [
        ("command_memory", r"^\| `ecc .*", 36),
        ("out_of_core", r"^\| (?:uint\d+[, ]|\d+\^3 ).*", 29),
        ("scale", r"^\| 1e\d+ .*", 12),
        ("local_cluster", r"^\| (?:zstd|none) .*", 12),
    ],
)
def test_tables_of_the_guide_are_measured(name, row, count):
    shown = found_in("docs/scaling.md", row)
    assert len(shown) == count
    assert set(shown) <= set(found_in(f"benchmarks/results/{name}.md", row))


def rounds(said, value):
    return abs(float(said) - value) < 0.51 * 10.0 ** -len(said.partition(".")[2])


def test_the_table_of_a_cluster_is_simulated():
    def cells(path, row):
        return [line.strip("| ").split(" | ") for line in found_in(path, row)]

    simulated = {
        (blocks, block, workers, *busy): (float(minutes), float(mib) * 2**20 / 1e9)
        for block, workers, blocks, _, minutes, *busy, _, mib in cells(
            "benchmarks/results/cluster_model.md", r"^\| \d+\^3 .* % .*"
        )
    }
    shown = cells("docs/scaling.md", r"^\| [\d,]+ of \d+\^3 .*")
    assert len(shown) == 7
    for of, workers, minutes, *busy, memory in shown:
        found = simulated[(*of.split(" of "), workers, *busy)]
        assert rounds(minutes.removesuffix(" min"), found[0])
        assert rounds(memory.removesuffix(" GB"), found[1])
