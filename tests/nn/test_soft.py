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
from ecc_core.nn.functional import soft_euler_curve, soft_euler_transform

SHAPES = [(2, 33), (2, 11, 13), (2, 6, 7, 8)]
CASES = [
    pytest.param(shape, connectivity, id=f"{len(shape) - 1}d-{'V' if connectivity == 1 else 'T'}")
    for shape in SHAPES
    for connectivity in sorted({1, len(shape) - 1})
]
SHARPNESS = 9.0


@pytest.mark.parametrize("superlevel", [False, True], ids=["sub", "super"])
@pytest.mark.parametrize(("shape", "connectivity"), CASES)
def test_curve_equals_the_reference(shape, connectivity, superlevel):
    ndim = len(shape) - 1
    numbers = [
        draw(shape, torch.float32),
        torch.linspace(-0.4, 1.3, 9),
        torch.tensor(SHARPNESS),
        torch.tensor([0.3, -1.0, 0.8][:ndim]),
        torch.tensor(0.11),
    ]
    mask = draw(shape, torch.float32, seed=1) < 0.85
    found, wanted = leaves(numbers)
    image, thresholds, sharpness, direction, scale = found
    curve = soft_euler_curve(
        image,
        thresholds,
        sharpness=sharpness,
        direction=direction,
        direction_scale=scale,
        spacing=0.5,
        connectivity=connectivity,
        superlevel=superlevel,
        mask=mask,
        n_spatial=ndim,
    )
    plain = plain_curve(
        *wanted,
        spacing=0.5,
        mask=mask,
        connectivity=connectivity,
        superlevel=superlevel,
    )
    assert curve.dtype == torch.float32
    assert curve.shape == (2, 9)
    assert relative(curve, plain) < 1e-5
    pairs = zip(gradients(curve, found), gradients(plain, wanted), strict=True)
    for name, (own, true) in zip(("image", "t", "l", "u", "a"), pairs, strict=True):
        if not (ndim == 1 and name == "u"):  # where a direction has one way to go
            assert relative(own, true) < 1e-5, name


@pytest.mark.parametrize(("shape", "connectivity"), CASES)
def test_curve_gradcheck(shape, connectivity):
    ndim = len(shape) - 1
    small = (1, *(4 if ndim == 3 else 5 for _ in range(ndim)))
    inputs = (
        draw(small, torch.float64),
        torch.linspace(-0.2, 1.2, 4, dtype=torch.float64),
        torch.tensor(SHARPNESS, dtype=torch.float64),
        torch.tensor([0.3, -1.0, 0.8][:ndim], dtype=torch.float64),
        torch.tensor(0.07, dtype=torch.float64),
    )

    def curve(image, thresholds, sharpness, direction, scale):
        return soft_euler_curve(
            image,
            thresholds,
            sharpness=sharpness,
            direction=direction,
            direction_scale=scale,
            connectivity=connectivity,
            n_spatial=ndim,
        )

    assert torch.autograd.gradcheck(curve, tuple(x.requires_grad_() for x in inputs))


@pytest.mark.parametrize(("shape", "connectivity"), CASES)
def test_transform_gradcheck(shape, connectivity):
    ndim = len(shape) - 1
    small = (1, *(3 if ndim == 3 else 4 for _ in range(ndim)))
    weights = draw(small, torch.float64) + 0.1
    directions = torch.tensor(
        [[0.3, -1.0, 0.8][:ndim], [-0.5, 0.2, -0.9][:ndim]], dtype=torch.float64
    )
    inputs = (
        weights,
        directions,
        torch.linspace(-2.0, 2.0, 3, dtype=torch.float64),
        torch.tensor(2.0, dtype=torch.float64),
    )

    def transform(weights, directions, heights, sharpness):
        return soft_euler_transform(
            weights,
            directions,
            heights,
            sharpness=sharpness,
            connectivity=connectivity,
            n_spatial=ndim,
        )

    assert torch.autograd.gradcheck(transform, tuple(x.requires_grad_() for x in inputs))


