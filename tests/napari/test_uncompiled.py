"""Curves and counts without kernels, which a new user sees while those are compiled."""

import numpy as np
import pytest
from napari.layers import Image
from napari_helpers import TIMEOUT, assert_curve_of, measure, objects, settle, smooth
from numpy.testing import assert_array_equal
from oracles.components import betti_numbers
from oracles.euler import euler_curve, region_curves

import ecc_core as ecc
from napari_ecc._controller import curves, loading, uncompiled
from napari_ecc._controller.fields import Field
from napari_ecc._workers import result

DTYPES = (np.bool_, np.uint8, np.int16, np.float32, np.float64)
SHAPES = ((1, 1), (5, 8), (7, 2), (1, 3, 4), (4, 5, 3))
LEVELS = np.array([-1.0, 0.0, 1.0, 2.5, 4.0, 5.0, 5.5])


def random_field(shape, dtype, *, masked):
    """A few values with ties; NaN among those that are real."""
    random = np.random.default_rng(5)
    image = random.integers(0, 7, shape).astype(dtype)
    if image.dtype.kind == "f":
        image[random.random(shape) < 0.2] = np.nan
    return Field(image, random.random(shape) < 0.8 if masked else None)


@pytest.mark.sweep
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("superlevel", [True, False])
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_curves_and_counts_are_those_of_the_oracles(shape, dtype, superlevel, full, masked):
    """Counted cell by cell, and set by set."""
    field = random_field(shape, dtype, masked=masked)
    connectivity = len(shape) if full else 1
    sets = {"superlevel": superlevel, "connectivity": None if full else 1}
    of_oracle = {"superlevel": superlevel, "connectivity": connectivity, "mask": field.mask}
    expected = euler_curve(field.data, LEVELS, **of_oracle)
    assert_array_equal(uncompiled.euler_curve(field, LEVELS, **sets), expected)
    counts = result(uncompiled.count_all(field, LEVELS, **sets))
    numbers = [betti_numbers(field.inside(at, superlevel), connectivity) for at in LEVELS]
    assert_array_equal(counts.values.T, numbers)
    assert (counts.superlevel, counts.connectivity) == (superlevel, connectivity)


@pytest.mark.parametrize("superlevel", [True, False])
@pytest.mark.parametrize("connectivity", [None, 1])
def test_curves_of_objects_are_those_of_the_oracles(superlevel, connectivity):
    """Labels may be far apart."""
    random = np.random.default_rng(2)
    image = random.integers(3, 12, (9, 11)).astype(np.float32)
    labels = random.choice([0, 1, 2, 1_000_000_007], image.shape).astype(np.int32)
    sets = {"superlevel": superlevel, "connectivity": connectivity}
    found = uncompiled.region_curves(image, labels, 5, **sets)
    inside = image[labels > 0]
    assert_array_equal(found.thresholds, np.linspace(inside.min(), inside.max(), 5))
    expected = region_curves(image, labels, found.thresholds, **sets)
    assert_array_equal(found.labels, expected[0])
    assert_array_equal(found.values, expected[1])


def test_thresholds_of_a_range_that_is_no_float():
    """The values differ by more than the largest number of float64."""
    image = np.array([[-1.5e308, 0.0, 1.5e308]])
    field = Field(image, None)
    found = uncompiled.region_curves(
        image, np.ones(image.shape, int), 3, superlevel=False, connectivity=None
    )
    assert_array_equal(found.thresholds, image[0])
    assert_array_equal(found.values, [[1, 1, 1]])
    assert_array_equal(field.levels(3), image[0])


def test_large_or_inexact_images_wait_for_kernels():
    assert uncompiled.is_quick(np.zeros((9, 9), np.float32))
    assert not uncompiled.is_quick(np.zeros((9, 9), np.int64))
    assert not uncompiled.is_quick(np.zeros((1 << 11, 1 << 12), np.uint8))
    volume = Field(np.zeros((64, 64, 64), np.uint8), None)
    assert not uncompiled.can_be_counted(volume, np.arange(256.0))


