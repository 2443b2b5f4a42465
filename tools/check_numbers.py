"""Compare 20 curves, and Betti curves and transforms, with the definitions in ``tests/oracles``.

For machines on which the test suite cannot run: it needs NumPy and numba only. Run it from the
root of the repository; `tools/check_aarch64.sh` does so under emulation.
"""

import itertools
import platform
import sys
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from oracles import euler, transform  # noqa: E402

import ecc_core as ecc  # noqa: E402

SHAPES = ((17, 70), (5, 9, 66))
DTYPES = ("bool", "uint8", "int16", "float32", "float64")


def image_of(shape, dtype):
    noise = np.random.default_rng(0).random(shape) * 200
    return noise > 100 if dtype == "bool" else noise.astype(dtype)


def curves():
    for dtype, shape in itertools.product(DTYPES, SHAPES):
        image = image_of(shape, dtype)
        thresholds = np.linspace(-1, 201, 99)
        for connectivity, superlevel in ((1, True), (len(shape), False)):
            options = {"connectivity": connectivity, "superlevel": superlevel}
            found = ecc.euler_curve(image, thresholds, **options).values
            expected = euler.euler_curve(image, thresholds, **options)
            yield f"curve of {dtype} {shape}, {options}", found, expected


def betti_curves():
    for shape in SHAPES:
        image = image_of(shape, "uint8")
        thresholds = np.arange(0, 200, 7)
        found = ecc.betti_curves(image, thresholds).values
        signs = (-1) ** np.arange(len(found))
        yield f"Betti curves of {shape}", signs @ found, euler.euler_curve(image, thresholds)
    frame = np.pad(np.zeros((2, 3), bool), 1, constant_values=True)
    yield "Betti numbers of a frame", ecc.betti_numbers(frame), (1, 1)


def transforms():
    for shape in SHAPES:
        mask = image_of(shape, "bool")
        for weights in (mask.astype(np.int64), mask * 3):
            weighted = bool(weights.max() > 1)
            image = weights if weighted else mask
            found = ecc.euler_transform(image, 5, 20, connectivity=1, weighted=weighted)
            expected = transform.euler_transform(weights, *found[:2], 1, np.ones(mask.ndim))
            yield f"transform of {shape}, weighted={weighted}", found.values, expected


def main():
    print(platform.machine(), platform.python_version(), "NumPy", np.__version__, flush=True)
    wrong = 0
    for name, found, expected in itertools.chain(curves(), betti_curves(), transforms()):
        equal = np.array_equal(found, expected)
        wrong += not equal
        print(f"{time.process_time():7.0f} s  {'equal' if equal else 'WRONG'}  {name}", flush=True)
    sys.exit(f"{wrong} of these differ" if wrong else 0)


if __name__ == "__main__":
    main()
