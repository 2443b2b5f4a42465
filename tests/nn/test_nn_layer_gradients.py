"""Layers: gradients, and exact curves with soft gradients."""

import numpy as np
import pytest
from nn_helpers import LAYERS, SHAPES, curve_layer, noise, take_a_wild_step, torch, transform_layer

import ecc_core as ecc
from ecc_core.nn import EulerCurveLayer, EulerCurveMap


def curve_map():
    return EulerCurveMap(5, window=4, range=(0, 1), learn_sharpness=True)


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

    @pytest.mark.parametrize("make", [*LAYERS.args[1], curve_map])
    def test_every_parameter_gets_one(self, make):
        layer = make()
        layer(noise(2, 3, 6, 7)).square().sum().backward()
        for name, parameter in layer.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.abs().max() > 0, name

    def test_thresholds_stay_increasing_and_directions_unit(self):
        layer = curve_layer(dtype=torch.float64)
        other = transform_layer(3, dtype=torch.float64)
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
            optimizer = torch.optim.Adam(layer.parameters(), 0.1)
            for _ in range(3):
                optimizer.zero_grad()
                layer(unit * noise(2, 9, 9)).square().mean().backward()
                optimizer.step()
            curves.append(layer.thresholds.detach() / unit)
        assert (curves[0] - torch.linspace(0, 1, 6)).abs().max() > 0.02
        torch.testing.assert_close(curves[0], curves[1])


class TestHard:
    @pytest.mark.parametrize("n_spatial", [1, 2, 3])
    @pytest.mark.parametrize("directions", [None, 2])
    @pytest.mark.parametrize("superlevel", [False, True])
    def test_curves_are_exact_and_gradients_soft(self, n_spatial, directions, superlevel):
        options = {"directions": directions, "superlevel": superlevel}
        hard = curve_layer(n_spatial, hard="forward", **options).double()
        soft = curve_layer(n_spatial, **options).double()
        image = noise(2, *SHAPES[n_spatial], dtype=torch.float64)
        mask = noise(*SHAPES[n_spatial], seed=4) > 0.2
        gradients = []
        for layer in (hard, soft):
            given = image.clone().requires_grad_()
            (layer(given, mask) * torch.arange(5)).sum().backward()
            gradients.append([given.grad, *(p.grad for p in layer.parameters())])
        torch.testing.assert_close(*gradients)
        options = {"mask": mask, "superlevel": superlevel, "axis": range(-n_spatial, 0)}
        given = [{}]
        if directions:
            scale = hard.direction_scale[0].item()
            given = [{"direction": u, "direction_scale": scale} for u in hard.directions.tolist()]
        rows = [ecc.euler_curve(image, hard.thresholds, **one, **options).values for one in given]
        found = hard(image, mask)
        assert torch.equal(found.flatten(0, -2), torch.stack(rows, -2).flatten(0, -2).double())
        assert not torch.equal(found, soft(image, mask))

    def test_transforms_are_exact_and_gradients_soft(self):
        hard = transform_layer(hard="forward")
        soft = transform_layer()
        weights = [noise(2, 6, 7).requires_grad_() for _ in range(2)]
        soft(weights[1]).square().sum().backward()
        (hard(weights[0]) * 2 * soft(weights[0]).detach()).sum().backward()
        torch.testing.assert_close(weights[0].grad, weights[1].grad)
        directions = hard.directions.detach().numpy()
        heights = hard.heights.detach().numpy()
        for image, found in zip(weights[0].detach(), hard(weights[0]), strict=True):
            expected = ecc.euler_transform(image.numpy(), directions, heights, weighted=True).values
            np.testing.assert_array_equal(found.detach(), expected.astype(np.float32))
