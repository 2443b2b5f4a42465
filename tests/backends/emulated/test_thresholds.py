"""Thresholds that the device makes from the range of an image, and those that the host changes."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest
from fake_cupy import guarded
from kernel_cases import EVEN, SIDES, filtration_of, known_curve

from ecc_core._request.filtration import Filtration
from ecc_core._request.spatial_axes import geometry_of
from ecc_core._request.thresholds import Thresholds


def test_thresholds_that_change_in_place(emulator):
    levels, filtration = np.linspace(0, 1, 17), filtration_of(2, SIDES[0], nan="omit")
    images = np.random.default_rng(3).random((2, 1, 40, 260), np.float32)
    for _ in range(2):
        for image in images:
            found = emulator.launch.curve(guarded(image), levels, filtration)
            np.testing.assert_array_equal(found[0], known_curve(image[0], levels, SIDES[0]))
        levels *= 0.5


@pytest.mark.parametrize(
    ("shape", "superlevel"),
    [
        ((1, 40, 260), False),
        ((1, 40, 260), True),
        pytest.param((1, 5, 20, 132), True, marks=pytest.mark.slow),
    ],
)
def test_even_thresholds_over_the_range(emulator, shape, superlevel):
    rng = np.random.default_rng(13)
    filtration = Filtration(len(shape) - 1, len(shape) - 1, superlevel)
    images = rng.normal(size=shape).astype(np.float32)

    def curve(image, nan="raise"):
        given, asked = guarded(image[None]), replace(filtration, nan=nan)
        geometry = geometry_of(image.shape)
        levels = Thresholds(count=200)
        run = emulator.launch.plan("curve", given, None, levels, asked, geometry=geometry)
        return run(given[0])

    def assert_over_the_range(image):
        thresholds, values = curve(image)
        at = np.linspace(float(image.min()), float(image.max()), 200)
        assert thresholds.dtype == np.float64
        np.testing.assert_array_equal(thresholds, at)
        np.testing.assert_array_equal(values, known_curve(image, at, (True, superlevel)))

    # One plan, whose table of thresholds is written anew for each range.
    assert_over_the_range(images[0])
    assert_over_the_range(images[0] * np.float32(1e-3) + np.float32(7))
    assert_over_the_range(images[0] * np.float32(1e30) - np.float32(1e30))
    assert_over_the_range(images[0] * np.float32(-0.3))
    assert_over_the_range(images[0] * np.float32(1e-38))
    image = images[0] * np.float32(0.01) - np.float32(40)
    assert_over_the_range(image)
    image[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        curve(image)
    thresholds, values = curve(image, "omit")
    known = known_curve(image, thresholds.get(), (True, superlevel))
    np.testing.assert_array_equal(values, known)
    # Ranges that the kernel leaves to the host: one value, and fewer values than thresholds.
    assert_over_the_range(images[0] * 0)
    assert_over_the_range(1 + images[0] * np.float32(1e-6))
    with pytest.raises(ValueError, match="`range` must be given"):
        curve(images[0] * np.nan, "omit")
    nothing = guarded(images[:, :0]), None, Thresholds(count=200), filtration
    geometry = geometry_of(nothing[0].shape[1:])
    assert emulator.launch.plan("curve", *nothing, geometry=geometry) is None


@pytest.mark.parametrize("captured", [False, True])
def test_graphs_do_not_read_host_arrays_again(emulator, monkeypatch, captured):
    arrays = emulator.backend.arrays
    copies = []

    def copy(to, start, size, *_):
        copies.append(size)
        ctypes.memmove(to, start, size)

    monkeypatch.setattr(arrays.cupy.cuda.runtime, "memcpyAsync", copy)
    monkeypatch.setattr(emulator.backend.programs, "is_capturing", lambda: captured)
    np.testing.assert_array_equal(arrays.on_device(EVEN), EVEN)
    assert copies == ([] if captured else [EVEN.nbytes])
