"""Comparison of results for arrays on a device with those for NumPy arrays."""

import numpy as np
import pytest

from ecc_core.testing import assert_arrays_equal

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")


def to_torch(array):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.from_numpy(np.asarray(array)).cuda()


PUT = pytest.mark.parametrize("put", [cupy.asarray, to_torch], ids=["cupy", "torch"])


def assert_same(function, images, *given, put=cupy.asarray, mask=None, **options):
    """Compare the results for arrays and a mask on the host with those on the device.

    Results must stay on the device, and an array of thresholds must be returned as it is.
    """
    images = images if isinstance(images, tuple) else (images,)
    there = [put(array) for array in images]
    shown = {} if mask is None else {"mask": put(mask)}
    found = function(*there, *given, **shown, **options)
    known = function(*images, *given, **({} if mask is None else {"mask": mask}), **options)
    if not hasattr(known, "_fields"):
        assert_arrays_equal(found, known, like=there[0])
        return
    computed = not given or np.isscalar(given[0])
    for name, part, expected in zip(known._fields, found, known, strict=True):
        like = there[0] if computed or not name.startswith("thresholds") else None
        assert_arrays_equal(part, expected, like=like)
    assert found.facts == known.facts
