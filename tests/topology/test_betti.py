"""Betti curves: counted components, other libraries, the Euler characteristic, any cut."""

import itertools

import numpy as np
import pytest
import torch
from filtrations import connectivities
from numpy.testing import assert_array_equal
from oracles.components import counted

import ecc_core as ecc
from ecc_core._backends.cpu.betti import launch

SHAPES = [(41,), (1,), (13, 17), (1, 9), (6, 1), (3, 70), (7, 8, 9), (1, 6, 5), (5, 1, 1)]
CUTS = [(1, 2, 1), (3, 4, 5), (2, 20, 3)]


def check(curves, image, shown=None):
    """Compare with sets labelled one by one, and with the Euler characteristic."""
    ndim = image.ndim
    assert curves.values.shape == (ndim, len(curves.thresholds))
    assert curves.values.dtype == np.int64
    for numbers, t in zip(curves.values.T, curves.thresholds, strict=True):
        foreground = image >= t if curves.superlevel else image <= t
        foreground &= True if shown is None else shown
        first, last = counted(foreground, curves.connectivity)
        assert numbers[0] == first
        assert ndim == 1 or numbers[-1] == last
    euler = ecc.euler_curve(
        image,
        curves.thresholds,
        connectivity=curves.connectivity,
        superlevel=curves.superlevel,
        mask=shown,
        nan="omit",
    )
    assert_array_equal(curves.euler, euler.values)


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_labelled_sets(shape, superlevel):
    rng = np.random.default_rng(3)
    for levels, connectivity in itertools.product((1, 2, 5, 256), connectivities(len(shape))):
        image = rng.integers(0, levels, shape, np.uint8)
        at = np.unique(np.linspace(0, levels - 1, 5).astype(int))
        curves = ecc.betti_curves(image, at, connectivity=connectivity, superlevel=superlevel)
        check(curves, image)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("shape", [(23,), (9, 10), (4, 6, 5)])
def test_any_cut_gives_the_same(shape, cut, monkeypatch):
    rng = np.random.default_rng(4)
    images = [rng.integers(0, levels, shape, np.uint8) for levels in (3, 256)]
    images.append(rng.random(shape).astype(np.float32))
    images[-1][images[-1] > 0.99] = np.inf
    kinds = list(itertools.product(images, connectivities(len(shape)), (False, True)))

    def compute():
        for image, connectivity, superlevel in kinds:
            options = {"connectivity": connectivity, "superlevel": superlevel, "workers": 2}
            yield ecc.betti_curves(image, range=(0, 255), **options)
            for dimension in {0, len(shape) - 1}:
                yield ecc.persistence_pairs(image, dimension, **options)

    whole = list(compute())
    monkeypatch.setattr(launch, "BLOCK", cut)
    monkeypatch.setattr(launch, "BLOCK_2D", (1, *cut[1:]))
    assert list(compute()) == whole


@pytest.mark.parametrize("dtype", ["?", "i1", ">u2", "i4", "u8", "i8", "f2", "f4", ">f8"])
def test_dtypes(dtype):
    values = np.random.default_rng(5).integers(0, 5, (6, 7, 20))
    image = (values - 2 if np.dtype(dtype).kind in "if" else values).astype(dtype)
    check(ecc.betti_curves(image, [-2, 0.5, 1, 3]), image)
    exact = ecc.betti_curves(image, "exact", connectivity=1)
    assert exact.thresholds.dtype == image.dtype.newbyteorder("=")
    check(exact, image)


def test_large_integers_are_exact():
    image = np.array([[2**53 + 1, 2**53 + 3, 2**53]])
    assert_array_equal(ecc.betti_curves(image, [2**53, 2**53 + 1]).values[0], [1, 2])


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.uint64])
def test_masks_and_nan(dtype, superlevel, monkeypatch):
    monkeypatch.setattr(launch, "BLOCK", (4, 4, 4))
    rng = np.random.default_rng(6)
    image = rng.integers(0, 9, (8, 9, 10)).astype(dtype)
    shown = rng.random(image.shape) < 0.8
    masked = np.ma.array(image, mask=~shown)
    for connectivity in (1, 3):
        options = {"connectivity": connectivity, "superlevel": superlevel}
        curves = ecc.betti_curves(image, np.arange(9), mask=shown, **options)
        check(curves, image, shown)
        assert ecc.betti_curves(masked, np.arange(9), **options) == curves
        exact = ecc.betti_curves(image, "exact", mask=shown, **options)
        check(exact, image, shown)
        at = np.arange(9)[curves.values.any(axis=0)]
        assert set(exact.thresholds) <= set(at)
        if dtype == np.float32:
            holed = np.where(shown, image, np.nan).astype(dtype)
            assert ecc.betti_curves(holed, np.arange(9), nan="omit", **options) == curves


