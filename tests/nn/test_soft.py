"""Soft curves and transforms: values and gradients against plain PyTorch and the exact results."""

import numpy as np
import pytest
import torch
from oracles import soft as reference
from soft_helpers import (
    check_transform,
    check_windows,
    draw,
    gradients,
    leaves,
    plain_curve,
    relative,
)

import ecc_core as ecc
from ecc_core._backends.cpu.soft.coefficients import coefficients
from ecc_core.nn.functional import soft_euler_curve, soft_euler_transform

SHAPES = [(2, 33), (2, 11, 13), (2, 6, 7, 8)]
CASES = [
    pytest.param(shape, connectivity, id=f"{len(shape) - 1}d-{'V' if connectivity == 1 else 'T'}")
    for shape in SHAPES
    for connectivity in sorted({1, len(shape) - 1})
]
THIN = [(3, 1, 7), (3, 7, 1), (3, 1, 1, 7), (3, 7, 1, 5), (3, 4, 5, 1)]
DTYPES = pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float32, 1e-5), (torch.float64, 1e-11)], ids=["float32", "float64"]
)


@DTYPES
@pytest.mark.parametrize("superlevel", [False, True], ids=["sub", "super"])
@pytest.mark.parametrize(("shape", "connectivity"), CASES)
def test_curve_equals_the_reference(shape, connectivity, superlevel, dtype, bound):
    """Infinite points are steps without a gradient."""
    ndim = len(shape) - 1
    image = draw(shape, dtype)
    image[0, ..., 3], image[1, ..., 4] = torch.inf, -torch.inf
    thresholds = torch.linspace(-0.4, 1.3, 9, dtype=dtype)
    numbers = [torch.tensor(x, dtype=dtype) for x in (9.0, [0.3, -1.0, 0.8][:ndim], 0.11)]
    options = {"spacing": 0.5, "connectivity": connectivity, "superlevel": superlevel}
    options["mask"] = draw(shape, seed=1) < 0.85
    found, wanted = leaves([image, thresholds, *numbers])
    vector = {"direction": found[3], "direction_scale": found[4], "n_spatial": ndim}
    curve = soft_euler_curve(*found[:2], sharpness=found[2], **vector, **options)
    plain = plain_curve(*wanted, **options)
    assert curve.dtype == dtype
    assert curve.shape == (2, 9)
    assert relative(curve, plain) < bound
    errors = list(map(relative, gradients(curve, found), gradients(plain, wanted)))
    if ndim == 1:
        del errors[3]  # In 1-D a direction has no derivative.
    assert max(errors) < bound


@DTYPES
@pytest.mark.parametrize("extension", ["max", "min"])
@pytest.mark.parametrize(
    ("shape", "connectivity"), [*CASES, *((shape, 1) for shape in THIN), ((3, 1, 1), 2)]
)
def test_transform_equals_the_reference(shape, connectivity, extension, dtype, bound):
    check_transform(shape, connectivity, extension, dtype, tolerances=(bound, bound))


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("dtype", "sharpness"),
    [
        *((torch.float32, sharpness) for sharpness in (0.05, 2.0)),
        *((torch.float64, sharpness) for sharpness in (0.05, 2.0, 20.0)),
    ],
)
@pytest.mark.parametrize("of_weights", [True, False])
def test_transform_of_many_points(dtype, of_weights, sharpness):
    """More points than one thread takes, few of them set, and heights in any order.

    Sharper curves of float32 images have gradients that depend on the last bits of directions.
    """
    shape = (3, 70, 90)
    weights = draw(shape, dtype) * (draw(shape, dtype, seed=1) < 0.05)
    directions = torch.randn(6, 2, generator=torch.Generator().manual_seed(2), dtype=dtype)
    heights = (draw((40,), dtype, seed=3) - 0.5) * 120
    found, wanted = leaves([weights, directions, heights, torch.tensor(sharpness, dtype=dtype)])
    own = found if of_weights else [weights, *found[1:]]
    transform = soft_euler_transform(*own[:3], sharpness=own[3], connectivity=1)
    unit = torch.nn.functional.normalize(wanted[1], dim=1)
    options = {"connectivity": 1, "spacing": (1.0, 1.0), "extension": "max"}
    plain = reference.soft_transform(wanted[0], unit, *wanted[2:], **options)
    bound = 1e-5 if dtype == torch.float32 else 1e-11
    assert relative(transform, plain) < bound
    inputs = [part if of_weights else part[1:] for part in (found, wanted)]
    each = gradients(transform, inputs[0]), gradients(plain, inputs[1])
    assert max(map(relative, *each)) < bound


