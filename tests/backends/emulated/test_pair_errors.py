"""Errors of persistence pairs by the CUDA kernels against those of torch operators."""

import numpy as np
import pytest
import torch
from fake_cupy import guarded

from ecc_core._request.filtration import Filtration
from ecc_core.nn._pairs import pair_errors


@pytest.mark.parametrize(
    ("shape", "connectivity", "masked"),
    [
        ((3, 17), 1, False),
        ((2, 9, 33), 2, True),
        pytest.param((2, 4, 5, 6), 3, False, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("levels", [4, 1000])
def test_equal_to_those_of_torch(emulator, shape, connectivity, masked, levels):
    """Of classes that last equally long, those that torch lists first are kept."""
    rng = np.random.default_rng(levels)
    images = (rng.integers(0, levels, shape) / (levels - 1)).astype(np.float32)
    targets = rng.random(shape) < 0.4
    targets[0] = False
    mask = rng.random(shape) < 0.85 if masked else None
    options = len(shape) - 1, connectivity, True
    errors, slopes = emulator.backend.pair_errors.pair_errors(
        guarded(images),
        guarded(targets),
        None if mask is None else guarded(mask),
        Filtration(*options),
        0.3,
    )
    shown = None if mask is None else torch.from_numpy(mask)
    given = torch.from_numpy(images), torch.from_numpy(targets), shown
    known = pair_errors(*given, connectivity, 0.3)
    torch.testing.assert_close(torch.from_numpy(np.array(errors)), known[0])
    torch.testing.assert_close(torch.from_numpy(np.array(slopes)), known[1])


def test_nan_is_refused_where_it_is_shown(emulator):
    images = np.zeros((2, 5, 6), np.float32)
    images[1, 2, 3] = np.nan
    targets = np.zeros(images.shape, bool)
    find = emulator.backend.pair_errors.pair_errors
    filtration = Filtration(2, 2, True)
    shown = ~np.isnan(images)
    errors, _ = find(guarded(images), guarded(targets), guarded(shown), filtration, 0)
    np.testing.assert_array_equal(errors, 0)
    shown[...] = True
    with pytest.raises(ValueError, match="must not contain NaN"):
        find(guarded(images), guarded(targets), None, filtration, 0)
    with pytest.raises(ValueError, match="must not contain NaN"):
        find(guarded(images), guarded(targets), guarded(shown), filtration, 0)
