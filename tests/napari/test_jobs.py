"""What the workers compute, without a window: curves by blocks, counts, critical points."""

import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback
from numpy.testing import assert_array_equal
from oracles.components import counted
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from napari_ecc._controller import curves
from napari_ecc._controller.curves import Progress, Request, compute_curve
from napari_ecc._controller.fields import Field, compute_histogram, count_all, find_critical_points
from napari_ecc._controller.loading import as_completed
from napari_ecc._model.explorer import Curve

RNG = np.random.default_rng(7)
VOLUME = RNG.integers(0, 40, (21, 17, 30)).astype(np.uint16)
MASK = RNG.random(VOLUME.shape) < 0.8


def reader(mask):
    return None if mask is None else lambda: mask


def request(*levels, **changes):
    settings = {
        "read_mask": None,
        "bounds": (0.0, 39.0),
        "thresholds": 256,
        "superlevel": True,
        "connectivity": None,
        "sigma": (0.0,) * levels[-1].ndim,
    }
    return Request(levels, **{**settings, **changes})


@pytest.mark.parametrize("superlevel", [True, False])
@pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "masked"])
@pytest.mark.parametrize("sigma", [(0, 0, 0), (0.5, 1, 1.5)], ids=["plain", "smoothed"])
def test_growing_curve(superlevel, mask, sigma):
    """The first curve counts a part of the volume, and the last one the whole."""
    lazy = da.from_array(VOLUME, chunks=(7, 8, 13))
    sets = {"superlevel": superlevel, "connectivity": 1}
    wanted = request(lazy, read_mask=reader(mask), sigma=sigma, **sets)
    steps = list(compute_curve(wanted))
    assert len(steps) >= 3 * 3 * 3
    found, field = steps[-1].value
    image = gaussian_filter(VOLUME.astype(np.float32), sigma)
    expected = ecc.euler_curve(image, found.thresholds, mask=mask, **sets)
    assert_array_equal(found.values, expected.values)
    assert (found.stage, steps[0].value[0].stage) == ("complete", "partial")
    assert field is not None
    assert steps[0].value[1] is None
    assert (steps[-1].done, steps[-1].total) == (27, 27)


def test_large_arrays_in_memory_grow_too(monkeypatch):
    """After a preview of some of the points."""
    monkeypatch.setattr(curves, "AT_ONCE", 1000)
    monkeypatch.setattr(curves, "SAMPLE", 500)
    monkeypatch.setattr(curves, "BLOCK_POINTS", 5 * 17 * 30)
    first, *parts, last = compute_curve(request(VOLUME, bounds=None, read_mask=reader(MASK)))
    preview, found = first.value[0], last.value[0]
    every = np.s_[::3, ::3, ::3]
    expected = ecc.euler_curve(VOLUME[every], np.arange(40), superlevel=True, mask=MASK[every])
    assert preview.stage == "preview"
    assert_array_equal(preview.values, expected.values)
    assert {step.value[0].stage for step in parts} == {"partial"}
    expected = ecc.euler_curve(VOLUME, np.arange(40), superlevel=True, mask=MASK)
    assert_array_equal(found.values, expected.values)


def test_a_smoothed_curve_is_resumed_with_the_same_thresholds(monkeypatch):
    """Thresholds of the range of the smoothed values would be others."""
    monkeypatch.setattr(curves, "AT_ONCE", 1000)
    monkeypatch.setattr(curves, "BLOCK_POINTS", 5 * 17 * 30)
    wanted = request(VOLUME.astype(np.float32), bounds=None, sigma=(1.0,) * 3)
    whole = list(compute_curve(wanted))[-1].value[0]
    progress = Progress()
    job = compute_curve(wanted, progress)
    while not progress.known:
        next(job)
    job.close()
    resumed = list(compute_curve(wanted, progress))[-1].value[0]
    assert_array_equal(resumed.thresholds, whole.thresholds)
    assert_array_equal(resumed.values, whole.values)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_an_image_outside_its_region_is_refused(dtype):
    nothing = reader(np.zeros(VOLUME.shape, bool))
    with pytest.raises(ValueError, match="no finite values here"):
        list(compute_curve(request(VOLUME.astype(dtype), bounds=None, read_mask=nothing)))


