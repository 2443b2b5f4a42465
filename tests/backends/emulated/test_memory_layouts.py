"""Arrays whose samples or rows are apart, and masks that lie as their images or do not."""

import numpy as np
import pytest
from kernel_cases import EVEN, SIDES, check, fields


@pytest.mark.parametrize(
    "shape",
    [
        (2, 40, 264),
        (2, 5, 20, 142),
        pytest.param((1, 5, 37, 272), marks=pytest.mark.slow),
        pytest.param((1, 40_008), marks=pytest.mark.slow),
    ],
)
def test_samples_that_are_apart(emulator, shape):
    dtype = "uint16" if shape == (1, 5, 37, 272) else "float32"
    levels = EVEN if dtype == "float32" else np.linspace(0, 65535, 300)
    images = next(fields(shape, dtype))
    for view in (images[..., ::2], images[..., 1::2], images[..., ::-3]):
        check(emulator, view, levels, SIDES[1])
        scanned = view.strides[-1] > 0 and view.ctypes.data % 16 == 0 == view.shape[-1] % 4
        assert emulator.launched[0].startswith("pairs" if scanned else "recode")


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
def test_masks_that_lie_as_their_images(emulator, shape, dtype, kernel, side):
    rng = np.random.default_rng(6)
    levels = np.linspace(0, 65535, 100) if dtype == "uint16" else EVEN
    shown = rng.integers(0, 4, shape, dtype=np.uint8)
    for images in fields(shape, dtype):
        if dtype != "uint16":
            images[rng.random(shape) < 0.1] = np.nan
        for order in (range(len(shape)), (0, *range(2, len(shape)), 1)):
            back = np.argsort(order)
            image, mask = (
                np.ascontiguousarray(a.transpose(back)).transpose(order) for a in (images, shown)
            )
            check(emulator, image, levels, side, mask=mask.view(np.bool_), nan="omit")
            aligned = mask.strides[-1] == 1
            assert emulator.scans == [kernel] or (not aligned and "recode" in emulator.launched)


def test_masks_whose_rows_are_not_words(emulator):
    """Rows of 16 bytes in the image, but not of 4 bytes in the mask."""
    image, shown = np.random.default_rng(7).normal(size=(2, 1, 40, 130))
    check(emulator, image[..., :128], EVEN, SIDES[0], mask=(shown > 0)[..., :128], nan="omit")
    assert emulator.launched[0] == "recode"


def test_rows_that_are_far_apart(emulator, monkeypatch):
    monkeypatch.setattr(emulator.backend.recipe, "ROW_STRIDE", 100)
    for rows, kernel in ((3, "pairs2d"), (20, "coefficients2d")):
        image = next(fields((1, rows, 810), "float32"))
        check(emulator, image, EVEN, SIDES[0], kernel)
