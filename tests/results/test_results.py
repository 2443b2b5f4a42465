"""Result objects: what they carry, and that they unpack, compare, pickle, print and convert."""

import dataclasses
import functools
import pickle
import sys
from collections.abc import Callable

import dask
import dask.array as da
import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

import ecc_core as ecc
from ecc_core.dask import local_curves
from ecc_core.dask import region_curves as lazy_region_curves
from ecc_core.results import LocalCurves, Result, TransformResult

IMAGE = np.random.default_rng(0).integers(0, 9, (6, 7))
LABELS = np.where(IMAGE > 6, 7, 2)


# Made when a test asks for them: what is computed while tests are collected is computed, and its
# kernels are compiled, in every process.
MAKE: dict[str, Callable[[], Result]] = {
    "curve": lambda: ecc.euler_curve(IMAGE, 4, superlevel=True),
    "directional": lambda: ecc.euler_curve(IMAGE, 4, direction=[0, 2], direction_scale=0.5),
    "batch": lambda: ecc.euler_curve(np.stack([IMAGE, -IMAGE]), 4, axis=(1, 2), connectivity=1),
    "regions": lambda: ecc.region_curves(IMAGE, LABELS, 4),
    "betti": lambda: ecc.betti_curves(IMAGE, 4),
    "region betti": lambda: ecc.region_betti_curves(IMAGE, LABELS, 4),
    "components": lambda: ecc.component_curves(IMAGE, 4, spacing=2),
    "tiles": lambda: local_curves(IMAGE, 3, [0, 5]),
    "transform": lambda: ecc.euler_transform(IMAGE > 4, 5, 6, spacing=(1, 2.5)),
    "smooth": lambda: ecc.smooth_transform(made("transform")),
    "weighted": lambda: ecc.euler_transform(IMAGE, 5, 6, weighted=True),
    "region transforms": lambda: ecc.region_transforms(LABELS, 5, 6, normalize="radius"),
    "surface": lambda: ecc.euler_surface(IMAGE, LABELS, 4, [2, 7], superlevel=(True, False)),
}


@functools.cache
def made(name: str) -> Result:
    return MAKE[name]()


@pytest.fixture(params=MAKE)
def result(request) -> Result:
    """Every result of `MAKE`, one after another."""
    return made(request.param)


class TestFacts:
    def test_curves_regions_tiles_and_surfaces(self):
        known = {"connectivity": 2, "superlevel": False, "ndim": 2}
        tiles = {**known, "units": None}
        curve = dict.fromkeys(("direction", "spacing", "units", "spacing_units"))
        curve |= {**known, "boundary": "closed", "direction_scale": 1.0, "density": False}
        curve["coordinates"] = ()
        surface = {**known, "units_first": None, "units_second": None, "superlevel": (True, False)}
        surface["coordinates"] = ()
        assert made("curve").facts == {**curve, "superlevel": True}
        directed = {"direction": (0.0, 1.0), "direction_scale": 0.5, "spacing": (1.0, 1.0)}
        assert made("directional").facts == {**curve, **directed}
        assert made("batch").facts == {**curve, "connectivity": 1}
        assert made("tiles").facts == tiles
        assert made("regions").facts == {**tiles, "boundary": "closed"}
        assert made("surface").facts == surface
        line = ecc.euler_curve(np.arange(5), 2)
        assert (line.ndim, line.connectivity) == (1, 1)

    def test_transforms(self):
        transform = made("transform")
        smooth = made("smooth")
        assert (transform.spacing, transform.connectivity) == ((1.0, 2.5), 2)
        assert not transform.smooth
        assert smooth == dataclasses.replace(transform, values=smooth.values, smooth=True)
        assert made("weighted").weighted
        assert made("region transforms").normalize == "radius"

    @pytest.mark.parametrize("superlevel", [False, True])
    def test_lazy_results_know_as_much(self, superlevel):
        lazy = da.from_array(IMAGE, chunks=4)
        labels = da.from_array(LABELS, chunks=4)
        options = {"connectivity": 1, "superlevel": superlevel}
        memory = ecc.euler_curve(IMAGE, [1, 3], direction=[1, 1], **options)
        assert ecc.euler_curve(lazy, [1, 3], direction=[1, 1], **options).facts == memory.facts
        facts = ecc.region_curves(IMAGE, LABELS, [1, 3], **options).facts
        assert ecc.region_curves(lazy, labels, [1, 3], **options).facts == facts
        assert lazy_region_curves(lazy, labels, [1, 3], **options).facts == facts
        assert {**local_curves(lazy, 3, [1, 3], **options).facts, "boundary": "closed"} == facts
        shards = ecc.euler_curve_shards([IMAGE[:2], IMAGE[2:]], [1, 3], **options)
        assert shards == ecc.euler_curve(IMAGE, [1, 3], **options)

    def test_facts_have_plain_types(self):
        curve = ecc.euler_curve(IMAGE, 2, connectivity=np.int64(1), superlevel=np.True_)
        assert type(curve.connectivity) is int
        assert type(curve.superlevel) is bool
        made = ecc.EulerCurve([0], [1], direction=np.array([1, 0]), superlevel=1)
        assert made.direction == (1.0, 0.0)
        assert made.superlevel is True