def test_the_coarse_curve_of_a_pyramid_needs_no_kernels(monkeypatch):
    """It is shown first, so that it would wait for their compilation."""
    image = np.random.default_rng(3).integers(0, 9, (6, 8)).astype(np.uint8)
    layer = Image([image, image[::2, ::2]], contrast_limits=(0, 8))
    whole = (slice(None), slice(None))
    request = curves.request_of(layer, whole, thresholds=9)
    monkeypatch.setattr(ecc, "euler_curve", None)
    found = [step.value[0] for step in curves.compute_curve(request, compiled=False)]
    assert [curve.stage for curve in found] == ["preview", "complete"]
    for curve, values in zip(found, (image[::2, ::2], image), strict=True):
        expected = euler_curve(values, curve.thresholds, superlevel=True, connectivity=2)
        assert_array_equal(curve.values, expected)


def test_curve_and_counts_are_shown_before_there_are_kernels(open_panel, qtbot, gate, monkeypatch):
    """Kernels are needed for births only."""
    _, go = gate("fields")
    monkeypatch.setattr("napari_ecc._controller.details.is_prepared", lambda *_: False)
    image = smooth(30, 40)
    _, panel = open_panel("Threshold", image, name="image")
    model = panel.model
    qtbot.waitUntil(lambda: model.betti is not None, timeout=TIMEOUT)
    assert model.classes is None
    assert_curve_of(panel, image)
    expected = ecc.betti_curves(image, model.betti.thresholds, superlevel=True)
    assert_array_equal(model.betti.values, expected.values)
    assert "component" in panel.readout.text()
    go.set()
    settle(qtbot, panel)
    assert_array_equal(model.classes.betti_curves(0.0).values, expected.values)


def test_kernels_are_made_while_a_curve_is_shown_without_them(open_panel, qtbot, monkeypatch):
    """Curves of the same dtype would be slow for as long as the window is open."""
    monkeypatch.setattr(loading, "_compiler", loading._Compiler())
    # Nothing is counted.
    monkeypatch.setattr("napari_ecc._controller.details.can_be_held", lambda _: False)
    image = np.arange(42, dtype=np.float64).reshape(6, 7)
    _, panel = open_panel("Threshold", image)
    qtbot.waitUntil(lambda: panel.model.curve is not None, timeout=TIMEOUT)
    qtbot.waitUntil(lambda: loading.is_prepared("curve", image), timeout=TIMEOUT)


def test_objects_are_measured_before_there_are_kernels(open_panel, qtbot, monkeypatch):
    """The curves are those of kernels, which refuse NaN and measure what else is wanted."""
    monkeypatch.setattr("napari_ecc._controller.measuring.is_prepared", lambda *_: False)
    image, labels = objects()
    viewer, panel = open_panel("Objects", image.astype(np.float32), labels=labels)
    measure(qtbot, panel)
    curves = panel.model.regions.curves
    expected = ecc.region_curves(image.astype(np.float32), labels, 32, superlevel=True)
    assert_array_equal(curves.values, expected.values)
    assert_array_equal(curves.thresholds, expected.thresholds)
    viewer.layers[0].data = np.full(image.shape, np.nan, np.float32)
    measure(qtbot, panel)
    assert "NaN" in panel.plot.state


def test_many_or_scattered_objects_wait_for_kernels():
    """Each takes some time here, as long as its box has points, and cannot be interrupted."""
    pair = np.repeat([[1, 0, 2]], 9, axis=0)
    assert uncompiled.are_few(pair)
    assert not uncompiled.are_few(np.arange(80 * 80).reshape(80, 80))
    scattered = np.random.default_rng(0).integers(0, 4000, (300, 300))
    assert not uncompiled.are_few(scattered)
