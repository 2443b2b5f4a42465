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
from oracles.components import component_numbers, component_numbers_on_a_torus
from scipy import ndimage
from topology_helpers import boundary_of

import ecc_core as ecc
from ecc_core._backends.cpu.betti import sizes
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
    there = shown & ~np.isnan(image) if image.dtype.kind == "f" else shown
    for found, t in zip(curves.values.T, curves.thresholds.tolist(), strict=True):
        foreground = reached(image, t, curves.superlevel)
        assert_array_equal(found, component_numbers(foreground, curves.connectivity, there))
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


@given(st.data())
def test_equal_sets_on_a_torus(data):
    """Cylinders, and sides of length 1 and 2, are tested, too."""
    ndim = data.draw(st.integers(1, 3))
    shapes = st.tuples(*[st.integers(1, 6)] * ndim)
    image = data.draw(strategies.images(ndim, dtypes=["uint8", "float32"], shapes=shapes, nan=True))
    options = data.draw(omitting(image))
    wraps = data.draw(st.tuples(*[st.booleans()] * ndim))
    at = data.draw(strategies.thresholds(image))
    boundary = boundary_of(wraps, ndim)
    curves = ecc.component_curves(image, at, boundary=boundary, **options)
    shown = ~np.isnan(image) & (True if options["mask"] is None else options["mask"])
    sets = [reached(image, t, curves.superlevel) for t in curves.thresholds.tolist()]
    known = [
        component_numbers_on_a_torus(foreground, curves.connectivity, shown, wraps)
        for foreground in sets
    ]
    assert_array_equal(curves.values.T, np.reshape(known, curves.values.T.shape))


@pytest.mark.parametrize(
    ("boundary", "spanning"), [("periodic", [1, 1]), (("closed", "periodic"), [1, 0])]
)
def test_a_helix_winds_around_both_axes(boundary, spanning):
    """Twice around one of them, which coefficients in Z/2 cannot see."""
    image = np.ones((8, 4), np.uint8)
    image[np.arange(8), np.arange(8) % 4] = 0
    curves = ecc.component_curves(image, [0], boundary=boundary)
    assert curves.values[:, 0].tolist() == [8, 8, *spanning]
    assert curves.boundary == boundary


@pytest.mark.parametrize("corner", list(itertools.product((0, 1), repeat=3)))
def test_corners_of_a_torus_touch(corner):
    """A point at a corner, and one that is next to it across all three sides."""
    image = np.ones((3, 4, 5), np.uint8)
    image[tuple(-side for side in corner)] = 0
    image[tuple(side - 1 for side in corner)] = 0
    for connectivity, size in ((3, 2), (1, 1)):
        options = {"connectivity": connectivity, "boundary": "periodic"}
        curves = ecc.component_curves(image, [0], **options)
        assert curves.values[:, 0].tolist() == [2, size, 0, 0, 0]


def test_an_inlet_and_an_outlet_in_a_cylinder():
    """Two columns that touch each other behind the side."""
    image = np.ones((5, 6), np.uint8)
    image[:, [0, 5]] = 0
    inlet, outlet = np.zeros((2, *image.shape), bool)
    inlet[0, 0] = outlet[4, 5] = True
    ends = {"inlet": inlet, "outlet": outlet}
    assert ecc.component_curves(image, [0], **ends).spanning.tolist() == [[0]]
    cylinder = {"boundary": ("closed", "periodic")}
    assert ecc.component_curves(image, [0], **ends, **cylinder).spanning.tolist() == [[1]]
    with pytest.raises(ValueError, match="periodic, got only `inlet`"):
        ecc.component_curves(image, [0], inlet=inlet, **cylinder)


def cut_into(monkeypatch, lengths):
    """Let images be cut into boxes of about these lengths."""
    monkeypatch.setattr(sizes, "BOXES", {ndim: lengths[-ndim:] for ndim in (1, 2, 3)})
    monkeypatch.setattr(sizes, "POINTS_A_KEY", 0)


