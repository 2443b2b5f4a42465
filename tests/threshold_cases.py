"""Images and thresholds for tests of every number of thresholds, and sets counted one by one.

The widths of codes, tables and histograms depend on the number of thresholds, and change at powers
of two. A value beyond the last threshold needs one more code.
"""

from bisect import bisect_left, bisect_right
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from oracles import components
from oracles.euler import minkowski_functionals
from skimage.measure import euler_number

COUNTS = (
    *(1, 2, 127, 128, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097),
    *(65_535, 65_536, 65_537),
)
DTYPES = ("bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8")
# Fractions of the levels below the first threshold and above the last one, and a further feature.
KINDS = {
    "inside": (0, 0, ""),
    "below": (0.3, 0, ""),
    "beyond": (0, 0.3, ""),
    "both": (0.2, 0.3, ""),
    "ends": (0.2, 0.2, "ends"),
    "nan": (0.2, 0.3, "nan"),
    "mask": (0.2, 0.3, "mask"),
    "all": (0.2, 0.3, "ends nan mask"),
}


class Case(NamedTuple):
    """An image of few levels, a mask or None, and the range of the thresholds."""

    image: NDArray[Any]
    mask: NDArray[np.bool_] | None
    range: tuple[float, float]

    def thresholds(self, count: int) -> NDArray[np.float64]:
        return np.linspace(*self.range, count)

    @property
    def shown(self) -> NDArray[np.bool_]:
        enters = ~np.isnan(self.image)
        return enters if self.mask is None else enters & self.mask

    @property
    def levels(self) -> list[Any]:
        """Distinct values, increasing, as Python numbers."""
        return np.unique(self.image[self.shown]).tolist()


def case_of(kind: str, dtype: str, shape: tuple[int, ...]) -> Case:
    """Return an image with about 16 levels. `ends`: the least and largest values of its dtype."""
    below, after, more = KINDS[kind]
    rng = np.random.default_rng(len(kind))
    image = rng.integers(0, 16, shape)
    if dtype == "bool":
        image = image > 7
    elif dtype[0] == "f":
        image = (image - 7).astype(dtype) / 4
    else:
        image = (image * 7 - (50 if dtype[0] == "i" else 0)).astype(dtype)
    low = float(image.min())
    high = float(image.max())
    width = high - low
    if "ends" in more and dtype != "bool":
        info = np.finfo(dtype) if dtype[0] == "f" else np.iinfo(dtype)
        ends = [info.min, info.max] + [-np.inf, np.inf] * (dtype[0] == "f")
        image.flat[: len(ends)] = np.array(ends, dtype)
    if "nan" in more and dtype[0] == "f":
        image.flat[-3:] = np.nan
    mask = rng.random(shape) < 0.8 if "mask" in more else None
    return Case(image, mask, (low + below * width, high - after * width))


def at_thresholds(values: NDArray[Any], case: Case, count: int, superlevel: bool) -> NDArray[Any]:
    """Return numbers (..., n) at thresholds, given those (..., levels) of the sets at levels."""
    levels = case.levels
    thresholds = case.thresholds(count).tolist()
    nothing = np.zeros_like(values[..., :1])
    if superlevel:
        reached = [bisect_left(levels, t) for t in thresholds]
        return np.concatenate([values, nothing], -1)[..., reached]
    reached = [bisect_right(levels, t) for t in thresholds]
    return np.concatenate([nothing, values], -1)[..., reached]


def level_sets(case: Case, superlevel: bool) -> list[NDArray[np.bool_]]:
    return [
        case.shown & (case.image >= level if superlevel else case.image <= level)
        for level in case.levels
    ]


def euler_numbers(case: Case, connectivity: int, superlevel: bool) -> NDArray[np.int64]:
    """Return the Euler numbers of the sets by scikit-image, (levels,)."""
    sets = level_sets(case, superlevel)
    return np.array([euler_number(found, connectivity) for found in sets], np.int64)


def betti_numbers(case: Case, connectivity: int, superlevel: bool) -> NDArray[np.int64]:
    """Return the Betti numbers by labels of sets and complements, (d, levels)."""
    sets = level_sets(case, superlevel)
    return np.transpose([components.betti_numbers(found, connectivity) for found in sets])


def component_numbers(case: Case, connectivity: int, superlevel: bool) -> NDArray[np.int64]:
    """Return sizes of the sets and their largest components, and spanning ones, (d + 2, levels)."""
    sets = level_sets(case, superlevel)
    return np.transpose([components.component_numbers(found, connectivity) for found in sets])


def functionals(case: Case, connectivity: int, superlevel: bool) -> NDArray[np.float64]:
    """Return Minkowski functionals from every cell of the complex, (d + 1, levels)."""
    options = {"connectivity": connectivity, "superlevel": superlevel, "mask": case.mask}
    return minkowski_functionals(case.image, case.levels, (1,) * case.image.ndim, **options)
