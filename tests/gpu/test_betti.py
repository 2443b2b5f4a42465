"""Betti curves on CUDA devices equal those on NumPy arrays."""

import numpy as np
import pytest
from filtrations import with_connectivities
from gpu_helpers import assert_same, cupy, to_torch
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from ecc_core.errors import BackendError

RNG = np.random.default_rng(7)
VOLUME = RNG.integers(0, 200, (9, 20, 70))
SHAPES = [(41,), (1,), (13, 17), (1, 9), (6, 1), (7, 8, 9), (1, 6, 5), (33, 34, 70)]


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize(("shape", "connectivity"), with_connectivities(SHAPES))
@pytest.mark.parametrize("levels", [1, 2, 5, 256])
def test_shapes(superlevel, shape, connectivity, levels):
    image = RNG.integers(0, levels, shape, np.uint8)
    at = np.unique(np.linspace(0, levels - 1, 7).astype(int))
    options = {"connectivity": connectivity, "superlevel": superlevel}
    assert_same(ecc.betti_curves, image, at, **options)


@pytest.mark.parametrize(
    "thresholds",
    [np.array([-1.0, 0.5, 1.0, 77.0, 300.0]), 16, 70_000, "exact"],
    ids=["given", "16", "70000", "exact"],
)
@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i4", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize("superlevel", [False, True])
def test_dtypes_and_thresholds(dtype, superlevel, thresholds):
    assert_same(ecc.betti_curves, VOLUME.astype(dtype), thresholds, superlevel=superlevel)


def test_masks_nan_batches_and_layouts():
    shown = RNG.random(VOLUME.shape) < 0.8
    at = np.arange(0, 200, 9)
    image = VOLUME.astype(np.float32)
    assert_same(ecc.betti_curves, image, 20, mask=shown)
    holed = np.where(shown, image, np.nan)
    assert_same(ecc.betti_curves, holed, at, nan="omit")
    with pytest.raises(ValueError, match="NaN"):
        ecc.betti_curves(cupy.asarray(holed), at)
    known = ecc.betti_curves(image, at, axis=(0, 2), connectivity=1)
    view = cupy.asarray(image)[:, ::-1].transpose(2, 1, 0)
    found = ecc.betti_curves(view, at, axis=(2, 0), connectivity=1)
    assert (found.values.get()[::-1] == known.values).all()
    assert ecc.betti_curves(cupy.zeros((0, 4)), [1.0]).values.shape == (2, 1)


def test_torch():
    torch = pytest.importorskip("torch")
    assert_same(ecc.betti_curves, VOLUME.astype(np.float32), 16, put=to_torch)
    image = to_torch(VOLUME.astype(np.float32))
    half = image.to(torch.bfloat16)
    exact = ecc.betti_curves(half, "exact")
    assert exact.thresholds.dtype == torch.bfloat16
    known = ecc.betti_curves(half.float().cpu().numpy(), "exact")
    assert (exact.values.cpu().numpy() == known.values).all()
    assert ecc.betti_numbers(image > 90) == ecc.betti_numbers(VOLUME > 90)


@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_pairs_of_tensors(dimension):
    torch = pytest.importorskip("torch")
    volume = VOLUME.astype(np.float32)
    assert_same(ecc.persistence_pairs, volume, dimension, put=to_torch)
    assert_same(ecc.persistence_pairs, volume, dimension, put=to_torch, mask=VOLUME % 5 > 0)
    half = to_torch(volume).to(torch.bfloat16)
    pairs = ecc.persistence_pairs(half, dimension)
    assert pairs.to_numpy() == ecc.persistence_pairs(volume, dimension)


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize(("shape", "connectivity"), with_connectivities(SHAPES))
@pytest.mark.parametrize(
    ("levels", "dtype"), [(1, "u1"), (3, "i2"), (2, "bool"), (9, "f4"), (300, "f8"), (300, "u8")]
)
def test_pairs(superlevel, shape, connectivity, levels, dtype):
    """The same points in the same order, with ties and with points that never enter."""
    image = RNG.integers(0, levels, shape).astype(dtype)
    options = {"connectivity": connectivity, "superlevel": superlevel}
    assert_same(ecc.persistence_pairs, image, **options)
    assert_same(ecc.persistence_pairs, image, mask=RNG.random(shape) < 0.9, **options)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "f4", "f8"])
