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


def test_what_is_missing_says_so():
    device = cupy.zeros((4, 4))
    with pytest.raises(BackendError, match="`persistence_pairs` is not available on cuda"):
        ecc.persistence_pairs(device, 0)
    with pytest.raises(BackendError, match="`region_betti_curves` is not available on cuda"):
        ecc.region_betti_curves(device, device.astype(int))
    with pytest.raises(BackendError, match="`component_curves` is not available on cuda"):
        ecc.component_curves(device)