@pytest.mark.parametrize("count", [256, 257, 70_000])
def test_many_thresholds(count):
    image = np.random.default_rng(7).random((12, 13, 14)).astype(np.float32)
    curves = ecc.betti_curves(image, count, range=(0.2, 0.9))
    check(ecc.betti_curves(image, curves.thresholds[:: count // 7]), image)
    few = ecc.betti_curves(image, curves.thresholds[:: count // 7])
    assert_array_equal(curves.values[:, :: count // 7], few.values)


def test_layouts_and_batches():
    rng = np.random.default_rng(10)
    image = rng.integers(0, 256, (70, 9, 8), np.uint8)
    curves = ecc.betti_curves(image, 16, range=(0, 255))
    for laid in (np.asfortranarray(image), image[::-1].transpose(2, 0, 1), np.flip(image)):
        kept = laid.copy()
        assert_array_equal(ecc.betti_curves(laid, 16, range=(0, 255)).values, curves.values)
        assert_array_equal(laid, kept)
    batch = ecc.betti_curves(image, 16, axis=(0, 2), workers=2)
    assert batch.values.shape == (9, 2, 16)
    for i in range(9):
        assert_array_equal(batch.values[i], ecc.betti_curves(image[:, i], batch.thresholds).values)
    shown = rng.random((70, 8)) < 0.5
    batch = ecc.betti_curves(image, 16, range=(0, 255), axis=(0, 2), mask=shown)
    alone = ecc.betti_curves(image[:, 3], 16, range=(0, 255), mask=shown)
    assert_array_equal(batch.values[3], alone.values)


def test_torch_in_torch_out():
    image = torch.from_numpy(np.random.default_rng(11).random((5, 6, 7)))
    curves = ecc.betti_curves(image, 4)
    assert isinstance(curves.values, torch.Tensor)
    assert isinstance(curves.euler, torch.Tensor)
    assert curves.to_numpy() == ecc.betti_curves(image.numpy(), 4)


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


def test_empty_and_infinite():
    assert_array_equal(ecc.betti_curves(np.zeros((0, 4)), [1.0]).values, [[0], [0]])
    assert ecc.betti_curves(np.zeros((3, 4)), []).values.shape == (2, 0)
    infinite = np.array([-np.inf, 3, np.inf, 2, -np.inf])
    assert_array_equal(ecc.betti_curves(infinite, [-np.inf, 2, 3, np.inf]).values, [[2, 2, 2, 1]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ecc.betti_curves(np.full((2, 2), np.nan)), ValueError, "nan="),
        (lambda: ecc.betti_curves(np.zeros((2,) * 4)), ValueError, r"\(2, 2, 2, 2\)"),
        (lambda: ecc.betti_curves(np.zeros((2, 2), complex)), TypeError, "complex128"),
        (lambda: ecc.betti_curves(np.zeros((2, 2)), connectivity=3), ValueError, "got 3"),
        (lambda: ecc.betti_curves(np.zeros((2, 2)), [2, 1]), ValueError, "increasing"),
        (lambda: ecc.betti_curves(np.zeros((2, 2)), "all"), ValueError, "'all'"),
        (lambda: ecc.betti_curves(np.zeros((2, 2)), "exact", axis=0), ValueError, "batch"),
        (lambda: ecc.betti_curves(np.zeros((2, 2)), workers=0), ValueError, "`workers`"),
        (lambda: ecc.betti_curves(np.zeros((2, 2)), mask=[True]), (TypeError, ValueError), "mask"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_results_say_what_they_are():
    curves = ecc.betti_curves(np.eye(3), [0, 1], superlevel=True, connectivity=1)
    assert repr(curves) == (
        "BettiCurves(thresholds=[0, 1], values=<int64 (2, 2)>, connectivity=1, superlevel=True)"
    )
    _, values = curves
    assert_array_equal(values, [[1, 3], [0, 0]])
    table = curves.to_pandas()
    assert list(table.columns) == ["dimension", "threshold", "betti_number"]
    assert table.betti_number.tolist() == [1, 3, 0, 0]
    ax = curves.plot()
    assert [line.get_label() for line in ax.get_lines()[1:]] == ["$b_0$", "$b_1$"]
    assert "<img" in curves._repr_html_()