@pytest.mark.parametrize("sigma", [0, 1, 3])
@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("superlevel", [False, True])
def test_tunnels(sigma, dtype, connectivity, superlevel):
    """There are so many tunnels that threads compete for rows."""
    image = gaussian_filter(RNG.normal(size=(48, 60, 70)), sigma)
    image = (image - image.min()) / (image.max() - image.min())
    levels = 200 if np.dtype(dtype).kind in "iu" else 1
    image = (image * levels).astype(dtype)
    options = {"connectivity": connectivity, "superlevel": superlevel}
    assert_same(ecc.persistence_pairs, image, 1, **options)


@pytest.mark.parametrize("dtype", ["bool", "u1", "i2", "f2", "f4", "f8"])
@pytest.mark.parametrize(
    ("shape", "connectivity"), with_connectivities([(41,), (13, 17), (7, 8, 9), (33, 34, 70)])
)
def test_what_lasts(dtype, shape, connectivity):
    image = RNG.integers(0, 20, shape).astype(dtype)
    least = 1 if dtype == "bool" else 2.5
    labels = RNG.integers(0, 4, shape)
    mask = RNG.random(shape) < 0.9
    options = {"connectivity": connectivity, "min_persistence": least}
    assert_same(ecc.betti_curves, image, np.array([0.5, 3, 8, 30]), mask=mask, **options)
    assert_same(ecc.betti_curves, image, 7, mask=mask, **options)
    assert_same(ecc.betti_curves, image, "exact", mask=mask, **options)
    assert_same(ecc.region_betti_curves, (image, labels), 7, **options)


@pytest.mark.parametrize("connectivity", [1, 2])
def test_pairs_of_large_images_that_last(connectivity):
    """Enough edges to be added in several passes."""
    image = RNG.random((2200, 3000), np.float32)
    image[RNG.random(image.shape) < 0.01] = np.nan
    options = {"min_persistence": 0.25, "nan": "omit", "connectivity": connectivity}
    assert_same(ecc.persistence_pairs, image, **options)


def test_nan_in_images():
    image = np.ones((30, 40), np.float32)
    image[7, 8] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        ecc.persistence_pairs(cupy.asarray(image))


def test_pairs_of_nothing():
    assert ecc.persistence_pairs(cupy.zeros((0, 4))).births.shape == (0,)


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize(("shape", "connectivity"), with_connectivities(SHAPES))
@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
def test_regions(superlevel, shape, connectivity, dtype):
    labels = RNG.integers(0, 5, shape)
    labels[..., :1] = 3  # An image of one point has a region, too.
    labels[..., 2:9] = 70
    labels[..., 5:6] = 0
    arrays = RNG.integers(0, 20, shape).astype(dtype), labels
    options = {"connectivity": connectivity, "superlevel": superlevel}
    assert_same(ecc.region_betti_curves, arrays, np.array([0.5, 3, 8, 30]), **options)
    assert_same(ecc.region_betti_curves, arrays, 7, **options)


