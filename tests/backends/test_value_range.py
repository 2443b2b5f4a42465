"""The range of an image: every dtype and layout, masks, directions, values that are not finite."""

import itertools

import numpy as np
import pytest

from ecc_core._backends.cpu import launch
from ecc_core._request.filtration import Direction, Filtration

SHAPES = [(1, 131), (1, 33, 70), (2, 5, 9, 67), (1, 3, 4, 500), (1, 1, 1)]
DTYPES = ["bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", ">f4", ">i2"]


def layouts(image):
    flip = (slice(None), *[slice(None, None, -1)] * (image.ndim - 1))
    yield image
    yield np.asfortranarray(image)
    yield np.repeat(image, 2, -1)[..., ::2]
    yield image[flip].copy()[flip]
    yield np.moveaxis(np.ascontiguousarray(np.moveaxis(image, 1, -1)), -1, 1)
    yield np.broadcast_to(image[..., :1], image.shape)


def expected_range(image, mask, direction):
    if direction is not None:
        image = np.stack([direction.add(one, (0,) * one.ndim) for one in image])
    values = image if mask is None else image[mask]
    values = values[np.isfinite(values)]
    return (values.min(), values.max()) if values.size else (None, None)


@pytest.mark.parametrize("dtype", DTYPES)
def test_value_range(dtype):
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        image = (rng.random(shape) * 90 - (40 if np.dtype(dtype).kind in "fi" else 0)).astype(dtype)
        if image.dtype.kind == "f":
            for value in (np.inf, -np.inf, np.nan):
                image[rng.random(shape) < 0.1] = value
        ndim = image.ndim - 1
        along = Direction((1.0, 0.0, 0.0)[:ndim], 2.0, (1.5,) * ndim, shape[1:])
        masks = None, rng.random(shape) < 0.3, np.zeros(shape, bool)
        for view, mask, direction in itertools.product(layouts(image), masks, (None, along)):
            filtration = Filtration(ndim, 1, nan="omit", direction=direction)
            found = launch.value_range(view, filtration, mask=mask, workers=2)
            assert found == expected_range(view, mask, direction)
            with np.errstate(invalid="ignore"):
                kept = view if mask is None else view[mask]
            if np.isnan(kept.astype(float)).any():
                strict = Filtration(ndim, 1, direction=direction)
                with pytest.raises(ValueError, match="NaN"):
                    launch.value_range(view, strict, mask=mask)
