"""Betti curves of regions: those of each region alone, however it touches or encloses others."""

import numpy as np
import pytest
from filtrations import with_sides
from numpy.testing import assert_array_equal
from topology_helpers import diagram

import ecc_core as ecc
from ecc_core._backends.cpu.betti import regions
from ecc_core.features import curve_descriptors, descriptor_table

SHAPES = [(41,), (30, 31), (1, 9), (12, 13, 14), (6, 1, 5)]


@pytest.fixture(params=[regions.MOST_SMALL_POINTS, 30])
def small_sheets(request, monkeypatch):
    """Regions on sheets of a few, and as images of their own."""
    sizes = {"MOST_SMALL_POINTS": request.param, "SHEET": (16, 16), "SHEET_2D": (16, 40)}
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


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("boundary", ["closed", "periodic", "mixed"])
@pytest.mark.parametrize(("shape", "side"), with_sides(SHAPES))
@pytest.mark.usefixtures("small_sheets")
def test_equals_each_region_alone(shape, side, boundary, dtype):
    rng = np.random.default_rng(1)
    labels = labelled(rng, shape)
    image = rng.integers(0, 20, shape).astype(dtype)
    options = {**side, "boundary": boundary}
    if boundary == "mixed":
        options["boundary"] = ("periodic", "closed", "periodic")[-len(shape) :]
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
    _, *lines = found.plot().get_lines()
    assert [line.get_label() for line in lines] == ["$b_0$", "$b_1$"]
    with pytest.raises(KeyError, match="no label 5"):
        found.select(5)


@pytest.mark.parametrize(("shape", "side"), with_sides(SHAPES))
@pytest.mark.usefixtures("small_sheets")
def test_classes_that_last(shape, side):
    """Classes are those that GUDHI finds in each region alone, on sheets and as separate images."""
    rng = np.random.default_rng(4)
    levels = np.array([0, 3, 5, 12, 19])
    ndim = len(shape)
    labels = labelled(rng, shape)
    image = rng.integers(0, 20, shape).astype(rng.choice([np.int8, np.float32]))
    found = ecc.region_betti_curves(image, labels, levels, min_persistence=4, **side)
    sign = -1 if side["superlevel"] else 1
    expected = np.zeros(found.values.shape, int)
    for row, label in enumerate(found.labels):
        for dimension in range(ndim):
            pairs, essential = diagram(image, labels == label, *side.values(), dimension)
            born, died = pairs[np.abs(pairs[:, 1] - pairs[:, 0]) >= 4].T
            for column, t in enumerate(levels):
                alive = (sign * born <= sign * t) & (sign * t < sign * died)
                last = (sign * essential <= sign * t).sum()
                expected[row, dimension, column] = alive.sum() + last
    assert_array_equal(found.values, expected)
