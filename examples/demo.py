"""Euler characteristic curves of example images: ``make demo``.

For three photographs that come with scikit-image and a generated porous volume, writes the curves
of both connectivities as a table and a picture of the image, its sublevel sets and its curves; and
a picture of the coins as objects that last.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import render
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from skimage import data

import ecc_core as ecc
from ecc_core.io import write_figure, write_table
from ecc_core.plotting import COLUMN, plot_level_sets

Array = NDArray[Any]
Curves = dict[int, ecc.EulerCurve]
"""Curves by the number of neighbours that a point connects to."""


PROMINENCE = 60
"""Gray values by which a coin is brighter than what is around it."""


class Example(NamedTuple):
    """An image and three thresholds at which its sets differ in kind."""

    name: str
    load: Callable[[], Array]
    thresholds: tuple[float, float, float]


def coins() -> Array:
    """Return the coins, less their noise."""
    return gaussian_filter(data.coins().astype(np.float32), 1)


def porous_volume(side: int = 96) -> Array:
    """Return a volume of smooth noise with mean 0 and standard deviation 1."""
    noise = np.random.default_rng(0).standard_normal((side,) * 3, dtype=np.float32)
    smooth = gaussian_filter(noise, 3, mode="wrap")
    return smooth / smooth.std()


EXAMPLES = (
    Example("brick", data.brick, (98, 126, 178)),
    Example("coins", coins, (28, 75, 180)),
    Example("cell", data.cell, (64, 72, 110)),
    Example("porous volume", porous_volume, (-1.7, 0, 1.7)),
)


def curves_of(image: Array, marked: tuple[float, ...]) -> Curves:
    """Return the curve for each connectivity, by the number of neighbours that it connects."""
    thresholds = np.union1d(np.linspace(image.min(), image.max(), 256), marked)
    neighbours = {2: (8, 4), 3: (26, 6)}[image.ndim]
    return {
        count: ecc.euler_curve(image, thresholds, connectivity=connectivity)
        for count, connectivity in zip(neighbours, (image.ndim, 1), strict=True)
    }


def draw(example: Example, image: Array, curves: Curves, figure: Any = None):
    """Draw an example, a volume as seen from above a corner."""
    if image.ndim == 3:
        view = render.look_at(image)
        picture = render.picture_of_volume(view)
        sets = [render.picture_of_set(view, t) for t in example.thresholds]
    else:
        picture = image
        sets = [image <= t for t in example.thresholds]
    return plot_level_sets(
        picture, sets, example.thresholds, curves, title=example.name, figure=figure
    )


def table_of(curves: Curves) -> dict[str, Array]:
    """Return the curves as columns, one row for each threshold and connectivity."""
    return {
        "neighbours": np.repeat(list(curves), [curve.values.size for curve in curves.values()]),
        "threshold": np.concatenate([curve.thresholds for curve in curves.values()]),
        "euler_number": np.concatenate([curve.values for curve in curves.values()]),
    }


def draw_objects(image: Array) -> tuple[Figure, int]:
    """Draw the bright objects that last, up to half of their heights, beside all persistences.

    Returns how many last.
    """
    found = ecc.persistent_regions(image, PROMINENCE, superlevel=True, rel_height=0.5)
    figure = Figure(figsize=(2 * COLUMN, 2.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.imshow(image, cmap="gray")
    for label in range(1, len(found.births) + 1):
        left.contour(found.labels == label, [0.5], colors="C1", linewidths=0.6)
    left.plot(*found.birth_points.T[::-1], "+", color="C1")
    left.set(title=f"{len(found.births)} objects", xticks=[], yticks=[])
    pairs = ecc.persistence_pairs(image, 0, superlevel=True)
    pairs.plot(right, min_persistence=PROMINENCE)
    return figure, len(found.births)


def first_page(results: dict[str, tuple[Example, Array, Curves]]) -> Figure:
    """Draw a picture in the plane and one in space side by side."""
    page = Figure(figsize=(2 * COLUMN, 2.9))
    for part, name in zip(page.subfigures(1, 2), ("brick", "porous volume"), strict=True):
        draw(*results[name], figure=part)
    return page


def seconds(call: Callable[[], Any]) -> float:
    """Return how long a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def run(example: Example, folder: Path) -> tuple[Example, Array, Curves]:
    """Compute an example, write its table and picture, and say so."""
    image = example.load()
    compute = partial(curves_of, image, example.thresholds)
    first = seconds(compute)
    again = min(seconds(compute) for _ in range(5))
    curves = compute()
    target = folder / example.name.replace(" ", "_")
    write_table(target.with_suffix(".csv"), table_of(curves))
    write_figure(target.with_suffix(".png"), draw(example, image, curves), dpi=400)
    size = " x ".join(map(str, image.shape))
    print(f"{example.name}: {size} {image.dtype}")
    print(f"  two curves of {curves[max(curves)].thresholds.size} thresholds in ", end="")
    print(f"{1000 * again:.2f} ms (first call: {first:.1f} s)")
    print(f"  {target}.csv, {target}.png")
    return example, image, curves


def main() -> None:
    """Compute and write everything, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder to write to")
    parser.add_argument("--page", type=Path, help="also write the README's picture to this file")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    print("The first calls compile the kernels for this machine, which takes some seconds.")
    started = time.perf_counter()
    results = {example.name: run(example, arguments.out) for example in EXAMPLES}
    picture, count = draw_objects(gaussian_filter(data.coins().astype(np.float32), 2))
    target = arguments.out / "coins_objects.png"
    write_figure(target, picture, dpi=400)
    print(f"coins: {count} objects are at least {PROMINENCE} brighter than what separates them")
    print(f"  {target}")
    if arguments.page:
        write_figure(arguments.page, first_page(results), dpi=250)
    print(f"All done in {time.perf_counter() - started:.1f} s.")


if __name__ == "__main__":
    main()
