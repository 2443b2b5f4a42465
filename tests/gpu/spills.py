"""Curves by kernels that have too few registers: python spills.py FACTOR.

They are compiled for a multiple of the blocks that a multiprocessor can have at once. Prints the
bytes of local memory that the kernels of each source use. Images are chosen so that all kernels
that copy rows asynchronously run, with and without masks.
"""

import sys
from collections import defaultdict

import cupy
import numpy as np

import ecc_core as ecc
from ecc_core._backends.cuda import recipe
from ecc_core._backends.cuda.resources import REGISTERS, RESOURCES

RNG = np.random.default_rng(5)


def noise(shape, dtype, top=None):
    if np.dtype(dtype).kind == "f":
        return RNG.normal(size=shape).astype(dtype)
    return RNG.integers(0, top or np.iinfo(dtype).max, shape, dtype, endpoint=True)


def cases():
    """Images, thresholds, and the axes of the image."""
    floats = np.linspace(-2, 2, 256)
    yield noise((40, 70, 132), "f4"), floats, None
    yield noise((40, 70, 132), "f2"), floats, None
    yield noise((90, 200, 40), "f4"), floats, None
    yield noise((40, 70, 132), "i2", 4000), np.arange(0, 4000, 16), None
    yield noise((40, 70, 132), "u2"), np.arange(1 << 16), None
    yield noise((40, 70, 132), "u1"), np.arange(256), None
    yield noise((40, 70, 132), "f4"), np.linspace(-2, 2, 5000), None
    yield noise((300, 400, 3), "f4"), floats, None
    yield noise((300, 400, 3), "u1"), np.arange(256), None
    yield noise((333, 1000), "f4"), floats, None
    yield noise((333, 1000), "f8"), floats, None
    yield noise((2048, 2100), "u1"), np.arange(256), None
    yield noise((200, 64, 64), "f4"), floats, (1, 2)


def main():
    REGISTERS.clear()
    for source, (threads, blocks) in RESOURCES.items():
        RESOURCES[source] = threads, int(sys.argv[1]) * blocks
    function = recipe.function
    local = defaultdict(int)

    def recorded(source, *arguments):
        found = function(source, *arguments)
        local[source] = max(local[source], found.local_size_bytes)
        return found

    recipe.function = recorded
    for image, thresholds, axis in cases():
        for masked in (False, True):
            mask = RNG.random(image.shape) < 0.8 if masked else None
            for connectivity, nan in ((1, "raise"), (None, "omit")):
                options = {"connectivity": connectivity, "nan": nan, "axis": axis}
                known = ecc.euler_curve(image, thresholds, mask=mask, **options)
                if masked:
                    options["mask"] = cupy.asarray(mask)
                found = ecc.euler_curve(cupy.asarray(image), thresholds, **options)
                np.testing.assert_array_equal(found.values.get(), known.values)
    for source in RESOURCES:
        print(source, local[source])


if __name__ == "__main__":
    main()
