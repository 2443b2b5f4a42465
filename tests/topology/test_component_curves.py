"""Sizes of components and percolation, beside sets that SciPy labels one by one.

Every dtype and number of thresholds: `tests/curves/test_threshold_counts.py`.
"""

import itertools

import numpy as np
import pytest
from filtrations import EVERY_DTYPE, connectivities, omitting
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from oracles.components import component_numbers
from scipy import ndimage

import ecc_core as ecc
from ecc_core._backends.cpu.betti import growth, launch
from ecc_core.testing import strategies


def reached(image, t, superlevel):
    """The set at a threshold, compared as Python compares numbers, which is exact."""
    values = image.astype(image.dtype.newbyteorder("=")).tolist()
    with np.errstate(invalid="ignore"):
        compared = np.array(values, object) >= t if superlevel else np.array(values, object) <= t
    return compared.astype(bool).reshape(image.shape)


def check(curves, image, shown=None):
    shown = np.ones(image.shape, bool) if shown is None else shown
    assert curves.values.shape == (image.ndim + 2, len(curves.thresholds))
    assert curves.values.dtype == np.int64
    for found, t in zip(curves.values.T, curves.thresholds.tolist(), strict=True):
        foreground = reached(image, t, curves.superlevel) & shown
        assert_array_equal(found, component_numbers(foreground, curves.connectivity))
    there = shown & ~np.isnan(image) if image.dtype.kind == "f" else shown
    assert curves.kept == (np.count_nonzero(there),)
    assert_array_equal(curves.porosity, curves.points / max(curves.kept[0], 1))


@given(st.data())
def test_equal_labelled_sets(data):
    ndim = data.draw(st.integers(1, 3))
    shapes = st.tuples(*[st.integers(1, 9)] * ndim)
    image = data.draw(strategies.images(ndim, dtypes=EVERY_DTYPE, shapes=shapes, nan=True))
    options = data.draw(omitting(image))
    curves = ecc.component_curves(image, data.draw(strategies.thresholds(image)), **options)
    check(curves, image, options["mask"])


@pytest.mark.parametrize("cut", [None, (1, 2, 1), (3, 4, 5)])
@pytest.mark.parametrize("shape", [(90,), (1, 70), (40, 66), (70, 1, 3), (12, 13, 70)])
def test_any_cut_and_layout(shape, cut, monkeypatch):
    if cut is not None:
        monkeypatch.setattr(launch, "BLOCK", cut)
        monkeypatch.setattr(launch, "BLOCK_2D", (1, *cut[1:]))
        monkeypatch.setattr(growth, "MOST_NARROW", 0)
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 256, shape, np.uint8)
    smooth = ndimage.gaussian_filter(rng.normal(size=shape), 1.5).astype(np.float32)
    for image, superlevel in itertools.product((noise, smooth), (False, True)):
        for connectivity in connectivities(len(shape)):
            options = {"connectivity": connectivity, "superlevel": superlevel, "workers": 2}
            curves = ecc.component_curves(image, 9, **options)
            check(curves, image)
            for laid in (np.asfortranarray(image), image[::-1][::-1]):
                assert ecc.component_curves(laid, 9, **options) == curves
            turned = ecc.component_curves(image.T, 9, **options)
            assert_array_equal(turned.spanning, curves.spanning[::-1])


def test_batches_and_masks():
    rng = np.random.default_rng(4)
    image = rng.random((7, 3, 6, 2))
    image[0, 1, 2, 0] = np.nan
    shown = rng.random((7, 6)) < 0.8
    shown[0, 2] = True
    options = {"range": (0, 1), "nan": "omit", "mask": shown}
    batch = ecc.component_curves(image, 5, axis=(0, 2), workers=2, **options)
    assert batch.points.shape == batch.largest.shape == batch.porosity.shape == (3, 2, 5)
    assert batch.spanning.shape == (3, 2, 2, 5)
    for i, (b, c) in enumerate(np.ndindex(3, 2)):
        alone = ecc.component_curves(image[:, b, :, c], 5, **options)
        check(alone, image[:, b, :, c], shown)
        assert_array_equal(batch.values[b, c], alone.values)
        assert_array_equal(batch.porosity[b, c], alone.porosity)
        assert batch.kept[i] == alone.kept[0]
    assert len(set(batch.kept)) == 2
    masked = ecc.component_curves(np.ma.array(image[:, 0, :, 0], mask=~shown), 5, range=(0, 1))
    assert_array_equal(masked.values, batch.values[0, 0])


def test_percolation_of_a_column():
    image = np.full((4, 5, 6), 9)
    image[1, :, 3], image[:, 2, 3] = 3, 1  # a shaft, then a tunnel that crosses it
    curves = ecc.component_curves(image, [0, 1, 3, 9], spacing=(2.0, 1.0, 0.5))
    assert_array_equal(curves.spanning, [[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]])
    assert_array_equal(curves.volume, [0, 4, 8, 120])
    assert_array_equal(ecc.component_curves(image, [1], spacing=3).volume, [4 * 27])


def test_tables_and_plots():
    image = np.array([[0, 9, 1], [2, 9, 0], [0, 9, 3]])
    curves = ecc.component_curves(image, [0, 1, 2], superlevel=True, connectivity=1)
    _, (points, largest, *spanning) = curves
    assert_array_equal(points, curves.points)
    table = curves.to_pandas()
    assert list(table.columns) == ["measure", "threshold", "count"]
    assert list(table.measure.unique()) == ["points", "largest", "spanning_0", "spanning_1"]
    assert table.attrs["kept"] == (9,)
    assert table["count"].tolist() == [*points, *largest, *np.ravel(spanning)]
    assert [ax.get_ylabel() for ax in curves.plot().axes] == [
        *("points", "largest\ncomponent"),
        *("spanning\naxis 0", "spanning\naxis 1"),
    ]
