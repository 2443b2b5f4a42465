"""Arguments of soft curves and transforms: what is refused, and in which words."""

import numpy as np
import pytest
import torch

from ecc_core.nn.functional import soft_euler_curve, soft_euler_transform

IMAGE = torch.linspace(0, 1, 30).reshape(5, 6)
LEVELS = torch.linspace(0.1, 0.9, 4)
NAN = torch.full((5, 6), torch.nan)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"image": IMAGE.numpy()}, TypeError, "`image` must be a torch tensor, got ndarray"),
        ({"image": IMAGE.cfloat()}, TypeError, "`image` must be a tensor of booleans, integers or"),
        ({"image": IMAGE[0]}, ValueError, r"`image` must have at least 2 axes .*, got \(6,\)"),
        ({"n_spatial": 4}, ValueError, "`n_spatial` must be 1, 2 or 3, got 4"),
        ({"n_spatial": True}, ValueError, "`n_spatial` must be 1, 2 or 3, got True"),
        ({"connectivity": 3}, ValueError, "`connectivity` must be 1 or 2 for a 2-D image, got 3"),
        ({"ties": "first"}, ValueError, '`ties` must be "raster" or "split", got \'first\''),
        ({"thresholds": LEVELS[None]}, ValueError, r"`thresholds` must have shape \(n,\), got"),
        ({"thresholds": LEVELS.cfloat()}, TypeError, "`thresholds` must be a tensor of booleans"),
        ({"thresholds": LEVELS.to("meta")}, ValueError, "must be on the image's device"),
        ({"thresholds": LEVELS * torch.nan}, ValueError, "`thresholds` must not contain NaN"),
        ({"sharpness": 0.0}, ValueError, "`sharpness` must be positive, got 0.0"),
        ({"sharpness": torch.tensor(-1.0)}, ValueError, "`sharpness` must be positive and finite"),
        ({"sharpness": float("inf")}, ValueError, "`sharpness` must be finite, got inf"),
        ({"sharpness": torch.ones(2)}, ValueError, "`sharpness` must be one number, got shape"),
        ({"direction": [1.0]}, ValueError, r"`direction` must have shape \(2,\), got \(1,\)"),
        ({"direction": [0.0, 0.0]}, ValueError, "`direction` must be finite and not zero"),
        ({"direction_scale": 2.0}, ValueError, "`direction_scale` must come with a `direction`"),
        ({"spacing": [1.0]}, ValueError, "`spacing` must be one number or 2 of them"),
        ({"spacing": -1.0}, ValueError, "`spacing` must be positive and finite, got -1.0"),
        ({"mask": np.ones((5, 6), bool)}, TypeError, "`mask` must be a tensor of booleans"),
        ({"mask": IMAGE}, TypeError, "`mask` must be a tensor of booleans"),
        ({"mask": torch.ones(6, 5, dtype=torch.bool)}, ValueError, "`mask` must have the image's"),
        ({"image": NAN}, ValueError, "`image` must not contain NaN"),
        ({"image": IMAGE.to_sparse()}, TypeError, "`image` must be a dense tensor"),
        ({"image": IMAGE.to(torch.float8_e5m2)}, TypeError, "`image` must be a tensor of booleans"),
        ({"mask": (IMAGE > 0).to_sparse()}, TypeError, "`mask` must be a dense tensor"),
        ({"thresholds": LEVELS.to_sparse()}, TypeError, "`thresholds` must be a dense tensor"),
        ({"thresholds": "ab"}, TypeError, "`thresholds` must be real numbers, got 'ab'"),
        ({"thresholds": ["1"]}, TypeError, r"`thresholds` must be real numbers, got \['1'\]"),
        ({"thresholds": [[1], [2, 3]]}, TypeError, "`thresholds` must be real numbers"),
        ({"thresholds": None}, TypeError, "`thresholds` must be real numbers, got None"),
        ({"sharpness": "5"}, TypeError, "`sharpness` must be a real number, got '5'"),
        ({"sharpness": None}, TypeError, "`sharpness` must be a real number, got None"),
        ({"sharpness": True}, TypeError, "`sharpness` must be a real number, got True"),
        ({"sharpness": 5j}, TypeError, "`sharpness` must be a real number, got 5j"),
        ({"spacing": "12"}, TypeError, "`spacing` must be a real number, got '12'"),
        ({"spacing": [1, [2]]}, TypeError, r"`spacing` must be a real number, got \[2\]"),
        ({"direction": "xy"}, TypeError, "`direction` must be real numbers, got 'xy'"),
        (
            {"direction": [1, 0], "direction_scale": "1"},
            TypeError,
            "`direction_scale` must be a real number, got '1'",
        ),
        ({"superlevel": "no"}, TypeError, "`superlevel` must be True or False, got 'no'"),
    ],
)
def test_refused_curves(change, error, words):
    given = {"image": IMAGE, "thresholds": LEVELS, "sharpness": 5.0}
    with pytest.raises(error, match=words):
        soft_euler_curve(**{**given, **change})


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"weights": [[1.0]]}, TypeError, "`weights` must be a torch tensor, got list"),
        ({"directions": [1.0, 0.0]}, ValueError, r"`directions` must have shape \(k, 2\)"),
        ({"directions": [[0.0, 0.0]]}, ValueError, "`directions` must be finite and not zero"),
        ({"heights": [torch.nan]}, ValueError, "`heights` must not contain NaN"),
        ({"extension": "mean"}, ValueError, '`extension` must be "max" or "min"'),
        ({"weights": NAN}, ValueError, "`weights` must be finite"),
        ({"weights": IMAGE / 0}, ValueError, "`weights` must be finite"),
        ({"weights": -1 / IMAGE}, ValueError, "`weights` must be finite"),
        ({"heights": "ab"}, TypeError, "`heights` must be real numbers, got 'ab'"),
        ({"directions": "ab"}, TypeError, "`directions` must be real numbers, got 'ab'"),
        ({"sharpness": -2.0}, ValueError, "`sharpness` must be positive, got -2.0"),
    ],
)
def test_refused_transforms(change, error, words):
    given = {"weights": IMAGE, "directions": [[1.0, 0.0]], "heights": LEVELS, "sharpness": 5.0}
    with pytest.raises(error, match=words):
        soft_euler_transform(**{**given, **change})


