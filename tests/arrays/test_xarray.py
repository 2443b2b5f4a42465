"""DataArrays: their coordinates are the spacing, and results keep their units."""

import pickle

import numpy as np
import pandas as pd
import pytest
from level_sets import numbers_at
from numpy.testing import assert_allclose, assert_array_equal
from skimage.measure import euler_number

import ecc_core as ecc

xarray = pytest.importorskip("xarray", reason="xarray is not installed")

Y = 0.5
X = 0.25
IMAGE = np.random.default_rng(0).integers(0, 9, (12, 20)).astype(np.float32)
LABELS = np.repeat([1, 2], 6)[:, None] * np.ones(20, int)


def labelled(image=IMAGE, units="HU", y=None, x=None, **attributes):
    coords = {
        "y": ("y", 7 - Y * np.arange(12) if y is None else y, {"units": "mm"}),  # It is decreasing.
        "x": ("x", 1000 + X * np.arange(20) if x is None else x, {"units": "mm"} | attributes),
    }
    return xarray.DataArray(image, coords, ("y", "x"), attrs={"units": units})


def test_lengths_and_units_of_curves():
    found = ecc.minkowski_curves(labelled(), [3, 5])
    sets = [t >= IMAGE for t in (3, 5)]
    assert_allclose(found.area, [inside.sum() * Y * X for inside in sets])
    assert_array_equal(found.euler, [euler_number(inside, 2) for inside in sets])
    assert found.measure_units == ("mm^2", "mm", "")
    sizes = ecc.component_curves(labelled(), [3, 5])
    assert_allclose(sizes.volume, found.area)
    regions = ecc.region_minkowski(labelled(), LABELS, [9])
    assert_allclose(regions.area[:, 0], 120 * Y * X)
    assert {r.spacing for r in (found, sizes, regions)} == {(Y, X)}
    assert {r.spacing_units for r in (found, sizes, regions)} == {"mm"}


@pytest.mark.parametrize(
    "compute",
    [
        lambda image: ecc.euler_curve(image, 4),
        lambda image: ecc.euler_curve(image, "exact"),
        lambda image: ecc.betti_curves(image, 4),
        lambda image: ecc.betti_curves(image, 4, min_persistence=2),
        lambda image: ecc.region_curves(image, LABELS, 4),
        lambda image: ecc.region_betti_curves(image, LABELS, 4),
        lambda image: ecc.component_curves(image, 4),
        lambda image: ecc.minkowski_curves(image, 4),
        lambda image: ecc.region_minkowski(image, LABELS, 4),
        lambda image: ecc.persistence_pairs(image),
        lambda image: ecc.persistence_pairs(image).betti_curves(4),
        lambda image: ecc.persistent_regions(image, 2),
    ],
)
def test_units_of_values_are_those_of_thresholds(compute):
    found = compute(labelled())
    plain = compute(IMAGE)
    assert (found.units, plain.units) == ("HU", None)


def test_units_of_surfaces_are_those_of_both_images():
    found = ecc.euler_surface(labelled(), labelled(IMAGE[::-1], units="keV"), 4, 5)
    plain = ecc.euler_surface(IMAGE, IMAGE[::-1], 4, 5)
    assert (found.units_first, found.units_second) == ("HU", "keV")
    assert_array_equal(found.values, plain.values)
    assert found.to_xarray().threshold_second.attrs == {"units": "keV"}


def test_heights_of_transforms_and_directions():
    box = (slice(2, 9), slice(3, 8))
    shape = np.zeros(IMAGE.shape, bool)
    shape[box] = True
    transform = ecc.euler_transform(labelled(shape), [[1, 0], [0, 1]], [0.0])
    assert (transform.units, transform.spacing) == ("mm", (Y, X))
    t = np.linspace(-4, 4, 200)  # The box enters row by row, or column by column.
    down, right = ecc.euler_transform(labelled(shape), [[1, 0], [0, 1]], t, connectivity=1).values
    assert t[down.argmax()] >= (2 - 5.5) * Y > t[down.argmax() - 1]
    assert t[right.argmax()] >= (3 - 9.5) * X > t[right.argmax() - 1]
    regions = ecc.region_transforms(labelled(LABELS), 4, 5)
    assert (regions.units, regions.spacing) == ("mm", (Y, X))
    assert ecc.region_transforms(labelled(LABELS), 4, 5, normalize="radius").units is None
    rows = np.arange(12) - 5.5
    steep = ecc.euler_curve(labelled(), 8, direction=[2, 0], direction_scale=3)
    added = IMAGE + 3.0 * Y * rows[:, None]
    assert_array_equal(steep.values, numbers_at(added, steep.thresholds))
    assert (steep.units, steep.spacing_units) == ("HU", "mm")


