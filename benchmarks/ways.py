"""What would take longer if one of several ways did all: the figures of two pages of the design.

    python benchmarks/ways.py [--quick] [--only SECTION]

Each row is a call as it is, and the same call in another way, which the package has for other
cases, by turns in one thread and in processor time. ``docs/design/ways.md`` and
``docs/design/partitions.md`` quote the ratios. Writes benchmarks/results/ways.json and .md.
"""

from __future__ import annotations

import os

os.environ["NUMBA_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import dask
import dask.array
import numpy as np
import torch
from report import Row, in_turns, row, run
from scipy.ndimage import find_objects, gaussian_filter, label

import ecc_core as ecc
from ecc_core._backends.cpu import curves
from ecc_core._backends.cpu.encoders import plans
from ecc_core._backends.cpu.soft.coefficients import coefficients
from ecc_core._backends.cpu.soft.sums import Sums
from ecc_core._backends.soft import SoftImages
from ecc_core._request.filtration import Filtration
from ecc_core._torch import cpu, curve, plain
from ecc_core.nn.functional import soft_euler_curve

EVEN = np.linspace(0, 1, 255)
TURNS = 5
CONNECTIVITY = 0
"""It stands for the default in a row."""


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
    """Ways from values to keys."""
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
        in_place = partial(coefficients, batch, False, 1)
        scanned = partial(curves.coefficients, batch, Filtration(2, 1), workers=1)
        yield compared(f"coefficients of {shape}, in place or by the scan", in_place, scanned)
    few = np.linspace(0, 1, 16)
    second = noise(side, side)

    def by_curves() -> None:
        for level in few:
            ecc.euler_curve(image, few, mask=second <= level, workers=1)

    yield compared(
        "a surface of 16 x 16 thresholds, or a curve for each second threshold",
        lambda: ecc.euler_surface(image, second, few, few, workers=1),
        by_curves,
    )
    for shape, scale in (((side // 2, side // 2), 8), ((side // 16,) * 3, 3)):
        field = gaussian_filter(noise(*shape), scale)
        inside = field > np.median(field)
        weights = inside.astype(np.int64)
        yield compared(
            f"16 directions of a mask of {shape}, or of weights",
            lambda inside=inside: ecc.euler_transform(inside, 16, 64, workers=1),
            lambda weights=weights: ecc.euler_transform(weights, 16, 64, weighted=True, workers=1),
        )
    labels, count = label(smooth(side // 2, side // 2) > 0.5)

    def by_masks(labels: np.ndarray = labels) -> None:
        for number, box in enumerate(find_objects(labels), 1):
            ecc.euler_transform(labels[box] == number, 16, 64, workers=1)

    yield compared(
        f"16 directions of {count} regions, in one pass or box by box",
        lambda: ecc.region_transforms(labels, 16, 64, workers=1),
        by_masks,
    )


@contextmanager
def summed(by_points: bool) -> Iterator[None]:
    """Sum soft curves point by point, or in windows."""
    kept = Sums._takes_points
    Sums._takes_points = lambda *_: by_points  # type: ignore[method-assign]
    try:
        yield
    finally:
        Sums._takes_points = kept  # type: ignore[method-assign]


def soft(quick: bool) -> Iterator[Row]:
    """Soft curves and their gradients."""
    side = 4 if quick else 1
    cases = ((32, 28, 32), (8, 256, 32), (1, 512, 64), (1, 1024, 256))
    for images, length, count in cases:
        rows = length // side
        image = torch.from_numpy(noise(images, 1, rows, rows)).requires_grad_()
        levels = torch.linspace(0, 1, count)

        def step(
            by_points: bool, image: torch.Tensor = image, levels: torch.Tensor = levels
        ) -> None:
            with summed(by_points):
                found = soft_euler_curve(image, levels, sharpness=2.0 * len(levels))
                found.sum().backward()

        size = f"{images} images of {rows} x {rows}, {count} levels"
        yield compared(f"{size}, points or windows", partial(step, True), partial(step, False))
    for images, length, count in cases[:2]:
        rows = length // side
        image = torch.from_numpy(noise(images, rows, rows))
        given = SoftImages(
            image=image,
            thresholds=torch.linspace(0, 1, count),
            sharpness=torch.tensor(2.0 * count),
            direction_terms=None,
            mask=None,
            connectivity=2,
            superlevel=False,
        )
        size = f"{images} images of {rows} x {rows}, {count} levels"
        with torch.no_grad():
            kernels = partial(cpu.curves, given, False)
            yield compared(
                f"{size}, kernels or coefficients in torch",
                kernels,
                partial(plain.curves, given, False),
            )
            yield compared(
                f"{size}, kernels or cells in torch",
                kernels,
                partial(curve._plain, *given, "raster", False),
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
    run(
        "ways",
        "Ways",
        ABOUT,
        {"keys": keys, "loops": loops, "soft": soft, "partitions": partitions},
    )
