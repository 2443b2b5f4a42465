"""Sample data: File, Open Sample, napari-ecc."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

LayerData = tuple[NDArray[Any], dict[str, Any], str]


def coins() -> list[LayerData]:
    """Greek coins from Pompeii, the picture of scikit-image's package, uint8 (303, 384)."""
    from skimage.data import coins as picture

    return [(picture(), {"name": "coins"}, "image")]


def labelled_coins() -> list[LayerData]:
    """The coins, and a Labels layer of them, by a watershed of the gradient."""
    from scipy.ndimage import binary_fill_holes, label
    from skimage.filters import sobel
    from skimage.morphology import remove_small_objects
    from skimage.segmentation import watershed

    ((picture, _, _),) = coins()
    seeds = np.where(picture > 150, 2, np.where(picture < 30, 1, 0))
    inside = binary_fill_holes(watershed(sobel(picture), seeds) == 2)
    labels, _ = label(remove_small_objects(inside, max_size=200))
    return [*coins(), (labels, {"name": "coin labels"}, "labels")]


def vessels(shape: tuple[int, int, int] = (96, 160, 160)) -> list[LayerData]:
    """A generated network of bent vessels in a noisy volume, uint8, with slices 2 um apart."""
    from scipy.ndimage import distance_transform_edt, gaussian_filter

    rng = np.random.default_rng(5)
    scale = np.array([2.0, 1.0, 1.0])
    centre_lines = np.ones(shape, dtype=bool)
    walls = np.array(shape) - 1
    for _ in range(6):  # Each is a smooth random walk that is reflected at the walls.
        heading = np.cumsum(rng.standard_normal((500, 3)) * 0.15, axis=0)
        heading += rng.standard_normal(3)
        heading /= np.linalg.norm(heading, axis=1, keepdims=True)
        start = rng.uniform(0, shape)
        folded = np.mod(start + np.cumsum(heading * [0.5, 1, 1], axis=0), 2 * walls)
        path = np.round(walls - np.abs(folded - walls)).astype(np.int64)
        centre_lines[tuple(path.T)] = False
    distance = distance_transform_edt(centre_lines, sampling=scale)
    width = 4.0 + 60 * gaussian_filter(rng.standard_normal(shape), 12)
    bright = 190 / (1 + np.exp(1.4 * (distance - width)))
    noise = gaussian_filter(rng.standard_normal(shape), 1) * 80
    volume = np.clip(bright + noise + 35, 0, 255).astype(np.uint8)
    return [(volume, {"name": "vessels", "scale": scale, "units": "um"}, "image")]


def drops(frames: int = 40, side: int = 160) -> list[LayerData]:
    """Generated drops that drift and merge, uint8 (frames, side, side), with time as first axis."""
    rng = np.random.default_rng(3)
    start = rng.uniform(0.08, 0.92, (24, 2))
    end = 0.5 + 0.45 * (start - 0.5) + rng.normal(0, 0.04, (24, 2))
    radius = rng.uniform(0.02, 0.045, 24)
    along = np.linspace(0, 1, side)
    noise = rng.normal(0, 3, (frames, side, side))
    series = np.empty((frames, side, side), dtype=np.uint8)
    for frame, share in enumerate(np.linspace(0, 1, frames)):
        places = start + share * (end - start)
        spread = 2 * (radius * (1 + 0.4 * share)) ** 2
        # A Gaussian of two axes is the product of one of each.
        down = np.exp(-((along[:, None] - places[:, 0]) ** 2) / spread)
        across = np.exp(-((along[:, None] - places[:, 1]) ** 2) / spread)
        field = down @ across.T
        series[frame] = np.clip(200 * np.minimum(field, 1.2) + noise[frame], 0, 255)
    return [(series, {"name": "drops", "axis_labels": ("t", "y", "x")}, "image")]
