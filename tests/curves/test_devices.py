"""The argument `devices` of euler_curve: what is refused, and how."""

import importlib.util

import numpy as np
import pytest

import ecc_core as ecc

IMAGE = np.zeros((4, 5, 6), np.uint8)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"devices": 0}, TypeError, "`devices` must be a sequence of ints, got 0"),
        ({"devices": ["gpu"]}, TypeError, r"`devices` must be a sequence of ints, got \['gpu'\]"),
        (
            {"devices": []},
            ValueError,
            r"`devices` must be distinct non-negative device numbers, got \[\]",
        ),
        ({"devices": [0, -1]}, ValueError, r"distinct non-negative device numbers, got \[0, -1\]"),
        ({"devices": [1, 1]}, ValueError, r"distinct non-negative device numbers, got \[1, 1\]"),
        ({"mask": IMAGE > 0}, ValueError, "`mask` must be None together with `devices`"),
        ({"axis": (1, 2)}, ValueError, "`axis` must be None together with `devices`, got tuple"),
        ({"direction": [1, 0, 0]}, ValueError, "`direction` must be None together with `devices`"),
        (
            {"image": np.ma.array(IMAGE, mask=IMAGE == 0)},
            ValueError,
            "`mask` must be None together with `devices`",
        ),
        (
            {"thresholds": "exact"},
            ValueError,
            "`thresholds` must be an int or an array together with `devices`, got 'exact'",
        ),
        (
            {"image": IMAGE[0, 0]},
            ValueError,
            r"`image` must have 2 or 3 axes together with `devices`, got shape \(6,\)",
        ),
        (
            {"image": IMAGE * 1j},
            TypeError,
            "`image` must have a boolean, integer or real floating dtype",
        ),
        ({"connectivity": 2}, ValueError, "`connectivity` must be 1 or 3 for a 3-D image, got 2"),
        ({"nan": "skip"}, ValueError, '`nan` must be "raise" or "omit"'),
    ],
)
def test_messages(arguments, error, message):
    given = {"image": IMAGE, "thresholds": [0], "devices": [0], **arguments}
    with pytest.raises(error, match=message):
        ecc.euler_curve(given.pop("image"), given.pop("thresholds"), **given)


def test_dask_arrays_are_refused():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    message = r"`devices` must be None for an image that is not in host memory, got \[0\]"
    with pytest.raises(ValueError, match=message):
        ecc.euler_curve(da.from_array(IMAGE), [0], devices=[0])


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_without_cupy():
    message = r"`devices` need CuPy: install napari-ecc\[cuda12\] or napari-ecc\[cuda13\]"
    with pytest.raises(ecc.errors.BackendError, match=message):
        ecc.euler_curve(IMAGE, [0], devices=[0])
