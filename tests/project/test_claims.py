"""What the texts say of times is what the committed results of the benchmarks say."""

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TOLERANCE = 1.25  # how far a rounded number may be from a measured one, as a factor
LIKE = ("image", "connectivity", "shape")  # in which a row is compared with another
GROUPS = yaml.safe_load(Path(__file__).with_name("claims.yaml").read_text(encoding="utf-8"))


def listed(found, path):
    """The rows at a path, in which * stands for all keys."""
    for key in filter(None, path.split(".")):
        found = [row for rows in found.values() for row in rows] if key == "*" else found[key]
    return found if isinstance(found, list) else [found]


def meets(row, conditions):
    def one(found, wanted):
        if isinstance(wanted, list):
            return found in wanted
        return fnmatchcase(found, wanted) if isinstance(wanted, str) else found == wanted

    return all(one(row[name], wanted) for name, wanted in conditions.items())


def value_of(row, formula):
    """A value of a row, or how many times it is another one, or a number."""
    first, *others = formula.split(" / ")
    value = row
    for key in first.split("."):
        value = value[key]
    for other in others:
        value /= float(other) if other[0].isdecimal() else value_of(row, other)
    return value


def measured(group, more, formula):
    text = (ROOT / "benchmarks" / "results" / f"{group['file']}.json").read_text(encoding="utf-8")
    rows = listed(json.loads(text), group["rows"])
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


@pytest.mark.parametrize(
    ("group", "page", "phrase", "more", "formula"),
    [
        (group, page, phrase, *(rest or [{}]), *([group["value"]] if "value" in group else []))
        for group in GROUPS
        for page, phrase, *rest in group["claims"]
    ],
)
def test_claim_is_measured(group, page, phrase, more, formula):
    pattern = re.escape(phrase).replace(r"\#", r"(\d[\d.,]*)").replace(r"\ ", r"\s+")
    said = re.search(pattern, (ROOT / page).read_text(encoding="utf-8"))
    assert said, f"{page} no longer says {phrase}"
    numbers = [float(number.replace(",", "")) for number in said.groups()]
    figures = measured(group, more, formula)
    assert min(numbers) / TOLERANCE < min(figures)
    assert max(figures) < max(numbers) * TOLERANCE
    if len(numbers) > 1:  # a range is as wide as the measurements are
        assert min(figures) < numbers[0] * TOLERANCE
        assert max(figures) > numbers[1] / TOLERANCE
