"""Write the table of formats and what their readers read into docs/scaling.md, from the code."""

import re
import sys
from pathlib import Path

from ecc_core._io.description import FIELDS
from ecc_core._io.formats import Format
from ecc_core._io.open import FORMATS

PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"
BEGIN = "<!-- begin: formats -->"
END = "<!-- end: formats -->"
TITLES = {
    "axes": "axes",
    "spacing": "spacing",
    "time": "time step",
    "place": "place",
    "encoding": "scaling",
    "missing": "missing",
    "channels": "channels",
}


def table() -> str:
    """Return the table, with a row for each format."""
    assert TITLES.keys() == FIELDS.keys()
    lines = [f"| format | {' | '.join(TITLES.values())} | tested with |"]
    lines.append("|---" * (len(TITLES) + 2) + "|")
    lines += [_row(found) for found in FORMATS]
    return "\n".join(lines)


def _row(found: Format) -> str:
    marks = ["yes" if field in found.fields else "" for field in TITLES]
    suffixes = " ".join(f"`{suffix}`" for suffix in found.suffixes)
    cells = [f"{found.name} ({suffixes})", *marks, found.reference or "own files"]
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def updated(page: str) -> str:
    """Return a page with the present table between its marks."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n{table()}\n{END}", page)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(updated(text), encoding="utf-8")
    sys.exit(0 if BEGIN in text else f"{PAGE} has no {BEGIN}")
