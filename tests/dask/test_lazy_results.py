"""What results of dask arrays are before they are computed: as text, tables, files and figures."""

import dask
import dask.array as da
import numpy as np
import pytest
from dask_helpers import noise
from matplotlib.axes import Axes

import ecc_core as ecc
from ecc_core.io import read_result, write_result

IMAGE = noise(8, 9)
MASK = noise(8, 9, seed=1) > 1
LABELS = noise(8, 9, levels=4, seed=2)
THRESHOLDS = [1, 3]
BLOCKS = da.from_array(IMAGE, chunks=(4, 5))
REGIONS = da.from_array(LABELS, chunks=(4, 5))


@pytest.mark.parametrize("suffix", [".csv", ".json", ".npz"])
@pytest.mark.parametrize("computed", [False, True])
def test_component_curves_of_masked_blocks_are_written(tmp_path, suffix, computed):
    """Files hold the number of points that are kept, which only the mask tells."""
    curves = ecc.component_curves(BLOCKS, THRESHOLDS, mask=MASK)
    if computed:
        (curves,) = dask.compute(curves)
    path = tmp_path / f"curves{suffix}"
    write_result(path, curves)
    expected = ecc.component_curves(IMAGE, THRESHOLDS, mask=MASK)
    assert read_result(path) == expected == curves.to_numpy()
    assert expected.kept == (np.count_nonzero(MASK),)


def test_windows_that_are_not_measured_yet_are_printed():
    """Their sizes are a dask array of unknown length."""
    curves = ecc.region_minkowski(BLOCKS, REGIONS, THRESHOLDS, boundary="half-open")
    assert "window=<dask.Array float64 (nan,)>" in repr(curves)
    assert curves == ecc.region_minkowski(BLOCKS, REGIONS, THRESHOLDS, boundary="half-open")
    assert curves != curves.to_numpy()


@pytest.mark.parametrize("axis", [None, (1, 2)])
def test_sizes_of_windows_of_blocks_are_those_of_the_array(axis):
    """One number if all images of a batch have the same window."""
    image = IMAGE if axis is None else np.stack([IMAGE, IMAGE[::-1], IMAGE])
    blocks = da.from_array(image, chunks=5)
    options = {"mask": MASK, "boundary": "half-open", "axis": axis}
    expected = ecc.minkowski_curves(image, THRESHOLDS, **options)
    assert ecc.minkowski_curves(blocks, THRESHOLDS, **options).to_numpy() == expected
    assert isinstance(expected.window, float)


@pytest.mark.parametrize(
    "function",
    [
        lambda image, labels: ecc.region_curves(image, labels, THRESHOLDS),
        lambda image, labels: ecc.region_minkowski(image, labels, THRESHOLDS),
        lambda image, _: ecc.persistence_pairs(image, 0),
        lambda image, _: ecc.persistent_regions(image, 1),
    ],
    ids=["region_curves", "region_minkowski", "persistence_pairs", "persistent_regions"],
)
def test_arrays_of_unknown_length_become_labelled_arrays(function):
    """Labelled arrays have coordinates, so that the number of regions or classes is computed."""
    labelled = function(BLOCKS, REGIONS).to_xarray()
    assert labelled.identical(function(IMAGE, LABELS).to_xarray())


@pytest.mark.parametrize("boundary", ["closed", "half-open"])
@pytest.mark.parametrize("function", [ecc.region_curves, ecc.region_minkowski])
def test_one_region_of_an_unknown_number(function, boundary):
    """The window of a region is a number, as of an image in memory."""
    lazy = function(BLOCKS, REGIONS, THRESHOLDS, boundary=boundary)
    assert lazy.select(2) == function(IMAGE, LABELS, THRESHOLDS, boundary=boundary).select(2)
    with pytest.raises(KeyError, match="there is no label 9"):
        lazy.select(9)


@pytest.mark.parametrize(
    "function",
    [
        lambda image, mask: ecc.component_curves(image, THRESHOLDS, mask=mask),
        lambda image, mask: ecc.minkowski_curves(
            image, THRESHOLDS, mask=mask, boundary="half-open"
        ),
    ],
    ids=["component_curves", "minkowski_curves"],
)
def test_attributes_of_labelled_arrays_are_numbers(function):
    """What only the mask tells is computed, so that files can hold it; the values are not."""
    labelled = function(BLOCKS, da.from_array(MASK, chunks=(4, 5))).to_xarray()
    assert isinstance(labelled.data, da.Array)
    assert labelled.compute().identical(function(IMAGE, MASK).to_xarray())


def test_curves_of_regions_that_are_not_computed_yet_are_drawn():
    axes = ecc.region_curves(BLOCKS, REGIONS, THRESHOLDS).plot()
    assert isinstance(axes, Axes)
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["label 1", "label 2", "label 3"]


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda images, **batch: ecc.component_curves(images, [], mask=MASK, **batch), (4, 0)),
        (
            lambda images, **batch: ecc.minkowski_curves(
                images, [], mask=MASK, boundary="half-open", **batch
            ),
            (3, 0),
        ),
        (lambda images, **batch: ecc.euler_surface(images, images, [], [], **batch), (0, 0)),
    ],
    ids=["component_curves", "minkowski_curves", "euler_surface"],
)
def test_no_thresholds(function, shape, count, lazy):
    """Images of a batch, of which there may be none, each in chunks of its own."""
    images = np.stack([IMAGE] * 3)[:count]
    given = da.from_array(images, chunks=(1, 4, 5)) if lazy else images
    found = function(given, axis=(1, 2)).to_numpy()
    assert found.values.shape == (count, *shape)


@pytest.mark.parametrize("lazy", [False, True])
def test_densities_of_no_regions(lazy):
    image = BLOCKS if lazy else IMAGE
    labels = da.zeros_like(REGIONS) if lazy else np.zeros_like(LABELS)
    found = ecc.region_minkowski(image, labels, THRESHOLDS, boundary="half-open").densities()
    assert found.to_numpy().values.shape == (0, 3, len(THRESHOLDS))
    assert found.density


def test_no_thresholds_for_windows_that_are_regions():
    found = ecc.region_minkowski(IMAGE, LABELS, [], boundary="half-open")
    assert found.values.shape == (3, 3, 0)
