"""Betti curves of regions: those of each region alone, however it touches or encloses others."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from topology_helpers import diagram

import ecc_core as ecc
from ecc_core._backends.cpu.betti import regions
from ecc_core.features import curve_descriptors, descriptor_table

SHAPES = [(41,), (30, 31), (1, 9), (12, 13, 14), (6, 1, 5)]


@pytest.fixture(params=[regions.SMALL, 30])
def small_sheets(request, monkeypatch):
    """Regions on sheets of a few, and as images of their own."""
    sizes = {"SMALL": request.param, "SHEET": (16, 16), "SHEET_2D": (16, 40)}
    for name, size in sizes.items():
        monkeypatch.setattr(regions, name, size)


def labelled(rng, shape):
    """Scattered labels that enclose each other, and a slab that others touch."""
    labels = rng.integers(0, 3, shape)
    labels[labels == 2] = 1_000_000
    labels[..., 2:5] = 7
    return labels


def check(found, image, labels, **options):
    assert found.labels.dtype == labels.dtype
    assert_array_equal(found.labels, np.setdiff1d(labels, [0]))
    assert found.values.dtype == np.int64
    for label in found.labels:
        alone = {"mask": labels == label, "axis": tuple(range(image.ndim)), **options}
        assert found.select(label) == ecc.betti_curves(image, found.thresholds, **alone)


@pytest.mark.usefixtures("small_sheets")
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_each_region_alone(shape):
    rng = np.random.default_rng(1)
    labels = labelled(rng, shape)
    for dtype in (np.uint8, np.float32):
        image = rng.integers(0, 20, shape).astype(dtype)
        for connectivity in {1, len(shape)}:
            mixed = ("periodic", "closed", "periodic")[-len(shape) :]
            boundaries = ("closed", "periodic", mixed)
            for superlevel, boundary in itertools.product((False, True), boundaries):
                options = {"superlevel": superlevel, "boundary": boundary}
                options["connectivity"] = connectivity
                found = ecc.region_betti_curves(image, labels, [0, 3, 5.5, 12], **options)
                check(found, image, labels, **options)
                euler = ecc.region_curves(image, labels, [0, 3, 5.5, 12], **options)
                assert_array_equal(found.euler, euler.values)


def test_many_regions_on_several_sheets(monkeypatch):
    monkeypatch.setattr(regions, "SHEET_2D", (16, 16))
    rng = np.random.default_rng(2)
    image = rng.integers(0, 9, (40, 50), np.uint8)
    labels = rng.permutation(40)[np.add.outer(np.arange(40) // 7, np.arange(50) // 9)]
    check(ecc.region_betti_curves(image, labels, 9, workers=2), image, labels)


def test_points_outside_of_regions_do_not_matter():
    rng = np.random.default_rng(3)
    image = rng.random((12, 13)).astype(np.float32)
    labels = (rng.random(image.shape) < 0.7).astype(np.uint8)
    known = ecc.region_betti_curves(image, labels, 8)
    holed = np.where(labels > 0, image, np.nan)
    assert ecc.region_betti_curves(holed, labels, 8) == known
    masked = np.ma.array(image, mask=labels == 0)
    assert ecc.region_betti_curves(masked, np.ones_like(labels), 8) == known
    assert ecc.region_betti_curves(image, labels > 0, 8).labels.dtype == np.bool_


def test_features_accept_betti_curves():
    labels = np.array([[3, 3, 3, 0, 8], [3, 0, 3, 0, 8], [3, 3, 3, 0, 8]])
    found = ecc.region_betti_curves(np.zeros(labels.shape), labels, [0.0, 1.0])
    table = descriptor_table(found)
    assert table.index.names == ["label", "dimension"]
    assert table.maximum.to_dict() == {(3, 0): 1, (3, 1): 1, (8, 0): 1, (8, 1): 0}
    assert_array_equal(curve_descriptors(found.select(3)).area, [1.0, 1.0])


def test_can_be_shown():
    found = ecc.region_betti_curves(np.eye(3), np.eye(3, dtype=int), [0, 1])
    table = found.to_pandas()
    assert list(table.columns) == ["label", "dimension", "threshold", "betti_number"]
    assert [line.get_label() for line in found.plot().get_lines()[1:]] == ["$b_0$", "$b_1$"]
    with pytest.raises(KeyError, match="no label 5"):
        found.select(5)


@pytest.mark.usefixtures("small_sheets")
@pytest.mark.parametrize("shape", SHAPES)
def test_classes_that_last(shape):
    """Of each region alone, by GUDHI, on sheets and as images of their own."""
    rng = np.random.default_rng(4)
    levels = np.array([0, 3, 5, 12, 19])
    ndim = len(shape)
    labels = labelled(rng, shape)
    image = rng.integers(0, 20, shape).astype(rng.choice([np.int8, np.float32]))
    for connectivity, superlevel in itertools.product({1, ndim}, (False, True)):
        options = {"connectivity": connectivity, "superlevel": superlevel}
        found = ecc.region_betti_curves(image, labels, levels, min_persistence=4, **options)
        for label, values in zip(found.labels, found.values, strict=True):
            for dimension in range(ndim):
                given = image, labels == label, connectivity, superlevel, dimension
                pairs, essential = diagram(*given)
                born, died = pairs[np.abs(pairs[:, 1] - pairs[:, 0]) >= 4].T
                sign = -1 if superlevel else 1
                for t, count in zip(levels, values[dimension], strict=True):
                    alive = (sign * born <= sign * t) & (sign * t < sign * died)
                    assert count == alive.sum() + (sign * essential <= sign * t).sum()
