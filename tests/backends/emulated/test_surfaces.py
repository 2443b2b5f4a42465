"""Surfaces by the CUDA kernel against those of the CPU backend, bit for bit."""

import numpy as np
import pytest
from fake_cupy import guarded

from ecc_core._backends.cpu.surface.launch import surface
from ecc_core._request.filtration import filtrations_of

# Dtypes, shapes and thresholds: codes of 8, 16 and 32 bits, bins in shared and in global memory.
CASES = {
    "bytes": ("uint8", (2, 9, 37), (np.arange(8), np.array([-1, 0, 2, 2, 2.5, 9, 300]))),
    "volumes": ("float32", (1, 4, 6, 21), (np.linspace(0, 7, 9), np.array([0.0, 3.0, 6.5]))),
    "global": ("float32", (1, 6, 33), (np.linspace(0, 7, 300), np.linspace(0, 8, 60))),
    "many": ("int64", (1, 3, 4, 5), (np.arange(-1, 70_000), np.array([1, 4]))),
    "lines": ("float64", (3, 40), (np.array([1.0, 5.0]), np.array([], np.float64))),
    "no level": ("uint8", (1, 5, 7), (np.array([-3, -2]), np.array([3]))),
}


@pytest.mark.parametrize(
    ("connectivity", "superlevel"), [(1, (False, True)), (None, (True, False))]
)
@pytest.mark.parametrize("case", CASES)
def test_surfaces(emulator, case, connectivity, superlevel):
    dtype, shape, thresholds = CASES[case]
    rng = np.random.default_rng(len(case))
    first, second = rng.integers(0, 8, (2, *shape)).astype(dtype)
    mask = rng.random(shape) < 0.9
    if first.dtype.kind == "f":
        first[rng.random(shape) < 0.05] = np.nan
        second[rng.random(shape) < 0.05] = np.inf
    filtrations = filtrations_of(len(shape) - 1, connectivity, superlevel, "omit")
    emulator.clear()
    arrays = [guarded(array) for array in (first, second, mask)]
    found = emulator.backend.surface.surface(*arrays[:2], thresholds, filtrations, mask=arrays[2])
    expected = surface(first, second, thresholds, filtrations, mask=mask)
    np.testing.assert_array_equal(np.asarray(found), expected)
    assert found.dtype == np.int64
    if expected.size:
        assert emulator.launched == ["recode", "recode", "surface"]