@pytest.mark.parametrize("extension", ["max", "min"])
@pytest.mark.parametrize(("shape", "connectivity"), CASES)
def test_transform_equals_the_reference(shape, connectivity, extension):
    check_transform(shape, connectivity, extension)


@pytest.mark.parametrize(
    ("dtype", "sharpness"),
    [
        (torch.float32, 0.05),
        (torch.float32, 2.0),
        (torch.float64, 0.05),
        (torch.float64, 2.0),
        (torch.float64, 20.0),
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
    numbers = [directions, heights, torch.tensor(sharpness, dtype=dtype)]
    found = [x.clone().requires_grad_() for x in ([weights] if of_weights else []) + numbers]
    wanted = [x.detach().double().requires_grad_() for x in found]
    own, true = ([weights, *x] if not of_weights else x for x in (found, wanted))
    transform = soft_euler_transform(*own[:3], sharpness=own[3], connectivity=1)
    unit = torch.nn.functional.normalize(true[1], dim=1)
    plain = reference.soft_transform(
        true[0].double(), unit, *true[2:], connectivity=1, spacing=(1.0, 1.0), extension="max"
    )
    bound = 1e-5 if dtype == torch.float32 else 1e-11
    assert relative(transform, plain) < bound
    for a, b in zip(gradients(transform, found), gradients(plain, wanted), strict=True):
        assert relative(a, b) < bound


def test_transform_at_infinite_heights():
    weights = draw((2, 6, 7), torch.float32).requires_grad_()
    heights = [np.inf, 0.0, -np.inf]
    transform = soft_euler_transform(weights, [[0.6, 0.8]], heights, sharpness=3.0)
    total, *_ = soft_euler_transform(weights, [[0.6, 0.8]], [1e3], sharpness=3.0).unbind(-1)
    torch.testing.assert_close(transform[..., 0], total)
    torch.testing.assert_close(transform[..., 2], torch.zeros(2, 1))
    (by_first,) = torch.autograd.grad(transform[..., 0].sum(), weights, retain_graph=True)
    torch.testing.assert_close(by_first, *torch.autograd.grad(total.sum(), weights))


@pytest.mark.parametrize("sharpness", [1.0, 40.0, 600.0, 3000.0, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_windows_of_any_width(sharpness, offset):
    """From one window for all thresholds to one apiece, finer than float32 can tell apart."""
    thresholds = draw((37,), torch.float32, seed=3) * 1.2 - 0.1 + offset
    check_windows(draw((2, 40, 50)) + offset, thresholds, sharpness, 1e-5, 1e-6)


@pytest.mark.parametrize(("shape", "connectivity"), CASES)
def test_sharp_curves_are_the_exact_ones(shape, connectivity):
    ndim = len(shape) - 1
    image = np.random.default_rng(0).integers(0, 6, shape)
    for superlevel, thresholds in ((False, np.arange(6) + 0.5), (True, np.arange(6) - 0.5)):
        exact = ecc.euler_curve(
            image,
            thresholds,
            connectivity=connectivity,
            superlevel=superlevel,
            axis=tuple(range(1, ndim + 1)),
        )
        soft = soft_euler_curve(
            torch.from_numpy(image),
            thresholds,
            sharpness=200.0,
            connectivity=connectivity,
            superlevel=superlevel,
            n_spatial=ndim,
        )
        np.testing.assert_allclose(soft.numpy(), exact.values, atol=1e-6)


@pytest.mark.parametrize(("shape", "connectivity"), CASES)
def test_sharp_transforms_are_the_exact_ones(shape, connectivity):
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, shape[1:]).astype(np.float32)
    directions, heights = rng.normal(size=(4, weights.ndim)), np.linspace(-5, 5, 11) + 0.01
    exact = ecc.euler_transform(
        weights, directions, heights, connectivity=connectivity, weighted=True
    )
    soft = soft_euler_transform(
        torch.from_numpy(weights),
        directions,
        heights,
        sharpness=1e5,
        connectivity=connectivity,
        n_spatial=weights.ndim,
    )
    np.testing.assert_allclose(soft.numpy(), exact.values, atol=1e-4)


@pytest.mark.parametrize("connectivity", [1, 2])
def test_ties_go_to_the_raster_owner_or_are_split(connectivity):
    image = torch.tensor([[2.0, 2, 1], [2, 2, 3], [0, 2, 2]])
    thresholds = torch.tensor([1.5, 2.5])
    maps = {}
    for ties in ("raster", "split"):
        own, exact = image.clone().requires_grad_(), image.double().requires_grad_()
        curve = soft_euler_curve(
            own, thresholds, sharpness=2.0, connectivity=connectivity, ties=ties
        )
        plain = plain_curve(
            exact[None],
            thresholds.double(),
            torch.tensor(2.0).double(),
            connectivity=connectivity,
            ties=ties,
        )
        (maps[ties],) = gradients(curve[None], [own])
        assert relative(maps[ties], gradients(plain, [exact])[0]) < 1e-5
    coefficients = torch.from_numpy(
        ecc.euler_coefficients(image.numpy(), connectivity=connectivity)
    )
    assert ((maps["raster"] != 0) <= (coefficients != 0)).all()
    torch.testing.assert_close(maps["raster"].sum(), maps["split"].sum())
    assert (maps["split"] - maps["raster"]).abs().max() > 0.1


def test_infinite_points_are_steps_without_gradient():
    image = draw((1, 6, 6), torch.float32)
    image[0, 2, 2], image[0, 4, 1] = torch.inf, -torch.inf
    own, exact = image.clone().requires_grad_(), image.double().requires_grad_()
    thresholds = torch.linspace(0, 1, 5)
    curve = soft_euler_curve(own, thresholds, sharpness=SHARPNESS)
    plain = plain_curve(
        exact, thresholds.double(), torch.tensor(SHARPNESS).double(), connectivity=2
    )
    assert relative(curve, plain) < 1e-5
    assert relative(gradients(curve, [own])[0], gradients(plain, [exact])[0]) < 1e-5


def test_infinite_thresholds_see_all_or_nothing():
    image = draw((5, 5), torch.float32)
    curve = soft_euler_curve(image, [-torch.inf, torch.inf], sharpness=3.0)
    assert curve.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("side", [64, 200])  # point by point, and by windows
def test_workers_do_not_change_the_sums(monkeypatch, side):
    image = draw((3, side, side), torch.float32).requires_grad_()
    results = []
    for cores in (1, 2):
        monkeypatch.setattr("ecc_core._torch.cpu.threads", lambda cores=cores: cores)
        curve = soft_euler_curve(image, torch.linspace(0, 1, 33), sharpness=50.0)
        results.append((curve.detach(), *gradients(curve, [image])))
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


def test_points_that_enter_first_are_there_at_once():
    """As in the exact curve, whether sums are taken point by point or by windows."""
    for side, dtype in ((5, torch.float32), (70, torch.float32), (5, torch.float64)):
        image = draw((side, side), dtype)
        image[1, 1], image[3, 3], image[2, 4] = -torch.inf, -torch.inf, torch.inf
        for superlevel in (False, True):
            thresholds = [torch.inf if superlevel else -torch.inf]
            soft = soft_euler_curve(image, thresholds, sharpness=3.0, superlevel=superlevel)
            exact = ecc.euler_curve(image, thresholds, superlevel=superlevel).values
            assert torch.equal(soft, exact.to(dtype)), (side, dtype)


def test_steps_that_are_too_sharp_for_exponentials():
    image = draw((2, 20, 30), torch.float32).requires_grad_()
    exact = image.detach().double().requires_grad_()
    thresholds = torch.linspace(0.003, 1.001, 7)
    for sharpness in (500.0, 5e3, 1e6):
        curve = soft_euler_curve(image, thresholds, sharpness=sharpness)
        plain = plain_curve(
            exact, thresholds.double(), torch.tensor(sharpness).double(), connectivity=2
        )
        assert relative(curve, plain) < 1e-5
        assert curve.isfinite().all()
