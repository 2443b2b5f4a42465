"""Masks, infinities, and NaN, which kernels report wherever it is."""

import numpy as np
import pytest
from fake_cupy import guarded
from kernel_cases import CROWDED, EVEN, PERCENTILES, SIDES, check, filtration_of, known_curve

import ecc_core
from ecc_core._request.filtration import Filtration


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize(
    ("shape", "side"), list(zip([(2, 50, 150), (1, 8, 30, 70)], SIDES, strict=True))
)
def test_masks_infinities_and_strides(emulator, shape, side, strided, masked):
    rng = np.random.default_rng(3)
    images = rng.normal(size=shape).astype(np.float32)
    images[rng.random(shape) < 0.1] = np.inf
    images[rng.random(shape) < 0.1] = np.nan
    mask = rng.random(shape) < 0.8
    levels = np.array([-np.inf, -1, 0, 0.5, np.inf])
    step = -3 if strided else 1
    shown = mask[..., ::step] if masked else None
    check(emulator, images[..., ::step], levels, side, mask=shown, nan="omit")
    assert emulator.launched[0] == "recode"
    with pytest.raises(ValueError, match="NaN"):
        emulator.curve(images, levels, filtration_of(len(shape) - 1, side), mask | np.isnan(images))


@pytest.mark.sweep
@pytest.mark.parametrize("levels", [EVEN, np.linspace(-2, 2, 5000), None])
@pytest.mark.parametrize("shape", [(40, 260), (9, 40, 260)])
def test_single_images_are_searched_for_nan(emulator, shape, levels):
    """Kernels of curves, and of coefficients (None), report to the host what is not finite."""
    image = np.random.default_rng(3).random(shape, np.float32)
    filtration = filtration_of(image.ndim, SIDES[0])

    def check_single(mask=None):
        shown = None if mask is None else guarded(mask[None])
        if levels is None:
            found = emulator.launch.coefficients(guarded(image[None]), filtration, mask=shown)
            known = ecc_core.euler_coefficients(image, connectivity=1, mask=mask, nan="omit")
        else:
            found = emulator.launch.curve(guarded(image[None]), levels, filtration, mask=shown)
            known = known_curve(image, levels, SIDES[0], mask=mask)
        np.testing.assert_array_equal(found[0], known)

    for value in (1.5, np.inf, -np.inf, 3e38):
        image[..., 7] = value
        check_single()
    for place in ((0,) * image.ndim, (3,) * image.ndim, (-1,) * image.ndim):
        before, image[place] = image[place], np.nan
        for shown in (None, np.ones(shape, bool)):
            with pytest.raises(ValueError, match="NaN"):
                check_single(shown)
        check_single(np.isfinite(image))
        image[place] = before
    check_single()


# Places of NaN: corners, borders of warps and of sixteen rows, and inside.
@pytest.mark.parametrize(
    ("shape", "dtype", "levels", "kernel"),
    [
        ((8, 40_003), "float32", EVEN, "pairs2d"),
        ((3, 3, 8100), "float32", EVEN, "pairs2d"),
        ((30, 70, 150), "float32", EVEN, "pairs2d"),
        pytest.param((2, 130, 260), "float64", EVEN, "pairs2d", marks=pytest.mark.slow),
        pytest.param((6, 5, 37, 272), "float32", PERCENTILES, "pairs3d", marks=pytest.mark.slow),
        pytest.param((6, 5, 37, 272), "float16", EVEN, "pairs3d", marks=pytest.mark.slow),
        pytest.param((6, 5, 50, 60), "float32", EVEN, "pairs3d", marks=pytest.mark.slow),
        ((6, 5, 20, 133), "float32", CROWDED, "pairs3d"),
    ],
)
def test_nan_is_noticed_wherever_it_is(emulator, shape, dtype, levels, kernel):
    rng = np.random.default_rng(4)
    images = rng.random(shape).astype(dtype)
    corner = (0,) * (len(shape) - 1)
    places = [corner, tuple(n - 1 for n in shape[1:])]
    last = np.array(shape[1:]) - 1
    places += [tuple(np.minimum(last, at)) for at in (3, 16, 128)]
    with_nan = np.arange(len(images)) % 3 != 1
    for i in np.flatnonzero(with_nan):
        places.append(tuple(rng.integers(0, shape[1:])))
        images[i][places.pop(0)] = np.nan
    adopted = emulator.backend.arrays.ArrayView(guarded(images), dtype, None)
    filtration = filtration_of(images.ndim - 1, SIDES[0])
    _, flags = emulator.launch.enqueue(adopted, levels, filtration)
    assert emulator.scans == [kernel]
    np.testing.assert_array_equal(flags != 0, with_nan)


@pytest.mark.sweep
@pytest.mark.parametrize("levels", [EVEN, np.linspace(-2, 2, 20_000)], ids=len)
@pytest.mark.parametrize("superlevel", [False, True])
def test_lines_with_masks_and_nan(emulator, superlevel, levels):
    rng = np.random.default_rng(14)
    images = np.round(rng.normal(size=(2, 20_001)), 1).astype(np.float32)
    images[rng.random(images.shape) < 0.1] = np.nan
    mask = rng.random(images.shape) < 0.8
    side = False, superlevel
    many = levels.size > 4096
    check(emulator, images, levels, side, "counts" if many else "pairs2d", nan="omit")
    kernels = "counts" if many else "recode pairs2d"
    check(emulator, images, levels, side, kernels, mask=mask, nan="omit")
    with pytest.raises(ValueError, match="NaN"):
        emulator.curve(images, levels, Filtration(1, 1, superlevel), mask)
