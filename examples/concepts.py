"""The pictures of docs/concepts.md."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from skimage import data
from skimage.measure import label

import ecc_core as ecc
from ecc_core.io import write_figure

BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
GREY = "#999999"

# Three squares that meet at corners, and a ring that is open at one corner.
PIXELS = np.array(
    [
        [0, 0, 0, 0, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 1, 1, 0, 0],
        [0, 0, 1, 0, 1, 0, 0, 1, 0],
        [0, 1, 0, 0, 1, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 1, 1, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0, 0],
    ],
    dtype=bool,
)


def axes_of(figure: Figure, columns: int) -> list[Axes]:
    """Return a row of axes with no lines above and at the right."""
    row = list(figure.subplots(1, columns))
    for axes in row:
        axes.spines[["top", "right"]].set_visible(False)
    return row


def blank(axes: Axes, title: str) -> None:
    """Make axes a frame for a picture."""
    axes.set(xticks=[], yticks=[], title=title)
    axes.spines[:].set_visible(False)


def smooth_coins() -> NDArray[np.float32]:
    """Return the coins of scikit-image, less their noise."""
    return gaussian_filter(data.coins().astype(np.float32), 2)


def draw_cells(axes: Axes, connectivity: int) -> None:
    """Draw the pixels as vertices with edges, or as closed squares."""
    rows, columns = np.nonzero(PIXELS)
    for row, column in zip(rows, columns, strict=True):
        if connectivity == 2:
            corner = (column - 0.5, row - 0.5)
            axes.add_patch(Rectangle(corner, 1, 1, facecolor=BLUE, edgecolor="white", lw=1.5))
            continue
        axes.add_patch(Circle((column, row), 0.18, facecolor=BLUE))
        for down, right in ((1, 0), (0, 1)):
            if PIXELS[row + down, column + right]:
                axes.plot([column, column + right], [row, row + down], color=BLUE, lw=3)
    axes.set(xlim=(-0.5, 8.5), ylim=(5.5, -0.5), aspect="equal")


def connectivities() -> Figure:
    """Draw one set of pixels and what each connectivity makes of it."""
    figure = Figure(figsize=(9, 2.9), layout="constrained")
    picture, vertices, squares = axes_of(figure, 3)
    picture.imshow(PIXELS, cmap="Greys", vmax=1.4)
    blank(picture, "the set, as an image")
    for axes, connectivity, name in ((vertices, 1, "vertices"), (squares, 2, "closed squares")):
        draw_cells(axes, connectivity)
        pieces = int(label(PIXELS, connectivity=connectivity).max())
        chi = ecc.euler_number(PIXELS, connectivity)
        text = f"{pieces} pieces, {pieces - chi} hole{'s' * (pieces - chi != 1)}: $\\chi$ = {chi}"
        blank(axes, f"connectivity={connectivity}\npoints are {name}\n{text}")
    return figure


def sublevel_sets() -> Figure:
    """Draw the sets below and above a threshold of one image, and both curves."""
    image = smooth_coins()
    threshold = 110
    figure = Figure(figsize=(11, 2.8), layout="constrained")
    picture, below, above, plot = axes_of(figure, 4)
    picture.imshow(image, cmap="gray")
    blank(picture, "X, the coins of scikit-image")
    for axes, kept, sign in ((below, image <= threshold, "≤"), (above, image >= threshold, "≥")):
        axes.imshow(kept, cmap="Greys", vmax=1.4)
        blank(axes, f"X {sign} {threshold}: $\\chi$ = {ecc.euler_number(kept)}")
    for superlevel, colour, sign in ((False, BLUE, "≤"), (True, ORANGE, "≥")):
        t, chi = ecc.euler_curve(image, 256, superlevel=superlevel)
        plot.plot(t, chi, color=colour, label=f"X {sign} t")
    plot.axvline(threshold, color=GREY, lw=1, ls=":")
    plot.set(xlabel="threshold t", ylabel="Euler characteristic")
    plot.legend(frameon=False)
    return figure


def directions() -> Figure:
    """Draw a shape swept along two directions, and its curve of heights for each."""
    shape = np.zeros((96, 96), dtype=bool)
    shape[12:84, 16:32] = shape[12:84, 64:80] = shape[68:84, 16:80] = True
    rows, columns = np.mgrid[:96, :96] - 47.5
    figure = Figure(figsize=(9, 2.9), layout="constrained")
    down, right, plot = axes_of(figure, 3)
    for axes, u, colour, name in (
        (down, (1, 0), BLUE, "down the image"),
        (right, (0, 1), ORANGE, "to the right"),
    ):
        heights = u[0] * rows + u[1] * columns
        axes.imshow(np.where(shape, 1.0 + (heights <= 0), 0), cmap="Greys", vmax=2.8)
        axes.annotate(
            "",
            (47.5 + 40 * u[1], 47.5 + 40 * u[0]),
            (47.5, 47.5),
            arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2},
        )
        transform = ecc.euler_transform(shape, [u], 256)
        at_centre = ecc.euler_transform(shape, [u], [0.0]).values[0, 0]
        blank(axes, f"swept {name}\nbelow height 0: $\\chi$ = {at_centre}")
        plot.plot(transform.heights, transform.values[0], color=colour, label=name)
    plot.axvline(0, color=GREY, lw=1, ls=":")
    plot.set(xlabel="height", ylabel="Euler characteristic", yticks=[0, 1, 2])
    plot.legend(frameon=False)
    return figure


def soft_curves() -> Figure:
    """Draw the soft curve of an image for three values of the sharpness."""
    import torch

    image = smooth_coins()[64:192, 64:192]
    thresholds = np.linspace(image.min(), image.max(), 400)
    figure = Figure(figsize=(5, 2.9), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    for sharpness, colour in ((0.1, ORANGE), (0.3, GREEN), (1.0, BLUE)):
        soft = ecc.nn.functional.soft_euler_curve(
            torch.as_tensor(image), torch.as_tensor(thresholds), sharpness=sharpness
        )
        axes.plot(thresholds, soft, color=colour, label=f"sharpness {sharpness}")
    axes.step(*ecc.euler_curve(image, thresholds), "k", where="post", lw=0.7, label="exact")
    axes.set(xlabel="threshold t", ylabel="Euler characteristic")
    axes.legend(frameon=False)
    return figure


def betti_curves() -> Figure:
    """Components and holes of the coins, and what the Euler characteristic says of both."""
    image = smooth_coins()
    figure = Figure(figsize=(9, 3), layout="constrained")
    left, right = axes_of(figure, 2)
    thresholds, (components, holes) = ecc.betti_curves(image, superlevel=True)
    at = thresholds[components.argmax()]
    left.imshow(image >= at, cmap="gray_r", interpolation="nearest")
    blank(left, f"image ≥ {at:.0f}: {components.max()} components")
    style: dict[str, Any] = {"where": "pre", "lw": 1}
    right.step(thresholds, components, color=BLUE, label="$b_0$: components", **style)
    right.step(thresholds, holes, color=ORANGE, label="$b_1$: holes", **style)
    right.step(thresholds, components - holes, "k", label="χ = $b_0 - b_1$", **style)
    right.set(xlabel="threshold t", ylabel="number")
    right.legend(frameon=False)
    return figure


FIGURES: dict[str, Any] = {
    "betti-curves": betti_curves,
    "connectivities": connectivities,
    "sublevel-sets": sublevel_sets,
    "directions": directions,
    "soft-curves": soft_curves,
}


def main() -> None:
    """Draw every picture into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    folder = parser.parse_args().out
    for name, draw in FIGURES.items():
        write_figure(folder / f"concept-{name}.png", draw(), dpi=200)


if __name__ == "__main__":
    main()
