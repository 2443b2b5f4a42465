"""Curves of sliding windows: equal to those of each window, with gradients, at every scale."""

import math

import numpy as np
import pytest
from nn_helpers import noise, torch

from ecc_core.nn import EulerCurveLayer, EulerCurveMap

SHAPES = {1: (29,), 2: (21, 26), 3: (13, 15, 14)}


@pytest.mark.parametrize("n_spatial", [1, 2, 3])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize(("side", "stride", "padding"), [(8, 4, 0), (9, 4, 2), (5, 7, 3)])
@pytest.mark.parametrize("masked", ["each", "all", "none"])
def test_any_window_and_stride(n_spatial, superlevel, side, stride, padding, masked):
    """Points that are masked and those of the padding never enter."""
    shape = SHAPES[n_spatial]
    image = noise(2, *shape, dtype=torch.float64)
    mask = noise(2, *shape, seed=1) > 0.1
    levels = noise(4, seed=2).sort().values
    options = {"sharpness": 20.0, "n_spatial": n_spatial, "dtype": torch.float64}
    options["superlevel"] = superlevel
    layer = EulerCurveMap(levels, window=side, stride=stride, padding=padding, **options)
    single = EulerCurveLayer(levels, **options)
    shown = {"each": mask[:, None], "all": mask[0], "none": None}[masked]
    found = layer(image[:, None], shown)
    inside = torch.ones_like(mask) if shown is None else shown.reshape(-1, *shape)
    sides = [padding] * 2 * n_spatial
    whole, inside = (torch.nn.functional.pad(x, sides) for x in (image, inside.expand_as(mask)))
    assert found.shape == (2, 4, *((n - side) // stride + 1 for n in whole.shape[1:]))
    for position in np.ndindex(*found.shape[2:]):
        part = (slice(None), *(slice(stride * p, stride * p + side) for p in position))
        expected = single(whole[part], inside[part])
        torch.testing.assert_close(found[(slice(None), slice(None), *position)], expected)


@pytest.mark.filterwarnings("ignore:There is a performance drop", "ignore:.torch.jit.script. is")
def test_jacobians():
    image = noise(1, 21, 21, dtype=torch.float64)
    layer = EulerCurveMap([0.2, 0.6], window=14, stride=7, padding=0, dtype=torch.float64)
    expected = torch.autograd.functional.jacobian(layer, image)
    torch.testing.assert_close(torch.func.jacrev(layer)(image), expected)
    torch.testing.assert_close(torch.func.jacfwd(layer)(image), expected)
    curves = layer(image.requires_grad_())  # The gradients of a plain call are mapped.
    rows = torch.eye(curves.numel(), dtype=image.dtype).reshape(-1, *curves.shape)
    (found,) = torch.autograd.grad(curves, image, rows, is_grads_batched=True)
    torch.testing.assert_close(found.reshape(expected.shape), expected)


def test_order_of_features_and_centres_of_scales():
    image = noise(2, 3, 20, 18)
    levels = [0.2, 0.5, 0.9]
    layer = EulerCurveMap(levels, window=(4, 8), stride=4, padding=0)
    single = EulerCurveLayer(levels)
    found = layer(image)
    assert found.shape == (2, 18, 4, 3)
    for channel in range(3):
        for row, column in ((0, 0), (3, 2), (1, 1)):
            y = 4 * row
            x = 4 * column
            small = image[:, channel, y + 2 : y + 6, x + 2 : x + 6]
            large = image[:, channel, y : y + 8, x : x + 8]
            expected = torch.cat([single(small), single(large)], -1)
            features = found[:, 6 * channel : 6 * channel + 6, row, column]
            torch.testing.assert_close(features, expected)


def test_same_padding():
    image = noise(1, 9, 10)
    levels = [0.2, 0.5, 0.9]
    found = EulerCurveMap(levels, window=6, stride=3)(image)
    assert found.shape == (3, 3, 4)
    single = EulerCurveLayer(levels)
    # The windows span (3 - 1) * 3 + 6 = 12 rows and 15 columns: 1 and 2 before the image.
    torch.testing.assert_close(found[:, 0, 0], single(image[0, :5, :4]))
    torch.testing.assert_close(found[:, 1, 1], single(image[0, 2:8, 1:7]))
    torch.testing.assert_close(found[:, 2, 3], single(image[0, 5:, 7:]))
    whole = EulerCurveMap(levels, window=24, stride=24)(image)
    torch.testing.assert_close(whole[:, 0, 0], single(image[0]))


def test_normalization_and_calibration():
    image = 10 + 5 * noise(4, 2, 24, 24)
    layer = EulerCurveMap(6, window=(4, 8), normalize="batch")
    maps = layer(image)
    assert layer.thresholds[0].item() == pytest.approx(10.05, abs=0.03)
    assert layer.stride == 2
    maps = maps.unflatten(1, (2, 12))
    torch.testing.assert_close(maps.mean((0, 1, 3, 4)), torch.zeros(12), atol=1e-4, rtol=0)
    plain, shares = (
        EulerCurveMap(6, window=(4, 8), range=(10, 15), normalize=n) for n in (None, "side")
    )
    sides = torch.tensor([4.0] * 6 + [8.0] * 6).repeat(2)[:, None, None]
    torch.testing.assert_close(shares(image) * sides, plain(image))


def test_repr():
    assert repr(EulerCurveMap(5, window=(4, 8), range=(0, 1))) == (
        "EulerCurveMap(thresholds=5, window=(4, 8), stride=2, padding='same', n_spatial=2, "
        "connectivity=2, learned=[thresholds])"
    )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"window": 0}, ValueError, "`window` must be a positive int, got 0"),
        ({"window": 2.5}, TypeError, "`window` must be a positive int, got 2.5"),
        ({"window": ()}, ValueError, "`window` must be at least one int, got none"),
        ({"stride": -1}, ValueError, "`stride` must be a positive int, got -1"),
        ({"padding": 10**30}, ValueError, "`padding` must fit in 63 bits, got an int of 100 bits"),
        ({"padding": -1}, ValueError, "`padding` must not be negative, got -1"),
        ({"padding": "valid"}, TypeError, "`padding` must be an int or \"same\", got 'valid'"),
        ({"normalize": "mean"}, ValueError, '`normalize` must be None, "side" or "batch"'),
    ],
)
def test_errors(options, error, message):
    with pytest.raises(error, match=message):
        EulerCurveMap(4, range=(0, 1), **options)


def test_errors_of_calls():
    layer = EulerCurveMap([0.2, 0.6], window=8, padding=1)
    with pytest.raises(ValueError, match="`image` must have at least 3 axes"):
        layer(noise(9, 9))
    with pytest.raises(ValueError, match="`image` must have at least 6 points along each"):
        layer(noise(1, 9, 5))
    with pytest.raises(ValueError, match="`image` must not contain NaN"):
        layer(torch.full((1, 9, 9), math.nan))
    beginning_at_points = EulerCurveMap([0.2, 0.6], window=8)
    with pytest.raises(ValueError, match=r"`image` must have points along each .*, got \(0, 5\)"):
        beginning_at_points(torch.zeros(1, 0, 5))


@pytest.mark.parametrize("window", [8, 32])
@pytest.mark.parametrize(("batch", "channels"), [(0, 1), (2, 0)])
def test_maps_of_no_images_are_empty(window, batch, channels):
    layer = EulerCurveMap(5, window=window, stride=window // 2, range=(0, 1))
    found = layer(torch.rand(batch, channels, 64, 64))
    assert found.shape == (batch, 5 * channels, *[64 // (window // 2)] * 2)
