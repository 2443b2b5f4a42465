"""Betti numbers and curves, also of periodic images: labelled sets, known shapes, GUDHI.

Every dtype, mask and number of thresholds: `tests/curves/test_threshold_counts.py`.
"""

import itertools
from functools import partial

import numpy as np
import pytest
from filtrations import connectivities, size_of
from numpy.testing import assert_array_equal
from oracles.components import betti_numbers
from topology_helpers import alive, assert_diagrams, boundary_of, intervals, sorted_pairs

import ecc_core as ecc
from ecc_core._backends.cpu.betti import torus

SHAPES = [(41,), (1,), (13, 17), (1, 9), (6, 1), (3, 70), (7, 8, 9), (1, 6, 5), (5, 1, 1)]


@pytest.mark.sweep
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize(
    "case",
    [
        pytest.param((shape, connectivity, levels), id=f"{size_of(shape)}-{connectivity}-{levels}")
        for shape in SHAPES
        for connectivity in connectivities(len(shape))
        for levels in (1, 2, 5, 256)
    ],
)
def test_equals_labelled_sets(superlevel, case):
    """One by one, and with the Euler characteristic."""
    shape, connectivity, levels = case
    rng = np.random.default_rng(3)
    image = rng.integers(0, levels, shape, np.uint8)
    at = np.unique(np.linspace(0, levels - 1, 5).astype(int))
    options = {"connectivity": connectivity, "superlevel": superlevel}
    curves = ecc.betti_curves(image, at, **options)
    sets = [image >= t if superlevel else image <= t for t in at]
    assert curves.values.dtype == np.int64
    assert_array_equal(curves.values.T, [betti_numbers(one, connectivity) for one in sets])
    assert_array_equal(curves.euler, ecc.euler_curve(image, at, **options).values)


def test_infinite_values_and_large_integers():
    infinite = np.array([-np.inf, 3, np.inf, 2, -np.inf])
    assert_array_equal(ecc.betti_curves(infinite, [-np.inf, 2, 3, np.inf]).values, [[2, 2, 2, 1]])
    image = np.array([[2**53 + 1, 2**53 + 3, 2**53]])
    assert_array_equal(ecc.betti_curves(image, [2**53, 2**53 + 1]).values[0], [1, 2])


def test_layouts_and_batches():
    rng = np.random.default_rng(10)
    image = rng.integers(0, 256, (70, 9, 8), np.uint8)
    curves = ecc.betti_curves(image, 16, range=(0, 255))
    found = []
    unchanged = []
    for laid in (np.asfortranarray(image), image[::-1].transpose(2, 0, 1), np.flip(image)):
        kept = laid.copy()
        found.append(ecc.betti_curves(laid, 16, range=(0, 255)).values)
        unchanged.append(np.array_equal(laid, kept))
    assert unchanged == [True] * 3
    assert_array_equal(found, [curves.values] * 3)
    batch = ecc.betti_curves(image, 16, axis=(0, 2), workers=2)
    assert batch.values.shape == (9, 2, 16)
    alone = [ecc.betti_curves(image[:, i], batch.thresholds).values for i in range(9)]
    assert_array_equal(batch.values, alone)
    shown = rng.random((70, 8)) < 0.5
    batch = ecc.betti_curves(image, 16, range=(0, 255), axis=(0, 2), mask=shown)
    alone = ecc.betti_curves(image[:, 3], 16, range=(0, 255), mask=shown)
    assert_array_equal(batch.values[3], alone.values)


def test_numbers_of_known_shapes():
    z, y, x = np.indices((21, 21, 21)) - 10
    radius = np.hypot(np.hypot(z, y), x)
    torus = (np.hypot(y, x) - 6) ** 2 + z**2 <= 9
    shell = (radius <= 9) & (radius >= 6)
    assert ecc.betti_numbers(torus) == (1, 1, 0)
    assert ecc.betti_numbers(shell) == (1, 0, 1)
    assert ecc.betti_numbers(shell.astype(np.float32)) == (1, 0, 1)
    assert ecc.betti_numbers(np.eye(3), connectivity=1) == (3, 0)
    assert ecc.betti_numbers(np.eye(3)) == (1, 0)
    assert ecc.betti_numbers([0, 1, 0, 1, 1]) == (2,)
    assert ecc.betti_numbers(np.zeros((3, 0))) == (0, 0)


