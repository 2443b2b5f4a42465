"""Surfaces by the CUDA kernel against those of the CPU backend, bit for bit."""

import numpy as np
import pytest
from fake_cupy import guarded
from skimage.measure import euler_number

from ecc_core._backends.cpu.surface import surface
from ecc_core._request.filtration import filtration_of, flag_pair

# Dtypes, shapes and thresholds: codes of 8, 16 and 32 bits, bins in shared and in global memory. Of
# "wide codes" there are few, as a block adds up the pairs of each level of the first image.
CASES = {
    "bytes": ("uint8", (2, 9, 37), (np.arange(8), np.array([-1, 0, 2, 2, 2.5, 9, 300]))),
    "volumes": ("float32", (1, 4, 6, 21), (np.linspace(0, 7, 9), np.array([0.0, 3.0, 6.5]))),
    "global": ("float32", (1, 6, 33), (np.linspace(0, 7, 300), np.linspace(0, 8, 60))),
    "wide codes": ("int64", (1, 3, 4, 5), (np.arange(-1, 300), np.array([1, 4]))),
    "many": ("int64", (1, 3, 4, 5), (np.arange(-1, 70_000), np.array([1, 4]))),
    "lines": ("float64", (3, 40), (np.array([1.0, 5.0]), np.array([], np.float64))),
    "no level": ("uint8", (1, 5, 7), (np.array([-3, -2]), np.array([3]))),
}


def filtrations_of(ndim, connectivity, superlevel, nan):
    flags = flag_pair(superlevel)
    return tuple(filtration_of(ndim, connectivity, flag, nan) for flag in flags)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("connectivity", "superlevel"), [(1, (False, True)), (None, (True, False))]
)
@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[pytest.mark.slow] * (name == "many")) for name in CASES]
)
def test_surfaces(emulator, case, connectivity, superlevel, monkeypatch):
    if case == "wide codes":
        monkeypatch.setattr(emulator.backend.recode, "LEVELS_OF_SHORTS", 256)
        monkeypatch.setattr(emulator.backend.surface, "SHARED_BYTES", 0)
    dtype, shape, thresholds = CASES[case]
    rng = np.random.default_rng(len(case))
    first, second = rng.integers(0, 8, (2, *shape)).astype(dtype)
    mask = rng.random(shape) < 0.9
    if first.dtype.kind == "f":
        first[rng.random(shape) < 0.05] = np.nan
        second[rng.random(shape) < 0.05] = np.inf
    filtrations = filtrations_of(len(shape) - 1, connectivity, superlevel, "omit")
    arrays = [guarded(array) for array in (first, second, mask)]
    found = emulator.backend.surface.surface(*arrays[:2], thresholds, filtrations, mask=arrays[2])
    expected = surface(first, second, thresholds, filtrations, mask=mask)
    np.testing.assert_array_equal(np.asarray(found), expected)
    assert found.dtype == np.int64
    if expected.size:
        assert emulator.scans == ["recode", "recode", "surface"]


ENDS = ("largest", "both", "beyond a single", "one infinite", "all")


@pytest.mark.sweep
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint64"])
def test_values_at_both_ends_of_a_dtype(emulator, dtype, ends, superlevel):
    """Against scikit-image. Keys may be infinite as float32, by which bins are guessed."""
    rng = np.random.default_rng(1)
    info = np.finfo(dtype) if dtype[0] == "f" else np.iinfo(dtype)
    first = rng.integers(0, 3, (1, 6, 9)).astype(np.uint8)
    second = rng.integers(0, 5, (1, 6, 9)).astype(dtype)
    at = {
        "largest": [info.max],
        "both": [info.min, info.max],
        "beyond a single": [-1e299, 1e299],
        "one infinite": [np.inf],
        "all": [-np.inf, info.min, -1, 0, 1, info.max],
    }
    values = [info.min, info.max] + [-np.inf, np.inf] * (dtype[0] == "f")
    second[rng.random(second.shape) < 0.6] = 0
    second.flat[:28] = np.resize(np.array(values, dtype), 28)
    thresholds = np.arange(3), np.array(at[ends])
    filtrations = filtrations_of(2, None, superlevel, "raise")
    surface = emulator.backend.surface.surface
    found = np.asarray(surface(guarded(first), guarded(second), thresholds, filtrations))
    # Python's numbers do not wrap.
    exact = np.array(second.ravel().tolist(), object).reshape(first[0].shape)
    expected = np.empty(found.shape[1:], int)
    for i, j in np.ndindex(*expected.shape):
        a, b = thresholds[0][i], thresholds[1][j].item()
        one = first[0] >= a if superlevel else first[0] <= a
        other = exact >= b if superlevel else exact <= b
        expected[i, j] = euler_number(one & other.astype(bool), 2)
    np.testing.assert_array_equal(found[0], expected)
