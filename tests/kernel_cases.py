"""Images and levels for each emulated kernel of curves, and comparisons with the CPU backend."""

import numpy as np
from fake_cupy import guarded
from scipy import ndimage

import ecc_core
from ecc_core._request.filtration import Filtration

# Whether points are cubes, and whether sets are superlevel sets. Both rows compare in one order.
SIDES = [(False, False), (True, True)]
EVEN = np.linspace(-2, 2, 64)
BYTES = np.arange(256)
SHORTS = np.arange(1 << 16)
PERCENTILES = np.percentile(np.random.default_rng(5).normal(size=4000), np.linspace(0, 100, 90))
# Some of these levels are so close together that they need pieces (rules.py).
CROWDED = np.sort(np.random.default_rng(8).normal(size=300))
CROWDED_SINGLE = np.sort(np.random.default_rng(9).normal(size=5000))
CROWDED_MANY = np.sort(np.random.default_rng(8).uniform(-2, 2, 1100))
DENSE_ON_ONE_SIDE = np.geomspace(1e-3, 1, 100)
FAR_FROM_ZERO = 1000 + CROWDED[:100]
INFINITE = np.array([-np.inf, -1, 0.3, np.inf])
CROWDED_AND_INFINITE = np.array([-np.inf, *CROWDED[:200], np.inf])
MANY_SINGLE = 0.9 * np.linspace(-2, 2, 4096, dtype=np.float32)
SUBNORMAL = np.arange(-9, 10) * 1.1e-39
# The kernel, the shape of a batch, the dtype and levels. Some rows end within a warp.
CASES = {
    "1-D": ("pairs2d", (1, 40_003), "float32", EVEN),
    "1-D whole rows": ("pairs2d", (2, 1 << 14), "float32", EVEN),
    "1-D bytes": ("pairs2d", (2, 20_003), "uint8", BYTES),
    "1-D many": ("pairs2d", (1, 40_003), "float32", np.linspace(-2, 2, 4096)),
    "1-D more": ("counts", (1, 40_003), "float32", np.linspace(-2, 2, 9000)),
    "1-D many shorts": ("counts", (2, 1 << 15), "uint16", SHORTS),
    "3 rows": ("pairs2d", (2, 3, 8100), "float32", EVEN),
    "5 rows": ("pairs2d", (1, 5, 8003), "uint8", BYTES),
    "2-D": ("pairs2d", (1, 330, 1030), "float32", EVEN),
    "2-D bytes": ("bytes2d", (1, 400, 1024), "uint8", BYTES),
    "2-D float32 levels": ("pairs2d", (1, 130, 1030), "float32", EVEN.astype(np.float32) * 0.9),
    "2-D percentiles": ("pairs2d", (1, 130, 1030), "float32", PERCENTILES),
    "2-D many": ("pairs2d", (1, 130, 260), "float32", np.linspace(-2, 2, 4096)),
    "2-D single": ("coefficients2d", (1, 130, 1030), "float32", np.linspace(-2, 2, 5000)),
    "2-D random many": ("coefficients2d", (2, 90, 1030), "float32", CROWDED_SINGLE),
    "2-D small": ("coefficients2d counts", (1, 130, 260), "float32", np.linspace(-2, 2, 5000)),
    "2-D random": ("pairs2d", (1, 130, 260), "float32", CROWDED),
    "2-D dense on one side": ("pairs2d", (1, 70, 260), "float32", DENSE_ON_ONE_SIDE),
    "2-D far from zero": ("pairs2d", (1, 70, 260), "float32", FAR_FROM_ZERO),
    "2-D infinite": ("pairs2d", (1, 70, 260), "float32", INFINITE),
    "2-D random and infinite": ("pairs2d", (1, 70, 260), "float32", CROWDED_AND_INFINITE),
    "2-D subnormal": ("pairs2d", (1, 70, 260), "float32", SUBNORMAL),
    "2-D float64": ("pairs2d", (2, 70, 150), "float64", EVEN),
    "2-D int64": ("pairs2d", (1, 70, 152), "int64", np.linspace(-(2.0**63), 2.0**63, 200)),
    "2-D int32": ("pairs2d", (1, 70, 152), "int32", np.linspace(-(2.0**31), 2.0**31, 200)),
    "1-D float64": ("pairs2d", (1, 20_004), "float64", EVEN),
    "1-D recoded": ("recode pairs2d", (2, 20_001), "float64", PERCENTILES),
    "batch": ("pairs2d", (40, 70, 128), "float32", EVEN),
    "batch of float64": ("pairs2d", (20, 40, 128), "float64", EVEN),
    "2-D shorts": ("coefficients2d counts", (1, 330, 1030), "uint16", SHORTS),
    "one slice": ("pairs2d", (1, 1, 40, 260), "float32", EVEN),
    "one row": ("pairs2d", (1, 40, 1, 260), "float32", EVEN),
    "one column": ("pairs2d", (1, 40, 260, 1), "float32", EVEN),
    "3-D": ("pairs3d", (2, 9, 37, 272), "float32", EVEN),
    "3-D percentiles": ("pairs3d", (1, 5, 37, 272), "float32", PERCENTILES),
    "3-D many": ("pairs3d", (1, 5, 37, 272), "float32", np.linspace(-2, 2, 1500)),
    "3-D many float32": ("pairs3d", (1, 5, 37, 272), "float32", MANY_SINGLE),
    "3-D many percentiles": ("pairs3d", (1, 5, 20, 133), "float32", CROWDED_MANY),
    "3-D random": ("pairs3d", (1, 5, 37, 272), "float32", CROWDED),
    "3-D odd": ("pairs3d", (1, 5, 20, 133), "float32", EVEN),
    "3-D narrow": ("pairs3d", (2, 5, 85, 60), "float32", EVEN),
    "3-D narrow bytes": ("pairs3d", (1, 5, 40, 64), "uint8", BYTES),
    "3-D bytes": ("bytes3d", (1, 9, 70, 272), "uint8", BYTES),
    "3-D few bytes": ("bytes3d", (2, 3, 32, 132), "int8", np.array([-100, 3, 90])),
    "3 channels of bytes": ("bytes3d", (2, 40, 272, 3), "uint8", BYTES),
    "4 channels of bytes": ("bytes3d", (1, 34, 132, 4), "uint8", BYTES),
    "3 channels": ("pairs3d", (2, 37, 272, 3), "float32", EVEN),
    "2 channels of shorts": ("pairs3d", (1, 20, 260, 2), "uint16", np.arange(0, 1 << 16, 16)),
    "3-D some shorts": ("coefficients3d", (2, 9, 70, 268), "uint16", SHORTS[30_000:35_000]),
    "3-D shorts": ("coefficients3d counts", (2, 9, 37, 268), "uint16", SHORTS),
    "3-D 12 bits": ("pairs3d", (1, 9, 37, 268), "uint16", np.arange(0, 1 << 16, 16)),
    "3-D complements": ("pairs3d", (1, 5, 20, 133), "int16", np.linspace(-32768, 32767, 4096)),
    "3-D odd shorts": ("coefficients3d counts", (1, 9, 37, 271), "uint16", SHORTS),
    "uint32": ("recode pairs2d", (1, 40, 150), "uint32", np.geomspace(1, 2.0**32, 300)),
    "recoded float64": ("recode bytes2d", (2, 70, 150), "float64", PERCENTILES),
    "many": ("recode pairs3d", (1, 9, 30, 140), "float64", np.linspace(-2, 2, 3000)),
    "thin": ("recode bytes3d", (1, 100, 240, 5), "float32", EVEN),
    "thin bytes": ("recode bytes3d", (1, 90, 250, 3), "uint8", BYTES),
    "flat": ("recode bytes3d", (2, 300, 3, 250), "float64", EVEN),
    "narrow": ("recode pairs2d", (1, 8000, 9), "float32", EVEN),
    "very narrow": ("recode pairs2d", (1, 9601, 7), "float32", EVEN),
    "uneven": ("recode bytes2d", (1, 70, 150), "float32", np.geomspace(1e-6, 3, 100)),
}
TINY = np.float32(1e-45)
CLOSE = [np.geomspace(1e-6, 3, 100), np.array([-TINY, 0, TINY, 1]), np.arange(-9, 10) * TINY]


