"""Betti curves on CUDA devices equal those on NumPy arrays."""

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core.errors import BackendError
from ecc_core.testing import assert_arrays_equal

cupy = pytest.importorskip("cupy")

pytestmark = pytest.mark.gpu

RNG = np.random.default_rng(7)
VOLUME = RNG.integers(0, 200, (9, 20, 70))
SHAPES = [(41,), (1,), (13, 17), (1, 9), (6, 1), (7, 8, 9), (1, 6, 5), (33, 34, 70)]


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape, superlevel):
    for levels in (1, 2, 5, 256):
        image = RNG.integers(0, levels, shape, np.uint8)
        at = np.unique(np.linspace(0, levels - 1, 7).astype(int))
        for connectivity in {1, len(shape)}:
            options = {"connectivity": connectivity, "superlevel": superlevel}
            device = cupy.asarray(image)
            found = ecc.betti_curves(device, at, **options)
            known = ecc.betti_curves(image, at, **options)
            assert_arrays_equal(found.values, known.values, like=device)


@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i4", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize("superlevel", [False, True])
def test_dtypes_and_thresholds(dtype, superlevel):
    image = VOLUME.astype(dtype)
    device = cupy.asarray(image)
    for thresholds in (np.array([-1.0, 0.5, 1.0, 77.0, 300.0]), 16, 70_000, "exact"):
        found = ecc.betti_curves(device, thresholds, superlevel=superlevel)
        known = ecc.betti_curves(image, thresholds, superlevel=superlevel)
        assert_arrays_equal(found.values, known.values, like=device)
        np.testing.assert_array_equal(cupy.asnumpy(found.thresholds), known.thresholds)


def test_masks_nan_batches_and_layouts():
    shown = RNG.random(VOLUME.shape) < 0.8
    image = VOLUME.astype(np.float32)
    device = cupy.asarray(image)
    known = ecc.betti_curves(image, 20, mask=shown)
    found = ecc.betti_curves(device, 20, mask=cupy.asarray(shown))
    assert found.to_numpy() == ecc.betti_curves(image, found.thresholds.get(), mask=shown)
    assert (found.values.get() == known.values).all()
    holed = np.where(shown, image, np.nan)
    at = np.arange(0, 200, 9)
    found = ecc.betti_curves(cupy.asarray(holed), at, nan="omit")
    assert (found.values.get() == ecc.betti_curves(holed, at, nan="omit").values).all()
    with pytest.raises(ValueError, match="NaN"):
        ecc.betti_curves(cupy.asarray(holed), at)
    known = ecc.betti_curves(image, at, axis=(0, 2), connectivity=1)
    found = ecc.betti_curves(device[:, ::-1].transpose(2, 1, 0), at, axis=(2, 0), connectivity=1)
    assert (found.values.get()[::-1] == known.values).all()
    assert ecc.betti_curves(cupy.zeros((0, 4)), [1.0]).values.shape == (2, 1)


def test_torch():
    torch = pytest.importorskip("torch")
    image = torch.from_numpy(VOLUME.astype(np.float32)).cuda()
    found = ecc.betti_curves(image, 16)
    assert found.values.is_cuda
    assert found.to_numpy() == ecc.betti_curves(VOLUME.astype(np.float32), 16)
    half = image.to(torch.bfloat16)
    exact = ecc.betti_curves(half, "exact")
    assert exact.thresholds.dtype == torch.bfloat16
    known = ecc.betti_curves(half.float().cpu().numpy(), "exact")
    assert (exact.values.cpu().numpy() == known.values).all()
    assert ecc.betti_numbers(image > 90) == ecc.betti_numbers(VOLUME > 90)


def check_pairs(image, like, dimension, known, **options):
    found = ecc.persistence_pairs(image, dimension, **options)
    for name in ("births", "deaths", "birth_points", "death_points"):
        assert_arrays_equal(getattr(found, name), getattr(known, name), like=like)
    assert found.to_numpy() == known


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_pairs(shape, superlevel):
    """The same points in the same order, with ties and with points that never enter."""
    for levels, dtype in ((1, "u1"), (3, "i2"), (2, "bool"), (9, "f4"), (300, "f8"), (300, "u8")):
        image = RNG.integers(0, levels, shape).astype(dtype)
        shown = RNG.random(shape) < 0.9
        for connectivity in {1, len(shape)}:
            for dimension in {0, len(shape) - 1}:
                options = {"connectivity": connectivity, "superlevel": superlevel}
                known = ecc.persistence_pairs(image, dimension, **options)
                device = cupy.asarray(image)
                check_pairs(device, device, dimension, known, **options)
                known = ecc.persistence_pairs(image, dimension, mask=shown, **options)
                options["mask"] = cupy.asarray(shown)
                check_pairs(device, device, dimension, known, **options)