def test_preview_comes_from_the_coarse_level():
    coarse = VOLUME[::2, ::2, ::2]
    first, *_, last = compute_curve(request(coarse, VOLUME, read_mask=reader(MASK)))
    preview = first.value[0]
    assert preview.stage == "preview"
    sizes = zip(coarse.shape, VOLUME.shape, strict=True)
    rows, columns, depth = (np.arange(n) * m // n for n, m in sizes)
    expected = ecc.euler_curve(
        coarse, preview.thresholds, superlevel=True, mask=MASK[np.ix_(rows, columns, depth)]
    )
    assert_array_equal(preview.values, expected.values)
    assert last.value[0].stage == "complete"


def test_an_error_in_a_block_is_raised_and_the_threads_end():
    def broken(block):
        raise OSError("the disk is gone")

    lazy = da.from_array(VOLUME, chunks=7).map_blocks(broken, dtype=VOLUME.dtype)
    with pytest.raises(OSError, match="the disk is gone"):
        list(compute_curve(request(lazy)))


@pytest.mark.parametrize("what", ["blocks", "counts"])
def test_closing_stops_reading(what):
    """A job can be cancelled between two blocks, also where they make one result."""
    read, closing = [], threading.Event()

    def slow(block):
        read.append(block)
        if len(read) > 4:
            assert closing.wait(60)
            time.sleep(0.1)
        return block

    lazy = da.from_array(VOLUME, chunks=(1, 1, 30)).map_blocks(slow, dtype=VOLUME.dtype)
    if what == "blocks":
        job = as_completed(lazy.to_delayed().ravel().tolist())
        assert next(part for part in job if part is not None)
    else:
        job = count_all(Field(lazy, None), np.arange(40), superlevel=True, connectivity=1)
        assert next(job).value is None
    closing.set()
    job.close()
    assert len(read) < 100


def test_the_last_block_comes_last_however_late_the_threads_end(monkeypatch):
    """Scripts take the last step of a job."""

    def ends_late(*arguments, **options):
        computed = dask.compute(*arguments, **options)
        time.sleep(0.2)
        return computed

    monkeypatch.setattr("dask.base.compute", ends_late)
    lazy = da.from_array(VOLUME, chunks=9) + 1
    parts = lazy.to_delayed().ravel().tolist()
    *_, last = as_completed(parts)
    assert last is not None


def test_each_of_equal_parts_has_its_value():
    part = dask.delayed(sum)([1, 2])
    found = [pair for pair in as_completed([part, part, dask.delayed(7)]) if pair is not None]
    assert sorted(found) == [(0, 3), (1, 3), (2, 7)]


def test_the_cache_of_the_program_has_no_part_in_it():
    """Such as napari's, which would put a tuple of an earlier computation where a task was."""

    class Cache(Callback):
        def _start(self, graph):
            for key in graph:
                graph[key] = (1, 2)

    total = dask.delayed(sum)([dask.delayed(int)(3), dask.delayed(int)(4)])
    with Cache():
        assert [found for found in as_completed([total]) if found] == [(0, 7)]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize("full", [True, False])
def test_counts(monkeypatch, ndim, full, seed, lazy):
    """They are those of labelling the set and its complement, also of data that are loaded."""
    monkeypatch.setattr("napari_ecc._controller.fields.COUNTED", 200)
    connectivity = ndim if full else 1
    rng = np.random.default_rng(seed)
    inside = rng.random(rng.integers(1, 12, ndim)) < rng.uniform(0.3, 0.8)
    components, holes = counted(inside, connectivity)
    data = da.from_array(inside, chunks=3) if lazy else inside
    *_, last = count_all(
        Field(data, None), np.array([1.0]), superlevel=True, connectivity=connectivity
    )
    assert last.value.values[0, 0] == components
    assert last.value.values[-1, 0] == holes
    assert last.value.euler == ecc.euler_number(inside, connectivity)


@pytest.mark.parametrize("data", [VOLUME, da.from_array(VOLUME, chunks=(5, 8, 30))])
@pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "masked"])
def test_critical_points(data, mask):
    """All points of the window with their coefficients, for any chunks."""
    (*_, last) = find_critical_points(
        Field(data, mask), (10, 14), superlevel=True, connectivity=1, most=10**6
    )
    found = last.value
    effects = ecc.euler_coefficients(VOLUME, superlevel=True, connectivity=1, mask=mask)
    chosen = (effects != 0) & (VOLUME >= 10) & (VOLUME <= 14)
    placed = np.zeros(VOLUME.shape, int)
    placed[tuple(found.points.T)] = found.effects
    assert_array_equal(placed, np.where(chosen, effects, 0))
    assert found.total == len(found.points) == chosen.sum()


