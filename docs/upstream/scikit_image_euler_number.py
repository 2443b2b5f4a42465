"""``skimage.measure.euler_number`` at many thresholds: the loop, and a few lines of NumPy."""

import itertools
import time

import numpy as np
from skimage.data import camera
from skimage.filters import gaussian
from skimage.measure import euler_number


def euler_curve(image, thresholds, connectivity=None):
    """Euler number of ``image <= t`` for each of increasing thresholds.

    A cell of the complex enters with the largest of its pixels (connectivity 1: pixels are
    vertices) or with the smallest (full connectivity: pixels are closed squares or cubes). The
    Euler number is the number of cells that have entered, those of odd dimension counted by -1.
    """
    ndim = image.ndim
    cubes = (ndim if connectivity is None else connectivity) > 1
    # The first threshold at which each pixel is in the set; n for pixels that are in none.
    entry = np.searchsorted(thresholds, image)
    n = len(thresholds)
    steps = np.zeros(n + 1, np.int64)
    if cubes:
        entry = np.pad(entry, 1, constant_values=n)
    for extent in itertools.product((0, 1), repeat=ndim):
        cells = entry
        for axis, long in enumerate(extent):
            low = (slice(None),) * axis + (slice(None, -1),)
            high = (slice(None),) * axis + (slice(1, None),)
            if cubes and long:  # These are the cubes themselves, without those of the padding.
                cells = cells[low][high]
            elif cubes:
                cells = np.minimum(cells[low], cells[high])
            elif long:
                cells = np.maximum(cells[low], cells[high])
        steps += (-1) ** sum(extent) * np.bincount(cells.ravel(), minlength=n + 1)
    return steps[:n].cumsum()


def seconds(function):
    times = []
    for _ in range(3):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def main():
    volume = gaussian(np.random.default_rng(0).random((64, 64, 64)), 2)
    images = {"camera, 512 x 512 uint8": camera(), "smooth noise, 64 x 64 x 64 float64": volume}
    print("| image | connectivity | thresholds | loop, ms | at once, ms | ratio |")
    print("|---|---|---|---|---|---|")
    for name, image in images.items():
        for connectivity, count in itertools.product((1, image.ndim), (16, 256)):
            thresholds = np.linspace(image.min(), image.max(), count)

            def loop(image=image, thresholds=thresholds, connectivity=connectivity):
                return [euler_number(image <= t, connectivity) for t in thresholds]

            def once(image=image, thresholds=thresholds, connectivity=connectivity):
                return euler_curve(image, thresholds, connectivity)

            (one, expected), (other, found) = seconds(loop), seconds(once)
            assert np.array_equal(found, expected)
            times = f"{one * 1e3:.1f} | {other * 1e3:.1f} | {one / other:.0f}"
            print(f"| {name} | {connectivity} | {count} | {times} |")


if __name__ == "__main__":
    main()