def test_many_regions_and_tensors():
    image = RNG.random((60, 200, 300), np.float32)
    labels = (np.arange(60) // 4)[:, None, None] * 1000 + (np.arange(200) // 9)[:, None] * 30
    labels = RNG.permutation(15_000)[labels + np.arange(300) // 11].astype(np.int32)
    assert_same(ecc.region_betti_curves, (image, labels), 20, put=to_torch)
    with pytest.raises(ValueError, match="NaN"):
        ecc.region_betti_curves(cupy.full((3, 4), np.nan), cupy.ones((3, 4), int), [0.0])
    none = ecc.region_betti_curves(cupy.zeros((3, 4)), cupy.zeros((3, 4), int), [0.0])
    assert none.values.shape == (0, 2, 1)


PERIODIC = [
    ((9,), "periodic"),
    ((2,), "periodic"),
    ((2, 33), ("periodic", "closed")),
    ((2, 20, 2), "periodic"),
    ((1,), "periodic"),
    ((13, 17), "periodic"),
    ((33, 70), ("periodic", "closed")),
    ((1, 9), "periodic"),
    ((9, 20, 70), "periodic"),
    ((9, 20, 70), ("closed", "periodic", "closed")),
    ((9, 20, 70), ("periodic", "closed", "periodic")),
    ((1, 6, 5), "periodic"),
    ((7, 1, 1), ("closed", "periodic", "periodic")),
]


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize(("shape", "boundary"), PERIODIC)
@pytest.mark.parametrize("cubes", [False, True])
@pytest.mark.parametrize("levels", [1, 2, 9, 100])
def test_periodic_images(shape, boundary, superlevel, cubes, levels):
    at = np.array([0.5, 3, 8, 30, 99])
    shown = RNG.random(shape) < 0.97
    shown.flat[0] = True  # Default thresholds need a point that enters.
    connectivity = len(shape) if cubes else 1
    options = {"connectivity": connectivity, "superlevel": superlevel, "boundary": boundary}
    image = RNG.integers(0, levels, shape, np.uint8)
    assert_same(ecc.betti_curves, image, at, **options)
    assert_same(ecc.betti_curves, image.astype(np.float32), 7, mask=shown, **options)
    assert_same(ecc.betti_curves, image.astype(np.float64), "exact", **options)


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize(("shape", "boundary"), PERIODIC)
@pytest.mark.parametrize("cubes", [False, True])
@pytest.mark.parametrize(
    ("levels", "dtype"), [(1, "u1"), (3, "u2"), (9, "i1"), (100, "f4"), (300, "f8")]
)
def test_pairs_of_periodic_images(shape, boundary, superlevel, cubes, levels, dtype):
    """The same points in the same order, and classes of regions that touch opposite sides."""
    shown = RNG.random(shape) < 0.97
    labels = RNG.integers(0, 3, shape)
    labels[..., :3] = 5
    connectivity = len(shape) if cubes else 1
    options = {"connectivity": connectivity, "superlevel": superlevel, "boundary": boundary}
    image = RNG.integers(0, levels, shape).astype(dtype)
    assert_same(ecc.persistence_pairs, image, mask=shown, **options)
    assert_same(ecc.persistence_pairs, image, min_persistence=2, **options)
    regions = image, labels
    assert_same(ecc.region_betti_curves, regions, 7, range=(0, 99), **options)
    lasting = options | {"min_persistence": 2.5}
    assert_same(ecc.region_betti_curves, regions, 7, range=(0, 99), **lasting)
    lasting = options | {"min_persistence": 20, "mask": shown}
    assert_same(ecc.betti_curves, image, np.array([0.5, 3, 8, 30, 99]), **lasting)
    assert_same(ecc.betti_curves, image, "exact", **lasting)


@pytest.mark.parametrize("boundary", ["periodic", ("periodic", "closed", "periodic")])
@pytest.mark.parametrize("sigma", [0, 1, 3, 10])
@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("superlevel", [False, True])
def test_tunnels_of_periodic_volumes(sigma, boundary, connectivity, superlevel):
    """Threads compete for rows of so many tunnels, some of which wind around the torus."""
    image = gaussian_filter(RNG.normal(size=(40, 36, 50)), sigma, mode="wrap").astype(np.float32)
    options = {"connectivity": connectivity, "superlevel": superlevel, "boundary": boundary}
    assert_same(ecc.persistence_pairs, image, **options)


@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize("boundary", ["periodic", ("periodic", "periodic", "closed")])
@pytest.mark.parametrize("sigma", [1, 4, 12])
@pytest.mark.parametrize("connectivity", [1, 3])
def test_smooth_periodic_images(monkeypatch, boundary, passes, sigma, connectivity):
    """Their sets wind around the torus, along all axes at some levels, in several passes too."""
    if passes:
        from ecc_core._backends.cuda import forests

        monkeypatch.setattr(forests, "FEW_EDGES", 0)
    image = gaussian_filter(RNG.random((40, 30, 50), np.float32), sigma, mode="wrap")
    options = {"connectivity": connectivity, "boundary": boundary}
    assert_same(ecc.betti_curves, image, 300, **options)
    assert_same(ecc.betti_curves, np.stack([image, -image]), 5, axis=(1, 2, 3), **options)


@pytest.mark.parametrize("boundary", ["periodic", ("periodic", "periodic", "closed")])
def test_bands_around_a_torus(boundary):
    diagonal = np.indices((12, 12, 12)).sum(axis=0)
    bands = np.sin(diagonal * np.pi / 6).astype(np.float32)
    assert_same(ecc.betti_curves, bands, 50, boundary=boundary, put=to_torch)


def test_what_is_missing_says_so():
    device = cupy.zeros((4, 4))
    with pytest.raises(BackendError, match="`betti_matching` is not available on cuda:0"):
        ecc.betti_matching(device, device)
