"""Layers: values, gradients, constraints, states, and the transformations of torch."""

import copy
import io
import math
import pickle

import numpy as np
import pytest

import ecc_core as ecc

torch = pytest.importorskip("torch", reason="torch is not installed")
from ecc_core.nn import EulerCurveLayer, EulerTransformLayer  # noqa: E402
from ecc_core.nn import _exact as exact_ops  # noqa: E402
from ecc_core.nn.functional import soft_euler_curve, soft_euler_transform  # noqa: E402

SHAPES = {1: (13,), 2: (6, 7), 3: (4, 5, 3)}
ALL_CURVE = {"learn_sharpness": True, "learn_directions": True, "learn_direction_scale": True}
ALL_TRANSFORM = {"learn_sharpness": True}


def noise(*shape, dtype=torch.float32, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def curve_layer(n_spatial=2, **options):
    start = {"range": (0, 1), "directions": 2, "direction_scale": 0.1, "n_spatial": n_spatial}
    return EulerCurveLayer(5, **{**start, **ALL_CURVE, **options})


def transform_layer(n_spatial=2, **options):
    start = {"range": (-4, 4), "n_spatial": n_spatial}
    return EulerTransformLayer(3, 6, **{**start, **ALL_TRANSFORM, **options})


LAYERS = pytest.mark.parametrize("make", [curve_layer, transform_layer])


def take_a_wild_step(layer, rate, seed):
    """An optimizer step along a random gradient."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in layer.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    torch.optim.SGD(layer.parameters(), rate).step()


def descend(loss_of, parameters, rate, steps):
    """Return the losses on the way down."""
    optimizer = torch.optim.Adam(parameters, rate)
    losses = []
    for _ in range(steps):
        loss = loss_of()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


class TestStart:
    def test_even_thresholds_and_a_sharpness_that_follows(self):
        layer = EulerCurveLayer(7, range=(-20, 40), dtype=torch.float64)
        torch.testing.assert_close(layer.thresholds, torch.linspace(-20, 40, 7).double())
        assert layer.sharpness.item() == pytest.approx(4 / 10)

    def test_any_spacing(self):
        values = np.array([1e-3, 1.0, 1.1, 50.0])
        layer = EulerCurveLayer(values, dtype=torch.float64)
        np.testing.assert_allclose(layer.thresholds.detach(), values, rtol=1e-12)
        assert layer.sharpness.item() == pytest.approx(4 * 3 / (50 - 1e-3))

    def test_fixed_thresholds_are_what_was_given(self):
        values = torch.tensor([0.1, 0.2, 0.2, math.inf])
        layer = EulerCurveLayer(values, sharpness=3, learn_thresholds=False)
        assert torch.equal(layer.thresholds, values)
        assert list(layer.parameters()) == []

    def test_directions_are_those_of_the_package(self):
        layer = EulerTransformLayer(12, 4, range=(-9, 9), n_spatial=3, dtype=torch.float64)
        np.testing.assert_allclose(layer.directions.detach(), ecc.sample_directions(12, 3))
        given = EulerCurveLayer(4, range=(0, 1), directions=[[3.0, 4.0]])
        torch.testing.assert_close(given.directions, torch.tensor([[0.6, 0.8]]))

    def test_options_choose_the_parameters(self):
        names = {name for name, _ in curve_layer().named_parameters()}
        expected = "free_thresholds", "free_directions", "log_sharpness", "log_direction_scale"
        assert names == set(expected)
        fixed = dict.fromkeys(["learn_thresholds", *ALL_CURVE], False)
        assert list(curve_layer(**fixed).parameters()) == []
        assert len(curve_layer(**fixed).state_dict()) == 4

    def test_device_and_dtype(self):
        layer = curve_layer(dtype=torch.float64)
        assert {value.dtype for value in layer.state_dict().values()} == {torch.float64}
        assert curve_layer(device="meta").thresholds.is_meta
        assert layer.to(torch.float32).directions.dtype == torch.float32

    def test_repr(self):
        layer = EulerCurveLayer(
            9, range=(0, 1), directions=4, superlevel=True, connectivity=1, spacing=(2, 1)
        )
        assert repr(layer) == (
            "EulerCurveLayer(thresholds=9, directions=4, superlevel=True, n_spatial=2, "
            "connectivity=1, spacing=[2.0, 1.0], learned=[thresholds, directions])"
        )
        layer = EulerTransformLayer(5, 8, range=(-4, 4), learn_heights=False, hard="forward")
        assert repr(layer) == (
            "EulerTransformLayer(directions=5, heights=8, n_spatial=2, connectivity=2, "
            "hard='forward', learned=[directions])"
        )


class TestValues:
    @pytest.mark.parametrize("n_spatial", [1, 2, 3])
    @pytest.mark.parametrize("superlevel", [False, True])
    def test_curves(self, n_spatial, superlevel):
        shape = SHAPES[n_spatial]
        layer = curve_layer(n_spatial, superlevel=superlevel, connectivity=1, spacing=2.0)
        image, mask = noise(2, 3, *shape), noise(*shape, seed=1) > 0.2
        options = {
            "sharpness": layer.sharpness,
            "superlevel": superlevel,
            "connectivity": 1,
            "n_spatial": n_spatial,
        }
        found = layer(image, mask)
        assert found.shape == (2, 3, 2, 5)
        for k in range(2):
            direction = {"direction": layer.directions[k], "direction_scale": 0.1, "spacing": 2.0}
            row = soft_euler_curve(image, layer.thresholds, mask=mask, **options, **direction)
            torch.testing.assert_close(found[:, :, k], row)
        plain = curve_layer(n_spatial, superlevel=superlevel, connectivity=1, directions=None)
        torch.testing.assert_close(
            plain(image), soft_euler_curve(image, plain.thresholds, **options)
        )

    @pytest.mark.parametrize("n_spatial", [1, 2, 3])
    def test_transforms(self, n_spatial):
        layer = transform_layer(n_spatial, connectivity=1, spacing=0.5, extension="min")
        image = noise(2, *SHAPES[n_spatial])
        expected = soft_euler_transform(
            image,
            layer.directions,
            layer.heights,
            sharpness=layer.sharpness,
            connectivity=1,
            spacing=0.5,
            n_spatial=n_spatial,
            extension="min",
        )
        assert expected.shape == (2, 3, 6)
        torch.testing.assert_close(layer(image), expected)

    @pytest.mark.parametrize("lead", [(), (4,), (2, 1, 3), (0,), (0, 3)])
    def test_leading_shapes(self, lead):
        assert curve_layer(directions=None)(noise(*lead, 6, 7)).shape == (*lead, 5)
        assert curve_layer()(noise(*lead, 6, 7)).shape == (*lead, 2, 5)
        assert transform_layer()(noise(*lead, 6, 7)).shape == (*lead, 3, 6)

    def test_no_thresholds(self):
        assert EulerCurveLayer(0, range=(0, 1))(noise(2, 6, 7)).shape == (2, 0)
        assert EulerTransformLayer(2, 0, range=(0, 1))(noise(2, 6, 7)).shape == (2, 2, 0)


class TestGradients:
    @pytest.mark.parametrize("n_spatial", [2, 3])
    @LAYERS
    def test_finite_differences(self, make, n_spatial):
        layer = make(n_spatial, dtype=torch.float64)
        take_a_wild_step(layer, 0.1, 0)  # off the axes, where heights of cells have a kink
        names = [name for name, _ in layer.named_parameters()]
        values = [parameter.detach().requires_grad_() for parameter in layer.parameters()]
        image = (0.1 + noise(2, *SHAPES[n_spatial], dtype=torch.float64)).requires_grad_()

        def call(image, *values):
            return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), image)

        assert torch.autograd.gradcheck(call, (image, *values), fast_mode=True)

    @LAYERS
    def test_every_parameter_gets_one(self, make):
        layer = make()
        layer(noise(2, 6, 7)).square().sum().backward()
        for name, parameter in layer.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.abs().max() > 0, name

    def test_thresholds_stay_increasing_and_directions_unit(self):
        layer, other = curve_layer(dtype=torch.float64), transform_layer(3, dtype=torch.float64)
        before = layer.thresholds.detach().clone()
        for step in range(20):
            take_a_wild_step(layer, 1.0, step)
            take_a_wild_step(other, 1.0, step)
            assert (layer.thresholds.diff() > 0).all()
            assert (other.heights.diff() > 0).all()
            for vectors in (layer.directions, other.directions):
                torch.testing.assert_close(vectors.norm(dim=1), vectors.new_ones(len(vectors)))
            for number in (layer.sharpness, layer.direction_scale, other.sharpness):
                assert (number > 0).all()
        assert (layer.thresholds - before).abs().max() > 1

    def test_a_learning_rate_means_the_same_for_any_range(self):
        curves = []
        for unit in (1.0, 4096.0):
            layer = EulerCurveLayer(6, range=(0, unit), learn_sharpness=True)
            images = unit * noise(2, 9, 9)
            descend(lambda x=images, f=layer: f(x).square().mean(), layer.parameters(), 0.1, 3)
            curves.append(layer.thresholds.detach() / unit)
        assert (curves[0] - torch.linspace(0, 1, 6)).abs().max() > 0.02
        torch.testing.assert_close(curves[0], curves[1])

    def test_thresholds_and_directions_are_found(self):
        """A layer learns to give the curves of another one."""
        image = noise(24, 8, 8, seed=3) ** 2
        goal = EulerCurveLayer([0.2, 0.35, 0.9], directions=[[1.0, 0.2]], direction_scale=0.1)
        wanted = goal(image).detach()
        layer = EulerCurveLayer(
            3,
            range=(0.1, 1.2),
            directions=[[0.6, 1.0]],
            direction_scale=0.1,
            sharpness=goal.sharpness.item(),
        )
        losses = descend(
            lambda: (layer(image) - wanted).square().mean(), layer.parameters(), 0.05, 120
        )
        assert losses[-1] < 1e-3 * losses[0]
        torch.testing.assert_close(layer.thresholds, goal.thresholds, atol=0.02, rtol=0)
        torch.testing.assert_close(layer.directions, goal.directions, atol=0.02, rtol=0)

    def test_descent_on_a_shape(self):
        """Weights and directions change until the transform is the one of another shape."""
        wanted = transform_layer()(noise(6, 7, seed=2) > 0.5).detach()
        layer = transform_layer(extension="min")
        weights = noise(6, 7).requires_grad_()
        parameters = [weights, *layer.parameters()]
        losses = descend(lambda: (layer(weights) - wanted).square().mean(), parameters, 0.02, 60)
        assert losses[-1] < 0.1 * losses[0]


class TestHard:
    @pytest.mark.parametrize("n_spatial", [1, 2, 3])
    @pytest.mark.parametrize("directions", [None, 2])
    @pytest.mark.parametrize("superlevel", [False, True])
    def test_curves_are_exact_and_gradients_soft(self, n_spatial, directions, superlevel):
        options = {"directions": directions, "superlevel": superlevel}
        hard = curve_layer(n_spatial, hard="forward", **options)
        soft = curve_layer(n_spatial, **options)
        image = noise(2, *SHAPES[n_spatial], dtype=torch.float64)
        mask = noise(*SHAPES[n_spatial], seed=4) > 0.2
        gradients = []
        for layer in (hard, soft):
            layer.double()
            given = image.clone().requires_grad_()
            curve = layer(given, mask)
            (curve * torch.arange(5)).sum().backward()
            gradients.append([given.grad, *(p.grad for p in layer.parameters())])
        for found, expected in zip(*gradients, strict=True):
            torch.testing.assert_close(found, expected)
        given = [] if directions is None else hard.directions.tolist()
        scales = {"direction_scale": hard.direction_scale[0].item()} if given else {}
        directional = [{"direction": unit, **scales} for unit in given] or [{}]
        rows = [
            ecc.euler_curve(
                image,
                hard.thresholds,
                mask=mask,
                superlevel=superlevel,
                axis=range(-n_spatial, 0),
                **direction,
            ).values
            for direction in directional
        ]
        found = hard(image, mask)
        assert torch.equal(found.flatten(0, -2), torch.stack(rows, -2).flatten(0, -2).double())
        assert not torch.equal(found, soft(image, mask))

    def test_transforms_are_exact_and_gradients_soft(self):
        hard, soft = transform_layer(hard="forward"), transform_layer()
        weights = [noise(2, 6, 7).requires_grad_() for _ in range(2)]
        soft(weights[1]).square().sum().backward()
        (hard(weights[0]) * 2 * soft(weights[0]).detach()).sum().backward()
        torch.testing.assert_close(weights[0].grad, weights[1].grad)
        directions, heights = hard.directions.detach().numpy(), hard.heights.detach().numpy()
        for image, found in zip(weights[0].detach(), hard(weights[0]), strict=True):
            expected = ecc.euler_transform(image.numpy(), directions, heights, weighted=True).values
            np.testing.assert_array_equal(found.detach(), expected.astype(np.float32))

    def test_operators(self):
        image, levels = noise(2, 6, 7), torch.linspace(0, 1, 4)
        direction = torch.tensor([0.6, 0.8]), torch.tensor(0.1)
        for given in [(None, None, None), (image > 0.2, *direction), (image[:1] > 0.2, None, None)]:
            arguments = image, levels, *given, [1.0, 1.0], 2, False
            torch.library.opcheck(exact_ops.exact_curve, arguments)
        arguments = image, torch.eye(2), levels, [1.0, 1.0], 2
        torch.library.opcheck(exact_ops.exact_transform, arguments)


HARD = pytest.mark.parametrize("hard", [None, "forward"])


class TestTransformations:
    @LAYERS
    def test_state_round_trip(self, make):
        layer, other = make(), make()
        take_a_wild_step(layer, 0.3, 0)
        image = noise(2, 6, 7)
        assert not torch.equal(layer(image), other(image))
        file = io.BytesIO()
        torch.save(layer.state_dict(), file)
        file.seek(0)
        other.load_state_dict(torch.load(file, weights_only=True))
        assert torch.equal(layer(image), other(image))

    def test_states_of_learned_and_fixed_thresholds_do_not_mix(self):
        with pytest.raises(RuntimeError, match="free_thresholds"):
            curve_layer(learn_thresholds=False).load_state_dict(curve_layer().state_dict())

    @LAYERS
    def test_a_state_brings_its_range_along(self, make):
        layer, other = make(range=(-3, 9)), make()
        other.load_state_dict(layer.state_dict())
        assert torch.equal(layer(noise(6, 7)), other(noise(6, 7)))

    @LAYERS
    def test_copies(self, make):
        layer = make()
        take_a_wild_step(layer, 0.3, 0)
        image = noise(2, 6, 7)
        expected = layer(image)
        copies = copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))
        take_a_wild_step(layer, 0.3, 1)
        for other in copies:
            assert repr(other) == repr(layer)
            assert torch.equal(other(image), expected)
        assert not torch.equal(layer(image), expected)

    @HARD
    @LAYERS
    def test_compile(self, make, hard):
        layer = make(hard=hard)
        image = noise(2, 6, 7).requires_grad_()
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        found, expected = compiled(image), layer(image)
        torch.testing.assert_close(found, expected)
        gradients = [
            torch.autograd.grad(values.square().sum(), [image, *layer.parameters()])
            for values in (found, expected)
        ]
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other)

    @HARD
    @LAYERS
    def test_vmap_over_images(self, make, hard):
        layer = make(hard=hard, dtype=torch.float64)
        images = [noise(4, 6, 7, dtype=torch.float64).requires_grad_() for _ in range(2)]
        curves = torch.vmap(layer)(images[0]), layer(images[1])
        torch.testing.assert_close(*curves)
        for values in curves:
            values.square().sum().backward()
        torch.testing.assert_close(images[0].grad, images[1].grad)

    @HARD
    @LAYERS
    def test_vmap_over_an_ensemble(self, make, hard):
        layers = [make(hard=hard) for _ in range(3)]
        for seed, layer in enumerate(layers):
            take_a_wild_step(layer, 0.2, seed)
        parameters, buffers = torch.func.stack_module_state(layers)
        image = noise(2, 6, 7)

        def call(parameters, buffers):
            return torch.func.functional_call(layers[0], (parameters, buffers), (image,))

        found = torch.vmap(call)(parameters, buffers)
        torch.testing.assert_close(found, torch.stack([layer(image) for layer in layers]))

    @LAYERS
    def test_mixed_precision(self, make):
        """After a convolution in bfloat16 curves and gradients are those of its values."""
        torch.manual_seed(0)
        first, layer = torch.nn.Conv2d(1, 2, 3), make()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            features = first(noise(2, 1, 8, 9))
            curve = layer(features)
        assert features.dtype == torch.bfloat16
        assert curve.dtype == torch.float32
        torch.testing.assert_close(curve, layer(features.float()))
        curve.square().sum().backward()
        assert all(p.grad.isfinite().all() for p in [*first.parameters(), *layer.parameters()])

    def test_distributed(self, tmp_path):
        layer = curve_layer()
        expected = layer(noise(2, 6, 7))
        group = torch.distributed
        group.init_process_group("gloo", f"file://{tmp_path}/store", rank=0, world_size=1)
        try:
            parallel = torch.nn.parallel.DistributedDataParallel(layer)
            found = parallel(noise(2, 6, 7))
            found.sum().backward()
        finally:
            group.destroy_process_group()
        torch.testing.assert_close(found, expected)
        assert all(parameter.grad is not None for parameter in layer.parameters())


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "options", "message"),
        [
            ((4,), {"normalize": "mean"}, '`normalize` must be None, "points" or "batch"'),
            (([1.0, 2],), {"range": (0, 1)}, "`range` must be None where `thresholds` is an array"),
            ((-1,), {"range": (0, 1)}, "`thresholds` must not be negative, got -1"),
            ((4,), {"range": (1, 0)}, "`range` must be finite with low <= high"),
            (([2.0, 1.0],), {}, "`thresholds` must be increasing, got 2.0 before 1.0"),
            (([1.0, 1.0, 2.0],), {}, "`thresholds` must be finite and distinct"),
            (([1.0, math.inf],), {}, "`thresholds` must be finite and distinct"),
            (
                ([1.0],),
                {},
                "`sharpness` must be given for levels without a positive finite spacing",
            ),
            (([1.0],), {"sharpness": -2}, "`sharpness` must be positive and finite, got -2"),
            ((4,), {"range": (0, 1), "n_spatial": 4}, "`n_spatial` must be 1, 2 or 3, got 4"),
            ((4,), {"range": (0, 1), "connectivity": 3}, "`connectivity` must be 1 or 2"),
            ((4,), {"range": (0, 1), "hard": True}, '`hard` must be None or "forward", got True'),
            ((4,), {"range": (0, 1), "spacing": 0}, "`spacing` must be positive and finite"),
            ((4,), {"range": (0, 1), "directions": [[1, 2, 3]]}, r"must have shape \(k, 2\)"),
            ((4,), {"range": (0, 1), "directions": 0}, "`directions` must be None or at least one"),
            (
                (4,),
                {"range": (0, 1), "directions": 1, "direction_scale": 0},
                "`direction_scale` must be positive and finite, got 0",
            ),
        ],
    )
    def test_values_of_curves(self, arguments, options, message):
        with pytest.raises(ValueError, match=message):
            EulerCurveLayer(*arguments, **options)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "`range` must be given where `heights` is an int, got None"),
            ({"range": (0, 1), "extension": "mean"}, '`extension` must be "max" or "min"'),
            ({"range": (0, 1), "extension": "min", "hard": "forward"}, '`extension` must be "max"'),
            ({"range": (0, 1), "directions": [[0, 0]]}, "`directions` must be finite and not zero"),
        ],
    )
    def test_values_of_transforms(self, options, message):
        with pytest.raises(ValueError, match=message):
            EulerTransformLayer(**options)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"thresholds": 1.5}, "`thresholds` must be an int or an array, got 1.5"),
            ({"thresholds": ["a"]}, "`thresholds` must be real numbers"),
            ({"sharpness": "4"}, "`sharpness` must be a real number, got '4'"),
        ],
    )
    def test_types(self, options, message):
        with pytest.raises(TypeError, match=message):
            EulerCurveLayer(**{"range": None if "thresholds" in options else (0, 1), **options})

    @HARD
    def test_calls(self, hard):
        layer = curve_layer(hard=hard)
        with pytest.raises(TypeError, match="`image` must be a torch tensor, got ndarray"):
            layer(np.zeros((6, 7)))
        with pytest.raises(TypeError, match=r"`image` must be a tensor of .* got torch\.complex64"):
            layer(torch.zeros(6, 7, dtype=torch.complex64))
        with pytest.raises(ValueError, match="`image` must have at least 2 axes"):
            layer(noise(7))
        with pytest.raises(ValueError, match="`thresholds` must be on the image's device, meta"):
            curve_layer(directions=None, hard=hard)(noise(6, 7).to("meta"))
        with pytest.raises(ValueError, match="`image` must not contain NaN"):
            layer(torch.full((6, 7), math.nan))


class TestBfloat16:
    def test_thresholds_and_directions(self):
        levels, vectors = torch.tensor([0.25, 0.5]), torch.tensor([[1.0, 0.5]])
        wide, narrow = (
            EulerCurveLayer(t, sharpness=4.0, directions=u)
            for t, u in ((levels, vectors), (levels.bfloat16(), vectors.bfloat16()))
        )
        image = noise(6, 7)
        assert torch.equal(wide(image), narrow(image))

    def test_exact_layers(self):
        image = noise(6, 7).bfloat16()
        layer = curve_layer(directions=None, hard="forward").bfloat16()
        expected = ecc.euler_curve(image, layer.thresholds.detach()).values
        assert torch.equal(layer(image), expected.float())
        layer = transform_layer(hard="forward").bfloat16()
        given = layer.directions.detach(), layer.heights.detach()
        expected = ecc.euler_transform(image > 0.5, *given).values
        assert torch.equal(layer(image > 0.5), expected.float())
