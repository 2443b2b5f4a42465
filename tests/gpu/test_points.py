"""Coefficients, exact curves, regions and ranges of device arrays against the reference."""

import itertools

import numpy as np
import pytest
from oracles import euler as reference

import ecc_core
from ecc_core._request.filtration import Filtration

cupy = pytest.importorskip("cupy")
launch = pytest.importorskip("ecc_core._backends.cuda.launch")

SIDES = list(itertools.product((False, True), (False, True)))


@pytest.mark.parametrize(("cubes", "superlevel"), SIDES)
@pytest.mark.parametrize("shape", [(50,), (13, 17), (6, 7, 9)])
@pytest.mark.parametrize("dtype", ["bool", "u1", "i4", "i8", "f4", "f8"])
def test_coefficients_and_exact_curves(draw, cubes, superlevel, shape, dtype):
    if len(shape) == 1 and cubes:
        pytest.skip("the reference takes 1-D images as V")
    rng = np.random.default_rng(1)
    connectivity = len(shape) if cubes else 1
    filtration = Filtration(len(shape), connectivity, superlevel, "omit")
    for few in (False, True):
        image = draw(rng, shape, dtype, few)
        for mask in (None, rng.random(shape) < 0.8):
            known = {"connectivity": connectivity, "superlevel": superlevel, "mask": mask}
            on_device = None if mask is None else cupy.asarray(mask)[None]
            found = launch.coefficients(cupy.asarray(image)[None], filtration, mask=on_device)
            expected = reference.euler_coefficients(image, **known)
            assert found.dtype == np.int8
            np.testing.assert_array_equal(found[0].get(), expected)
            levels, values = launch.exact_curve(
                cupy.asarray(image)[None], filtration, mask=on_device
            )
            at = reference.changing_levels(image, **known)
            chi = reference.euler_curve(image, at, **known)
            assert levels.dtype == image.dtype
            np.testing.assert_array_equal(levels.get(), at)
            np.testing.assert_array_equal(values.get(), chi)


@pytest.mark.parametrize(("cubes", "superlevel"), SIDES)
@pytest.mark.parametrize("shape", [(40,), (30, 21), (9, 10, 11)])
def test_regions(draw, cubes, superlevel, shape):
    rng = np.random.default_rng(2)
    image = draw(rng, shape, "f4")
    labels = rng.integers(0, 5, shape) * 7
    levels = np.linspace(-1, 1, 9)
    connectivity = len(shape) if cubes else 1
    ids, values = launch.region_curves(
        cupy.asarray(image),
        cupy.asarray(labels),
        levels,
        Filtration(len(shape), connectivity, superlevel),
    )
    expected_ids, expected = reference.region_curves(
        image, labels, levels, connectivity=connectivity, superlevel=superlevel
    )
    np.testing.assert_array_equal(ids.get(), expected_ids)
    np.testing.assert_array_equal(values.get(), expected)


@pytest.mark.parametrize("levels", [np.linspace(0, 1, 9), np.linspace(0, 1, 7000)])
@pytest.mark.parametrize("shape", [(150, 700), (20, 45, 70)])
def test_many_regions(shape, levels):
    """More labels in a block than it counts in shared memory, or too many bins for that."""
    rng = np.random.default_rng(5)
    image = rng.random(shape, np.float32)
    labels = rng.integers(0, 300, [-(-size // 3) for size in shape])
    for axis, size in enumerate(shape):
        labels = labels.repeat(3, axis=axis).take(np.arange(size), axis=axis)
    for superlevel in (False, True):
        known = ecc_core.region_curves(image, labels, levels, superlevel=superlevel)
        given = cupy.asarray(image), cupy.asarray(labels)
        found = ecc_core.region_curves(*given, levels, superlevel=superlevel)
        np.testing.assert_array_equal(found.labels.get(), known.labels)
        np.testing.assert_array_equal(found.values.get(), known.values)
    labels[-1, -1] = -3
    with pytest.raises(ValueError, match="`labels` must not be negative, got -3"):
        ecc_core.region_curves(cupy.asarray(image), cupy.asarray(labels), levels)


@pytest.mark.parametrize("superlevel", [False, True])
def test_exact_curves_of_many_tiles(superlevel):
    rng = np.random.default_rng(6)
    image = rng.normal(size=(700, 300)).astype(np.float32)
    image[:, 100:200] = np.round(image[:, 100:200])  # runs of equal values that span tiles
    known = ecc_core.euler_curve(image, "exact", superlevel=superlevel)
    found = ecc_core.euler_curve(cupy.asarray(image), "exact", superlevel=superlevel)
    np.testing.assert_array_equal(found.thresholds.get(), known.thresholds)
    np.testing.assert_array_equal(found.values.get(), known.values)
    image[30, 40] = np.nan
    given = cupy.asarray(image)
    with pytest.raises(ValueError, match="nan"):
        ecc_core.euler_curve(given, "exact", superlevel=superlevel)
    known = ecc_core.euler_curve(image, "exact", superlevel=superlevel, nan="omit")
    found = ecc_core.euler_curve(given, "exact", superlevel=superlevel, nan="omit")
    np.testing.assert_array_equal(found.values.get(), known.values)


def test_value_range():
    image = cupy.array([[[3.0, np.inf, -1.5, 8.0]]], np.float32)
    strict, omitting = Filtration(2, 2), Filtration(2, 2, nan="omit")
    assert launch.value_range(image, strict) == (-1.5, 8.0)
    hidden = cupy.array([[[True, True, True, False]]])
    assert launch.value_range(image, strict, mask=hidden) == (-1.5, 3.0)
    large = cupy.array([[[2**53 + 1, 2**63 - 1]]], np.int64)
    assert launch.value_range(large, strict) == (2**53 + 1, 2**63 - 1)
    image[0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="nan"):
        launch.value_range(image, strict)
    assert launch.value_range(image, omitting) == (-1.5, 8.0)
    assert launch.value_range(image[..., :2], omitting) == (None, None)
