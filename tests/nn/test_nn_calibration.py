"""Layers that find their range, sharpness and scale in data, and normalised curves."""

import copy
import re

import pytest
import torch
from nn_helpers import draw_normal as draw

from ecc_core.nn import (
    EulerCurveLayer,
    EulerCurveLoss,
    EulerCurveMap,
    EulerTransformLayer,
    parameter_groups,
)


def test_the_first_batch_calibrates():
    layer = EulerCurveLayer(16)
    images = 30 + 5 * draw(4, 3, 32, 32)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    curves = layer(images)
    thresholds = layer.thresholds.detach()
    expected = torch.quantile(images.flatten(), torch.tensor([0.01, 0.99]))
    torch.testing.assert_close(thresholds[[0, -1]], expected, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(layer.sharpness, 4 * 15 / (expected[1] - expected[0]))
    assert curves.std() > 1
    layer(100 * images)
    assert torch.equal(layer.thresholds, thresholds)
    curves.square().mean().backward()
    optimizer.step()
    assert not torch.equal(layer.thresholds, thresholds)


@pytest.mark.parametrize("bounds", [None, (-0.5, 1.5)])
def test_directions_see_a_smooth_image(bounds):
    ramp = torch.linspace(-1, 1, 64)
    image = torch.exp(-3 * (ramp[:, None] ** 2 + ramp**2))
    low, high = torch.quantile(image, torch.tensor([0.01, 0.99])).tolist()
    width = high - low if bounds is None else bounds[1] - bounds[0]
    layer = EulerCurveLayer(16, range=bounds, directions=4)
    assert layer(image).std(-1).min() > 0.1
    assert layer.direction_scale.tolist() == pytest.approx([width / 64] * 4)


def test_what_is_given_stays():
    layer = EulerCurveLayer(5, range=(0, 1), sharpness=7.0, directions=2, direction_scale=0.3)
    state = copy.deepcopy(layer.state_dict())
    layer.calibrate(40 * draw(2, 9, 9))
    torch.testing.assert_close(layer.state_dict(), state, rtol=0, atol=0)
    layer = EulerCurveLayer(5, sharpness=7.0, learn_thresholds=False)
    layer.calibrate(draw(99, 99), quantiles=(0.25, 0.75))
    assert layer.sharpness.item() == pytest.approx(7)
    torch.testing.assert_close(layer.thresholds[2], torch.tensor(0.0), atol=0.02, rtol=0)
    assert 0.6 < layer.thresholds[-1] < 0.75


def test_data_with_few_numbers():
    layer = EulerCurveLayer(3)
    with pytest.raises(ValueError, match="`data` must have finite values, got none"):
        layer.calibrate(torch.full((4, 4), torch.nan))
    layer.calibrate(torch.tensor([[2.0, 2.0], [torch.inf, torch.nan]]))
    assert layer.thresholds.tolist() == [1.5, 2.0, 2.5]


@pytest.mark.parametrize(
    ("shape", "options", "expected"),
    [
        ((2, 0, 5), {"range": (0, 1)}, "`image` must have points along each spatial axis"),
        ((2, 5, 0), {}, "`image` must have finite values, got none"),
        ((5,), {"range": (0, 1)}, "`image` must have at least 2 axes (`n_spatial`), got (5,)"),
    ],
)
def test_images_that_say_nothing_of_directions(shape, options, expected):
    layer = EulerCurveLayer(3, directions=2, **options)
    with pytest.raises(ValueError, match=re.escape(expected)):
        layer(torch.zeros(shape))


@pytest.mark.parametrize("shape", [(2, 0, 5), (2, 5, 0), (0, 4, 5)])
def test_directed_curves_of_nothing(shape):
    """The scale of no images follows from their shape and the range."""
    layer = EulerCurveLayer(3, range=(0, 1), directions=2, direction_scale=0.1)
    assert torch.equal(layer(torch.zeros(shape)), torch.zeros(shape[0], 2, 3))
    layer = EulerCurveLayer(3, range=(0, 1), directions=2)
    assert layer(torch.zeros(0, 4, 5)).shape == (0, 2, 3)
    assert layer.direction_scale.tolist() == pytest.approx([1 / 5] * 2)


@pytest.mark.parametrize("quantiles", [(0.9, 0.1), (0.5, 0.5), (-0.1, 0.9), (0, 1.1)])
def test_wrong_quantiles(quantiles):
    with pytest.raises(ValueError, match="`quantiles` must be increasing numbers from 0 to 1"):
        EulerCurveLayer(3).calibrate(draw(4, 4), quantiles=quantiles)


def test_compiled_layers_must_be_calibrated():
    layer = EulerCurveLayer(6)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    with pytest.raises(Exception, match="must be calibrated"):
        compiled(draw(2, 8, 8))
    torch.compiler.reset()
    layer.calibrate(draw(2, 8, 8))
    torch.testing.assert_close(compiled(draw(2, 8, 8)), layer(draw(2, 8, 8)))
    torch.compiler.reset()


@pytest.mark.parametrize("directions", [None, 3])
def test_normalised_curves(directions):
    images = draw(6, 2, 20, 20)
    plain = EulerCurveLayer(8, directions=directions)
    plain.calibrate(images)
    side = EulerCurveLayer(8, directions=directions, normalize="side")
    side.load_state_dict(plain.state_dict())
    torch.testing.assert_close(side(images), plain(images) / 20)
    batch = EulerCurveLayer(8, directions=directions, normalize="batch")
    batch.calibrate(images)
    curves = batch(images)
    assert curves.shape == plain(images).shape
    rows = curves.flatten(0, 1)
    torch.testing.assert_close(rows.mean(0), torch.zeros_like(rows[0]), atol=1e-4, rtol=0)
    assert (rows.var(0, correction=0) < 1.001).all()
    before = batch.norm.running_mean.clone()
    assert before.any()
    batch.eval()(images)
    assert torch.equal(batch.norm.running_mean, before)


def test_parameter_groups():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3),
        EulerCurveLayer(4, range=(0, 1), directions=2, learn_sharpness=True),
        EulerTransformLayer(3, 4, range=(-4, 4)),
    )
    others, own = parameter_groups(model, weight_decay=0.5, lr=0.1)
    assert [id(p) for p in others["params"]] == [id(p) for p in model[0].parameters()]
    assert len(own["params"]) == 5
    assert (others["weight_decay"], own["weight_decay"], own["lr"]) == (0.5, 0.0, 0.1)