def test_batch_axes_need_no_numbers():
    stack = np.stack([IMAGE, IMAGE + 1])
    array = xarray.concat([labelled(), labelled(IMAGE + 1)], "channel")
    array = array.assign_coords(channel=["DAPI", "GFP"])
    found = ecc.minkowski_curves(array, [4], axis=(1, 2))
    points = (stack <= 4).sum(axis=(1, 2))
    assert_allclose(found.area[:, 0], points * Y * X)


def test_spacing_given():
    found = ecc.minkowski_curves(labelled(), [4], spacing=(Y, X))
    assert found == ecc.minkowski_curves(labelled(), [4])
    message = "`spacing`.*left out, got 2 along 'y', where they have 0.5"
    with pytest.raises(ValueError, match=message):
        ecc.minkowski_curves(labelled(), [4], spacing=2)
    half = labelled().drop_vars("y")
    with pytest.raises(ValueError, match=r"`spacing` must be given.*along 'y'"):
        ecc.minkowski_curves(half, [4])
    assert ecc.component_curves(half, [4], spacing=(3, X)).spacing == (3, X)
    bare = xarray.DataArray(IMAGE, dims=("y", "x"))
    assert ecc.component_curves(bare, [4], spacing=2).spacing == (2, 2)
    assert ecc.component_curves(bare, [4]).spacing == (1, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.arange(20.0) ** 2}, "evenly spaced coordinates along 'x'"),
        ({"x": np.zeros(20)}, "evenly spaced coordinates along 'x'"),
        ({"x": list("abcdefghijklmnopqrst")}, "numbers for coordinates along 'x'"),
    ],
)
def test_coordinates_that_are_no_spacing(changes, message):
    image = labelled(**changes)
    assert_array_equal(ecc.euler_curve(image, [4]).values, ecc.euler_curve(IMAGE, [4]).values)
    with pytest.raises(ValueError, match=message):
        ecc.minkowski_curves(image, [4])


def test_units_that_differ():
    image = labelled()
    image.x.attrs["units"] = "um"
    with pytest.raises(ValueError, match="spatial coordinates of one unit, got mm and um"):
        ecc.minkowski_curves(image, [4])


DAYS = np.array(["2020-01-01", "2020-01-02", "2020-01-05"], "datetime64[ns]")
CUBE = np.random.default_rng(5).integers(0, 9, (3, 12, 20)).astype(np.float32)


def climate(values=CUBE, times=DAYS, attributes=None):
    """A climate variable as files hold it: coordinates in degrees, and times."""
    coords = {
        "time": ("time", times, attributes or {}),
        "lat": ("lat", np.linspace(-82.5, 82.5, 12), {"units": "degrees_north"}),
        "lon": ("lon", 18.0 * np.arange(20), {"units": "degrees_east"}),
    }
    return xarray.DataArray(values, coords, ("time", "lat", "lon"), attrs={"units": "K"})


def test_degrees_do_not_stop_what_counts_points():
    found = ecc.component_curves(climate(), [3, 5], axis=("lat", "lon"))
    known = ecc.component_curves(CUBE, [3, 5], axis=(1, 2))
    assert_array_equal(found.values, known.values)
    assert_array_equal(found.porosity, known.porosity)
    with pytest.raises(ValueError, match=r"degrees_east and degrees_north.*pass `spacing`"):
        _ = found.volume
    given = ecc.component_curves(climate(), [3, 5], spacing=(2, 3))
    assert_array_equal(given.volume, 6 * known.points)


