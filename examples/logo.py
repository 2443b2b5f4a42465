"""Draw the logo: a set of pixels with two components and a hole, if corners connect them.

    python examples/logo.py

Writes logo.svg, which suits light and dark pages and is the favicon, too, to docs/_static/.
"""

from __future__ import annotations

import argparse
from pathlib import Path

PIXEL = 20
GAP = 1
COLOURS = {"#": "#0072B2", "+": "#56B4E9", "o": "#D55E00"}
PIXELS = """\
.##.o
#..+.
#..+.
.++..
"""


def logo() -> str:
    """The picture as SVG."""
    rows = PIXELS.split()
    size = PIXEL * len(rows[0]) - GAP
    top = (size - PIXEL * len(rows) + GAP) / 2
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}">']
    for y, row in enumerate(rows):
        for x, kind in enumerate(row):
            if kind in COLOURS:
                place = f'x="{PIXEL * x}" y="{top + PIXEL * y:g}"'
                shape = f'width="{PIXEL - GAP}" height="{PIXEL - GAP}" rx="3"'
                lines.append(f'<rect {place} {shape} fill="{COLOURS[kind]}"/>')
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    folder = Path(__file__).parents[1] / "docs" / "_static"
    parser.add_argument("--out", type=Path, default=folder, help="folder to write to")
    (parser.parse_args().out / "logo.svg").write_text(logo(), encoding="utf-8")


if __name__ == "__main__":
    main()
