"""The default range: every dtype and layout, masks, directions, values that are not finite."""

import itertools

import numpy as np
import pytest
from oracles import euler as reference

import ecc_core as ecc

SHAPES = [(1, 131), (1, 33, 70), (2, 5, 9, 67), (1, 3, 4, 500), (1, 1, 1)]
DTYPES = ["bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", ">f4", ">i2"]
DIRECTED = ("u1", "i2", "f4", ">f4", "f8")
"""Types with which a direction is tested, too."""


def layouts(image):
    flip = (slice(None), *[slice(None, None, -1)] * (image.ndim - 1))
    yield image
    yield np.asfortranarray(image)
    yield np.repeat(image, 2, -1)[..., ::2]
    yield image[flip].copy()[flip]
    yield np.moveaxis(np.ascontiguousarray(np.moveaxis(image, 1, -1)), -1, 1)
    yield np.broadcast_to(image[..., :1], image.shape)


@pytest.mark.parametrize("dtype", DTYPES)
def test_value_range(dtype):
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        lowest = -40 if np.dtype(dtype).kind in "fi" else 0
        image = (rng.random(shape) * 90 + lowest).astype(dtype)
        if image.dtype.kind == "f":
            for value in (np.inf, -np.inf, np.nan):
                image[rng.random(shape) < 0.1] = value
        axes = tuple(range(1, image.ndim))
        along = {"direction": np.eye(len(axes))[0], "direction_scale": 2.0, "spacing": 1.5}
        masks = None, rng.random(shape) < 0.3, np.zeros(shape, bool)
        directions = ({}, along) if dtype in DIRECTED else ({},)
        for view, mask, direction in itertools.product(layouts(image), masks, directions):
            options = {"axis": axes, "mask": mask, "workers": 2, **direction}
            values = view.astype(float)
            if direction:
                given = direction.values()
                values = np.stack([reference.directional(x, *given) for x in values])
            kept = values if mask is None else values[mask]
            finite = kept[np.isfinite(kept)]
            if finite.size:
                found = ecc.euler_curve(view, 2, nan="omit", **options).thresholds
                np.testing.assert_array_equal(found, [finite.min(), finite.max()])
            else:
                with pytest.raises(ValueError, match="`range` must be given"):
                    ecc.euler_curve(view, 2, nan="omit", **options)
            if np.isnan(kept).any():
                with pytest.raises(ValueError, match="NaN"):
                    ecc.euler_curve(view, 2, **options)


def test_images_of_several_blocks_have_thresholds_of_their_own():
    """They share a plan, and curves at corresponding thresholds; the third one has been seen."""
    image = np.random.default_rng(5).integers(0, 81, (700, 900)).astype(np.uint8)
    image[0, :2] = 0, 80
    curves = [ecc.euler_curve(given, 81, workers=1) for given in (image, 3 * image + 7, image)]
    ranges = [(0, 80), (7, 247), (0, 80)]
    for curve, ends in zip(curves, ranges, strict=True):
        np.testing.assert_array_equal(curve.thresholds, np.linspace(*ends, 81))
        np.testing.assert_array_equal(curve.values, curves[0].values)
    assert ecc.euler_number(image <= 40) == curves[0].values[40]


def test_calls_with_masks_follow_their_own_points():
    """Masks of one layout share a plan, and points that are masked do not change the curve."""
    image = np.random.default_rng(6).integers(0, 9, (31, 40)).astype(np.uint8)
    for kept in (np.s_[:20], np.s_[9:], np.s_[:20]):
        mask = np.zeros(image.shape, bool)
        mask[kept] = True
        found = ecc.euler_curve(image, np.arange(9), mask=mask)
        alone = ecc.euler_curve(image[kept], np.arange(9))
        np.testing.assert_array_equal(found.values, alone.values)
