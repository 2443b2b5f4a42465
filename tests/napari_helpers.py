"""What several tests of the napari plugin need."""

import numpy as np
from numpy.testing import assert_array_equal
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from napari_ecc._controller.layers import PLUGIN_KEY

TIMEOUT = 120_000
"""Milliseconds for what is waited for; slow and loaded machines need some."""


def smooth(*shape, dtype=np.uint8, seed=0):
    noise = gaussian_filter(np.random.default_rng(seed).standard_normal(shape), 2)
    low, high = noise.min(), noise.max()
    scale = 255 if np.dtype(dtype).kind in "iu" else 1.0
    return ((noise - low) / (high - low) * scale).astype(dtype)


def settle(qtbot, panel):
    qtbot.waitUntil(lambda: not panel.controller.running, timeout=TIMEOUT)


def assert_curve_of(panel, image, **options):
    curve = panel.model.curve
    assert curve.stage == "complete"
    expected = ecc.euler_curve(image, curve.thresholds, **{"superlevel": True, **options})
    assert_array_equal(curve.values, expected.values)
    return curve


def overlays(viewer):
    return [layer for layer in viewer.layers if PLUGIN_KEY in layer.metadata]


def coloured(overlay, image):
    """Where the graphics card colours the overlay: as it computes, in float32."""
    low, high = (np.float32(limit) for limit in overlay.contrast_limits)
    share = (np.clip(image.astype(np.float32), low, high) - low) / (high - low)
    colours = overlay.colormap.map(share.ravel())
    return (colours[:, 3] > 0).reshape(image.shape)
