"""Host volumes, slab by slab, on all devices there are."""

import functools

import numpy as np
import pytest
from oracles import euler as reference

import ecc_core as ecc
from ecc_core._request.filtration import Filtration
from ecc_core.testing import assert_curves_equal

cupy = pytest.importorskip("cupy")
cupyx = pytest.importorskip("cupyx")
stream = pytest.importorskip("ecc_core._backends.cuda.stream")


class Sliced:
    """Like a zarr array: shape, dtype, and slices that become arrays."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, index):
        return self.array[index].copy()


@pytest.fixture
def devices():
    return list(range(cupy.cuda.runtime.getDeviceCount()))


@pytest.mark.parametrize("cubes", [False, True])
@pytest.mark.parametrize("shape", [(1, 9, 20), (23, 18, 40), (50, 33)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("source", ["array", "pinned", "slices", "reversed"])
@pytest.mark.parametrize("used", ["one", "one thrice", "all"])
def test_slabs_add_up(cubes, shape, dtype, devices, source, used):
    rng = np.random.default_rng(1)
    volume = (rng.random(shape) * 200).astype(dtype)
    pinned = cupyx.empty_like_pinned(volume)
    pinned[...] = volume
    levels = np.linspace(0, 200, 50)
    connectivity = volume.ndim if cubes else 1
    filtration = Filtration(volume.ndim, connectivity)
    known = reference.euler_curve(volume, levels, connectivity=connectivity)
    size = volume[0].nbytes
    sources = {
        "array": volume,
        "pinned": pinned,
        "slices": Sliced(volume),
        "reversed": volume[::-1],
    }
    several = {"one": devices[:1], "one thrice": devices[:1] * 3, "all": devices}
    curves = [
        stream.curve(sources[source], levels, filtration, devices=several[used], slab_bytes=slab)[0]
        for slab in (1, 5 * size, 1 << 20)
    ]
    np.testing.assert_array_equal(curves, [known] * 3)


@pytest.fixture
def small_slabs(monkeypatch):
    """Many slabs and pieces also of small volumes."""
    monkeypatch.setattr(stream, "PIECE_BYTES", 1000)
    monkeypatch.setattr(stream, "THREAD_BYTES", 1000)
    monkeypatch.setattr(stream, "curve", functools.partial(stream.curve, slab_bytes=5000))


VOLUME = np.random.default_rng(7).integers(0, 200, (40, 21, 30))


def check(image, *thresholds, devices, known=VOLUME, **options):
    """Compare the curve of slabs with that of an array on the host."""
    found = ecc.euler_curve(image, *thresholds, devices=devices, **options)
    known = ecc.euler_curve(known, *thresholds, **options)
    assert_curves_equal(found, known.values, thresholds=known.thresholds)


@pytest.mark.parametrize(
    "dtype", ["bool", "u1", "i1", "i2", "u4", "i8", "f2", "f4", "f8", ">f4", ">i2"]
)
@pytest.mark.parametrize("thresholds", [np.array([-1.0, 0.5, 77.0, 300.0]), 16])
@pytest.mark.parametrize("layout", ["C", "plane", "F", "strided"])
@pytest.mark.parametrize(
    "options", [{}, {"connectivity": 1, "superlevel": True}], ids=["default", "superlevel"]
)
def test_public_function(dtype, thresholds, devices, small_slabs, layout, options):
    volume = VOLUME.astype(dtype)
    image = {
        "C": volume,
        "plane": volume[3],
        "F": np.asfortranarray(volume),
        "strided": volume[::2, ::-1, 3:],
    }[layout]
    check(image, thresholds, devices=devices, known=image, **options)


@pytest.mark.parametrize("shape", [(40, 21, 30), (41, 21, 30), (5, 3, 4), (1, 6, 7), (2, 6)])
@pytest.mark.parametrize("depth", [1, 4, 16, 64])
def test_chunks_are_read_once(shape, depth, devices, small_slabs):
    array = np.resize(VOLUME, shape).astype(np.uint8)
    reads = []

    class Chunked(Sliced):
        chunks = (depth, *shape[1:])

        def __getitem__(self, index):
            reads.append(index)
            return super().__getitem__(index)

    for devices_, bounds in ((devices, (0, 200)), (devices, None), (devices[:1], None)):
        reads.clear()
        check(Chunked(array), 9, devices=devices_, known=array, range=bounds)
        if depth == 16 and len(devices_) == 1:  # Two devices would read the chunk where they meet.
            chunks = [range(index.start // depth, -(-index.stop // depth)) for index in reads]
            expected = list(range(-(-shape[0] // 16)))
            assert sorted(chunk for read in chunks for chunk in read) == expected


def test_zarr_arrays(devices, tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    stored = zarr.create_array(store=tmp_path, shape=VOLUME.shape, dtype="i4", chunks=(16, 21, 30))
    stored[...] = VOLUME
    check(stored, 9, devices=devices)


def test_memory_maps_and_read_only_arrays(devices, small_slabs, tmp_path):
    np.save(tmp_path / "volume.npy", VOLUME.astype(np.float32))
    mapped = np.load(tmp_path / "volume.npy", mmap_mode="r")
    constant = np.array(mapped)
    constant.flags.writeable = False
    check(mapped, np.linspace(0, 200, 21), devices=devices)
    check(constant, np.linspace(0, 200, 21), devices=devices)


@pytest.mark.parametrize("kind", ["float32", "pinned", "bfloat16"])
def test_tensors_on_the_host(devices, kind):
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(VOLUME.astype(np.float32))
    image = {
        "float32": tensor,
        "pinned": tensor.pin_memory(),
        "bfloat16": tensor.to(torch.bfloat16),
    }[kind]
    found = ecc.euler_curve(image, 16, devices=devices)
    known = ecc.euler_curve(image, 16)
    assert_curves_equal(found, known.values.numpy(), like=tensor)


def test_ranges_of_values_that_are_not_finite(devices, small_slabs):
    volume = VOLUME.astype(np.float32)
    volume[7, 0, 0], volume[30, 2, 2] = np.inf, -np.inf
    check(volume, 16, devices=devices, known=volume)
    check(volume, np.array([0.0, np.inf]), devices=devices, known=volume)
    volume[12, 1, 1] = np.nan
    with pytest.raises(ValueError, match="`image` must not contain NaN"):
        ecc.euler_curve(volume, 16, devices=devices)
    with pytest.raises(ValueError, match="`image` must not contain NaN"):
        ecc.euler_curve(volume, np.array([0.0]), devices=devices)
    check(volume, 16, devices=devices, known=volume, nan="omit")
    with pytest.raises(ValueError, match="`range` must be given for an image without finite"):
        ecc.euler_curve(np.full((9, 9), np.inf), 16, devices=devices)


def test_booleans_whose_true_is_another_byte(devices, small_slabs):
    mask = np.random.default_rng(3).random((23, 18, 40)) < 0.5
    odd = (mask * np.uint8(254)).view(np.bool_)
    check(odd, 3, devices=devices, known=mask)
    check(odd, np.array([0.0, 1.0]), devices=devices, known=mask)


@pytest.mark.parametrize("shape", [(0, 3, 4), (5, 0, 4), (5, 3, 0)])
def test_empty_volumes(devices, shape):
    found = ecc.euler_curve(np.zeros(shape), [0.0, 1.0], devices=devices)
    np.testing.assert_array_equal(found.values, [0, 0])


def test_devices_that_do_not_exist_and_images_on_devices(devices):
    count = len(devices)
    message = rf"`devices` must be numbers below {count}, of CUDA devices, got \[0, {count}\]"
    with pytest.raises(ValueError, match=message):
        ecc.euler_curve(VOLUME, [0], devices=[0, count])
    with pytest.raises(ValueError, match=r"not in host memory, got \[0\] for cupy on cuda:0"):
        ecc.euler_curve(cupy.asarray(VOLUME), [0], devices=[0])


def test_an_error_while_reading_is_raised(devices):
    class Broken(Sliced):
        def __getitem__(self, index):
            raise OSError("cannot read")

    with pytest.raises(OSError, match="cannot read"):
        ecc.euler_curve(Broken(VOLUME), [0], devices=devices)
    check(VOLUME, [50], devices=devices)
