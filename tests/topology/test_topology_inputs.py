"""Topology: bad input, tensors, and images without points."""

import dask.array as da
import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

import ecc_core as ecc

ZEROS = np.zeros((4, 5))
VOLUME = np.zeros((3, 4, 5))
LABELS = np.ones(ZEROS.shape, int)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ecc.betti_curves(ZEROS, "exact", axis=0), "batch"),
        (lambda: ecc.betti_curves(da.zeros(3), [1], boundary="periodic"), "dask array"),
        (lambda: ecc.betti_curves(ZEROS, boundary="half-open"), "window are no complex"),
        (lambda: ecc.betti_numbers(ZEROS, boundary="half-open"), "window are no complex"),
        (lambda: ecc.betti_curves(np.nan * ZEROS, [1]), "nan="),
        (lambda: ecc.betti_curves(np.nan * ZEROS, [1], boundary="periodic"), "nan="),
        (lambda: ecc.component_curves(np.nan * ZEROS, [1]), "nan="),
        (lambda: ecc.component_curves(ZEROS, boundary="half-open"), "a window has no ends"),
        (lambda: ecc.component_curves(ZEROS, "exact"), "an int or an array for component curves"),
        (lambda: ecc.persistence_pairs(VOLUME, 3), "`dimension`.*0, 1, 2 or None"),
        (lambda: ecc.persistence_pairs(ZEROS, 3, boundary="periodic"), "0, 1, 2 or None"),
        (lambda: ecc.persistence_pairs(ZEROS, -1), "`dimension`.*0, 1 or None"),
        (lambda: ecc.persistence_pairs(ZEROS, True), "`dimension`"),
        (lambda: ecc.persistence_pairs(ZEROS, np.array([0, 1])), "`dimension`"),
        (lambda: ecc.persistence_pairs(np.nan * VOLUME, 1), "nan="),
        (lambda: ecc.persistence_pairs(np.nan * ZEROS, boundary="periodic"), "nan="),
        (lambda: ecc.persistence_pairs(VOLUME, axis=(1, 2)), r"`axis`.*\(3,\)"),
        (lambda: ecc.persistence_pairs(ZEROS, boundary="half-open"), "`boundary`"),
        (lambda: ecc.persistence_pairs(ZEROS, 1).betti_curves(3), "all 2 dimensions"),
        (lambda: ecc.persistent_regions(ZEROS, 1, boundary="half-open"), "`boundary`"),
        (lambda: ecc.persistent_regions(ZEROS, 1, threshold=np.nan), "must not be NaN"),
        (lambda: ecc.persistent_regions(ZEROS, 1, rel_height=50), "`rel_height` must be from 0 to"),
        (lambda: ecc.persistent_regions(ZEROS, 1, rel_height=np.nan), "from 0 to 1, got nan"),
        (lambda: ecc.region_betti_curves(ZEROS, LABELS, boundary="half-open"), "`boundary`"),
        (lambda: ecc.region_betti_curves(np.nan * ZEROS, LABELS, 8, range=(0, 1)), "NaN"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("least", "error", "message"),
    [
        *[
            pytest.param(x, ValueError, "not be negative or NaN, got", id=str(x))
            for x in (-1, np.nan)
        ],
        pytest.param(10**400, ValueError, "be within the range of floats", id="10^400"),
        *[
            pytest.param(x, TypeError, "be a real number, got", id=repr(x))
            for x in ("1", True, None, [1], 1j)
        ],
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda least: ecc.betti_curves(ZEROS, min_persistence=least),
        lambda least: ecc.region_betti_curves(ZEROS, LABELS, min_persistence=least),
        lambda least: ecc.persistence_pairs(ZEROS, min_persistence=least),
        lambda least: ecc.persistence_pairs(ZEROS).betti_curves(3, least),
        lambda least: ecc.persistent_regions(ZEROS, least),
    ],
)
def test_a_persistence_is_a_number_that_is_not_negative(call, least, error, message):
    with pytest.raises(error, match=f"`min_persistence` must {message}"):
        call(least)


@pytest.mark.parametrize(
    "function", [ecc.betti_curves, ecc.component_curves, ecc.persistence_pairs]
)
def test_tensors_stay_tensors(function):
    image = np.random.default_rng(11).random((5, 6, 7))
    found = function(torch.from_numpy(image))
    assert all(isinstance(part, torch.Tensor) for part in found)
    assert found.to_numpy() == function(image)


def test_properties_of_tensors_are_tensors():
    tensor = torch.from_numpy(np.random.default_rng(11).random((5, 6, 7)))
    assert isinstance(ecc.betti_curves(tensor).euler, torch.Tensor)
    assert isinstance(ecc.persistence_pairs(tensor).dimensions, torch.Tensor)
    assert ecc.component_curves(tensor).porosity.dtype == torch.float64


@pytest.mark.parametrize("boundary", ["closed", "periodic"])
def test_images_without_points(boundary):
    empty = np.zeros((0, 4))
    image = np.zeros((3, 4))
    given = {"boundary": boundary}
    dimensions = 2 + (boundary == "periodic")
    hidden = {"mask": np.zeros((3, 4), bool), **given}
    assert ecc.betti_curves(empty, [1, 2], **given).values.tolist() == [[0, 0]] * dimensions
    assert ecc.betti_curves(image, [], **given).values.shape == (dimensions, 0)
    assert ecc.persistence_pairs(empty, **given).counts == (0,) * dimensions
    assert ecc.persistence_pairs(image, **hidden).counts == (0,) * dimensions
    assert ecc.persistent_regions(empty, 0, **given).labels.shape == (0, 4)
    regions = ecc.persistent_regions(image, 0, **hidden)
    assert not regions.labels.any()
    assert regions.birth_points.shape == (0, 2)
    labels = np.zeros((3, 4), int)
    found = ecc.region_betti_curves(image, labels, [0.0, 1.0], **given)
    assert found.values.shape == (0, dimensions, 2)
    found = ecc.region_betti_curves(image, labels + 1, [], **given)
    assert found.values.shape == (1, dimensions, 0)


def test_components_of_images_without_points():
    nothing = ecc.component_curves(np.zeros((0, 4)), [1.0])
    assert_array_equal(nothing.values, np.zeros((4, 1)))
    assert_array_equal(nothing.porosity, [0])
    assert ecc.component_curves(ZEROS, []).spanning.shape == (2, 0)
    hidden = ecc.component_curves(ZEROS, [0.0], mask=np.zeros(ZEROS.shape, bool))
    assert not hidden.values.any()
    assert not hidden.porosity.any()
