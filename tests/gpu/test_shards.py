"""Images in parts on one or several devices equal the whole on the host."""

import functools

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core.errors import BackendError
from ecc_core.testing import assert_arrays_equal, assert_curves_equal

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

VOLUME = np.random.default_rng(5).integers(0, 200, (40, 21, 30))
LEVELS = np.array([-1.0, 0.5, 77.0, 300.0])


def spread(parts, put=cupy.asarray):
    """The parts, on all devices there are in turn."""
    count = cupy.cuda.runtime.getDeviceCount()
    placed = []
    for number, part in enumerate(parts):
        with cupy.cuda.Device(number % count):
            placed.append(put(part))
    return placed


def check(parts, image, thresholds, **options):
    found = ecc.euler_curve_shards(parts, thresholds, **options)
    known = ecc.euler_curve(image, thresholds, **options)
    assert_arrays_equal(found.values, known.values, like=parts[0])


INNER = {1: np.s_[:, 3, 4], 2: np.s_[:, 3], 3: np.s_[:]}


@pytest.mark.parametrize("dtype", ["bool", "u1", "i2", "u4", "i8", "f2", "f4", "f8"])
@pytest.mark.parametrize("cuts", [[], [20], [1, 2, 20, 20, 39], list(range(1, 40))])
@pytest.mark.parametrize("ndim", INNER)
@pytest.mark.parametrize(
    "options", [{}, {"connectivity": 1, "superlevel": True, "nan": "omit"}], ids=["default", "all"]
)
def test_parts_add_up(dtype, cuts, ndim, options):
    image = VOLUME.astype(dtype)[INNER[ndim]]
    parts = spread(np.split(image, cuts))
    check(parts, image, LEVELS, **options)
    check(parts, image, 16, **options)


@pytest.mark.parametrize(
    "thresholds",
    [[-np.inf, 0.5, 50.0], [0.5, 50.0, np.inf], [3.0, 3.0, 70.0], np.linspace(0, 200, 5000), []],
    ids=["-inf", "inf", "repeated", "many", "none"],
)
@pytest.mark.parametrize("dtype", ["f4", "i4"])
@pytest.mark.parametrize("superlevel", [False, True])
def test_thresholds_that_take_more_than_one_kernel(thresholds, dtype, superlevel):
    image = VOLUME.astype(dtype)
    parts = spread(np.split(image, [7, 20]))
    check(parts, image, thresholds, superlevel=superlevel, nan="omit")


def test_parts_in_any_layout():
    image = VOLUME.astype(np.float32)
    parts = spread([image[::2], image[1::2]])
    with parts[1].device:
        parts = [parts[0][:, ::-1], cupy.asfortranarray(parts[1][::-1])]
    whole = np.concatenate([image[::2, ::-1], image[1::2][::-1]])
    check(parts, whole, LEVELS)


def test_points_that_are_not_finite():
    image = VOLUME.astype(np.float32)
    image[4, 1, 1], image[20, 1, 1] = np.inf, -np.inf
    parts = spread(np.split(image, [5, 20]))
    known = ecc.euler_curve(image, 9)
    assert_curves_equal(ecc.euler_curve_shards(parts, 9), known.values, like=parts[0])
    image[19, 2, 2] = np.nan
    parts = spread(np.split(image, [5, 20]))
    with pytest.raises(ValueError, match="must not contain NaN"):
        ecc.euler_curve_shards(parts, LEVELS)
    check(parts, image, LEVELS, nan="omit")


@pytest.mark.parametrize("name", ["float32", "bfloat16", "uint8"])
def test_tensors(name):
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(VOLUME).to(getattr(torch, name))
    put = functools.partial(torch.Tensor.cuda)

    def put_here(part):
        return put(part, cupy.cuda.runtime.getDevice())

    parts = spread(tensor.split(13), put=put_here)
    known = ecc.euler_curve(tensor, 16)
    assert_curves_equal(ecc.euler_curve_shards(parts, 16), known.values.numpy(), like=parts[0])


def test_work_follows_what_is_queued_and_nothing_overtakes_it():
    """Shards are written just before and just after, on streams of their own."""
    image = np.tile(VOLUME.astype(np.float32), (16, 16, 16))
    known = ecc.euler_curve(image, LEVELS).values
    halves = np.split(image, 2)
    devices = [cupy.cuda.Device(i % cupy.cuda.runtime.getDeviceCount()) for i in range(2)]
    sources = spread(halves)
    streams = []
    for device in devices:
        with device:
            streams.append(cupy.cuda.Stream(non_blocking=True))
    if devices[0] == devices[1]:
        streams[1] = streams[0]
    targets = [cupy.empty_like(sources[0])]
    with devices[1]:
        targets.append(cupy.empty_like(sources[1]))
    for device in devices:
        device.synchronize()
    found = []
    with devices[1], streams[1], devices[0], streams[0]:
        for _ in range(5):
            for device, target, source in zip(devices, targets, sources, strict=True):
                with device:
                    target[...] = source
            found.append(ecc.euler_curve_shards(targets, LEVELS, nan="omit").values)
            for device, target in zip(devices, targets, strict=True):
                with device:
                    target[...] = 7
        streams[0].synchronize()
    np.testing.assert_array_equal([values.get() for values in found], [known] * 5)


