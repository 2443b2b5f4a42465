"""The images with which calls are measured, and the description of a measurement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter

import ecc_core as ecc

EVEN = np.linspace(0, 1, 256)


class Case(NamedTuple):
    """A call, the number of its points, and the call with which its time a point is compared."""

    name: str
    call: Callable[[int], Any]
    points: int
    measure: str
    bar: float | None
    cause: str = ""


class Images:
    """Images of 2 and 3 axes, noise and smooth, of the same number of points."""

    def __init__(self, side: int) -> None:
        self.side = side
        self.shapes = {2: (side, side), 3: (64, side // 8, side // 8)}
        self._made: dict[tuple[int, str], np.ndarray] = {}

    def __call__(self, ndim: int = 2, kind: str = "noise") -> np.ndarray:
        key = ndim, kind
        if key not in self._made:
            image = np.random.default_rng(7).random(self.shapes[ndim], dtype=np.float32)
            if kind == "smooth":
                gaussian_filter(image, 8 if ndim == 2 else 3, output=image, mode="wrap")
                image -= image.min()
                image /= image.max()
            self._made[key] = image
        return self._made[key]


def curve(image: np.ndarray, thresholds: Any = EVEN, **options: Any) -> Callable[[int], Any]:
    return lambda workers: ecc.euler_curve(image, thresholds, workers=workers, **options)


def ignoring_workers(call: Callable[[], Any]) -> Callable[[int], Any]:
    return lambda _: call()
