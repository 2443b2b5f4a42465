"""The testing tools themselves: the assertions fail when they must, the strategies deliver."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample
from processes import run_python

from ecc_core.testing import (
    assert_arrays_equal,
    assert_curves_equal,
    assert_regions_equal,
    known_shapes,
    strategies,
)


class EulerCurve(NamedTuple):
    thresholds: object
    values: object


class RegionCurves(NamedTuple):
    labels: object
    thresholds: object
    values: object


class OnDevice:
    """An array as CuPy has them."""

    def __init__(self, array, device="gpu 0"):
        self.array, self.device = np.asarray(array), device
        self.shape = self.array.shape

    def get(self):
        return self.array


T = np.array([0.5, 1.5])
V = np.array([3, -1])


def test_equal_curves_pass():
    assert_curves_equal(EulerCurve(T, V), [3, -1], thresholds=[0.5, 1.5])
    assert_regions_equal(RegionCurves(V, T, V[None]), [3, -1], V[None], thresholds=T)
    assert_curves_equal(EulerCurve(OnDevice(T), OnDevice(V)), V, like=OnDevice(0))


@pytest.mark.parametrize(
    ("curve", "options", "message"),
    [
        (EulerCurve(T, V + 1), {}, "Mismatched"),
        (EulerCurve(T, V.astype(np.int32)), {}, "dtype is int32, must be int64"),
        (EulerCurve(T, V.astype(float)), {}, "dtype is float64, must be int64"),
        (EulerCurve(T, V[None]), {}, r"shape is \(1, 2\), must be \(2,\)"),
        (EulerCurve(T, V.tolist()), {}, "array is a <class 'list'>"),
        (EulerCurve(T + 1, V), {"thresholds": T}, "Mismatched"),
        (EulerCurve(T.astype("f4"), V), {"thresholds": T}, "dtype is float32, must be float64"),
        (EulerCurve(T[:1], V), {}, r"thresholds have shape \(1,\), must have \(2,\)"),
        (EulerCurve(T.tolist(), V), {}, "array is a <class 'list'>"),
        ((T, V), {}, "fields"),
        (EulerCurve(T, V), {"like": OnDevice(0)}, "must be a .*OnDevice"),
        (EulerCurve(OnDevice(T), OnDevice(V)), {}, "must be a .*ndarray"),
        (EulerCurve(OnDevice(T), OnDevice(V)), {"like": OnDevice(0, "gpu 1")}, "device is gpu 0"),
        (EulerCurve(T, OnDevice(V)), {"like": OnDevice(0)}, "must be a .*OnDevice"),
    ],
)
def test_unequal_curves_fail(curve, options, message):
    with pytest.raises(AssertionError, match=message):
        assert_curves_equal(curve, [3, -1], **options)


@pytest.mark.parametrize(
    ("regions", "message"),
    [
        (RegionCurves(V + 1, T, V[None]), "Mismatched"),
        (RegionCurves(V.astype("u1"), T, V[None]), "dtype is uint8, must be int64"),
        (RegionCurves(V, T + 1, V[None]), "Mismatched"),
        (RegionCurves(V, T, V[None] + 1), "Mismatched"),
        (RegionCurves(V, T, V), "shape"),
        (EulerCurve(T, V[None]), "fields"),
    ],
)
def test_unequal_regions_fail(regions, message):
    with pytest.raises(AssertionError, match=message):
        assert_regions_equal(regions, V, V[None], thresholds=T)


def test_byte_order_is_no_difference_of_dtype():
    assert_arrays_equal(T.astype(">f8"), T)


def test_names_of_known_shapes_are_unique():
    shapes = known_shapes()
    assert len({s.name for s in shapes}) == len(shapes)
    assert {s.image.ndim for s in shapes} == {1, 2, 3}
    assert all(s.image.dtype == bool for s in shapes)


@given(st.data())
def test_thresholds_increase_and_masks_fit(data):
    image = data.draw(strategies.images(nan=True))
    thresholds = data.draw(strategies.thresholds(image))
    assert thresholds.ndim == 1
    assert not np.isnan(thresholds).any()
    assert (thresholds[:-1] <= thresholds[1:]).all()
    mask = data.draw(strategies.masks(image.shape))
    assert mask.dtype == bool
    assert mask.shape == image.shape
    labels = data.draw(strategies.labels(image.shape))
    assert labels.dtype.kind in "iu"
    assert labels.min() >= 0
    assert labels.shape == image.shape


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [*strategies.NATIVE_DTYPES, *strategies.SWAPPED_DTYPES])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_images_have_the_dtype_and_dimension(ndim, dtype):
    @given(strategies.images(ndim, dtypes=[dtype], infinities=False))
    def check(image):
        assert image.dtype == np.dtype(dtype)
        assert image.ndim == ndim
        assert np.isfinite(image).all()

    check()


@pytest.mark.parametrize(
    "interesting",
    [
        lambda image: np.isposinf(image).any(),
        lambda image: np.signbit(image[image == 0]).any(),
        lambda image: image.size > 200 and np.unique(image).size <= 2,
        lambda image: image.size > 200 and np.unique(image).size == image.size,
    ],
    ids=["infinity", "negative zero", "ties", "no ties"],
)
def test_interesting_images_are_drawn(interesting):
    find(strategies.images(dtypes=["float64"]), interesting)


def test_nan_only_on_demand():
    def has_nan(image):
        return np.isnan(image).any()

    find(strategies.images(dtypes=["float32"], nan=True), has_nan)
    with pytest.raises(NoSuchExample):
        find(strategies.images(dtypes=["float32"]), has_nan, settings=settings(max_examples=300))


def test_hypothesis_is_not_imported():
    code = "import sys, ecc_core.testing; sys.exit('hypothesis' in sys.modules)"
    assert run_python(code).returncode == 0