@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("wraps", [(True, True, True), (False, True, True), (True, False, False)])
def test_boxes_of_a_torus_are_joined_around(wraps, connectivity, monkeypatch):
    cut_into(monkeypatch, (3, 3, 4))
    image = np.random.default_rng(1).integers(0, 100, (5, 7, 8), np.uint8)
    at = [1, 3, 6, 10, 20, 30, 50]
    boundary = boundary_of(wraps, 3)
    curves = ecc.component_curves(
        image, at, boundary=boundary, connectivity=connectivity, workers=1
    )
    shown = np.ones(image.shape, bool)
    for found, t in zip(curves.values.T, curves.thresholds.tolist(), strict=True):
        known = component_numbers_on_a_torus(image <= t, connectivity, shown, wraps)
        assert_array_equal(found, known)


@pytest.mark.sweep
@pytest.mark.parametrize("cut", [None, (6, 7, 9)])
@pytest.mark.parametrize("shape", [(90,), (1, 70), (40, 66), (70, 1, 3), (12, 13, 70)])
def test_any_cut_and_layout(shape, cut, monkeypatch):
    if cut is not None:
        cut_into(monkeypatch, cut)
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
    images = [image[:, b, :, c] for b, c in np.ndindex(3, 2)]
    alone = [ecc.component_curves(one, 5, **options) for one in images]
    assert_array_equal(batch.values.reshape(6, 4, 5), [curves.values for curves in alone])
    assert_array_equal(batch.porosity.reshape(6, 5), [curves.porosity for curves in alone])
    assert batch.kept == tuple(curves.kept[0] for curves in alone)
    for curves, one in zip(alone, images, strict=True):
        check(curves, one, shown)
    assert len(set(batch.kept)) == 2
    masked = ecc.component_curves(np.ma.array(image[:, 0, :, 0], mask=~shown), 5, range=(0, 1))
    assert_array_equal(masked.values, batch.values[0, 0])


GIVEN = [(True, True), (True, False), (False, True), (False, False)]


