"""Betti numbers and persistence of periodic images, beside those of GUDHI."""

import itertools
from functools import partial

import numpy as np
import pytest
from filtrations import connectivities
from numpy.testing import assert_array_equal
from topology_helpers import alive, assert_diagrams, intervals

import ecc_core as ecc
from ecc_core._backends.cpu.betti import torus

SHAPES = [(1,), (2,), (7,), (1, 4), (2, 5), (6, 7), (1, 1, 4), (1, 3, 4), (2, 2, 2), (3, 4, 5)]


diagrams = partial(intervals, periodic=True)


def every_axis(image):
    return {"boundary": "periodic", "axis": tuple(range(image.ndim))}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_pairs_and_curves_are_those_of_gudhi(shape, levels):
    rng = np.random.default_rng(levels)
    for connectivity, _ in itertools.product(connectivities(len(shape)), range(10)):
        image = rng.integers(0, levels, shape).astype(np.float32)
        options = {"connectivity": connectivity, **every_axis(image)}
        pairs = ecc.persistence_pairs(image, **options)
        expected = diagrams(image, connectivity)
        assert_diagrams(pairs.to_gudhi(), expected)
        assert pairs.boundary == "periodic"
        assert pairs.dimensions.max() == image.ndim
        at = np.unique(image)
        curves = ecc.betti_curves(image, at, **options)
        assert_array_equal(curves.values, alive(expected, at))
        assert pairs.betti_curves(at) == curves
        euler = ecc.euler_curve(image, at, **options)
        assert_array_equal(curves.euler, euler.values)
        assert curves.boundary == euler.boundary


def test_numbers_of_a_binary_image():
    cross = np.zeros((5, 6, 7), bool)
    cross[2], cross[:, 3, 3] = True, True  # a plane, and a line across it
    assert ecc.betti_numbers(cross) == (1, 0, 0)
    assert ecc.betti_numbers(cross, boundary="periodic") == (1, 3, 1, 0)
    assert ecc.betti_numbers(np.ones((3, 4, 5)), boundary="periodic") == (1, 3, 3, 1)
    assert ecc.betti_numbers(np.zeros((3, 4, 5)), boundary="periodic") == (0, 0, 0, 0)


def test_a_larger_volume():
    image = np.random.default_rng(5).normal(size=(40, 30, 25)).astype(np.float32)
    at = np.linspace(-2, 2, 30)
    for connectivity in (1, 3):
        options = {"connectivity": connectivity, "boundary": "periodic"}
        curves = ecc.betti_curves(image, at, **options)
        assert_array_equal(curves.values, alive(diagrams(image, connectivity), at))


def test_images_whose_paths_need_64_bits(monkeypatch):
    image = np.random.default_rng(7).random((6, 7, 8))
    narrow = ecc.persistence_pairs(image, boundary="periodic")
    monkeypatch.setattr(torus, "MOST_NARROW", 0)
    assert ecc.persistence_pairs(image, boundary="periodic") == narrow
    assert_diagrams(narrow.to_gudhi(), diagrams(image, 3))


def test_the_class_of_the_torus():
    image = np.random.default_rng(6).random((8, 9))
    pairs = ecc.persistence_pairs(image, boundary="periodic")
    assert pairs.select(2).essential.tolist() == [True]
    assert ecc.persistence_pairs(image, 2, boundary="periodic").births == image.max()
    assert pairs.euler_curve([0.5]).boundary == "periodic"
    curves = ecc.betti_curves(image, boundary="periodic")
    assert list(dict.fromkeys(curves.to_pandas()["dimension"])) == [0, 1, 2]
    assert "$b_2$" in [line.get_label() for line in curves.plot().lines]
    names = [text.get_text() for text in pairs.plot().get_legend().get_texts()]
    assert names == ["components", "holes", "torus"]
