"""What the scripts learn_*.py share: their options, and where results go."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from ecc_core.io import write_figure

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def main(
    description: str,
    name: str,
    compare: Callable[..., Any],
    report: Callable[[Any], None],
    draw: Callable[[Any], Figure],
    **numbers: float,
) -> None:
    """Compare, report and draw, with the options of the command line for `compare`."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=IMAGES)
    parser.add_argument("--seeds", type=int, default=5)
    for option, default in numbers.items():
        parser.add_argument(f"--{option}", type=float, default=default)
    options = vars(parser.parse_args())
    folder = options.pop("folder")
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # For networks this small, threads cost more than they gain.
    results = compare(**options)
    report(results)
    write_figure(folder / f"learn-{name}.png", draw(results), dpi=120)