def test_tables_and_plots():
    curves = ecc.betti_curves(np.eye(3), [0, 1], superlevel=True, connectivity=1)
    assert_array_equal(curves.values, [[1, 3], [0, 0]])
    table = curves.to_pandas()
    assert list(table.columns) == ["dimension", "threshold", "betti_number"]
    assert table.betti_number.tolist() == [1, 3, 0, 0]
    _, *lines = curves.plot().get_lines()
    assert [line.get_label() for line in lines] == ["$b_0$", "$b_1$"]


DTYPES = [bool, np.uint8, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64]


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(40,), (9, 12), (5, 6, 7)])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("periodic", [False, True])
def test_equal_to_counted_intervals(dtype, shape, superlevel, periodic):
    rng = np.random.default_rng(len(shape))
    image = (rng.random(shape) * (2 if dtype is bool else 90)).astype(dtype)
    every = np.unique(image)
    sign = -1.0 if superlevel else 1.0
    options = {"superlevel": superlevel, "boundary": "periodic" if periodic else "closed"}
    options["axis"] = tuple(range(len(shape)))
    for connectivity in connectivities(len(shape)):
        options["connectivity"] = connectivity
        parts = intervals(sign * image.astype(np.float64), connectivity, periodic)
        for least in (0, 0.5, 1, 17.5, 60):
            for thresholds in (256, np.linspace(-3, 95, 50)):
                found = ecc.betti_curves(image, thresholds, min_persistence=least, **options)
                at = sign * found.thresholds.astype(np.float64)
                assert found.values.dtype == np.int64
                assert_array_equal(found.values, alive(parts, at, least))
            assert_array_equal(found.thresholds, thresholds)
            exact = ecc.betti_curves(image, "exact", min_persistence=least, **options)
            values = alive(parts, sign * every.astype(np.float64), least)
            jumps = np.diff(values[:, :: int(sign)], prepend=0, axis=1)[:, :: int(sign)]
            assert_array_equal(exact.thresholds, every[jumps.any(axis=0)])
            assert_array_equal(exact.values, values[:, jumps.any(axis=0)])


def that_enter_before(part, last):
    """The intervals that are born before `last`; those that end then never do."""
    entered = part[part[:, 0] < last]
    entered[entered[:, 1] == last, 1] = np.inf
    return entered


@pytest.mark.parametrize("shape", [(12, 10), (5, 6, 4)])
@pytest.mark.parametrize("periodic", [False, True])
def test_batches_masks_nan_and_default_thresholds(shape, periodic):
    rng = np.random.default_rng(0)
    images = rng.random((3, *shape)).astype(np.float32)
    images[1].flat[7] = np.nan
    mask = rng.random(shape) < 0.8
    options = {"nan": "omit", "mask": mask, "boundary": "periodic" if periodic else "closed"}
    axis = tuple(range(1, images.ndim))
    curves = [
        ecc.betti_curves(images, axis=axis, min_persistence=least, **options) for least in (0, 0.3)
    ]
    at = curves[0].thresholds
    shown = images[np.isfinite(images) & mask]
    assert_array_equal(at[[0, -1]], [shown.min(), shown.max()])
    # Points that never enter are as good as points that enter last.
    padded = [np.where(mask & ~np.isnan(image), image, 10) for image in images]
    parts = [intervals(image, len(shape), periodic) for image in padded]
    assert_array_equal(curves[0].values, [alive(of_image, at) for of_image in parts])
    assert_array_equal(curves[1].values, [alive(of_image, at, 0.3) for of_image in parts])
    pairs = [ecc.persistence_pairs(image, **options).to_gudhi() for image in images]
    found = [sorted_pairs(*own.T) for of_image in pairs for own in of_image]
    entered = [that_enter_before(part, 10) for of_image in parts for part in of_image]
    np.testing.assert_equal(found, [sorted_pairs(*part.T) for part in entered])