class TestTuple:
    def test_unpacks_into_its_arrays(self, result):
        assert len(result) == len(list(result)) == len(result._fields)
        assert all(
            array is getattr(result, name)
            for array, name in zip(result, result._fields, strict=True)
        )
        assert result[-1] is result.values
        assert result[1:] == tuple(result)[1:]

    def test_methods_of_a_named_tuple(self):
        curve = made("curve")
        assert curve._fields == ("thresholds", "values")
        assert curve._asdict() == dict(zip(curve._fields, curve, strict=True))
        assert ecc.EulerCurve(**curve._asdict()) == ecc.EulerCurve(*curve)
        assert curve._replace(superlevel=False) == dataclasses.replace(curve, superlevel=False)
        with pytest.raises(dataclasses.FrozenInstanceError):
            curve.superlevel = False


class TestEquality:
    def test_neither_copies_nor_byte_orders_differ(self, result):
        """Pickles hold arrays in the byte order of the machine."""
        copy = pickle.loads(pickle.dumps(result))
        assert (copy, copy.facts) == (result, result.facts)
        arrays = result._asdict().items()
        swapped = {name: array.astype(array.dtype.newbyteorder(">")) for name, array in arrays}
        swapped = dataclasses.replace(result, **swapped)
        assert not any(array.dtype.isnative for array in swapped)
        assert pickle.loads(pickle.dumps(swapped)) == swapped == result

    def test_every_array_counts(self, result):
        others = []
        for name in result._fields:
            array = getattr(result, name).copy()
            array.flat[-1] += 1
            others.append(dataclasses.replace(result, **{name: array}))
        assert result not in others

    def test_every_fact_counts(self):
        curve = made("curve")
        changed = {name: False if name == "superlevel" else (2.0, 3.0) for name in curve.facts}
        others = [dataclasses.replace(curve, **{name: value}) for name, value in changed.items()]
        assert curve not in others

    def test_dtype_and_shape_count(self):
        curve = ecc.EulerCurve(np.array([2**53]), np.array([1]))
        assert curve != ecc.EulerCurve(np.array([2.0**53]), np.array([1]))
        assert curve != ecc.EulerCurve(np.array([2**53, 2**53]), np.array([1]))

    def test_other_types(self):
        curve = made("curve")
        assert curve != tuple(curve)
        assert made("tiles") != ecc.EulerCurve(*made("tiles"), connectivity=2, ndim=2)
        tensors = ecc.EulerCurve(*map(torch.from_numpy, curve), **curve.facts)
        assert tensors != curve
        assert tensors == ecc.EulerCurve(*map(torch.from_numpy, curve), **curve.facts)

        with pytest.raises(TypeError, match="unhashable"):
            hash(curve)


class TestLibraries:
    def test_tensors_stay_tensors(self):
        tensor = torch.from_numpy(IMAGE)
        curve = ecc.euler_curve(tensor, 4, superlevel=True)
        assert isinstance(curve.values, torch.Tensor)
        assert curve.to_numpy() == made("curve")
        assert "values=<torch.Tensor int64 (4,) on cpu>" in repr(curve)

    def test_dask_computes_results(self):
        lazy = ecc.euler_curve(da.from_array(IMAGE, chunks=4), 4, range=(0, 8), superlevel=True)
        (computed,) = dask.compute(lazy)
        assert computed == made("curve") == lazy.to_numpy()
        assert isinstance(lazy.values, da.Array)

    def test_nothing_is_computed_unasked(self):
        def fail(block: np.ndarray) -> np.ndarray:
            raise AssertionError("computed")

        lazy = da.from_array(IMAGE, chunks=4).map_blocks(fail, dtype=IMAGE.dtype, meta=IMAGE[:0])
        curve = ecc.euler_curve(lazy, [0, 1])
        assert repr(curve) == (
            "EulerCurve(thresholds=[0, 1], values=<dask.Array int64 (2,)>, connectivity=2)"
        )
        assert "dask.Array" in curve._repr_html_()
        assert curve.to_xarray().chunks is not None
        with pytest.raises(AssertionError, match="computed"):
            curve.to_numpy()