@pytest.mark.parametrize("length", [1e-30, 1e-21, 1e20, 1e38])
def test_transform_along_directions_of_any_length(length):
    """Curves do not depend on the length; gradients of directions are divided by it."""
    weights = draw((2, 6, 7))
    heights = torch.linspace(-1.0, 9.0, 5)
    found, wanted = leaves([torch.tensor([[0.6, 0.8], [-0.28, 0.96]])])
    longer = (found[0].detach() * length).requires_grad_()
    transform = soft_euler_transform(weights, longer, heights, sharpness=2.0)
    plain = soft_euler_transform(weights, wanted[0], heights, sharpness=2.0)
    assert relative(transform, plain) < 1e-5
    (by_direction,) = gradients(transform, [longer])
    (expected,) = gradients(plain, wanted)
    assert relative(by_direction.double() * length, expected.double()) < 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_transform_at_infinite_heights(dtype):
    """All points count at infinity, and none at its negative; heights there have no gradient."""
    heights = torch.tensor([0.3, torch.inf, -torch.inf])
    inputs = [draw((2, 6, 7)), heights, torch.tensor(4.0)]
    inputs = [x.to(dtype).requires_grad_() for x in inputs]
    found = soft_euler_transform(inputs[0], [[0.6, 0.8]], inputs[1], sharpness=inputs[2])
    wanted = soft_euler_transform(inputs[0], [[0.6, 0.8]], [0.3, 1e3], sharpness=inputs[2])
    torch.testing.assert_close(found[..., :2], wanted)
    assert not found[..., 2].any()
    by_weights, by_heights, by_sharpness = torch.autograd.grad(found.sum(), inputs)
    expected = torch.autograd.grad(wanted.sum(), inputs[::2])
    torch.testing.assert_close((by_weights, by_sharpness), expected)
    assert torch.equal(by_heights != 0, torch.tensor([True, False, False]))