@pytest.mark.parametrize("least", [0, 0.5])
def test_exact_thresholds_of_many_equal_float16(least):
    """NumPy's own sort of float16 may leave so many of them out of order."""
    image = (np.random.default_rng(0).integers(0, 6, (90, 90)) / 3 - 1).astype(np.float16)
    found = ecc.betti_curves(image, "exact", min_persistence=least)
    assert_array_equal(found.thresholds, np.unique(image.astype(float)))
    parts = intervals(image.astype(np.float64), 2)
    assert_array_equal(found.values, alive(parts, found.thresholds, least))
    pairs = ecc.persistence_pairs(image, min_persistence=least)
    assert pairs.betti_curves("exact") == found


TORI = [(1,), (2,), (7,), (1, 4), (2, 5), (6, 7), (1, 1, 4), (1, 3, 4), (2, 2, 2), (3, 4, 5)]


periodic_intervals = partial(intervals, periodic=True)


@pytest.mark.sweep
@pytest.mark.parametrize("shape", TORI)
@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_pairs_and_curves_of_periodic_images_are_those_of_gudhi(shape, levels):
    rng = np.random.default_rng(levels)
    for connectivity, _ in itertools.product(connectivities(len(shape)), range(10)):
        image = rng.integers(0, levels, shape).astype(np.float32)
        options = {"connectivity": connectivity, "boundary": "periodic", "axis": range(image.ndim)}
        pairs = ecc.persistence_pairs(image, **options)
        expected = periodic_intervals(image, connectivity)
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


SOME_AXES = [(True, False), (False, True)]
SOME_OF_THREE = [w for w in itertools.product((False, True), repeat=3) if len({*w}) == 2]
CYLINDERS = [
    *itertools.product([(1, 4), (4, 1), (1, 1), (2, 5), (5, 2), (2, 2), (6, 7)], SOME_AXES),
    *itertools.product([(1, 1, 4), (1, 3, 4), (2, 2, 2), (3, 1, 2), (3, 4, 5)], SOME_OF_THREE),
]


@pytest.mark.sweep
@pytest.mark.parametrize(("shape", "wraps"), CYLINDERS)
@pytest.mark.parametrize("levels", [2, 5])
def test_images_that_are_periodic_along_some_axes_are_those_of_gudhi(shape, wraps, levels):
    """`periodic_dimensions=` of PeriodicCubicalComplex, with and without points that never enter.

    Such points enter after all others there.
    """
    rng = np.random.default_rng(levels)
    boundary = boundary_of(wraps, len(shape))
    options = {"boundary": boundary, "axis": range(len(shape))}
    for connectivity, masked in itertools.product(connectivities(len(shape)), (False, True)):
        options["connectivity"] = connectivity
        for _ in range(2):
            image = rng.integers(0, levels, shape).astype(np.float32)
            mask = rng.random(shape) < 0.8 if masked else np.ones(shape, bool)
            found = ecc.persistence_pairs(image, mask=mask, **options)
            parts = intervals(np.where(mask, image, levels), connectivity, wraps)
            entered = [that_enter_before(part, levels) for part in parts]
            assert_diagrams(found.to_gudhi(), entered)
            assert found.boundary == boundary
            at = np.unique(image)
            curves = ecc.betti_curves(image, at, mask=mask, **options)
            assert_array_equal(curves.values, alive(parts, at))
            assert curves.values.shape == (len(shape), at.size)
            assert found.betti_curves(at) == curves
            assert curves.boundary == boundary
            lasting = ecc.betti_curves(image, at, mask=mask, min_persistence=2, **options)
            assert_array_equal(lasting.values, alive(entered, at, 2))
            exact = ecc.betti_curves(image, "exact", mask=mask, **options)
            rows = np.searchsorted(at, exact.thresholds)
            assert_array_equal(exact.values, curves.values[:, rows])