class TestRepr:
    def test_short_arrays_show_their_numbers_and_long_ones_are_cut(self):
        curve = ecc.euler_curve(np.eye(3), [0, 0.5, 1], superlevel=True)
        assert repr(curve) == (
            "EulerCurve(thresholds=[0, 0.5, 1], values=[1, 1, 1], connectivity=2, superlevel=True)"
        )
        curve = ecc.euler_curve(np.arange(256), 256)
        assert "thresholds=[0, 1, ..., 254, 255], values=[1, 1, ..., 1, 1]" in repr(curve)
        assert "boundary='half-open'" in repr(ecc.euler_curve(IMAGE, 4, boundary="half-open"))

    def test_one_short_line_and_a_picture(self, result):
        assert len(repr(result)) < 250
        assert "\n" not in repr(result)
        html = result._repr_html_()
        assert type(result).__name__ in html
        drawn = not isinstance(result, LocalCurves) or result.values.size
        assert ("data:image/png;base64," in html) == bool(drawn)
        assert len(html) < 200_000

    def test_without_matplotlib(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        html = dataclasses.replace(made("curve"), units="<b>")._repr_html_()
        assert "<img" not in html
        assert "<b>" not in html
        assert "superlevel=True" in html


class TestTables:
    def test_columns(self):
        regions = made("regions")
        transform = made("transform")
        table = regions.to_pandas()
        assert list(table) == ["label", "threshold", "euler_number"]
        assert_array_equal(table["threshold"], np.tile(regions.thresholds, 2))
        assert_array_equal(table["euler_number"][table["label"] == 7], regions.values[1])
        table = transform.to_pandas()
        assert list(table) == ["direction", "direction_0", "direction_1", "height", "euler_number"]
        assert_array_equal(table["euler_number"], transform.values.ravel())
        assert_array_equal(table["direction_1"], np.repeat(transform.directions[:, 1], 6))
        assert_array_equal(table["height"], np.tile(transform.heights, 5))

    def test_xarray_agrees_with_pandas(self, result):
        array = result.to_xarray()
        columns = result.to_pandas()
        assert columns.attrs == result.facts
        assert_array_equal(array.values, result.values)
        table = array.to_dataframe().reset_index()
        of_values = [name for name in columns if not name.startswith("batch")]
        np.testing.assert_equal(
            {name: table[name].to_numpy() for name in of_values},
            {name: columns[name].to_numpy() for name in of_values},
        )

    def test_dimensions(self):
        assert made("batch").to_xarray().dims == ("batch_0", "threshold")
        assert made("tiles").to_xarray().dims == ("batch_0", "batch_1", "threshold")
        dims = ("label", "direction", "height")
        assert made("region transforms").to_xarray().dims == dims
        assert made("curve").to_xarray().attrs["superlevel"] is True

    def test_without_xarray(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "xarray", None)
        with pytest.raises(ImportError, match=r'pip install "\.\[xarray\]"'):
            made("curve").to_xarray()


class TestSelect:
    @pytest.mark.parametrize(
        ("name", "kind"), [("regions", ecc.EulerCurve), ("region transforms", TransformResult)]
    )
    def test_label(self, name, kind):
        regions = made(name)
        found = regions.select(7)
        assert isinstance(found, kind)
        assert_array_equal(found.values, regions.values[1])
        assert found.connectivity == regions.connectivity
        with pytest.raises(KeyError, match="no label 5"):
            regions.select(5)


class TestUnits:
    """The unit of a functional is a power of that of lengths."""

    @pytest.mark.parametrize(
        ("shape", "units"),
        [((5,), ("mm", "")), ((5, 4), ("mm^2", "mm", "")), ((5, 4, 3), ("mm^3", "mm^2", "mm", ""))],
    )
    def test_functionals(self, shape, units):
        image = np.arange(np.prod(shape)).reshape(shape)
        curves = ecc.minkowski_curves(image, [3])
        assert curves.measure_units == ("",) * len(units)
        curves = dataclasses.replace(curves, spacing_units="mm")
        assert curves.measure_units == units
        regions = ecc.region_minkowski(image, image % 3, [3])
        regions = dataclasses.replace(regions, spacing_units="mm")
        assert (regions.measure_units, regions.select(1).spacing_units) == (units, "mm")

    def test_panels_name_them(self):
        curves = ecc.minkowski_curves(np.eye(5), 5)
        named = dataclasses.replace(curves, spacing_units="mm").plot()
        area, perimeter, euler = (ax.get_ylabel() for ax in named.axes)
        assert (area, perimeter) == ("area\n(mm\N{SUPERSCRIPT TWO})", "perimeter\n(mm)")
        assert "mm" not in euler
        assert curves.plot().axes[0].get_ylabel() == "area"

    def test_densities(self):
        """The volume has none, and the Euler characteristic that of the inverse volume."""
        curves = ecc.minkowski_curves(np.zeros((2, 2, 2)), [0], boundary="periodic")
        densities = dataclasses.replace(curves, spacing_units="um").densities()
        assert densities.measure_units == ("", "um^-1", "um^-2", "um^-3")