def test_pairs_of_large_images_that_last():
    """Enough edges to be added in several passes."""
    image = RNG.random((2200, 3000), np.float32)
    image[RNG.random(image.shape) < 0.01] = np.nan
    device = cupy.asarray(image)
    options = {"min_persistence": 0.25, "nan": "omit"}
    for connectivity in (1, 2):
        options["connectivity"] = connectivity
        check_pairs(device, device, None, ecc.persistence_pairs(image, **options), **options)
    with pytest.raises(ValueError, match="NaN"):
        ecc.persistence_pairs(device)
    empty = ecc.persistence_pairs(cupy.zeros((0, 4)))
    assert empty.births.shape == (0,)


def test_pairs_of_tensors():
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(VOLUME.astype(np.float32)).cuda()
    for dimension in (0, 2):
        known = ecc.persistence_pairs(VOLUME.astype(np.float32), dimension)
        check_pairs(tensor, tensor, dimension, known)
        shown = torch.from_numpy(VOLUME % 5 > 0).cuda()
        known = ecc.persistence_pairs(VOLUME.astype(np.float32), dimension, mask=VOLUME % 5 > 0)
        check_pairs(tensor, tensor, dimension, known, mask=shown)
        half = ecc.persistence_pairs(tensor.to(torch.bfloat16), dimension)
        assert half.to_numpy() == ecc.persistence_pairs(VOLUME.astype(np.float32), dimension)


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_regions(shape, superlevel):
    labels = RNG.integers(0, 5, shape)
    labels[..., 2:9] = 70
    labels[..., 5:6] = 0
    for dtype in ("u1", "f4", "f8"):
        image = RNG.integers(0, 20, shape).astype(dtype)
        for connectivity in {1, len(shape)}:
            for at in (np.array([0.5, 3, 8, 30]), 7):
                given = cupy.asarray(image), cupy.asarray(labels)
                options = {"connectivity": connectivity, "superlevel": superlevel}
                found = ecc.region_betti_curves(*given, at, **options)
                known = ecc.region_betti_curves(image, labels, at, **options)
                assert_arrays_equal(found.values, known.values, like=given[0])
                assert_arrays_equal(found.labels, known.labels, like=given[0])


def test_many_regions_and_tensors():
    torch = pytest.importorskip("torch")
    image = RNG.random((60, 200, 300), np.float32)
    labels = (np.arange(60) // 4)[:, None, None] * 1000 + (np.arange(200) // 9)[:, None] * 30
    labels = RNG.permutation(15_000)[labels + np.arange(300) // 11].astype(np.int32)
    known = ecc.region_betti_curves(image, labels, 20)
    found = ecc.region_betti_curves(
        torch.from_numpy(image).cuda(), torch.from_numpy(labels).cuda(), 20
    )
    assert found.values.is_cuda
    assert found.to_numpy() == known
    with pytest.raises(ValueError, match="NaN"):
        ecc.region_betti_curves(cupy.full((3, 4), np.nan), cupy.ones((3, 4), int), [0.0])
    none = ecc.region_betti_curves(cupy.zeros((3, 4)), cupy.zeros((3, 4), int), [0.0])
    assert none.values.shape == (0, 2, 1)


def test_what_is_missing_says_so():
    device = cupy.zeros((4, 4))
    with pytest.raises(BackendError, match="`dimension` must be 0 or 2 for a volume on a device"):
        ecc.persistence_pairs(cupy.zeros((3, 4, 5)))
    with pytest.raises(BackendError, match="`betti_curves` of classes that last is not available"):
        ecc.betti_curves(device, [0.0], min_persistence=1)
    with pytest.raises(BackendError, match="`component_curves` is not available on cuda"):
        ecc.component_curves(device)
