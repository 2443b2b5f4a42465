"""Arrays whose samples or rows are apart, and masks that lie as their images or do not."""

import numpy as np
import pytest
from kernel_cases import EVEN, SIDES, check, fields


@pytest.mark.parametrize(
    "samples",
    [slice(None, None, 2), slice(1, None, 2), slice(None, None, -3)],
    ids=["even", "odd", "reversed"],
)
@pytest.mark.parametrize(
    "shape",
    [
        (2, 40, 264),
        (2, 5, 20, 142),
        pytest.param((1, 5, 37, 272), marks=pytest.mark.slow),
        pytest.param((1, 40_008), marks=pytest.mark.slow),
    ],
)
def test_samples_that_are_apart(emulator, shape, samples):
    dtype = "uint16" if shape == (1, 5, 37, 272) else "float32"
    levels = EVEN if dtype == "float32" else np.linspace(0, 65535, 300)
    view = next(fields(shape, dtype))[..., samples]
    check(emulator, view, levels, SIDES[1])
    scanned = view.strides[-1] > 0 and view.ctypes.data % 16 == 0 == view.shape[-1] % 4
    assert emulator.launched[0].startswith("pairs" if scanned else "recode")


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("is_smooth", [False, True])
@pytest.mark.parametrize(
    ("shape", "dtype", "kernel", "side"),
    [
        ((2, 70, 264), "float32", "pairs2d", SIDES[0]),
        pytest.param((1, 90, 260), "float16", "pairs2d", SIDES[1], marks=pytest.mark.slow),
        ((2, 5, 20, 140), "float32", "pairs3d", SIDES[1]),
        pytest.param((1, 5, 37, 272), "uint16", "pairs3d", SIDES[0], marks=pytest.mark.slow),
        pytest.param((1, 5, 37, 60), "float32", "pairs3d", SIDES[0], marks=pytest.mark.slow),
    ],
)
def test_masks_that_lie_as_their_images(emulator, shape, dtype, kernel, side, is_smooth, turned):
    rng = np.random.default_rng(6)
    levels = np.linspace(0, 65535, 100) if dtype == "uint16" else EVEN
    shown = rng.integers(0, 4, shape, dtype=np.uint8)
    noise, smooth = fields(shape, dtype)
    images = smooth if is_smooth else noise
    order = tuple(range(len(shape)))
    if turned:
        order = (0, *range(2, len(shape)), 1)
    if dtype != "uint16":
        images[rng.random(shape) < 0.1] = np.nan
    back = np.argsort(order)
    stored = [np.ascontiguousarray(array.transpose(back)) for array in (images, shown)]
    image, mask = (array.transpose(order) for array in stored)
    check(emulator, image, levels, side, mask=mask.view(np.bool_), nan="omit")
    aligned = mask.strides[-1] == 1
    assert emulator.scans == [kernel] or (not aligned and "recode" in emulator.launched)


def test_masks_whose_rows_are_not_words(emulator):
    """Rows of 16 bytes in the image, but not of 4 bytes in the mask."""
    image, shown = np.random.default_rng(7).normal(size=(2, 1, 40, 130))
    check(emulator, image[..., :128], EVEN, SIDES[0], mask=(shown > 0)[..., :128], nan="omit")
    assert emulator.launched[0] == "recode"


@pytest.mark.parametrize(("rows", "kernel"), [(3, "pairs2d"), (20, "coefficients2d")])
def test_rows_that_are_far_apart(emulator, monkeypatch, rows, kernel):
    monkeypatch.setattr(emulator.backend.recipe, "ROW_STRIDE", 100)
    image = next(fields((1, rows, 810), "float32"))
    check(emulator, image, EVEN, SIDES[0], kernel)