def test_a_cuda_graph_captures_the_call_on_all_devices():
    parts = spread(np.split(VOLUME.astype(np.float32), [13, 20, 31]))
    known = ecc.euler_curve_shards(parts, LEVELS, nan="omit").values
    with cupy.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        values = ecc.euler_curve_shards(parts, LEVELS, nan="omit").values
        graph = stream.end_capture()
        with parts[1].device:
            parts[1][...] = 300.0
            cupy.cuda.Device().synchronize()
        expected = ecc.euler_curve_shards(parts, LEVELS, nan="omit").values
        others = [cupy.ones(shape, np.int64) for shape in (4, 16, 64, 256, 1024)]
        for _ in range(2):
            graph.launch(stream)
        stream.synchronize()
        np.testing.assert_array_equal(values.get(), expected.get())
        assert all(bool((other == 1).all()) for other in others)
    assert (expected != known).any()


def test_parts_must_all_be_on_devices():
    parts = [cupy.asarray(VOLUME[:5]), VOLUME[5:]]
    message = "`shards` must have one library and kind of memory, got cupy on cuda:0, numpy"
    with pytest.raises(ValueError, match=message):
        ecc.euler_curve_shards(parts, LEVELS)


def lazily_spread(array, chunks):
    """A dask array whose chunks are on all devices in turn."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    lazy = da.from_array(array, chunks=chunks)

    def put(chunk, block_info=None):
        number = sum(block_info[0]["chunk-location"])
        with cupy.cuda.Device(number % cupy.cuda.runtime.getDeviceCount()):
            return cupy.asarray(chunk)

    return lazy.map_blocks(put, meta=cupy.empty((0,) * array.ndim, array.dtype))


def result_on_host(values):
    return cupy.asnumpy(values.compute())


@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_chunks_on_several_devices_add_up(dtype, connectivity):
    """Curves, Minkowski functionals and those of regions, of dask arrays."""
    image = VOLUME.astype(dtype)
    labels = (np.indices(image.shape).sum(axis=0) // 30).astype(np.int32)
    chunks = (13, 12, 30)
    options = {"connectivity": connectivity, "nan": "omit"}
    given = lazily_spread(image, chunks)
    found = result_on_host(ecc.euler_curve(given, LEVELS, **options).values)
    np.testing.assert_array_equal(found, ecc.euler_curve(image, LEVELS, **options).values)
    found = result_on_host(ecc.minkowski_curves(given, LEVELS, **options).values)
    np.testing.assert_array_equal(found, ecc.minkowski_curves(image, LEVELS, **options).values)
    regions = lazily_spread(labels, chunks)
    of_regions = {"connectivity": connectivity}
    found = ecc.region_curves(given, regions, LEVELS, **of_regions)
    known = ecc.region_curves(image, labels, LEVELS, **of_regions)
    np.testing.assert_array_equal(result_on_host(found.labels), known.labels)
    np.testing.assert_array_equal(result_on_host(found.values), known.values)
    found = ecc.region_minkowski(given, regions, LEVELS, **of_regions)
    known = ecc.region_minkowski(image, labels, LEVELS, **of_regions)
    np.testing.assert_array_equal(result_on_host(found.labels), known.labels)
    np.testing.assert_array_equal(result_on_host(found.values), known.values)


def test_what_is_not_computed_of_parts():
    """Boxes of an image that is on devices are not glued, and a list of parts is no image."""
    parts = spread(np.split(VOLUME, 2))
    with pytest.raises(TypeError, match="`image` must be one array, got a list of 2"):
        ecc.minkowski_curves(parts, LEVELS)
    with pytest.raises(TypeError, match="`image` must be one array, got a list of 2"):
        ecc.betti_curves(parts, LEVELS)
    with pytest.raises(TypeError, match="`image` must be one array, got a list of 2"):
        ecc.persistence_pairs(parts, dimension=0)
    lazy = lazily_spread(VOLUME.astype("u1"), (20, 21, 30))
    with pytest.raises(BackendError, match="copy the arrays to the host"):
        ecc.betti_curves(lazy, LEVELS).values.compute()
    with pytest.raises(BackendError, match="copy the arrays to the host"):
        ecc.persistence_pairs(lazy, dimension=0)
