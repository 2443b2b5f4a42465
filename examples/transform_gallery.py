"""Pictures of what transforms look like: ``python examples/transform_gallery.py [FOLDER]``.

Writes transforms.png: a disk, a ring, a cross and a cell seen from all directions.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from skimage import data
from skimage.filters import threshold_otsu
from skimage.measure import label, regionprops
from skimage.transform import resize

import ecc_core as ecc
from ecc_core.io import write_figure
from ecc_core.plotting import plot_transform, plot_transform_polar

Mask = NDArray[np.bool_]

SIDE = 160
DIRECTIONS = 180
HEIGHTS = 240
REACH = SIDE / 2


def disk(radius: float = 60) -> Mask:
    y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    return np.asarray(np.hypot(x, y) < radius)


def ring() -> Mask:
    return disk(60) & ~disk(38)


def cross() -> Mask:
    mask = np.zeros((SIDE, SIDE), dtype=bool)
    mask[20:140, 68:92] = mask[68:92, 20:140] = True
    return mask


def cell() -> Mask:
    """Return the cell of a micrograph that comes with scikit-image."""
    image = gaussian_filter(np.abs(data.cell() - np.median(data.cell())), 6.0)
    regions = regionprops(label(image > threshold_otsu(image)))
    return framed(max(regions, key=lambda region: region.area).image_filled)


def framed(mask: Mask) -> Mask:
    """Return a shape scaled to a frame that it can turn in."""
    rows = np.flatnonzero(mask.any(axis=1))
    columns = np.flatnonzero(mask.any(axis=0))
    shape = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    scale = 0.95 * SIDE / np.hypot(*shape.shape)
    size = [round(n * scale) for n in shape.shape]
    small = resize(shape.astype(float), size, anti_aliasing=True) > 0.5
    result = np.zeros((SIDE, SIDE), dtype=bool)
    top, left = ((SIDE - n) // 2 for n in size)
    result[top : top + size[0], left : left + size[1]] = small
    return result


SHAPES = {"disk": disk, "ring": ring, "cross": cross, "cell": cell}


def transforms() -> Figure:
    """Each shape, its transform as a heat map and around a circle, and its smooth transform."""
    figure = Figure(figsize=(8, 8.6), layout="constrained")
    titles = "shape", "transform", "around a circle", "smooth transform"
    for i, (name, shape) in enumerate(SHAPES.items()):
        mask = shape()
        result = ecc.euler_transform(mask, DIRECTIONS, HEIGHTS, range=(-REACH, REACH))
        picture, flat, polar, smooth = (
            figure.add_subplot(4, 4, 4 * i + k, projection="polar" if k == 3 else None)
            for k in range(1, 5)
        )
        picture.imshow(~mask, cmap="gray")
        picture.set(xticks=[], yticks=[], ylabel=name)
        colours: dict[str, Any] = {"vmin": -3, "vmax": 3}
        plot_transform(result, flat, colorbar=i == 3, **colours)
        plot_transform_polar(result, polar, colorbar=False, **colours)
        plot_transform(ecc.smooth_transform(result), smooth, colorbar=False)
        polar.set_xticks([])
        for ax in (flat, smooth):
            ax.set(xticks=[0, 180, 360], xlabel="", ylabel="")
        if i == 0:
            for ax, title in zip((picture, flat, polar, smooth), titles, strict=True):
                ax.set_title(title, fontsize="medium")
    figure.supxlabel("direction (degrees, from downwards to the right)", fontsize="medium")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    images = Path(__file__).parents[1] / "docs" / "images"
    parser.add_argument("folder", nargs="?", type=Path, default=images)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    write_figure(folder / "transforms.png", transforms(), dpi=120)


if __name__ == "__main__":
    main()
