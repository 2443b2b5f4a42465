"""Euler numbers, coefficients, exact curves and ranges, and curves along a direction."""

from contextlib import nullcontext

import numpy as np
import pytest
from fake_cupy import guarded
from kernel_cases import EVEN, SIDES, fields, filtration_of, known_curve

import ecc_core
from ecc_core._backends import backend
from ecc_core._request.filtration import Direction, Filtration
from ecc_core._request.spatial_axes import geometry_of
from ecc_core._request.thresholds import Thresholds


@pytest.mark.parametrize(
    "shape",
    [(16, 512), (33, 1040), (32, 16), (17, 8, 512), (9, 17, 528), (20, 64, 64), (1 << 5, 31, 16)],
)
@pytest.mark.parametrize(("cubes", "share"), [(False, 0.7), (True, 0.2)])
def test_numbers(emulator, shape, cubes, share):
    """One and several warps and chunks, with and without a lane beyond the last points."""
    rng = np.random.default_rng(12)
    images = rng.random((3, *shape)) < share
    filtration = Filtration(len(shape), len(shape) if cubes else 1, True)
    level = np.array([0.5])
    known = [ecc_core.euler_number(image, filtration.connectivity) for image in images]
    planned = []
    called = []
    for one in np.split(images, 3):
        image = guarded(one)
        given = image, None, Thresholds(level), filtration
        run = emulator.launch.plan("number", *given, geometry=geometry_of(shape))
        planned.append(run(image))
        called.append(emulator.launch.number(image, level, filtration))
    assert planned == known
    assert called == known
    # By words of the device that the number shares with other results.
    assert emulator.launch.value_range(guarded(images), filtration) == (0, 1)
    assert emulator.launched == [*["number"] * 6, "range"]


@pytest.mark.parametrize(("shape", "side"), list(zip([(50, 150), (8, 30, 70)], SIDES, strict=True)))
def test_directions(emulator, shape, side):
    image = np.random.default_rng(4).integers(0, 9, shape).astype(np.int16)
    vector = np.array([2.0, -1.0, 3.0])[: len(shape)]
    unit = tuple((vector / np.linalg.norm(vector)).tolist())
    direction = Direction(unit, 0.7, (1.0, 2.0, 0.5)[: len(shape)], shape)
    filtration = filtration_of(len(shape), side, direction=direction)
    values = direction.add(image, (0,) * len(shape))
    found = emulator.curve(image[None], EVEN, filtration)[0]
    np.testing.assert_array_equal(found, known_curve(values, EVEN, side))
    on_device = image[None].view(emulator.backend.arrays.cupy.ndarray)
    low, high = emulator.launch.value_range(on_device, filtration)
    assert (low, high) == (values.min(), values.max())


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("dtype", "shape", "side"),
    [
        ("f4", (37, 300), SIDES[0]),
        pytest.param("f4", (37, 300), SIDES[1], marks=pytest.mark.slow),
        pytest.param("f4", (9, 23, 128), SIDES[0], marks=pytest.mark.slow),
        ("f4", (5, 9, 35), SIDES[1]),
        pytest.param("u1", (11, 125), SIDES[0], marks=pytest.mark.slow),
        pytest.param("i4", (9, 124), SIDES[1], marks=pytest.mark.slow),
        ("i8", (17, 90), SIDES[0]),
        ("b1", (40,), SIDES[1]),
    ],
)
def test_coefficients_exact_curves_and_ranges(emulator, dtype, shape, side, masked):
    rng = np.random.default_rng(6)
    cubes, superlevel = side
    connectivity = len(shape) if cubes else 1
    noise, smooth = fields(shape, dtype)
    image = smooth if masked else noise
    if not masked and image.dtype.kind in "iu":
        image.flat[::3] = np.iinfo(dtype).max
    mask = rng.random(shape) < 0.8 if masked else None
    options = {"superlevel": superlevel, "connectivity": connectivity, "mask": mask}
    filtration = Filtration(len(shape), connectivity, superlevel)
    given = guarded(image[None]), filtration
    shown = None if mask is None else guarded(mask[None])
    emulator.clear()
    found = emulator.launch.coefficients(*given, mask=shown)
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found[0], ecc_core.euler_coefficients(image, **options))
    levels, values = emulator.launch.exact_curve(*given, mask=shown)
    known = ecc_core.euler_curve(image, "exact", **options)
    assert levels.dtype == known.thresholds.dtype
    np.testing.assert_array_equal(levels, known.thresholds)
    np.testing.assert_array_equal(values, known.values)
    kept = image if mask is None else image[mask]
    low, high = emulator.launch.value_range(*given, mask=shown)
    assert (low, high) == (kept.min(), kept.max())


@pytest.mark.parametrize("width", [2**31, np.int64(2**31), -(2**31) - 1, 1.5])
def test_structures_refuse_what_their_fields_cannot_hold(emulator, width):
    """The kernels count the points of a row in 32 bits."""
    with pytest.raises(OverflowError):
        emulator.backend.samples.SAMPLES(width=width)
    found = emulator.backend.samples.SAMPLES(width=2**31 - 1)
    assert found.view(emulator.backend.samples.SAMPLES.dtype)["width"] == 2**31 - 1


def test_exact_curve_of_bfloat16_along_a_direction(emulator, monkeypatch):
    """The backend sees such images as bits, to which nothing can be added."""
    image = np.random.default_rng(3).integers(-3, 4, (1, 9, 12)).astype(np.float32)
    upper = (image.view(np.uint32) >> 16).astype(np.uint16)
    bits = guarded(upper.view(np.int16))
    view = emulator.backend.arrays.ArrayView(bits, "bfloat16", np.asarray)
    monkeypatch.setattr(emulator.launch, "adopt", lambda _: nullcontext(view))
    filtration = Filtration(2, 2, direction=Direction((0.6, 0.8), 0.5, (1.0, 1.0), (9, 12)))
    found = emulator.launch.exact_curve(bits, filtration)
    np.testing.assert_equal(found, backend("cpu").exact_curve(image, filtration))