LENGTHS = {
    "minkowski_curves": lambda image, **spacing: ecc.minkowski_curves(image, [4], **spacing),
    "region_minkowski": lambda image, **spacing: ecc.region_minkowski(
        image[0], LABELS, [4], **spacing
    ),
    "euler_curve": lambda image, **spacing: ecc.euler_curve(
        image, [4], direction=[1, 0], **spacing
    ),
    "euler_transform": lambda image, **spacing: ecc.euler_transform(image[0] > 4, 3, 4, **spacing),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_degrees_are_no_lengths(name):
    compute = LENGTHS[name]
    with pytest.raises(ValueError, match="lengths, got degrees_north along 'lat': pass `spacing`"):
        compute(climate())
    plain = climate().drop_vars(["time", "lat", "lon"])
    assert_array_equal(
        compute(climate(), spacing=(2, 3)).values, compute(plain, spacing=(2, 3)).values
    )


@pytest.mark.parametrize("name", LENGTHS)
def test_units_that_differ_do_not_stop_a_spacing_that_is_given(name):
    image = climate()
    image.lat.attrs["units"], image.lon.attrs["units"] = "m", "km"
    with pytest.raises(ValueError, match="one unit, got km and m: pass `spacing`"):
        LENGTHS[name](image)
    assert LENGTHS[name](image, spacing=(2, 3)).spacing == (2, 3)
    counted = ecc.component_curves(image, [4])
    assert_array_equal(counted.values, ecc.component_curves(CUBE, [4], axis=(1, 2)).values)


class NoLeapDay:
    """A date of a calendar without leap years, as cftime reads them from climate models."""

    calendar = "noleap"


def steps(name="step", times=None, **attributes):
    """A climate variable whose first axis has another name."""
    numbers = np.arange(3) if times is None else times
    return climate(times=numbers, attributes=attributes).rename(time=name)


TIME_AXES = {
    "name": lambda: climate(times=np.arange(3)),
    "upper case": lambda: steps("Time"),
    "dates": lambda: steps(times=DAYS),
    "durations": lambda: steps("lead", times=DAYS - DAYS[0]),
    "axis": lambda: steps(axis="T"),
    "standard name": lambda: steps(standard_name="time"),
    "units": lambda: steps(units="days since 1970-01-01"),
    "calendar": lambda: steps(times=np.array([NoLeapDay() for _ in DAYS])),
}


@pytest.mark.parametrize("known_by", TIME_AXES)
def test_time_is_no_depth(known_by):
    found = ecc.betti_curves(TIME_AXES[known_by](), [3, 5])
    assert_array_equal(found.values, ecc.betti_curves(CUBE, [3, 5], axis=(1, 2)).values)


def test_other_first_axes_are_depth():
    depth = climate(times=np.arange(3)).rename(time="depth")
    assert ecc.betti_curves(depth, [3]) == ecc.betti_curves(CUBE, [3], axis=(0, 1, 2))._replace(
        units="K"
    )
    series = climate()[:, 3, 4]
    assert_array_equal(ecc.euler_curve(series, [4]).values, ecc.euler_curve(CUBE[:, 3, 4], [4])[1])


@pytest.mark.parametrize(
    "function",
    [ecc.euler_number, ecc.betti_numbers, ecc.euler_coefficients, ecc.euler_transform],
)
def test_several_times_are_no_image(function):
    image = climate(CUBE > 4).drop_vars(["lat", "lon"])
    with pytest.raises(ValueError, match=r"spatial axes only, got 3 of 'time'.*isel\(time=0\)"):
        function(image)
    one = function(image[:1])
    known = function(CUBE[0] > 4)
    if function is ecc.euler_coefficients:
        known = known[None]
    assert_array_equal(getattr(one, "values", one), getattr(known, "values", known))


def test_axes_by_name():
    image = climate().transpose("lon", "time", "lat")
    found = ecc.euler_curve(image, [3, 5], axis=("lat", "lon"))
    assert_array_equal(found.values, ecc.euler_curve(CUBE, [3, 5], axis=(1, 2)).values)
    one = ecc.euler_curve(image, [3, 5], axis="lat")
    assert_array_equal(one.values, ecc.euler_curve(CUBE, [3, 5], axis=1).values.swapaxes(0, 1))
    assert one.to_xarray().dims == ("lon", "time", "threshold")
    with pytest.raises(ValueError, match=r"dimensions of \('lon', 'time', 'lat'\), got 'depth'"):
        ecc.euler_curve(image, [3], axis="depth")


def test_masks_and_labels_are_aligned_by_their_dimensions():
    image = climate()
    shown = CUBE[0] < 7
    mask = xarray.DataArray(shown.T, dims=("lon", "lat"))
    found = ecc.betti_curves(image, [3, 5], mask=mask)
    known = ecc.betti_curves(CUBE, [3, 5], axis=(1, 2), mask=shown)
    assert_array_equal(found.values, known.values)
    labels = xarray.DataArray(LABELS.T, dims=("lon", "lat"))
    regions = ecc.region_curves(image[0], labels, [3, 5])
    assert_array_equal(regions.values, ecc.region_curves(CUBE[0], LABELS, [3, 5]).values)


LAZY = {
    "euler_curve": lambda image: ecc.euler_curve(image, [3, 5]),
    "directions": lambda image: ecc.euler_curve(image, [3, 5], direction=[1, 2], spacing=(1, 2)),
    "betti_curves": lambda image: ecc.betti_curves(image, [3, 5]),
    "component_curves": lambda image: ecc.component_curves(image, [3, 5]),
    "minkowski_curves": lambda image: ecc.minkowski_curves(image, [3, 5], spacing=2),
    "region_curves": lambda image: ecc.region_curves(image[0], LABELS, [3, 5]),
    "region_minkowski": lambda image: ecc.region_minkowski(image[0], LABELS, [3, 5], spacing=2),
    "euler_surface": lambda image: ecc.euler_surface(image, image[:, ::-1], [3, 5], [4]),
}


@pytest.mark.parametrize("name", LAZY)
def test_arrays_of_dask_stay_lazy(name):
    dask = pytest.importorskip("dask", reason="dask is not installed")
    lazy = LAZY[name](climate(CUBE).chunk(time=2, lat=5))
    assert dask.is_dask_collection(lazy.values)
    assert lazy.to_numpy() == LAZY[name](climate())


def test_coefficients_and_numbers_of_dask_are_lazy():
    dask = pytest.importorskip("dask", reason="dask is not installed")
    image = climate(CUBE > 4)[0].chunk(lat=5)
    number = ecc.euler_number(image)
    coefficients = ecc.euler_coefficients(image)
    assert dask.is_dask_collection(number)
    assert dask.is_dask_collection(coefficients)
    assert number.compute() == ecc.euler_number(CUBE[0] > 4)
    assert_array_equal(coefficients.compute(), ecc.euler_coefficients(CUBE[0] > 4))


@pytest.mark.parametrize("name", [*LAZY][:5])
def test_dimensions_and_coordinates_come_back(name):
    found = LAZY[name](climate())
    back = found.to_xarray()
    assert back.dims[0] == "time"
    xarray.testing.assert_equal(back["time"], climate()["time"])
    assert "batch_0" not in back.dims
    assert_array_equal(found.to_pandas()["time"].unique(), DAYS)


def test_results_with_fewer_images_than_coordinates_number_them():
    found = ecc.euler_curve(climate(), [3, 5])
    some = found._replace(values=found.values[:2])
    assert_array_equal(some.to_pandas()["time"].unique(), [0, 1])


@pytest.mark.parametrize("suffix", ["npz", "csv", "json", "parquet"])
@pytest.mark.parametrize(
    "values",
    [
        DAYS,
        np.array(["DAPI", "GFP", "RFP"]),
        np.array([0.1, 0.2, 0.7]),
        np.array([0.1, np.nan, -np.inf]),
        np.array([-1, 2, np.nan], np.longdouble) / 3,
        None,
    ],
)
def test_files_keep_coordinates(tmp_path, values, suffix):
    image = climate().rename(time="sample").drop_vars("sample")
    if values is not None:
        image = image.assign_coords(sample=values)
    found = ecc.euler_curve(image, [3, 5], axis=("lat", "lon"))
    path = tmp_path / f"curves.{suffix}"
    ecc.io.write_result(path, found)
    assert ecc.io.read_result(path) == found
    back = ecc.io.read_result(path).to_xarray()
    assert back.dims == ("sample", "threshold")
    assert ("sample" in back.coords) == (values is not None)
    if values is not None:
        assert_array_equal(back["sample"], values)


def test_coordinates_of_several_levels_become_text():
    """A pandas.MultiIndex, as after `stack`, whose elements are tuples."""
    image = climate().rename(time="sample").drop_vars("sample")
    levels = pd.MultiIndex.from_product([["DAPI"], [1, 2, 3]], names=["channel", "field"])
    coordinates = xarray.Coordinates.from_pandas_multiindex(levels, "sample")
    found = ecc.euler_curve(image.assign_coords(coordinates), [3, 5], axis=("lat", "lon"))
    assert found.to_xarray()["sample"].values[0] == "('DAPI', 1)"
    assert found == pickle.loads(pickle.dumps(found))


def test_names_that_results_use_themselves():
    image = climate().rename(time="threshold")
    assert ecc.euler_curve(image, [3], axis=("lat", "lon")).to_xarray().dims == (
        "batch_0",
        "threshold",
    )


def test_rounded_coordinates():
    image = labelled(x=(1000 + 0.1 * np.arange(20)).astype(np.float32))
    assert_allclose(ecc.component_curves(image, [4]).spacing, (Y, 0.1), rtol=1e-4)


def test_results_as_labelled_arrays():
    found = ecc.minkowski_curves(labelled(), [3, 5]).to_xarray()
    assert found.threshold.attrs == {"units": "HU"}
    assert "units" not in found.attrs  # These would be units of the values.
    assert found.attrs["spacing_units"] == "mm"
    heights = ecc.euler_transform(labelled(IMAGE > 4), 4, 5).to_xarray().height
    assert heights.attrs == {"units": "mm"}