@pytest.mark.sweep
@pytest.mark.parametrize("sharpness", [1.0, 40.0, 600.0, 3000.0, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize(("shape", "count"), [((2, 40, 50), 37), ((2, 20, 30), 7)])
def test_windows_of_any_width(sharpness, offset, shape, count):
    """There is one window for all thresholds, or one for each, finer than float32 can tell.

    The steps of few thresholds are taken point by point, and may be too sharp for exponentials.
    """
    thresholds = draw((count,), torch.float32, seed=3) * 1.2 - 0.1 + offset
    check_windows(draw(shape) + offset, thresholds, sharpness, 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("superlevel", "thresholds"),
    [(False, np.arange(6) + 0.5), (True, np.arange(6) - 0.5)],
    ids=["sub", "super"],
)
@pytest.mark.parametrize(("shape", "connectivity"), CASES)
def test_sharp_curves_are_the_exact_ones(shape, connectivity, superlevel, thresholds):
    image = np.random.default_rng(0).integers(0, 6, shape)
    options = {"connectivity": connectivity, "superlevel": superlevel}
    exact = ecc.euler_curve(image, thresholds, axis=tuple(range(1, image.ndim)), **options)
    options |= {"sharpness": 200.0, "n_spatial": image.ndim - 1}
    soft = soft_euler_curve(torch.from_numpy(image), thresholds, **options)
    np.testing.assert_allclose(soft.numpy(), exact.values, atol=1e-6)


@pytest.mark.parametrize(("shape", "connectivity"), CASES)
def test_sharp_transforms_are_the_exact_ones(shape, connectivity):
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, shape[1:]).astype(np.float32)
    given = rng.normal(size=(4, weights.ndim)), np.linspace(-5, 5, 11) + 0.01
    exact = ecc.euler_transform(weights, *given, connectivity=connectivity, weighted=True)
    options = {"sharpness": 1e5, "connectivity": connectivity, "n_spatial": weights.ndim}
    soft = soft_euler_transform(torch.from_numpy(weights), *given, **options)
    np.testing.assert_allclose(soft.numpy(), exact.values, atol=1e-4)


@pytest.mark.parametrize("connectivity", [1, 2])
def test_ties_go_to_the_raster_owner_or_are_split(connectivity):
    image = torch.tensor([[2.0, 2, 1], [2, 2, 3], [0, 2, 2]])
    numbers = [image, torch.tensor([1.5, 2.5]), torch.tensor(2.0)]
    maps = {}
    for ties in ("raster", "split"):
        options = {"connectivity": connectivity, "ties": ties}
        own, exact = leaves(numbers)
        curve = soft_euler_curve(own[0], numbers[1], sharpness=2.0, **options)
        plain = plain_curve(exact[0][None], *exact[1:], **options)
        (maps[ties],) = gradients(curve[None], own[:1])
        assert relative(maps[ties], gradients(plain, exact[:1])[0]) < 1e-5
    owners = ecc.euler_coefficients(image, connectivity=connectivity) != 0
    assert ((maps["raster"] != 0) <= owners).all()
    torch.testing.assert_close(maps["raster"].sum(), maps["split"].sum())
    assert (maps["split"] - maps["raster"]).abs().max() > 0.1


# The first is computed point by point, the second by windows.
@pytest.mark.parametrize("side", [64, 200])
def test_workers_do_not_change_the_sums(monkeypatch, side):
    image = draw((3, side, side), torch.float32).requires_grad_()
    results = []
    for cores in (1, 2):
        monkeypatch.setattr("ecc_core._torch.cpu.threads", lambda cores=cores: cores)
        curve = soft_euler_curve(image, torch.linspace(0, 1, 33), sharpness=50.0)
        results.append((curve, *gradients(curve, [image])))
    assert all(map(torch.equal, *results))


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize(
    ("side", "dtype"), [(5, torch.float32), (70, torch.float32), (5, torch.float64)]
)
def test_points_that_enter_first_are_there_at_once(side, dtype, superlevel):
    """So it is in the exact curve; sums are taken point by point, or by windows."""
    image = draw((side, side), dtype)
    image[1, 1], image[3, 3], image[2, 4] = -torch.inf, -torch.inf, torch.inf
    thresholds = [torch.inf if superlevel else -torch.inf]
    soft = soft_euler_curve(image, thresholds, sharpness=3.0, superlevel=superlevel)
    exact = ecc.euler_curve(image, thresholds, superlevel=superlevel).values
    assert torch.equal(soft, exact.to(dtype))


def test_infinite_thresholds_see_all_or_nothing():
    curve = soft_euler_curve(draw((5, 5)), [-torch.inf, torch.inf], sharpness=3.0)
    assert curve.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("superlevel", [False, True])
def test_infinite_thresholds_and_points_have_no_gradient(dtype, superlevel):
    image = draw((2, 6, 7), dtype)
    image[0, 0, 0], image[0, 3, 4], image[1, 2, 2] = torch.inf, -torch.inf, torch.nan
    options = {"mask": ~image.isnan(), "superlevel": superlevel}
    inputs = [image, torch.tensor([0.3, torch.inf, -torch.inf]), torch.tensor(4.0)]
    inputs = [x.to(dtype).requires_grad_() for x in inputs]
    result = soft_euler_curve(*inputs[:2], sharpness=inputs[2], **options)
    by_image, by_threshold, by_sharpness = torch.autograd.grad(result.sum(), inputs)
    assert by_image.isfinite().all()
    assert torch.equal(by_threshold != 0, torch.tensor([True, False, False]))
    assert not by_image[~image.isfinite()].any()
    one = soft_euler_curve(inputs[0], inputs[1][:1], sharpness=inputs[2], **options)
    torch.testing.assert_close(by_sharpness, torch.autograd.grad(one.sum(), inputs[2])[0])


@pytest.mark.parametrize(
    "shape", [(3, 6, 7), (2, 1, 9), (2, 5, 1), (1, 1, 1), (0, 3, 3), (40, 2, 2)]
)
@pytest.mark.parametrize("connectivity", [1, 2])
def test_coefficients_of_small_images(shape, connectivity):
    rng = np.random.default_rng(0)
    ties = rng.integers(0, 4, shape).astype(np.float32)
    infinite = np.where(ties == 0, -np.inf, np.where(ties == 3, np.inf, ties)).astype(np.float32)
    for values in (rng.random(shape, np.float32), ties, infinite):
        found = coefficients(values, connectivity == 2)
        expected = [ecc.euler_coefficients(image, connectivity=connectivity) for image in values]
        expected = np.array(expected).reshape(shape)
        enters = values < np.inf
        np.testing.assert_array_equal(found[enters], expected[enters])


def test_coefficients_of_many_images_in_two_threads():
    values = np.random.default_rng(1).random((4, 300, 300), np.float32)
    expected = [ecc.euler_coefficients(image) for image in values]
    np.testing.assert_array_equal(coefficients(values, True, 2), expected)


@pytest.mark.parametrize(
    ("shape", "count", "sharpness"),
    [
        ((5, 8, 8), 32, 124.0),  # It is computed point by point.
        ((3, 90, 90), 8, 32.0),
        ((3, 90, 90), 64, 900.0),  # It is computed by windows.
        ((3, 21), 5, 20.0),
        ((2, 5, 6, 7), 9, 20.0),
    ],
)
def test_a_batch_gives_what_its_images_give(shape, count, sharpness):
    image = draw(shape).requires_grad_()
    thresholds = draw((count,), seed=1)
    options = {"sharpness": sharpness, "n_spatial": len(shape) - 1}
    curves = soft_euler_curve(image, thresholds, **options)
    (gradient,) = torch.autograd.grad(curves.sum(), image)
    singles = [one.detach().requires_grad_() for one in image]
    found = [soft_euler_curve(single, thresholds, **options) for single in singles]
    assert torch.equal(torch.stack(found), curves)
    gradients_of_each = [
        torch.autograd.grad(curve.sum(), single)[0]
        for curve, single in zip(found, singles, strict=True)
    ]
    assert torch.equal(torch.stack(gradients_of_each), gradient)


@pytest.mark.parametrize("batch", [1, 3, 67])
@pytest.mark.parametrize("of_weights", [True, False])
def test_transforms_of_many_images(batch, of_weights):
    """Odd numbers, and more than are added in single precision, against images one by one."""
    weights = draw((batch, 9, 40))
    directions = torch.randn(6, 2, generator=torch.Generator().manual_seed(2))
    heights = torch.tensor([3.0, -20, 0, 11, -7, 1, 25])
    found, wanted = leaves([weights, directions, heights, torch.tensor(1.5)])
    transform = soft_euler_transform(*found[:3], sharpness=found[3])
    each = [soft_euler_transform(w, *wanted[1:3], sharpness=wanted[3]) for w in wanted[0]]
    first = 0 if of_weights else 1
    slopes = gradients(transform, found[first:])
    expected = gradients(torch.stack(each), wanted[first:])
    assert relative(transform, torch.stack(each)) < 1e-5
    assert max(map(relative, slopes, expected)) < 1e-5
