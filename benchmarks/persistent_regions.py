"""Regions of components that last, beside h-maxima and labels of scikit-image.

Run with ``python -m benchmarks.persistent_regions``. Both label the peaks of prominence h.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import skimage
from scipy import ndimage
from skimage.measure import label
from skimage.morphology import h_maxima

import ecc_core as ecc


def seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    print(f"scikit-image {skimage.__version__}, one thread")
    for shape in ((512, 512), (2048, 2048), (64, 64, 64), (128, 128, 128)):
        for sigma in (0, 2):
            noise = np.random.default_rng(0).random(shape)
            smooth = ndimage.gaussian_filter(noise, sigma) if sigma else noise
            image = np.interp(smooth, (smooth.min(), smooth.max()), (0, 255)).astype(np.uint8)
            ball = np.ones((3,) * image.ndim)

            def ours(image: Any = image) -> Any:
                return ecc.persistent_regions(image, 25, superlevel=True)

            def theirs(image: Any = image, ball: Any = ball) -> Any:
                return label(h_maxima(image, 25, ball), connectivity=image.ndim)

            ours()
            times = [(seconds(ours), seconds(theirs)) for _ in range(3)]
            best, peer = (min(column) for column in zip(*times, strict=True))
            counts = len(ours().births), int(theirs().max())
            size = "x".join(map(str, shape))
            print(f"{size:12} sigma {sigma}  {best:7.3f} s, h-maxima {peer:7.3f} s: ", end="")
            print(f"{peer / best:5.1f} times, {counts[0]} and {counts[1]} regions", flush=True)


if __name__ == "__main__":
    main()