@pytest.mark.parametrize("options", [{}, {"learn_thresholds": False}, {"directions": 2}])
def test_states_without_calibrated_thresholds_leave_calibration_on(options):
    images = 255 * torch.rand(4, 1, 16, 16, generator=torch.Generator().manual_seed(0))

    def made():
        return torch.nn.Sequential(EulerCurveLayer(4, **options), torch.nn.Linear(4, 2))

    expected = made()
    expected[0].calibrate(images)
    model = made()
    model.load_state_dict({"1.bias": torch.zeros(2)}, strict=False)
    model(images)
    assert torch.equal(model[0].thresholds, expected[0].thresholds)
    model = made()
    model.load_state_dict(made().state_dict())
    model(images)
    assert torch.equal(model[0].thresholds, expected[0].thresholds)
    model.load_state_dict(made().state_dict())  # The initial state is not calibrated.
    model(images / 10)
    assert model[0].thresholds.max() < expected[0].thresholds.max() / 5


def test_calibrated_states_end_calibration():
    student = EulerCurveLayer(4, directions=2)
    images = 9 * draw(2, 16, 16)
    student.calibrate(images)
    loaded = EulerCurveLayer(4, directions=2)
    loaded.load_state_dict(student.state_dict())
    copied = copy.deepcopy(student)
    copied(100 * images)
    assert torch.equal(copied(images), student(images))
    loaded(100 * images)
    assert torch.equal(loaded(images), student(images))


def test_averages_of_models_are_calibrated_with_their_model():
    student = EulerCurveLayer(4, learn_thresholds=False)
    teacher = torch.optim.swa_utils.AveragedModel(student)
    student(9 * draw(2, 16, 16))
    teacher.update_parameters(student)
    teacher(900 * draw(2, 16, 16))
    assert torch.equal(teacher.module.thresholds, student.thresholds)


@pytest.mark.parametrize(
    "make",
    [
        lambda: EulerCurveLayer(4, directions=2, learn_thresholds=False),
        lambda: EulerCurveMap(4, range=(2, 5), normalize="batch"),
        lambda: EulerTransformLayer(3, 4, range=(-5, 5), learn_sharpness=True),
        lambda: EulerCurveLoss(weight=[1, 2]),
    ],
)
def test_parameters_and_buffers_are_reset_after_to_empty(make):
    with torch.device("meta"):
        module = make()
    module = module.to_empty(device="cpu")
    for tensor in (*module.parameters(), *module.buffers()):
        tensor.detach().fill_(77)
    for part in module.modules():
        part.reset_parameters()
    expected = dict(make().named_buffers()) | dict(make().named_parameters())
    found = dict(module.named_buffers()) | dict(module.named_parameters())
    torch.testing.assert_close(found, expected)
    assert found


@pytest.mark.parametrize(
    ("arguments", "options", "expected"),
    [
        ((3,), {}, "`module` must be a torch.nn.Module, got int"),
        ((EulerCurveLayer(3, range=(0, 1)),), {"params": []}, "`params` must be left out"),
    ],
)
def test_what_is_no_group(arguments, options, expected):
    with pytest.raises(TypeError, match=expected):
        parameter_groups(*arguments, **options)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([[1.0, 2.0], [3.0, 4.0]], "`data` must be a torch tensor, got list"),
        (torch.eye(3, dtype=torch.complex64), "`data` must be a tensor of booleans, integers or"),
        (torch.eye(3).to_sparse(), "`data` must be a dense tensor, got torch.sparse_coo"),
    ],
    ids=["list", "complex", "sparse"],
)
@pytest.mark.parametrize("bounds", [None, (0, 1)])
def test_what_no_layer_is_calibrated_with(data, expected, bounds):
    with pytest.raises(TypeError, match=expected):
        EulerCurveLayer(3, range=bounds).calibrate(data)
