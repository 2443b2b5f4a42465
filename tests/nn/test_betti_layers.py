"""Soft Betti curves and lifetimes, and their layers, against the diagrams of GUDHI."""

import itertools
from functools import partial

import numpy as np
import pytest
import torch
from nn_helpers import noise
from topology_helpers import intervals

import ecc_core as ecc
from ecc_core.nn import BettiCurveLayer, LifetimeLayer
from ecc_core.nn.functional import longest_lifetimes, soft_betti_curves, soft_euler_curve

draw = partial(noise, dtype=torch.float64)
THRESHOLDS = torch.linspace(0, 1, 7, dtype=torch.float64)
SHAPES = [(9,), (8, 11), (5, 6, 7)]


def diagrams(image, connectivity, superlevel):
    """Births and deaths (k, 2) of the sets of an image, by dimension."""
    sign = -1 if superlevel else 1
    found = intervals(sign * np.asarray(image, float), connectivity)
    return [sign * pairs for pairs in found]


def curves_of(image, connectivity, superlevel, sharpness, least):
    """The definition, one row a dimension."""
    sign = -1 if superlevel else 1
    rows = []
    for pairs in diagrams(image, connectivity, superlevel):
        lasting = pairs[np.abs(pairs[:, 1] - pairs[:, 0]) >= least]
        births, deaths = torch.from_numpy(lasting).unbind(1)
        entered = torch.sigmoid(sign * sharpness * (THRESHOLDS - births[:, None]))
        left = torch.sigmoid(sign * sharpness * (THRESHOLDS - deaths[:, None]))
        rows.append((entered - left).sum(0))
    return torch.stack(rows)


