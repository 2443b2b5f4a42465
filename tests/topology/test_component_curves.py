"""Sizes of components and percolation, beside sets that SciPy labels one by one."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from filtrations import any_side, connectivities
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import ndimage

import ecc_core as ecc
from ecc_core._backends.cpu.betti import growth, launch
from ecc_core.testing import strategies

EVERY_DTYPE = (*strategies.NATIVE_DTYPES, *strategies.SWAPPED_DTYPES)
SHAPES = {ndim: st.tuples(*[st.integers(1, 9)] * ndim) for ndim in (1, 2, 3)}


def numbers(foreground, connectivity):
    """Points of a set, of its largest component, and components that span each axis."""
    ndim = foreground.ndim
    structure = ndimage.generate_binary_structure(ndim, connectivity)
    labels = ndimage.label(foreground, structure)[0]
    sizes = np.bincount(labels.ravel())[1:]
    ends = [(labels.take(0, axis), labels.take(-1, axis)) for axis in range(ndim)]
    spanning = [len(set(low.flat) & set(high.flat) - {0}) for low, high in ends]
    return [sizes.sum(), sizes.max(initial=0), *spanning]


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
        assert_array_equal(found, numbers(foreground, curves.connectivity))
    there = shown & ~np.isnan(image) if image.dtype.kind == "f" else shown
    assert curves.kept == (np.count_nonzero(there),)
    assert_array_equal(curves.porosity, curves.points / max(curves.kept[0], 1))


@st.composite
def cases(draw):
    ndim = draw(st.integers(1, 3))
    image = draw(strategies.images(ndim, dtypes=EVERY_DTYPE, shapes=SHAPES[ndim], nan=True))
    return (
        image,
        draw(strategies.thresholds(image)),
        {
            **draw(any_side(ndim)),
            "mask": draw(st.none() | strategies.masks(image.shape)),
            "nan": "omit",
        },
    )


@given(cases())
def test_equal_labelled_sets(case):
    image, thresholds, options = case
    curves = ecc.component_curves(image, np.asarray(thresholds), **options)
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


@pytest.mark.parametrize("dtype", ["?", *strategies.INTEGER_DTYPES, "f2", "f4", "f8"])
def test_default_thresholds_and_both_ends(dtype):
    image = np.random.default_rng(2).integers(0, 2, (9, 10)).astype(dtype)
    if image.dtype.kind in "iu":
        info = np.iinfo(dtype)
        image = np.where(image == 1, info.max, info.min).astype(dtype)
    for superlevel in (False, True):
        curves = ecc.component_curves(image, superlevel=superlevel)
        assert len(curves.thresholds) == 256
        full = curves.values[:, 0 if superlevel else -1]
        assert_array_equal(full, [90, 90, 1, 1])
        few = dataclasses.replace(
            curves, thresholds=curves.thresholds[::51], values=curves.values[:, ::51]
        )
        check(few, image)


@pytest.mark.parametrize("count", [257, 70_000])
def test_many_thresholds(count):
    image = np.random.default_rng(3).random((12, 13, 14)).astype(np.float32)
    curves = ecc.component_curves(image, count, range=(0.2, 1.5))
    step = count // 7
    few = dataclasses.replace(
        curves, thresholds=curves.thresholds[::step], values=curves.values[:, ::step]
    )
    check(few, image)


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


def test_empty():
    nothing = ecc.component_curves(np.zeros((0, 4)), [1.0])
    assert_array_equal(nothing.values, np.zeros((4, 1)))
    assert_array_equal(nothing.porosity, [0])
    assert ecc.component_curves(np.zeros((3, 4)), []).spanning.shape == (2, 0)
    assert not ecc.component_curves(np.ones((3, 4)), [-1, 0.5]).values.any()
    hidden = ecc.component_curves(np.zeros((3, 4)), [0.0], mask=np.zeros((3, 4), bool))
    assert not hidden.values.any()
    assert not hidden.porosity.any()


def test_torch_in_torch_out():
    image = torch.from_numpy(np.random.default_rng(5).random((5, 6)))
    curves = ecc.component_curves(image, 4)
    for part in (curves.points, curves.largest, curves.spanning, curves.porosity):
        assert isinstance(part, torch.Tensor)
    assert curves.porosity.dtype == torch.float64
    assert curves.to_numpy() == ecc.component_curves(image.numpy(), 4)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"thresholds": "exact"}, ValueError, "an int or an array for component curves, got"),
        ({"thresholds": [2, 1]}, ValueError, "`thresholds` must be increasing"),
        ({"spacing": 0}, ValueError, "`spacing` must be positive and finite, got 0"),
        ({"spacing": (1, 2, 3)}, ValueError, "`spacing` must be one number or 2 of them"),
        ({"connectivity": 3}, ValueError, "`connectivity` must be 1 or 2"),
        ({"mask": np.ones((4, 3), bool)}, ValueError, "`mask`"),
        ({"image": np.full((3, 4), np.nan), "thresholds": [1]}, ValueError, "nan="),
        ({"image": np.zeros((2, 2), complex)}, TypeError, "complex128"),
        ({"image": np.zeros((2,) * 4)}, ValueError, r"\(2, 2, 2, 2\)"),
        ({"workers": 0}, ValueError, "`workers`"),
    ],
)
def test_bad_input(given, error, message):
    with pytest.raises(error, match=message):
        ecc.component_curves(**{"image": np.zeros((3, 4)), **given})


def test_tables_and_plots():
    image = np.array([[0, 9, 1], [2, 9, 0], [0, 9, 3]])
    curves = ecc.component_curves(image, [0, 1, 2], superlevel=True, connectivity=1)
    assert (curves.connectivity, curves.superlevel, curves.ndim) == (1, True, 2)
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
    assert "<img" in curves._repr_html_()
