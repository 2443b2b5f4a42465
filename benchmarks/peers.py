"""Euler characteristic curves of 8-bit images by other libraries, at the thresholds 0 ... 255.

A peer is a function of (image, connectivity) that returns a call to be timed. It prepares what
does not count, such as a conversion of the image.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np

Call = Callable[[], np.ndarray]
LEVELS = 256


def numpy_bincount(image: np.ndarray, connectivity: int) -> Call:
    """Return the signed histogram by maxima of neighbours along each axis, and `np.bincount`."""
    closed = connectivity > 1

    def pairs(cells: np.ndarray, axis: int) -> np.ndarray:
        low = (slice(None),) * axis + (slice(-1),)
        high = (slice(None),) * axis + (slice(1, None),)
        if not closed:
            return np.maximum(cells[low], cells[high])
        # The outermost faces belong to one cube only.
        first = cells.take([0], axis)
        last = cells.take([-1], axis)
        return np.concatenate([first, np.minimum(cells[low], cells[high]), last], axis)

    def signed(cells: np.ndarray, axis: int) -> np.ndarray:
        if axis == image.ndim:
            return np.bincount(cells.reshape(-1), minlength=LEVELS)
        one = signed(cells, axis + 1)
        two = signed(pairs(cells, axis), axis + 1)
        return two - one if closed else one - two

    return lambda: np.cumsum(signed(image, 0))


def scikit_image(image: np.ndarray, connectivity: int) -> Call:
    """Return a call of `euler_number` at one threshold after another."""
    from skimage.measure import euler_number

    def curve() -> np.ndarray:
        numbers = [euler_number(image <= t, connectivity) for t in range(LEVELS)]
        return np.array(numbers)

    return curve


def _alive(births: np.ndarray, deaths: np.ndarray) -> np.ndarray:
    """Return the births less the deaths at each level; those that never die have none."""
    dying = deaths[deaths < LEVELS].astype(np.int64)
    born = np.bincount(births.astype(np.int64), minlength=LEVELS)
    return born - np.bincount(dying, minlength=LEVELS)


def gudhi(image: np.ndarray, connectivity: int) -> Call:
    """Return the curve by persistent homology: the alternating sum of the classes alive.

    `CubicalPersistence` has a fast path for images as top-dimensional cells.
    """
    kind = "vertices" if connectivity == 1 else "top_dimensional_cells"
    dimensions = range(image.ndim)
    values = image.astype(np.float64)
    compute: Callable[[], list[np.ndarray]]
    if image.ndim == 2 and connectivity > 1:
        from gudhi.sklearn.cubical_persistence import CubicalPersistence

        transformer = CubicalPersistence(list(dimensions), input_type=kind)

        def compute() -> list[np.ndarray]:
            return list(transformer.fit_transform([values])[0])
    else:
        import gudhi as library

        def compute() -> list[np.ndarray]:
            cubical = library.CubicalComplex(**{kind: values})
            cubical.compute_persistence(homology_coeff_field=2)
            return [cubical.persistence_intervals_in_dimension(d) for d in dimensions]

    def curve() -> np.ndarray:
        total = np.zeros(LEVELS, np.int64)
        for dimension, found in enumerate(compute()):
            if len(found):
                total += (-1) ** dimension * _alive(found[:, 0], found[:, 1])
        return np.cumsum(total)

    return curve


def cripser(image: np.ndarray, connectivity: int) -> Call:
    """Return the same by CubicalRipser."""
    import cripser as library

    values = image.astype(np.float64)
    filtration = "V" if connectivity == 1 else "T"

    def curve() -> np.ndarray:
        found = library.compute_ph(values, filtration=filtration, maxdim=image.ndim - 1)
        total = np.zeros(LEVELS, np.int64)
        for dimension in range(image.ndim):
            part = found[found[:, 0] == dimension]
            total += (-1) ** dimension * _alive(part[:, 1], part[:, 2])
        return np.cumsum(total)

    return curve


def pyect(image: np.ndarray, connectivity: int, device: str = "cpu") -> Call | None:
    """Return the call of pyECT on one thread of a CPU; it has the V-construction only."""
    found = find_spec("pyect")
    if connectivity > 1 or found is None or found.origin is None:
        return None
    import torch

    torch.set_num_threads(1)
    # The package imports torchvision, which its curves do not need and not every torch has.
    names = run_path(str(Path(found.origin).with_name("image_ecf.py")))
    module = names[f"Image_ECF_{image.ndim}D"](LEVELS).eval().to(device)
    # It rounds 255 * value up; half a level less makes that exact.
    scaled = ((image - 0.5) / (LEVELS - 1)).clip(0, 1)
    values = torch.from_numpy(scaled.astype(np.float32)).to(device)

    def curve() -> np.ndarray:
        with torch.inference_mode():
            return module(values).cpu().numpy().astype(np.int64)

    return curve


PEERS: dict[str, Callable[[np.ndarray, int], Any]] = {
    "numpy max + bincount": numpy_bincount,
    "pyECT": pyect,
    "cripser": cripser,
    "scikit-image": scikit_image,
    "GUDHI": gudhi,
}
