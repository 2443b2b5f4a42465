"""Write the table of array libraries and functions into README.md, from the quantities."""

import re
import sys
from pathlib import Path

from ecc_core.quantities import QUANTITIES, Function, Quantity

PAGE = Path(__file__).parents[1] / "README.md"
BEGIN = "<!-- begin: support -->"
END = "<!-- end: support -->"
COLUMNS = ("NumPy", "torch, CPU", "torch and CuPy, CUDA", "other devices", "dask")
NO = "–"  # noqa: RUF001
OTHERS = (
    ("`euler_transform`, `region_transforms`", "yes", "yes", "yes", NO, NO),
    (
        "`simplicial_curve`, `simplicial_transform`, their layer in `nn`",
        "yes",
        "yes",
        "yes",
        NO,
        NO,
    ),
    ("`simplicial_pairs`", "yes", "yes", NO, NO, NO),
    ("`nn`: gradients", NO, "yes", "yes", NO, NO),
)
"""Rows of functions that compute no quantity of sets of an image."""


def table() -> str:
    """Return the table, with a row for all functions that the same arrays support."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for quantity in QUANTITIES:
        for function in quantity.functions:
            cells = _cells(function, quantity)
            rows.setdefault(cells, []).append(f"`{function.name}`")
    lines = [f"| | {' | '.join(COLUMNS)} |", "|---" * (1 + len(COLUMNS)) + "|"]
    lines += [_line(", ".join(names), *cells) for cells, names in rows.items()]
    lines += [_line(*row) for row in OTHERS]
    return "\n".join(lines)


def _cells(function: Function, quantity: Quantity) -> tuple[str, ...]:
    lazily = NO
    if function.lazy:
        lazily = ", ".join(filter(None, ["yes, lazily", function.lazy_limit]))
        joined = quantity.joins.boundaries.names
        if not {*quantity.boundaries.names} <= {*joined}:
            lazily = f"{lazily}, boundary {' or '.join(joined)}"
    device = NO if function.device == "no" else function.device
    elsewhere = "slowly" if function.plain else NO
    return ("yes", "yes", device, elsewhere, lazily)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def updated(page: str) -> str:
    """Return a page with the present table between its marks."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n\n{table()}\n\n{END}", page)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(updated(text), encoding="utf-8")
    sys.exit(0 if BEGIN in text else f"{PAGE} has no {BEGIN}")