def masked_samples(seed, count=25):
    """Draw images, samples that often do not reach their faces, and ends."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        shape = rng.integers(1, 9, rng.integers(1, 4))
        image = rng.integers(0, 5, shape).astype(np.float32)
        shown = rng.random(shape) < rng.choice([0.5, 0.9, 1.0])
        for axis in range(shown.ndim):
            np.moveaxis(shown, axis, 0)[: rng.integers(0, 3)] = False
            np.moveaxis(shown, axis, 0)[shape[axis] - rng.integers(0, 3) :] = False
        ends = [rng.random(shape) < 0.2 for _ in range(2)]
        yield rng, image, shown, ends


@pytest.mark.sweep
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("cut", ["by dask", "into boxes", "not"])
@pytest.mark.parametrize("left_out", ["mask", "nan", "nothing"])
def test_percolation_of_masked_samples(left_out, cut, given, monkeypatch):
    """Beside components of each set that SciPy labels, between slices of the sample or masks."""
    if cut == "into boxes":
        cut_into(monkeypatch, (2, 3, 3))
    for rng, image, shown, masks in masked_samples(seed=5):
        inlet, outlet = (
            mask if wanted else None for mask, wanted in zip(masks, given, strict=True)
        )
        connectivity = int(rng.choice([1, image.ndim]))
        options = {"connectivity": connectivity, "axis": tuple(range(image.ndim))}
        options |= {"inlet": inlet, "outlet": outlet}
        passed = image
        sample = shown
        if left_out == "mask":
            options["mask"] = shown
        elif left_out == "nan":
            options["nan"] = "omit"
            passed = np.where(shown, image, np.float32(np.nan))
        else:
            sample = np.ones(image.shape, bool)
        if cut == "by dask":
            array = pytest.importorskip("dask.array", reason="dask is not installed")
            chunks = tuple(int(n) for n in rng.integers(1, 5, image.ndim))
            passed = array.from_array(passed, chunks=chunks)
        found = ecc.component_curves(passed, np.arange(5), **options).to_numpy()
        known = [
            component_numbers(image <= t, connectivity, sample, inlet, outlet) for t in range(5)
        ]
        assert_array_equal(found.values.T, known)


def test_a_channel_through_a_core():
    """A straight channel through a cylinder that reaches neither face of the volume."""
    z, y, x = np.indices((24, 20, 20))
    core = ((y - 9.5) ** 2 + (x - 9.5) ** 2 <= 64) & (z >= 3) & (z < 21)
    pores = np.where((abs(y - 9.5) < 2) & (abs(x - 9.5) < 2), 0.0, 1.0)
    whole = ecc.component_curves(pores, [0.0], mask=core)
    assert_array_equal(whole.spanning[:, 0], [1, 0, 0])
    cut = ecc.component_curves(pores[3:21], [0.0], mask=core[3:21])
    assert_array_equal(whole.values, cut.values)
    wall = core & ((y - 9.5) ** 2 + (x - 9.5) ** 2 > 40)
    aside = ecc.component_curves(pores, [0.0, 1.0], mask=core, inlet=core & (z == 3), outlet=wall)
    assert_array_equal(aside.spanning, [[0, 1]])


def test_samples_of_a_batch_have_their_own_ends():
    image = np.zeros((2, 4, 6))
    shown = np.ones((2, 4, 6), bool)
    shown[1, 0] = shown[1, :, 0] = False
    inlet = np.zeros((4, 6), bool)
    inlet[0] = True
    options = {"axis": (1, 2), "mask": shown}
    found = ecc.component_curves(image, [0.0], **options)
    assert_array_equal(found.spanning[..., 0], [[1, 1], [1, 1]])
    found = ecc.component_curves(image, [0.0], inlet=inlet, **options)
    assert_array_equal(
        found.spanning[..., 0], [[1, 1], [0, 0]]
    )  # They are masked in the second one.


@pytest.mark.parametrize("name", ["inlet", "outlet"])
def test_ends_that_are_refused(name):
    with pytest.raises(TypeError, match=f"`{name}` must be boolean, got int64"):
        ecc.component_curves(np.zeros((3, 4)), [0], **{name: np.ones((3, 4), int)})
    with pytest.raises(ValueError, match=rf"`{name}` must have the image's shape \(3, 4\)"):
        ecc.component_curves(np.zeros((3, 4)), [0], **{name: np.ones((4, 3), bool)})


def test_percolation_of_a_column():
    image = np.full((4, 5, 6), 9)
    image[1, :, 3], image[:, 2, 3] = 3, 1  # A tunnel crosses a shaft.
    curves = ecc.component_curves(image, [0, 1, 3, 9], spacing=(2.0, 1.0, 0.5))
    assert_array_equal(curves.spanning, [[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]])
    assert_array_equal(curves.volume, [0, 4, 8, 120])
    assert_array_equal(ecc.component_curves(image, [1], spacing=3).volume, [4 * 27])


def test_tables_between_an_inlet_and_an_outlet(tmp_path):
    image = np.array([[0, 9, 1], [2, 9, 0], [0, 9, 3]])
    inlet, outlet = np.zeros((2, 3, 3), bool)
    inlet[0], outlet[:, 2] = True, True
    curves = ecc.component_curves(image, [0, 1, 2], inlet=inlet, outlet=outlet)
    table = curves.to_pandas()
    assert list(table.measure.unique()) == ["points", "largest", "spanning"]
    assert table["count"].tolist() == curves.values.ravel().tolist()
    assert curves.plot().axes[-1].get_ylabel() == "spanning"
    ecc.io.write_result(tmp_path / "curves.csv", curves)
    assert ecc.io.read_result(tmp_path / "curves.csv") == curves


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