def test_of_too_many_critical_points_the_greatest_are_kept():
    data = da.from_array(VOLUME, chunks=(5, 8, 30))
    options = {"superlevel": False, "connectivity": None}
    (*_, last) = find_critical_points(Field(data, None), (0, 39), most=25, **options)
    effects = np.abs(ecc.euler_coefficients(VOLUME))
    assert last.value.total == np.count_nonzero(effects)
    assert_array_equal(np.sort(np.abs(last.value.effects)), np.sort(effects, axis=None)[-25:])


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_histogram_and_otsu(dtype):
    """The histogram counts all values within the mask; the threshold is that of scikit-image."""
    from skimage.filters import threshold_otsu

    image = np.concatenate([VOLUME, VOLUME + 120]).astype(dtype)
    mask = np.concatenate([MASK, MASK])
    curve = Curve(np.arange(160.0), np.zeros(160, int), True)
    (step,) = compute_histogram(Field(image, mask), curve)
    assert step.value.counts.sum() == mask.sum()
    exact = np.dtype(dtype).kind == "u"
    assert abs(step.value.otsu - threshold_otsu(image[mask])) <= (0 if exact else 159 / 256)
    constant = Curve(np.array([7.0]), np.array([1]), True)
    (step,) = compute_histogram(Field(np.full((4, 4), 7, dtype), None), constant)
    assert step.value.otsu == pytest.approx(7, abs=1)
    (step,) = compute_histogram(Field(da.from_array(image), None), curve)
    assert step.value is None


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 0.5])
def test_histograms_of_a_narrow_range_have_all_bins(scale):
    """Ranges below 1, as those of normalized images, are divided into as many bins as others."""
    from skimage.filters import threshold_otsu

    image = np.concatenate([VOLUME, VOLUME + 120]) * scale / 160
    curve = Curve(np.linspace(image.min(), image.max(), 256), np.zeros(256, int), True)
    (step,) = compute_histogram(Field(image, None), curve)
    assert step.value.edges[-1] == image.max()
    assert step.value.otsu == pytest.approx(threshold_otsu(image), rel=1e-9, abs=0)


def test_a_cancelled_curve_is_resumed_where_it_was():
    """Blocks that are known are not read again, and the curve is that of all blocks."""
    read = []

    def block(x, block_info=None):
        read.append(block_info[0]["chunk-location"])
        return x

    lazy = da.from_array(VOLUME, chunks=(7, 17, 10)).map_blocks(block, dtype=VOLUME.dtype)
    wanted, progress = request(lazy), Progress()
    read.clear()
    job = compute_curve(wanted, progress)
    while len(progress.known) < 4:
        next(job)
    job.close()
    known = len(progress.known)
    assert known < 9
    read.clear()
    *_, last = compute_curve(wanted, progress)
    assert len(read) <= 3 * (9 - known)  # Each block is read with its neighbours.
    expected = ecc.euler_curve(VOLUME, np.arange(40), superlevel=True).values
    assert_array_equal(last.value[0].values, expected)
    (again,) = compute_curve(wanted, progress)
    assert_array_equal(again.value[0].values, expected)
    assert again.value[0].complete
