"""Layers whose parameters are all learned, and other fixtures of tests of layers."""

import pytest
import torch

from ecc_core.nn import EulerCurveLayer, EulerTransformLayer

SHAPES = {1: (13,), 2: (6, 7), 3: (4, 5, 3)}
ALL_CURVE = {"learn_sharpness": True, "learn_directions": True, "learn_direction_scale": True}
ALL_TRANSFORM = {"learn_sharpness": True}


def noise(*shape, dtype=torch.float32, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def draw(*shape, dtype=torch.float32):
    return noise(*shape, dtype=dtype, seed=sum(shape))


def draw_normal(*shape, seed=None):
    seed = sum(shape) if seed is None else seed
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def curve_layer(n_spatial=2, **options):
    start = {"range": (0, 1), "directions": 2, "direction_scale": 0.1, "n_spatial": n_spatial}
    return EulerCurveLayer(5, **{**start, **ALL_CURVE, **options})


def transform_layer(n_spatial=2, **options):
    start = {"range": (-4, 4), "n_spatial": n_spatial}
    return EulerTransformLayer(3, 6, **{**start, **ALL_TRANSFORM, **options})


LAYERS = pytest.mark.parametrize("make", [curve_layer, transform_layer])


def take_a_wild_step(layer, rate, seed):
    """Take an optimizer step along a random gradient."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in layer.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    torch.optim.SGD(layer.parameters(), rate).step()


HARD = pytest.mark.parametrize("hard", [None, "forward"])
