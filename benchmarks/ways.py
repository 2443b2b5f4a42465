"""What would take longer if one of several ways did all: the figures of two pages of the design.

    python benchmarks/ways.py [--quick] [--only SECTION]

Each row is a call as it is, and the same call in another way, which the package has for other
cases, by turns in one thread and in processor time. ``docs/design/ways.md`` and
``docs/design/partitions.md`` quote the ratios. Writes benchmarks/results/ways.json and .md.
"""

from __future__ import annotations

import os

os.environ["NUMBA_NUM_THREADS"] = "1"

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dask
import dask.array
import numpy as np
from report import Row, in_turns, row, run
from scipy.ndimage import find_objects, gaussian_filter, label

import ecc_core as ecc
from ecc_core._backends.cpu import curves
from ecc_core._backends.cpu.encoders import plans
from ecc_core._backends.cpu.soft.coefficients import coefficients

EVEN = np.linspace(0, 1, 255)
TURNS = 5
CONNECTIVITY = 0  # stands for the default in a row


@contextmanager
def replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute of a module for a while; plans of calls are made anew."""
    kept = getattr(module, name)
    plans._plans.cache_clear()
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, kept)
        plans._plans.cache_clear()


def compared(
    case: str, call: Callable[[], Any], other: Callable[[], Any], connectivity: int = CONNECTIVITY
) -> Row:
    """Return how many times as long the other way takes."""
    found = in_turns({"own": call, "other": other}, TURNS, time.process_time)
    return row(case, connectivity, 1, found["own"], ("other way", found["other"]), faster=True)


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).random(shape, dtype=np.float32)


def smooth(*shape: int) -> np.ndarray:
    image = gaussian_filter(noise(*shape), 8 if len(shape) == 2 else 3)
    found: np.ndarray = (image - image.min()) / (image.max() - image.min())
    return found


def keys(quick: bool) -> Iterator[Row]:
    """From values to keys."""
    side = 128 if quick else 1024
    image = noise(side, side)

    def curve(given: np.ndarray, thresholds: np.ndarray) -> Callable[[], Any]:
        def call() -> Any:
            plans._plans.cache_clear()
            return ecc.euler_curve(given, thresholds, workers=1)

        return call

    def by_cells() -> Any:
        with replaced(plans, "even_scale", lambda *_: None):
            return ecc.euler_curve(image, EVEN, workers=1)

    yield compared("a line, or cells", curve(image, EVEN), by_cells)
    for dtype, count in (("uint8", 256), ("uint16", 256), ("uint16", 65_536)):
        top = np.iinfo(dtype).max
        given = (image * top).astype(dtype)
        thresholds = np.arange(0, top + 1, (top + 1) // count)

        def by_table(given: np.ndarray = given, thresholds: np.ndarray = thresholds) -> Any:
            with replaced(plans, "_direct", plans._table):
                return ecc.euler_curve(given, thresholds, workers=1)

        case = f"copies, or a table, {dtype}, {count} thresholds"
        yield compared(case, curve(given, thresholds), by_table)


def loops(quick: bool) -> Iterator[Row]:
    """Loops over an image."""
    side = 128 if quick else 1024
    image = noise(side, side)
    mask = image > 0.5
    yield compared(
        "one set, counted or scanned",
        lambda: ecc.euler_number(mask),
        lambda: ecc.euler_curve(image, [0.5, 0.6], workers=1),
    )
    rows = noise(4 * side, 256)

    def by_scan() -> Any:
        with replaced(curves, "MOST_COLUMNS", 0):
            return ecc.euler_curve(rows, EVEN, axis=1, workers=1)

    by_rows = lambda: ecc.euler_curve(rows, EVEN, axis=1, workers=1)  # noqa: E731
    yield compared("rows of 256, by themselves or by the scan", by_rows, by_scan)
    field = smooth(side, side)
    labels, count = label(field > np.median(field))

    def by_boxes() -> None:
        for number, box in enumerate(find_objects(labels), 1):
            ecc.euler_curve(image[box], EVEN, mask=labels[box] == number, workers=1)

    case = f"{count} regions, in one pass or box by box"
    yield compared(case, lambda: ecc.region_curves(image, labels, EVEN, workers=1), by_boxes)
    for shape in ((16, 28, 28), (1, side, side)):
        batch = noise(*shape)
        yield compared(
            f"coefficients of {shape}, in place or by the scan",
            lambda batch=batch: coefficients(batch, False, 1),
            lambda batch=batch: [ecc.euler_coefficients(one, connectivity=1) for one in batch],
        )


def partitions(quick: bool) -> Iterator[Row]:
    """Halos or terms, and boxes in place or pieces."""
    side = 256 if quick else 4096
    for kind, make in (("noise", noise), ("smooth", smooth)):
        image = make(side, side)
        volume = np.ascontiguousarray(make(side // 16, side // 32, side // 32))
        for given, lengths in ((image, (side // 32, side // 8)), (volume, (side // 64,))):
            for length in lengths:
                parts = [given[i : i + length] for i in range(0, len(given), length)]
                yield compared(
                    f"curve of {given.ndim}-D {kind}, halos or terms, blocks of {length} slices",
                    lambda given=given: ecc.euler_curve(given, EVEN, workers=1),
                    lambda parts=parts: ecc.euler_curve_shards(parts, EVEN),
                )
        half = volume[: len(volume) // 2]
        sides = (len(half) // 2, half.shape[1] // 2, half.shape[2])
        blocks = dask.array.from_array(half, chunks=sides)
        for connectivity in (1, 3):
            options: dict[str, Any] = {"connectivity": connectivity}

            def by_pieces(options: dict[str, Any] = options, blocks: Any = blocks) -> Any:
                return dask.compute(*ecc.betti_curves(blocks, EVEN, **options), scheduler="sync")

            yield compared(
                f"Betti curves of {kind}, boxes in place or pieces",
                lambda half=half, options=options: ecc.betti_curves(
                    half, EVEN, workers=1, **options
                ),
                by_pieces,
                connectivity,
            )


ABOUT = (
    "Processor time of one thread, in milliseconds, of a call as it is, and in the other way that "
    "is named last; the value is the latter divided by the former."
)

if __name__ == "__main__":
    run("ways", "Ways", ABOUT, {"keys": keys, "loops": loops, "partitions": partitions})