def fields(shape, dtype):
    """Return noise, and a smooth field with few critical points, of values that repeat."""
    rng = np.random.default_rng(2)
    noise = rng.normal(size=shape)
    smooth = ndimage.gaussian_filter(noise, (0, *[2.5] * (len(shape) - 1)))
    for field in (noise, np.round(30 * smooth / np.abs(smooth).max()) / 15):
        if np.dtype(dtype).kind == "f":
            yield field.astype(dtype)
        elif np.dtype(dtype) == bool:
            yield field > 0
        else:
            info = np.iinfo(dtype)
            part = 2 if info.bits == 64 else 1  # float64 rounds the largest integers to 2**63.
            scaled = np.interp(field, (-2.5, 2.5), (info.min // part, info.max // part))
            yield scaled.astype(dtype)


def known_curve(image, levels, side, mask=None):
    cubes, superlevel = side
    connectivity = image.ndim if cubes else 1
    return ecc_core.euler_curve(
        image, levels, connectivity=connectivity, superlevel=superlevel, mask=mask, nan="omit"
    ).values


def filtration_of(ndim, side, **more):
    cubes, superlevel = side
    return Filtration(ndim, ndim if cubes else 1, superlevel, **more)


def check(emulator, images, levels, side, kernel=None, known=None, mask=None, **more):
    """Compare the curves of a batch with the CPU's, and the kernels that ran if they are given."""
    found = emulator.curve(images, levels, filtration_of(images.ndim - 1, side, **more), mask)
    assert kernel is None or emulator.scans == kernel.split()
    known = images if known is None else known
    for i, (image, curve) in enumerate(zip(known, found, strict=True)):
        shown = None if mask is None else mask[i] != 0
        np.testing.assert_array_equal(curve, known_curve(image, levels, side, shown))


def check_regions(emulator, image, labels, levels, side):
    cubes, superlevel = side
    given = guarded(image), guarded(labels), levels, filtration_of(image.ndim, side)
    ids, values = emulator.launch.region_curves(*given)
    options = {"connectivity": image.ndim if cubes else 1, "superlevel": superlevel}
    known = ecc_core.region_curves(image, labels, levels, **options)
    assert (ids.dtype, values.dtype) == (labels.dtype, np.int64)
    np.testing.assert_array_equal(ids, known.labels)
    np.testing.assert_array_equal(values, known.values)
