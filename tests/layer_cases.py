"""Layers of curves and transforms, their images, and a training step of each."""

from copy import deepcopy

import torch

from ecc_core.nn import EulerCurveLayer, EulerCurveMap, EulerTransformLayer

RANGE = (-0.1, 1.1)
LEARNED = {"learn_thresholds": True, "learn_sharpness": True}
FIXED = {"learn_thresholds": False}
ALONG = {"range": RANGE, "direction_scale": 0.1}
SPACING = [1.0, 2.0, 0.5]
WEIGHTS = {"range": (-5, 5), "spacing": SPACING[1:], "connectivity": 1}
CASES = {
    "curve": ((2, 1, 9, 11), EulerCurveLayer(5, range=RANGE, **LEARNED)),
    "fixed": ((3, 8, 9), EulerCurveLayer([0.1, 0.2, 0.9], sharpness=9, **FIXED)),
    "superlevel": ((2, 40), EulerCurveLayer(40, range=RANGE, n_spatial=1, superlevel=True)),
    "directions": (
        (2, 2, 7, 34),
        EulerCurveLayer(4, directions=3, learn_direction_scale=True, **ALONG, **LEARNED),
    ),
    "volume": (
        (3, 4, 5, 6),
        EulerCurveLayer(4, directions=2, n_spatial=3, spacing=SPACING, **ALONG),
    ),
    "windows": ((2, 3, 9, 10), EulerCurveMap(4, window=5, stride=3, range=RANGE, **LEARNED)),
    "one channel": ((1, 8, 8), EulerCurveMap(3, window=4, stride=4, range=RANGE, superlevel=True)),
    "sides": ((2, 1, 8, 9), EulerCurveMap(3, window=6, padding=1, range=RANGE, normalize="side")),
    "transform": ((2, 6, 7), EulerTransformLayer(3, 5, learn_sharpness=True, **WEIGHTS)),
    "fixed heights": ((6, 7), EulerTransformLayer(3, 5, learn_heights=False, **WEIGHTS)),
}


def in_double(layer):
    """Return a copy of a layer with parameters of float64, on the CPU."""
    return deepcopy(layer).double().cpu()


def step(layer, image, is_needed=True, **backward):
    """Return the results of a layer, and the gradients of image and parameters."""
    image = image.clone().requires_grad_(is_needed)
    numbers = [tensor for tensor in (image, *layer.parameters()) if tensor.requires_grad]
    found = layer(image)
    kind = {"dtype": found.dtype, "device": found.device}
    upstream = torch.linspace(-1, 2, found.numel(), **kind).reshape(found.shape)
    slopes = torch.autograd.grad(found, numbers, upstream, **backward) if numbers else ()
    return found.detach(), slopes


def assert_near(found, known, terms):
    """Compare sums; `terms` is the sum of the absolute values of terms that may cancel."""
    assert found.shape == known.shape
    assert (found.double() - known).abs().max() <= 1e-4 * known.abs().max() + 3e-5 * terms


def assert_all_near(found, known, terms):
    """Compare gradients one by one, each of which is a sum of the same number of terms."""
    for one, other in zip(found, known, strict=True):
        assert_near(one, other, terms)
