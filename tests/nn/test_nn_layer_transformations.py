"""Layers: states and copies, compiled, mapped, distributed, and in low precision."""

import copy
import io
import pickle

import pytest
from nn_helpers import HARD, LAYERS, curve_layer, noise, take_a_wild_step, torch, transform_layer

import ecc_core as ecc
from ecc_core.nn import EulerCurveLayer, EulerCurveLoss, EulerCurveMap

WIDE = {"dtype": torch.float64}


class TestTransformations:
    @LAYERS
    def test_state_round_trip(self, make):
        layer = make(range=(-3, 9))
        other = make()
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
    def test_copies(self, make):
        layer = make()
        take_a_wild_step(layer, 0.3, 0)
        image = noise(2, 6, 7)
        expected = layer(image)
        copies = copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))
        take_a_wild_step(layer, 0.3, 1)
        assert [repr(other) for other in copies] == [repr(layer)] * 2
        torch.testing.assert_close(
            [other(image) for other in copies], [expected] * 2, rtol=0, atol=0
        )
        assert not torch.equal(layer(image), expected)

    @pytest.mark.parametrize(
        "module",
        [
            *(make(**WIDE) for make in (curve_layer, transform_layer)),
            *(make(hard="forward", **WIDE) for make in (curve_layer, transform_layer)),
            EulerCurveMap([0.2, 0.6], window=4, stride=2, **WIDE),
            lambda image: EulerCurveLoss(window=3)(image, image.detach() > 0.5),
        ],
    )
    def test_vmap_over_images(self, module):
        images = [noise(4, 1, 6, 7, **WIDE).requires_grad_() for _ in range(2)]
        curves = torch.vmap(module)(images[0]), torch.stack([module(image) for image in images[1]])
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

        def loss(parameters, buffers):
            state = parameters, buffers
            return torch.func.functional_call(layers[0], state, (image,)).square().sum()

        found, values = torch.vmap(torch.func.grad_and_value(loss))(parameters, buffers)
        found_alone = [layer(image) for layer in layers]
        alone = [curves.square().sum() for curves in found_alone]
        torch.testing.assert_close(values, torch.stack(alone))
        gradients = [
            torch.autograd.grad(value, [*layer.parameters()])
            for value, layer in zip(alone, layers, strict=True)
        ]
        expected = [torch.stack(parts) for parts in zip(*gradients, strict=True)]
        torch.testing.assert_close(list(found.values()), expected)

    @LAYERS
    def test_mixed_precision(self, make):
        """After a convolution in bfloat16 curves and gradients are those of its values."""
        torch.manual_seed(0)
        first = torch.nn.Conv2d(1, 2, 3)
        layer = make()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            features = first(noise(2, 1, 8, 9))
            curve = layer(features)
        assert features.dtype == torch.bfloat16
        assert curve.dtype == torch.float32
        torch.testing.assert_close(curve, layer(features.float()))
        curve.square().sum().backward()
        slopes = [parameter.grad for parameter in [*first.parameters(), *layer.parameters()]]
        assert all(slope.isfinite().all() for slope in slopes)


class TestBfloat16:
    def test_thresholds_and_directions(self):
        levels = torch.tensor([0.25, 0.5])
        vectors = torch.tensor([[1.0, 0.5]])
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
