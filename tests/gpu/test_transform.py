"""Transforms of CuPy arrays and torch tensors equal those of NumPy arrays, bit for bit."""

import numpy as np
import pytest
from filtrations import with_connectivities
from gpu_helpers import assert_same, cupy, to_torch
from transform_cases import some_directions, some_heights

import ecc_core as ecc
from ecc_core.testing import assert_arrays_equal

SHAPES = [(7,), (130,), (9, 6), (1, 5), (5, 1), (33, 64), (3, 4, 5), (5, 3, 66), (1, 1, 40)]
CUBE = np.random.default_rng(3).random((70, 90, 100)) < 0.5


def assert_same_at_all_heights(
    image, directions, function=ecc.euler_transform, reach=None, **options
):
    """Compare transforms at evenly spaced heights over the image, at uneven and infinite ones."""
    reach = np.linalg.norm(image.shape) / 2 if reach is None else reach
    for heights in some_heights(reach):
        assert_same(function, image, directions, heights, **options)


@pytest.mark.parametrize("density", [0.2, 0.6, 1.0])
@pytest.mark.parametrize(("shape", "connectivity"), with_connectivities(SHAPES))
@pytest.mark.parametrize("spaced", [False, True])
def test_masks(density, shape, connectivity, spaced):
    mask = np.random.default_rng(1).random(shape) < density
    steps = [1.0, 0.3, 1.7][: mask.ndim] if spaced else None
    given = mask, some_directions(mask.ndim)
    assert_same_at_all_heights(*given, connectivity=connectivity, spacing=steps)


@pytest.mark.parametrize("unit", [1, 0.125])
@pytest.mark.parametrize(("shape", "connectivity"), with_connectivities(SHAPES))
def test_weights_whose_sums_are_exact(unit, shape, connectivity):
    weights = np.random.default_rng(1).integers(-3, 9, shape) * unit
    given = weights, some_directions(weights.ndim)
    assert_same_at_all_heights(*given, connectivity=connectivity, weighted=True)


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_sums_of_floats_are_as_good_as_those_of_the_cpu_and_the_same_in_every_run(scale):
    weights = np.random.default_rng(2).standard_normal((40, 90)) * scale
    device = cupy.asarray(weights)
    runs = [ecc.euler_transform(device, 20, 100, weighted=True).values for _ in range(3)]
    known = ecc.euler_transform(weights, 20, 100, weighted=True).values
    np.testing.assert_allclose(runs[0].get(), known, rtol=0, atol=1e-12 * np.abs(weights).max())
    assert_arrays_equal(runs[1], runs[0].get(), like=device)
    assert_arrays_equal(runs[2], runs[0].get(), like=device)


@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "i8", "f2", "f4"])
def test_dtypes(dtype):
    assert_same(ecc.euler_transform, CUBE[0].astype(dtype), 7, 30)
    assert_same(ecc.euler_transform, (CUBE[0] * 3).astype(dtype), 7, 30, weighted=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("part", "given"),
    [
        (np.s_[:], (200, 40)),
        (np.s_[:9], (5, 70_000)),
        (np.s_[:3, :5], (600, 3)),
        (np.s_[:], (1, 3)),
    ],
    ids=["directions", "heights", "both", "few"],
)
def test_more_directions_points_and_heights_than_a_block_has_room_for(weighted, part, given):
    image = CUBE * np.arange(100) if weighted else CUBE
    assert_same(ecc.euler_transform, image[part], *given, weighted=weighted)


@pytest.mark.parametrize("dtype", ["u1", "i4", "i8"])
@pytest.mark.parametrize("normalize", [None, "radius"])
@pytest.mark.parametrize(
    ("shape", "connectivity"), with_connectivities([(30,), (12, 15), (1, 7), (16, 7, 18)])
)
def test_regions(dtype, normalize, shape, connectivity):
    small = (np.random.default_rng(5).integers(0, 6, shape) * 7).astype(dtype)
    labels = np.kron(small, np.ones((2,) * small.ndim, dtype))
    options = {"connectivity": connectivity, "spacing": 0.3, "normalize": normalize}
    assert_same(ecc.region_transforms, labels, 7, 20, **options)
    reach = np.linalg.norm(shape) / 2
    assert_same_at_all_heights(labels, 7, ecc.region_transforms, reach, **options)


def test_many_regions_and_none():
    ids = np.arange(40 * 50).reshape(40, 50)
    labels = np.kron(ids, np.ones((5, 5), np.int64)) * 10**12
    assert_same(ecc.region_transforms, labels, 9, 33)
    assert_same(ecc.region_transforms, np.zeros((4, 5), np.int32), 9, [0.0, 1.0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("image", [np.zeros((0, 4), bool), CUBE[0]], ids=["no points", "points"])
@pytest.mark.parametrize(
    "given",
    [(0, [0.0, 1.0]), (3, []), (3, [0.0, 1.0])],
    ids=["no directions", "no heights", "both"],
)
def test_empty_results(weighted, image, given):
    assert_same(ecc.euler_transform, image, *given, weighted=weighted)


@pytest.mark.parametrize("layout", ["strided", "transposed", "a part"])
def test_layouts(layout):
    image = cupy.asarray(CUBE)
    view = {
        "strided": image[::-1, ::2],
        "transposed": image.transpose(2, 0, 1),
        "a part": image[:, 1:, 3:],
    }[layout]
    found = ecc.euler_transform(view, 9, 30).values
    assert_arrays_equal(found, ecc.euler_transform(view.get(), 9, 30).values, like=image)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    assert_same(ecc.euler_transform, CUBE, 9, 30, put=to_torch)
    assert_same(ecc.region_transforms, CUBE * 3, 9, 30, put=to_torch)
    weights = torch.from_numpy(CUBE * 1.5).to(torch.bfloat16)
    found, known = (
        ecc.euler_transform(array, 9, 30, weighted=True) for array in (weights.cuda(), weights)
    )
    assert all(array.is_cuda for array in found)
    torch.testing.assert_close([array.cpu() for array in found], list(known), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("image", "options", "message"),
    [
        (np.array([[0, 2, 1]]), {}, "`image` must be boolean, or 0 and one other value, unless"),
        (np.array([[1.0, np.nan]]), {"weighted": True}, "`image` must be finite .* got NaN"),
        (np.array([[2**62]]), {"weighted": True}, r"`image` must hold weights below 2\*\*62"),
    ],
)
def test_wrong_images(image, options, message):
    with pytest.raises(ValueError, match=message):
        ecc.euler_transform(cupy.asarray(image), 4, 5, **options)
    with pytest.raises(ValueError, match="`labels` must not be negative, got -1"):
        ecc.region_transforms(cupy.asarray([[-1, 2]]), 4, 5)


def test_the_current_stream_is_used():
    image = cupy.asarray(CUBE)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        late = image.copy()
        late[...] = False
        for _ in range(50):  # The transform has to wait for this work.
            late |= image
        values = ecc.euler_transform(late, 9, 30).values
    stream.synchronize()
    assert_arrays_equal(values, ecc.euler_transform(CUBE, 9, 30).values, like=image)


def test_another_device():
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two devices")

    def put(array):
        with cupy.cuda.Device(1):
            return cupy.asarray(array)

    labels = CUBE.astype(np.uint8)
    assert_same(ecc.euler_transform, labels, 9, 30, put=put)
    assert_same(ecc.euler_transform, labels, 9, 30, put=put, weighted=True)
    assert_same(ecc.region_transforms, labels, 9, 30, put=put)
    assert cupy.cuda.runtime.getDevice() == 0
