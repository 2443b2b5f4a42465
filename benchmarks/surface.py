"""Times of surfaces of 64 x 64 thresholds against one curve of one of the images.

    python benchmarks/surface.py [--quick] [--only SECTION]

As benchmarks/cpu.py: in one process and in turns. Writes benchmarks/results/surface.json and
surface.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from cpu import field
from report import TURNS, Row, in_turns, row, run

import ecc_core as ecc

COUNT = 64


def compared(shape: tuple[int, ...]) -> Iterator[Row]:
    """Yield rows of independent fields, rough and smooth, with each connectivity."""
    for sigma in (0, 3):  # Other work rarely interrupts short calls.
        both = field((2 * shape[0], *shape[1:]), sigma)
        first = both[: shape[0]]
        second = both[shape[0] :]
        at = np.linspace(0, 1, COUNT)
        case = f"{' x '.join(map(str, shape))} {f'sigma {sigma}' if sigma else 'noise'}"
        for connectivity in (1, len(shape)):
            options: dict[str, Any] = {"connectivity": connectivity, "workers": 1}
            calls = {
                "curve": partial(ecc.euler_curve, first, at, **options),
                "surface": partial(ecc.euler_surface, first, second, at, at, **options),
            }
            in_turns(calls, 1)
            timed = in_turns(calls, 3 * TURNS)
            yield row(case, connectivity, 1, timed["surface"], ("curve", timed["curve"]), "<= 8")


def images(quick: bool) -> Iterator[Row]:
    """Images of float32."""
    yield from compared((256, 256) if quick else (512, 1024))


def volumes(quick: bool) -> Iterator[Row]:
    """Volumes of float32."""
    yield from compared((32, 32, 32) if quick else (64, 64, 80))


ABOUT = f"""\
Surfaces at {COUNT} x {COUNT} thresholds against the curve of the first image at {COUNT}. Both calls
are repeated alternately in one process, at least 20 ms each time, and the least times are compared.
Written by `python benchmarks/surface.py`."""

if __name__ == "__main__":
    run("surface", "Surfaces on the CPU", ABOUT, {"images": images, "volumes": volumes})
