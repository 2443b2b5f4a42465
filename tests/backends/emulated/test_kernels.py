"""Curves by the CUDA kernels against those of the CPU backend, bit for bit."""

import numpy as np
import pytest
from scipy import ndimage

import ecc_core
from ecc_core._backends.cuda import tiling

SIDES = [("V", False), ("T", True)]  # V sublevel and T superlevel compare in one order
EVEN = np.linspace(-2, 2, 64)
BYTES, SHORTS = np.arange(256), np.arange(1 << 16)
# The kernel, the shape of a batch, and levels. Widths that end inside a warp and those that do not.
CASES = {
    "small": ("small2d", (3, 45, 300), "float32", EVEN),
    "2-D": ("pairs2d", (1, 330, 1030), "float32", EVEN),
    "2-D bytes": ("pairs2d", (1, 400, 1024), "uint8", BYTES),
    "batch": ("pairs2d", (40, 70, 128), "float32", EVEN),
    "2-D shorts": ("curve2d", (1, 330, 1030), "uint16", SHORTS),
    "3-D": ("pairs3d", (2, 9, 37, 272), "float32", EVEN),
    "3-D odd": ("pairs3d", (1, 5, 20, 133), "float32", EVEN),
    "3-D bytes": ("bytes3d", (1, 9, 40, 272), "uint8", BYTES),
    "3-D shorts": ("shorts3d", (2, 9, 37, 268), "uint16", SHORTS),
    "3-D odd shorts": ("curve3d", (1, 9, 37, 271), "uint16", SHORTS),
}


def fields(shape, dtype):
    """Noise, and a smooth field with few events, of values that repeat."""
    rng = np.random.default_rng(2)
    noise = rng.normal(size=shape)
    smooth = ndimage.gaussian_filter(noise, (0, *[2.5] * (len(shape) - 1)))
    for field in (noise, np.round(30 * smooth / np.abs(smooth).max()) / 15):
        if np.dtype(dtype).kind == "f":
            yield field.astype(dtype)
        else:
            info = np.iinfo(dtype)
            scaled = np.interp(field, (-2.5, 2.5), (info.min, info.max))
            yield scaled.astype(dtype)


def check(emulator, images, levels, side, kernel):
    construction, superlevel = side
    found, used = emulator.curve(images, levels, construction, superlevel)
    assert used == kernel
    connectivity = 1 if construction == "V" else images.ndim - 1
    for image, curve in zip(images, found, strict=True):
        known = ecc_core.euler_curve(
            image, levels, connectivity=connectivity, superlevel=superlevel
        )
        np.testing.assert_array_equal(curve, known.values)


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side[0])
@pytest.mark.parametrize("case", CASES)
def test_curves(emulator, case, side):
    kernel, shape, dtype, levels = CASES[case]
    for images in fields(shape, dtype):
        check(emulator, images, levels, side, kernel)


@pytest.mark.parametrize("shape", [(400, 1030), (350, 2300)])
def test_units_of_images_differ_by_a_step(emulator, shape):
    warps = tiling.RESIDENT_WARPS["pairs2d"]
    assert tiling.plan_pairs(1, False, shape[0], *shape, emulator.processors, (warps,)).share
    for images in fields((1, *shape), "float32"):
        check(emulator, images, EVEN, ("V", False), "pairs2d")


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side[0])
@pytest.mark.parametrize(
    ("kernel", "dtype", "levels"),
    [("bytes3d", "uint8", BYTES), ("shorts3d", "uint16", SHORTS)],
)
def test_warps_share_what_chunks_leave(emulator, monkeypatch, kernel, dtype, levels, side):
    monkeypatch.setattr(emulator, "processors", 1)
    shape = (24, 40, 272)
    warps = tiling.RESIDENT_WARPS[kernel]
    assert tiling.plan_pairs(1, True, *shape, 1, (warps,), tails=True).tail
    for images in fields((1, *shape), dtype):
        check(emulator, images, levels, side, kernel)


def test_counts_of_16_bits_spill(emulator, monkeypatch):
    """Blocks of a million samples whose coefficients, from -5 to 7, go to a few values."""
    monkeypatch.setattr(emulator, "processors", 1)
    shape = (128, 48, 256)
    odd = (np.indices(shape) % 2).sum(axis=0)
    orders = np.array([[5, 0, 1, 9], [5, 0, 9, 9]], np.uint16)
    z, y, x = np.indices(shape)
    peaks = ((z % 2 | y % 4 | x % 4) == 0).astype(np.uint16)
    for volume in (orders[0][odd], orders[1][odd], 9 * peaks):
        check(emulator, volume[None], SHORTS, ("V", False), "shorts3d")
