"""Layers: initial values, curves and transforms, and errors."""

import math

import numpy as np
import pytest
from nn_helpers import ALL_CURVE, HARD, SHAPES, curve_layer, noise, torch, transform_layer

import ecc_core as ecc
from ecc_core.nn import EulerCurveLayer, EulerTransformLayer
from ecc_core.nn.functional import soft_euler_curve, soft_euler_transform


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
        state = set(curve_layer(**fixed).state_dict())
        assert state == {"fixed_thresholds", *expected[1:], "calibrated"}

    def test_device_and_dtype(self):
        layer = curve_layer(dtype=torch.float64)
        state = layer.state_dict()
        assert state.pop("calibrated").dtype == torch.int64
        assert {value.dtype for value in state.values()} == {torch.float64}
        assert curve_layer(device="meta").thresholds.is_meta
        assert layer.to(torch.float32).directions.dtype == torch.float32

    def test_repr(self):
        options = {"directions": 4, "superlevel": True, "connectivity": 1, "spacing": (2, 1)}
        assert repr(EulerCurveLayer(9, range=(0, 1), **options)) == (
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
        options = {"superlevel": superlevel, "connectivity": 1}
        image = noise(2, 3, *SHAPES[n_spatial])
        mask = noise(*SHAPES[n_spatial], seed=1) > 0.2
        layer = curve_layer(n_spatial, spacing=2.0, **options)
        plain = curve_layer(n_spatial, directions=None, **options)
        found = layer(image, mask)
        rows = plain(image)
        assert found.shape == (2, 3, 2, 5)
        options |= {"sharpness": layer.sharpness, "n_spatial": n_spatial}
        torch.testing.assert_close(rows, soft_euler_curve(image, plain.thresholds, **options))
        options |= {"mask": mask, "direction_scale": 0.1, "spacing": 2.0}
        rows = [
            soft_euler_curve(image, layer.thresholds, direction=direction, **options)
            for direction in layer.directions
        ]
        torch.testing.assert_close(found, torch.stack(rows, dim=2))

    @pytest.mark.parametrize("n_spatial", [1, 2, 3])
    def test_transforms(self, n_spatial):
        options = {"connectivity": 1, "spacing": 0.5, "extension": "min", "n_spatial": n_spatial}
        layer = transform_layer(**options)
        image = noise(2, *SHAPES[n_spatial])
        given = image, layer.directions, layer.heights
        expected = soft_euler_transform(*given, sharpness=layer.sharpness, **options)
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


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"normalize": "mean"}, ValueError, '`normalize` must be None, "side" or "batch"'),
            ({"thresholds": [1.0, 2], "range": (0, 1)}, ValueError, "`range` must be None where"),
            ({"thresholds": -1}, ValueError, "`thresholds` must not be negative, got -1"),
            ({"range": (1, 0)}, ValueError, "`range` must be finite with low <= high"),
            ({"thresholds": [2.0, 1.0]}, ValueError, "must be increasing, got 2.0 before 1.0"),
            ({"thresholds": [1.0, 1.0, 2.0]}, ValueError, "must be finite and distinct"),
            ({"thresholds": [1.0, math.inf]}, ValueError, "must be finite and distinct"),
            ({"thresholds": [1.0]}, ValueError, "`sharpness` must be given for levels without a"),
            ({"sharpness": -2}, ValueError, "`sharpness` must be positive and finite, got -2"),
            ({"n_spatial": 4}, ValueError, "`n_spatial` must be 1, 2 or 3, got 4"),
            ({"connectivity": 3}, ValueError, "`connectivity` must be 1 or 2"),
            ({"hard": True}, ValueError, '`hard` must be None or "forward", got True'),
            ({"spacing": 0}, ValueError, "`spacing` must be positive and finite"),
            ({"directions": [[1, 2, 3]]}, ValueError, r"must have shape \(k, 2\)"),
            ({"directions": 0}, ValueError, "`directions` must be None or at least one"),
            ({"directions": 1, "direction_scale": 0}, ValueError, "`direction_scale` must be"),
            ({"thresholds": 1.5}, TypeError, "`thresholds` must be an int or an array, got 1.5"),
            ({"thresholds": ["a"]}, TypeError, "`thresholds` must be real numbers"),
            (
                {"dtype": torch.int32},
                TypeError,
                "`dtype` must be a torch dtype of real floats",
            ),
            ({"dtype": torch.complex64}, TypeError, "`dtype` must be a torch dtype of real floats"),
            ({"dtype": "float32"}, TypeError, "`dtype` must be a torch dtype of real floats"),
            ({"sharpness": "4"}, TypeError, "`sharpness` must be a real number, got '4'"),
        ],
    )
    def test_options_of_curves(self, options, error, message):
        with pytest.raises(error, match=message):
            EulerCurveLayer(**{"thresholds": 4, **options})

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "`range` must be given where `heights` is an int, got None"),
            ({"range": (0, 1), "extension": "mean"}, '`extension` must be "max" or "min"'),
            ({"range": (0, 1), "extension": "min", "hard": "forward"}, '`extension` must be "max"'),
            ({"range": (0, 1), "directions": [[0, 0]]}, "`directions` must be finite and not zero"),
        ],
    )
    def test_options_of_transforms(self, options, message):
        with pytest.raises(ValueError, match=message):
            EulerTransformLayer(**options)

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