@pytest.mark.sweep
@pytest.mark.parametrize("connectivity", [1, None])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("case", list(itertools.product(SHAPES, (0.0, 0.3))), ids=str)
def test_soft_curves_equal_sums_over_diagrams(connectivity, superlevel, case):
    shape, least = case
    images = draw(2, 3, *shape)
    used = len(shape) if connectivity is None else 1
    found = soft_betti_curves(
        images,
        THRESHOLDS,
        sharpness=9.0,
        min_persistence=least,
        connectivity=connectivity,
        superlevel=superlevel,
        n_spatial=len(shape),
    )
    assert found.shape == (2, 3, len(shape), 7)
    each = images.reshape(6, *shape)
    wanted = [curves_of(image, used, superlevel, 9.0, least) for image in each]
    torch.testing.assert_close(found, torch.stack(wanted).reshape(found.shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_alternating_sum_is_the_soft_euler_curve(shape):
    """Each image may have a mask, behind which there is NaN, or be in single precision."""
    images = noise(2, 3, *shape)
    mask = noise(2, 3, *shape, seed=1) > 0.2
    options = {"sharpness": 9.0, "superlevel": True, "n_spatial": len(shape), "mask": mask}
    images = images.masked_fill(~mask, torch.nan)
    found = soft_betti_curves(images, THRESHOLDS, **options)
    signs = torch.tensor([1.0, -1.0, 1.0])[: len(shape), None]
    wanted = soft_euler_curve(images, THRESHOLDS, **options)
    torch.testing.assert_close((signs * found).sum(-2), wanted, atol=1e-4, rtol=0)


@pytest.mark.sweep
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("least", [0, 0.3])
def test_sharp_curves_are_the_exact_ones(shape, least):
    image = draw(2, *shape)
    axis = tuple(range(1, len(shape) + 1))
    options = {"min_persistence": least, "connectivity": 1}
    exact = ecc.betti_curves(image, THRESHOLDS, axis=axis, **options).values
    options["n_spatial"] = len(shape)
    sharp = soft_betti_curves(image, THRESHOLDS, sharpness=1e9, **options)
    assert torch.equal(sharp, exact.double())
    layer = BettiCurveLayer(THRESHOLDS, hard="forward", **options, dtype=torch.float64)
    assert torch.equal(layer(image), exact.double())


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # Forward mode warns so.
@pytest.mark.parametrize("shape", [(6, 7), (3, 4, 5)])
@pytest.mark.parametrize("superlevel", [False, True])
def test_derivatives_are_finite_differences(shape, superlevel):
    options = {"superlevel": superlevel, "n_spatial": len(shape), "mask": draw(*shape) > 0.1}

    def curves(image, thresholds, sharpness):
        return soft_betti_curves(image, thresholds, sharpness=sharpness, **options)

    image = draw(2, *shape, seed=1).requires_grad_()
    numbers = THRESHOLDS.clone().requires_grad_(), torch.tensor(5.0).double().requires_grad_()
    check = partial(torch.autograd.gradcheck, check_forward_ad=True, fast_mode=True)
    assert check(curves, (image, *numbers))
    assert check(lambda x: longest_lifetimes(x, 3, **options), (image,))


@pytest.mark.sweep
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("superlevel", [False, True])
def test_longest_lifetimes_are_those_of_diagrams(shape, superlevel):
    images = draw(2, 3, *shape)
    found = longest_lifetimes(images, 5, superlevel=superlevel, n_spatial=len(shape))
    assert found.shape == (2, 3, len(shape), 5, 2)
    for i, j in np.ndindex(2, 3):
        image = images[i, j]
        last = image.min() if superlevel else image.max()
        for k, pairs in enumerate(diagrams(image, len(shape), superlevel)):
            pairs = np.where(np.isinf(pairs), last, pairs)
            order = np.argsort(-np.abs(pairs[:, 1] - pairs[:, 0]), kind="stable")
            wanted = np.zeros((5, 2))
            wanted[: len(order)] = pairs[order][:5]
            np.testing.assert_array_equal(found[i, j, k], wanted)


def test_operators():
    images = noise(2, 6, 7)
    mask = noise(1, 6, 7, seed=1) > 0.2
    options = mask, 1, False
    check = torch.library.opcheck
    operators = torch.ops.ecc
    check(operators.betti_coefficients.default, (images, *options, 0.1))
    check(operators.longest_classes.default, (images, mask, 4, *options[1:]))
    levels = torch.linspace(0, 1, 5)
    check(operators.exact_betti_curves.default, (images, levels, *options, 0.1))
    weights = torch.randint(-1, 2, (2, 42), dtype=torch.int8)
    given = [x.clone().requires_grad_() for x in (images, levels, torch.tensor(5.0))]
    arguments = given[0], weights, *given[1:], mask, True
    check(operators.weighted_soft_curve.default, arguments)


def call_curves(image):
    return soft_betti_curves(image, THRESHOLDS.tolist(), sharpness=9.0)


def call_lifetimes(image):
    return longest_lifetimes(image, 3)


CALLS = pytest.mark.parametrize("call", [call_curves, call_lifetimes])


@CALLS
def test_transformations(call):
    images = noise(3, 2, 6, 7)
    each = torch.stack([call(image) for image in images.unbind(1)], 1)
    assert torch.equal(torch.vmap(call, in_dims=1, out_dims=1)(images), each)

    def total(image):
        return call(image).square().sum()

    (wanted,) = torch.autograd.grad(total(images.requires_grad_()), images)
    torch.testing.assert_close(torch.func.grad(total)(images.detach()), wanted)
    with torch.no_grad():
        assert call(images[:0]).shape == (0, *each.shape[1:])
    shape = call(images.to("meta")).shape
    assert shape == each.shape


@CALLS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_images_are_widened(call, dtype):
    """Under autocast, too."""
    narrow = noise(2, 9, 8).to(dtype).requires_grad_()
    wide = narrow.detach().float().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        found = call(narrow)
    wanted = call(wide)
    assert found.dtype == torch.float32
    assert torch.equal(found, wanted)
    slopes = [torch.autograd.grad(y.sum(), x)[0] for y, x in ((found, narrow), (wanted, wide))]
    assert slopes[0].dtype == dtype
    torch.testing.assert_close(slopes[0].float(), slopes[1], rtol=1e-2, atol=1e-2)


def test_whole_layers_compile_to_one_graph():
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Sigmoid())
    heads = BettiCurveLayer(5, range=(0, 1), normalize="side"), LifetimeLayer(3, superlevel=True)

    def step(images):
        features = model(images)
        return heads[0](features).square().sum() + heads[1](features).square().sum()

    images = noise(2, 1, 9, 9)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    results = []
    for call in (compiled, step):
        loss = call(images)
        parameters = [*model.parameters(), *heads[0].parameters()]
        results.append((loss, *torch.autograd.grad(loss, parameters)))
    torch.testing.assert_close(*results)
    torch.compiler.reset()


@pytest.mark.parametrize("superlevel", [False, True])
def test_a_class_that_never_dies_lasts_until_the_last_point_of_the_mask_enters(superlevel):
    sign = -1 if superlevel else 1
    image = sign * torch.tensor([0.0, 3.0, 1.0, 9.0])
    mask = torch.tensor([True, True, True, False])
    found = longest_lifetimes(image, 2, superlevel=superlevel, mask=mask, n_spatial=1)
    assert (sign * found).tolist() == [[[0, 3], [1, 3]]]


@pytest.mark.parametrize("layer", [BettiCurveLayer(5, range=(0, 1)), LifetimeLayer(3)])
def test_export(layer):
    sizes = {0: torch.export.Dim("batch"), 2: torch.export.Dim("rows", min=4)}
    program = torch.export.export(layer, (noise(2, 1, 9, 8),), dynamic_shapes=(sizes,))
    other = noise(3, 1, 12, 8)
    torch.testing.assert_close(program.module()(other), layer(other))


def test_onnx_is_refused(monkeypatch):
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    with pytest.raises(RuntimeError, match="ONNX has no operators for persistence pairs"):
        call_curves(noise(6, 7))


class TestLayer:
    def test_calibration_and_normalization(self):
        layer = BettiCurveLayer(4, normalize="batch", learn_sharpness=True)
        images = noise(5, 3, 9, 9) * 10
        layer.calibrate(images)
        assert layer.thresholds[0] < 0.5
        assert layer.thresholds[-1] > 9.5
        found = layer(images)
        assert found.shape == (5, 3, 2, 4)
        means = found.mean((0, 1))
        torch.testing.assert_close(means, torch.zeros_like(means), atol=1e-5, rtol=0)
        found.square().sum().backward()
        largest = [parameter.grad.abs().max() for parameter in layer.parameters()]
        assert torch.stack(largest).min() > 0

    def test_state_and_repr(self):
        layer = BettiCurveLayer(4, range=(0, 1), min_persistence=0.2, superlevel=True)
        assert repr(layer) == (
            "BettiCurveLayer(thresholds=4, min_persistence=0.2, superlevel=True, n_spatial=2, "
            "connectivity=2, learned=[thresholds])"
        )
        other = BettiCurveLayer(4, range=(3, 9), min_persistence=0.2, superlevel=True)
        other.load_state_dict(layer.state_dict())
        images = noise(2, 9, 9)
        assert torch.equal(other(images), layer(images))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"min_persistence": -1}, ValueError, "`min_persistence` must not be negative or NaN"),
        ({"min_persistence": 10**400}, ValueError, "`min_persistence` must be within the range"),
        ({"sharpness": 10**400}, ValueError, "`sharpness` must be within the range of floats"),
        ({"thresholds": [0, 10**400]}, ValueError, "`thresholds` must be within the range of fl"),
        ({"connectivity": 3}, ValueError, "`connectivity` must be 1 or 2"),
        ({"sharpness": 0.0}, ValueError, "`sharpness` must be positive, got 0"),
        ({"superlevel": 2}, TypeError, "`superlevel` must be"),
        ({"mask": torch.ones(3, 3, dtype=torch.bool)}, ValueError, "`mask` must have the image's"),
    ],
)
def test_errors_name_the_argument(options, error, message):
    with pytest.raises(error, match=message):
        soft_betti_curves(noise(6, 7), **{"thresholds": THRESHOLDS, "sharpness": 9.0, **options})


def test_errors_of_values():
    image = noise(6, 7)
    image[2, 3] = torch.nan
    with pytest.raises(ValueError, match="`image` must not contain NaN where `mask` keeps"):
        call_curves(image)
    with pytest.raises(ValueError, match="`image` must not contain NaN where `mask` keeps"):
        call_lifetimes(image)
    with pytest.raises(ValueError, match="`count` must be a positive int, got 0"):
        LifetimeLayer(0)
    with pytest.raises(ValueError, match="`count` must be a positive int of at most 63 bits, got"):
        longest_lifetimes(noise(6, 7), 10**30)
    with pytest.raises(TypeError, match=r"`count` must be a positive int, got 2\.5"):
        longest_lifetimes(noise(6, 7), 2.5)