@pytest.mark.parametrize("ties", ["raster", "split"])
@pytest.mark.parametrize("axes", [None, 2, 4])
@pytest.mark.parametrize("shape", [(0, 5, 6), (2, 0, 5, 6), (3, 0, 6), (3, 5, 0)])
def test_empty_images_have_zero_curves(shape, axes, ties):
    image = torch.zeros(shape, requires_grad=True)
    thresholds = LEVELS.clone().requires_grad_()
    mask = None if axes is None else torch.ones(shape[-axes:], dtype=torch.bool)
    curve = soft_euler_curve(image, thresholds, sharpness=5.0, mask=mask, ties=ties)
    assert curve.shape == (*shape[:-2], 4)
    assert not curve.any()
    curve.sum().backward()
    assert image.grad.shape == shape
    assert not thresholds.grad.any()
    transform = soft_euler_transform(image, [[1.0, 0.0]] * 3, LEVELS, sharpness=5.0)
    assert transform.shape == (*shape[:-2], 3, 4)
    assert not transform.any()


def test_no_thresholds_give_empty_curves():
    image = IMAGE.clone().requires_grad_()
    curve = soft_euler_curve(image, [], sharpness=5.0)
    assert curve.shape == (0,)
    curve.sum().backward()
    assert not image.grad.any()
    assert soft_euler_transform(image, [[1.0, 0.0]], [], sharpness=5.0).shape == (1, 0)
    no_directions = torch.zeros(0, 2)
    assert soft_euler_transform(image, no_directions, LEVELS, sharpness=5.0).shape == (0, 4)


@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        *((dtype, torch.float32) for dtype in (torch.bool, torch.uint8, torch.int16)),
        *((dtype, torch.float64) for dtype in (torch.int32, torch.int64)),
    ],
)
def test_integers_are_converted_without_loss(dtype, result):
    image = (10 * IMAGE).to(dtype)
    thresholds = LEVELS.clone().requires_grad_()
    curve = soft_euler_curve(image, thresholds, sharpness=5.0)
    assert curve.dtype == result
    assert torch.equal(curve, soft_euler_curve(image.to(result), thresholds, sharpness=5.0))
    curve.sum().backward()
    assert thresholds.grad.any()


def test_masked_points_may_be_nan():
    mask = torch.ones(5, 6, dtype=torch.bool)
    mask[2, 3] = False
    results = []
    for hidden in (torch.nan, 7.0):
        image = IMAGE.masked_fill(~mask, hidden).requires_grad_()
        curve = soft_euler_curve(image, LEVELS, sharpness=5.0, mask=mask)
        results.append((curve, *torch.autograd.grad(curve.sum(), image)))
    torch.testing.assert_close(*results, rtol=0, atol=0)
    assert results[0][1][2, 3] == 0


def test_one_mask_for_a_batch():
    images = torch.stack([IMAGE, 1 - IMAGE])
    mask = IMAGE < 0.8
    together = soft_euler_curve(images, LEVELS, sharpness=5.0, mask=mask)
    apart = [soft_euler_curve(image, LEVELS, sharpness=5.0, mask=mask) for image in images]
    assert torch.equal(together, torch.stack(apart))


@pytest.mark.parametrize(
    "spacing",
    [np.array([1.0, 0.5]), torch.tensor([1.0, 0.5]), [np.float32(1), 0.5]],
    ids=["numpy", "torch", "list"],
)
@pytest.mark.parametrize("number", [np.float64, np.float32, np.array, torch.tensor])
def test_numbers_of_numpy_and_torch(number, spacing):
    def curve(levels, number, spacing):
        numbers = {"sharpness": number(5.0), "direction_scale": number(0.5)}
        options = {"direction": [1.0, 2.0], "connectivity": 1, "spacing": spacing}
        return soft_euler_curve(IMAGE, levels, **numbers, **options)

    expected = curve(LEVELS, float, (1.0, 0.5))
    assert torch.equal(curve(LEVELS.numpy(), number, spacing), expected)


def test_negated_views():
    image = torch.complex(IMAGE, -IMAGE).conj().imag
    levels = torch.complex(LEVELS, -LEVELS).conj().imag
    assert image.is_neg()
    assert torch.equal(image, IMAGE)
    expected = soft_euler_curve(IMAGE, LEVELS, sharpness=5.0)
    assert torch.equal(soft_euler_curve(image, levels, sharpness=5.0), expected)