@pytest.mark.parametrize("word", ["closed", "periodic"])
def test_one_word_for_each_axis_is_the_word_of_all_axes_if_they_agree(word):
    image = np.random.default_rng(8).random((5, 6))
    known = ecc.betti_curves(image, boundary=word)
    assert ecc.betti_curves(image, boundary=(word, word)) == known
    assert ecc.betti_curves(image, boundary=[word, word]) == known


def test_a_band_around_a_cylinder():
    """A band is a loop where its axis is periodic; opposite sides of a closed axis do not touch."""
    band = np.zeros((5, 6), bool)
    band[2] = band[0, 1] = band[-1, 1] = True
    assert ecc.betti_numbers(band) == (3, 0)
    assert ecc.betti_numbers(band, boundary=("closed", "periodic")) == (3, 1)
    assert ecc.betti_numbers(band, boundary="periodic") == (2, 1, 0)


def test_axes_have_borders_in_the_order_of_axis():
    image = np.random.default_rng(9).random((3, 5, 6))
    found = ecc.betti_curves(image, 9, axis=(2, 0), boundary=("periodic", "closed"))
    alone = [
        ecc.betti_curves(image[:, i], found.thresholds, boundary=("closed", "periodic"))
        for i in range(5)
    ]
    assert_array_equal(found.values, [curves.values for curves in alone])


@pytest.mark.parametrize(
    ("boundary", "message"),
    [
        (("closed", "half-open"), r"no complex, got \('closed', 'half-open'\)"),
        (("closed", "open"), r'"closed" or "periodic" .*each spatial axis\), got .*open'),
        (("closed",) * 3, r"one for each of the 2 spatial axes, got \('closed', 'closed'"),
        ((), r"one word, or one for each spatial axis.*got \(\)"),
        (3, "one word, or one for each spatial axis.*got 3"),
    ],
)
def test_messages_name_what_was_given(boundary, message):
    with pytest.raises(ValueError, match=message):
        ecc.betti_curves(np.eye(3), 4, boundary=boundary)


def test_numbers_of_a_binary_image():
    cross = np.zeros((5, 6, 7), bool)
    cross[2], cross[:, 3, 3] = True, True  # A line crosses a plane.
    assert ecc.betti_numbers(cross) == (1, 0, 0)
    assert ecc.betti_numbers(cross, boundary="periodic") == (1, 3, 1, 0)
    assert ecc.betti_numbers(np.ones((3, 4, 5)), boundary="periodic") == (1, 3, 3, 1)
    assert ecc.betti_numbers(np.zeros((3, 4, 5)), boundary="periodic") == (0, 0, 0, 0)


@pytest.mark.parametrize("connectivity", [1, 3])
def test_a_larger_periodic_volume(connectivity):
    image = np.random.default_rng(5).normal(size=(40, 30, 25)).astype(np.float32)
    at = np.linspace(-2, 2, 30)
    options = {"connectivity": connectivity, "boundary": "periodic"}
    curves = ecc.betti_curves(image, at, **options)
    assert_array_equal(curves.values, alive(periodic_intervals(image, connectivity), at))


def test_periodic_images_whose_paths_need_64_bits(monkeypatch):
    image = np.random.default_rng(7).random((6, 7, 8))
    narrow = ecc.persistence_pairs(image, boundary="periodic")
    monkeypatch.setattr(torus, "MOST_NARROW", 0)
    assert ecc.persistence_pairs(image, boundary="periodic") == narrow
    assert_diagrams(narrow.to_gudhi(), periodic_intervals(image, 3))


def test_the_class_of_the_torus():
    image = np.random.default_rng(6).random((8, 9))
    pairs = ecc.persistence_pairs(image, boundary="periodic")
    assert pairs.select(2).essential.tolist() == [True]
    assert ecc.persistence_pairs(image, 2, boundary="periodic").births == image.max()
    assert pairs.euler_curve([0.5]).boundary == "periodic"
    curves = ecc.betti_curves(image, boundary="periodic")
    assert list(dict.fromkeys(curves.to_pandas()["dimension"])) == [0, 1, 2]
    assert "$b_2$" in [line.get_label() for line in curves.plot().lines]
    legend = pairs.plot().get_legend()
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["components", "holes", "torus"]
