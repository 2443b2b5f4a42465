"""Sizes of components and percolation, beside SciPy's labels at one threshold after another.

Run with ``python -m benchmarks.component_curves``. Both use one thread and find the number of
points, those of the largest component and the components that span each axis, at 256 thresholds.
SciPy labels every 16th of the sets, and its time is multiplied by 16.

``python -m benchmarks.component_curves --betti SIDE`` compares it with Betti curves of volumes of
SIDE^3 voxels, on two workers, and prints the most memory that it takes besides the image.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy
from scipy import ndimage

import ecc_core as ecc
from benchmarks.memory import forget_peak, in_memory

LEVELS = 256
STEP = 16
REPEATS = 3


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def labelled(image: Any, level: int, structure: Any) -> list[int]:
    """Label one set; return its size, that of its largest component, and the spanning ones."""
    labels, count = ndimage.label(image <= level, structure)
    sizes = np.bincount(labels.ravel(), minlength=count + 1)[1:]
    ends = [(labels.take(0, axis), labels.take(-1, axis)) for axis in range(image.ndim)]
    spanning = [np.setdiff1d(np.intersect1d(low, high), 0).size for low, high in ends]
    return [int(sizes.sum()), int(sizes.max(initial=0)), *spanning]


def processor_seconds(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the wall time and the processor time of a call."""
    processor = time.process_time()
    wall = seconds(call)
    return wall, time.process_time() - processor


def main_betti(side: int) -> None:
    """Compare with Betti curves by turns; three times their time is the bar."""
    for sigma in (0, 2):
        volume = np.random.default_rng(0).random((side, side, side), np.float32)
        volume = ndimage.gaussian_filter(volume, sigma) if sigma else volume
        at = np.linspace(volume.min(), volume.max(), LEVELS)
        for connectivity in (1, 3):
            compare_betti(volume, at, connectivity, f"{side}^3 sigma {sigma} float32")


def compare_betti(volume: Any, at: Any, connectivity: int, name: str) -> None:
    """Print the times of both for one volume."""
    options: dict[str, Any] = {"connectivity": connectivity, "workers": 2}
    small = volume[:24, :24, :24].copy()
    for function in (ecc.component_curves, ecc.betti_curves):  # This loads the kernels.
        function(small, at, **options)
    forget_peak()
    before = in_memory("VmRSS")
    components = partial(ecc.component_curves, volume, at, **options)
    betti_numbers = partial(ecc.betti_curves, volume, at, **options)
    times = [processor_seconds(components)]
    memory = in_memory("VmHWM") - before
    betti = [processor_seconds(betti_numbers)]
    times.append(processor_seconds(components))
    betti.append(processor_seconds(betti_numbers))
    wall, processor = (min(column) for column in zip(*times, strict=True))
    betti_wall, betti_processor = (min(column) for column in zip(*betti, strict=True))
    print(
        f"{name} connectivity {connectivity}: {wall:.1f} s, {processor:.1f} s of processors, "
        f"{wall / betti_wall:.1f} and {processor / betti_processor:.1f} times Betti curves "
        f"({betti_wall:.1f} and {betti_processor:.1f} s); {memory / 2**20:.0f} MiB besides",
        flush=True,
    )


def main() -> None:
    if sys.argv[1:2] == ["--betti"]:
        main_betti(int(sys.argv[2]))
        return
    print(f"SciPy {scipy.__version__}, one thread, {LEVELS} thresholds")
    for shape in ((512, 512), (2048, 2048), (64, 64, 64), (128, 128, 128), (256, 256, 256)):
        for sigma in (0, 2):
            noise = np.random.default_rng(0).random(shape)
            smooth = ndimage.gaussian_filter(noise, sigma) if sigma else noise
            image = np.interp(smooth, (smooth.min(), smooth.max()), (0, 255)).astype(np.uint8)
            size = "x".join(map(str, shape))
            for connectivity in (1, image.ndim):
                structure = ndimage.generate_binary_structure(image.ndim, connectivity)

                def ours(image: Any = image, connectivity: int = connectivity) -> Any:
                    at = np.arange(LEVELS)
                    return ecc.component_curves(image, at, connectivity=connectivity, workers=1)

                def theirs(image: Any = image, structure: Any = structure) -> Any:
                    return [labelled(image, t, structure) for t in range(STEP // 2, LEVELS, STEP)]

                found = ours().values[:, STEP // 2 :: STEP]
                np.testing.assert_array_equal(found.T, theirs())
                times = [(seconds(ours), seconds(theirs)) for _ in range(REPEATS)]
                best, peer = (min(column) for column in zip(*times, strict=True))
                peer *= STEP
                print(f"{size:12} sigma {sigma}  connectivity {connectivity}  ", end="")
                print(f"{best:7.3f} s, SciPy {peer:8.2f} s: {peer / best:6.0f} times", flush=True)


if __name__ == "__main__":
    main()
