"""Layers: gradients, and exact curves with soft gradients."""

import numpy as np
import pytest
from nn_helpers import LAYERS, SHAPES, curve_layer, noise, take_a_wild_step, torch, transform_layer

import ecc_core as ecc
from ecc_core.nn import EulerCurveLayer, EulerCurveMap, SimplicialTransformLayer


def curve_map():
    return EulerCurveMap(5, window=4, range=(0, 1), learn_sharpness=True)


class TestGradients:
    @pytest.mark.parametrize("n_spatial", [2, 3])
    @LAYERS
    def test_finite_differences(self, make, n_spatial):
        layer = make(n_spatial, dtype=torch.float64)
        take_a_wild_step(layer, 0.1, 0)  # On the axes, heights of cells have a kink.
        names = [name for name, _ in layer.named_parameters()]
        values = [parameter.detach().requires_grad_() for parameter in layer.parameters()]
        image = (0.1 + noise(2, *SHAPES[n_spatial], dtype=torch.float64)).requires_grad_()

        def call(image, *values):
            return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), image)

        assert torch.autograd.gradcheck(call, (image, *values), fast_mode=True)

    @pytest.mark.parametrize("make", [*LAYERS.args[1], curve_map])
    def test_every_parameter_gets_one(self, make):
        layer = make()
        found = layer(noise(2, 3, 6, 7))
        found.square().sum().backward()
        gradients = {name: parameter.grad for name, parameter in layer.named_parameters()}
        assert [name for name, gradient in gradients.items() if gradient is None] == []
        largest = {name: gradient.abs().max() for name, gradient in gradients.items()}
        assert [name for name, value in largest.items() if not value > 0] == []

    @pytest.mark.parametrize("steps", [1, 2, 5, 20])
    def test_thresholds_stay_increasing_and_directions_unit(self, steps):
        layer = curve_layer(dtype=torch.float64)
        other = transform_layer(3, dtype=torch.float64)
        for seed in range(steps):
            take_a_wild_step(layer, 1.0, seed)
            take_a_wild_step(other, 1.0, seed)
        assert (layer.thresholds.diff() > 0).all()
        assert (other.heights.diff() > 0).all()
        lengths = torch.cat([layer.directions.norm(dim=1), other.directions.norm(dim=1)])
        torch.testing.assert_close(lengths, torch.ones_like(lengths))
        assert (layer.sharpness > 0).all()
        assert (layer.direction_scale > 0).all()
        assert (other.sharpness > 0).all()

    def test_wild_steps_are_wild(self):
        """The steps after which thresholds are still increasing move them far."""
        layer = curve_layer(dtype=torch.float64)
        before = layer.thresholds.detach().clone()
        for seed in range(20):
            take_a_wild_step(layer, 1.0, seed)
        assert (layer.thresholds - before).abs().max() > 1

    def test_a_learning_rate_means_the_same_for_any_range(self):
        curves = []
        for unit in (1.0, 4096.0):
            layer = EulerCurveLayer(6, range=(0, unit), learn_sharpness=True)
            optimizer = torch.optim.Adam(layer.parameters(), 0.1)
            for _ in range(3):
                optimizer.zero_grad()
                found = layer(unit * noise(2, 9, 9))
                found.square().mean().backward()
                optimizer.step()
            curves.append(layer.thresholds.detach() / unit)
        assert (curves[0] - torch.linspace(0, 1, 6)).abs().max() > 0.02
        torch.testing.assert_close(curves[0], curves[1])


STEPS = {"curve": "thresholds_step", "transform": "heights_step", "shapes": "thresholds_step"}


@pytest.mark.parametrize("kind", STEPS)
def test_a_step_of_levels_that_requires_a_gradient_gets_it(kind):
    """It is a buffer, which training may yet ask the gradient of."""
    name = STEPS[kind]
    if kind == "shapes":
        triangles = [torch.tensor([[0, 1], [1, 2], [0, 2]]), torch.tensor([[0, 1, 2]])]
        layer = SimplicialTransformLayer(3, 5, range=(-1, 1), dtype=torch.float64)
        given = noise(3, 3, dtype=torch.float64), triangles
    else:
        make = {"curve": curve_layer, "transform": transform_layer}[kind]
        layer = make(dtype=torch.float64)
        given = (noise(2, 6, 7, dtype=torch.float64),)

    def call(step):
        return torch.func.functional_call(layer, {name: step}, given)

    step = getattr(layer, name).clone().requires_grad_()
    assert torch.autograd.gradcheck(call, step)


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
        of_soft = soft(weights[1])
        of_soft.square().sum().backward()
        slope = 2 * of_soft.detach()  # The derivative of the square, where it is soft.
        (hard(weights[0]) * slope).sum().backward()
        torch.testing.assert_close(weights[0].grad, weights[1].grad)
        directions = hard.directions.detach().numpy()
        heights = hard.heights.detach().numpy()
        exact = [
            ecc.euler_transform(image.numpy(), directions, heights, weighted=True).values
            for image in weights[0].detach()
        ]
        found = hard(weights[0]).detach()
        np.testing.assert_array_equal(found, np.array(exact, np.float32))
