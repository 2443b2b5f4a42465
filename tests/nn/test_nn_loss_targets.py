"""The loss: targets of every kind, weights of classes, and what it refuses."""

import math

import pytest
from nn_helpers import SHAPES, noise, torch

from ecc_core.nn import EulerCurveLoss

RANGE = "`input` must be between 0 and 1"
IMAGE = torch.ones(6, 7)
CHANNELS = torch.ones(2, 3, 6, 7)
ROWS = torch.arange(6)[:, None].expand(6, 7)


class TestTargets:
    @pytest.mark.parametrize("kind", [torch.uint8, torch.int64, torch.float32, torch.float64])
    def test_masks(self, kind):
        prediction = noise(2, 3, 6, 7)
        mask = noise(2, 3, 6, 7, seed=1) > 0.5
        loss = EulerCurveLoss()
        assert loss(prediction, mask.to(kind)) == loss(prediction, mask)
        if not kind.is_floating_point:
            assert loss(prediction, 255 * mask.to(kind)) == loss(prediction, mask)

    def test_probabilities(self):
        prediction = noise(2, 3, 6, 7)
        assert EulerCurveLoss()(prediction, prediction.clone()) == 0

    @pytest.mark.parametrize("n_spatial", [1, 2, 3])
    def test_class_indices(self, n_spatial):
        shape = SHAPES[n_spatial]
        prediction = noise(2, 4, *shape).softmax(1)
        target = torch.randint(0, 4, (2, *shape), generator=torch.Generator().manual_seed(0))
        loss = EulerCurveLoss(n_spatial=n_spatial, reduction="none")
        masks = torch.nn.functional.one_hot(target, 4).movedim(-1, 1)
        assert torch.equal(loss(prediction, target), loss(prediction, masks))
        assert torch.equal(loss(prediction[0], target[0]), loss(prediction, masks)[0])
        target.view(2, -1)[:, 0] = -100
        masks.view(2, 4, -1)[:, :, 0] = 0
        assert torch.equal(loss(prediction, target.int()), loss(prediction, masks))

    @pytest.mark.parametrize("kind", [torch.bool, torch.int64, torch.float32], ids=str)
    def test_masks_of_one_channel_may_lack_its_axis(self, kind):
        prediction = noise(2, 1, 6, 7)
        target = noise(2, 6, 7, seed=1) > 0.5
        found = EulerCurveLoss()(prediction, target.to(kind))
        assert torch.equal(found, EulerCurveLoss()(prediction, target[:, None]))

    def test_logits(self):
        logits = 4 * noise(2, 3, 6, 7) - 2
        masks = noise(2, 3, 6, 7, seed=1) > 0.5
        classes = torch.randint(3, (2, 6, 7), generator=torch.Generator().manual_seed(0))
        loss = EulerCurveLoss()
        of_logits = EulerCurveLoss(from_logits=True)
        assert torch.equal(of_logits(logits, masks), loss(logits.sigmoid(), masks))
        assert torch.equal(of_logits(logits, classes), loss(logits.softmax(1), classes))
        one = logits[:, :1]
        mask = masks[:, 0]
        assert torch.equal(of_logits(one, mask), loss(one.sigmoid(), mask))

    @pytest.mark.parametrize("window", [None, 4])
    def test_points_that_are_left_out(self, window):
        prediction = noise(2, 1, 6, 7)
        target = (noise(2, 1, 6, 7, seed=1) > 0.5).long()
        shown = noise(2, 1, 6, 7, seed=2) > 0.2
        loss = EulerCurveLoss(window=window)
        expected = loss(prediction, target, mask=shown)
        assert not torch.equal(expected, loss(prediction, target))
        other = torch.where(shown, prediction, torch.rand_like(prediction))
        assert torch.equal(loss(other, target, mask=shown), expected)
        ignoring = EulerCurveLoss(window=window, ignore_index=255)
        marked = torch.where(shown, target, 255)
        assert torch.equal(ignoring(other, marked), expected)
        assert torch.equal(ignoring(other, marked[:, 0]), expected)
        one = shown[0, 0]
        both = ignoring(other, marked, mask=one)
        assert torch.equal(both, loss(other, target, mask=shown & one))

    def test_ignored_points_of_classes(self):
        prediction = noise(2, 3, 6, 7).softmax(1)
        target = torch.randint(3, (2, 6, 7), generator=torch.Generator().manual_seed(0))
        shown = noise(2, 6, 7, seed=2) > 0.2
        found = EulerCurveLoss(ignore_index=-1)(prediction, torch.where(shown, target, -1))
        mask = shown[:, None].expand(prediction.shape)
        assert torch.equal(found, EulerCurveLoss()(prediction, target, mask=mask))
        with pytest.raises(TypeError, match="`target` must be integers with `ignore_index`"):
            EulerCurveLoss(ignore_index=-1)(prediction, prediction)


class TestWeights:
    def test_reductions(self):
        prediction = noise(4, 3, 6, 7).softmax(1)
        target = torch.randint(3, (4, 6, 7), generator=torch.Generator().manual_seed(2))
        weight = torch.tensor([0.0, 1.0, 3.0])
        errors = EulerCurveLoss(reduction="none")(prediction, target)
        expected = {
            "none": errors * weight,
            "sum": (errors * weight).sum(),
            "mean": (errors * weight).sum() / (4 * weight.sum()),
        }
        found = {
            reduction: EulerCurveLoss(weight=weight, reduction=reduction)(prediction, target)
            for reduction in expected
        }
        torch.testing.assert_close(found, expected)
        even = EulerCurveLoss(weight=[2, 2, 2], window=3)(prediction, target)
        torch.testing.assert_close(even, EulerCurveLoss(window=3)(prediction, target))

    def test_a_class_without_weight_has_no_gradient(self):
        prediction = noise(2, 2, 6, 7).requires_grad_()
        EulerCurveLoss(weight=[0, 1])(prediction, noise(2, 2, 6, 7, seed=1) > 0.5).backward()
        assert prediction.grad[:, 0].abs().max() == 0
        assert prediction.grad[:, 1].abs().max() > 0

    def test_other_numbers_of_classes(self):
        with pytest.raises(ValueError, match=r"`weight` must have as many .* channels, 3, got 2"):
            EulerCurveLoss(weight=[1, 1])(noise(1, 3, 6, 7), noise(1, 3, 6, 7) > 0.5)


class TestErrors:
    def test_rounded_probabilities(self):
        prediction = torch.tensor([[1 + 1e-6, -1e-6], [0.5, 1]])
        assert EulerCurveLoss()(prediction, prediction > 0.2).isfinite()

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"weight": [[1.0]]}, ValueError, r"`weight` must have shape \(class,\), got \(1, 1\)"),
            ({"weight": [1, -1]}, ValueError, "`weight` must be nonnegative"),
            ({"weight": [0, 0]}, ValueError, "`weight` must be nonnegative, finite and not all 0"),
            ({"weight": "ab"}, TypeError, "`weight` must be real numbers, got 'ab'"),
            ({"thresholds": 0}, ValueError, "`thresholds` must be a positive int, got 0"),
            ({"thresholds": 2.5}, TypeError, "`thresholds` must be a positive int, got 2.5"),
            ({"window": 0}, ValueError, "`window` must be a positive int, got 0"),
            ({"window": "8"}, TypeError, "`window` must be a positive int, got '8'"),
            ({"sharpness": 0}, ValueError, "`sharpness` must be positive and finite, got 0"),
            ({"p": 0.5}, ValueError, "`p` must be at least 1, got 0.5"),
            ({"p": math.nan}, ValueError, "`p` must be at least 1, got nan"),
            ({"p": 10**400}, ValueError, "`p` must be within the range of floats"),
            ({"weight": [1, 10**400]}, ValueError, "`weight` must be within the range of floats"),
            ({"p": "2"}, TypeError, "`p` must be a real number, got '2'"),
            ({"reduction": "max"}, ValueError, '`reduction` must be "mean", "sum" or "none"'),
            ({"connectivity": 3}, ValueError, "`connectivity` must be 1 or 2"),
            ({"n_spatial": 0}, ValueError, "`n_spatial` must be 1, 2 or 3, got 0"),
        ],
    )
    def test_settings(self, options, error, message):
        with pytest.raises(error, match=message):
            EulerCurveLoss(**options)

    @pytest.mark.parametrize(
        ("prediction", "target", "error", "message"),
        [
            (IMAGE.long(), IMAGE, TypeError, r"`input` must be .* floats, got torch\.int64"),
            (IMAGE.double().numpy(), IMAGE, TypeError, "`input` .* got float64"),
            (IMAGE, [[1]], TypeError, "`target` must be a tensor .* got list"),
            (IMAGE[0], IMAGE[0], ValueError, "at least 2 axes"),
            (IMAGE, IMAGE.T, ValueError, r"`target` .* got \(7, 6\)"),
            (CHANNELS, CHANNELS[:, 0], TypeError, r"`target` must be integers .* torch\.float32"),
            (IMAGE * math.nan, IMAGE, ValueError, r"`input` .* NaN \(pass `mask`"),
            (IMAGE, IMAGE * math.nan, ValueError, r"`target` .* NaN \(pass `mask`"),
            (IMAGE, 2 * IMAGE.long(), ValueError, "`target` must be 0 and 1.* got 2$"),
            (IMAGE, ROWS.long(), ValueError, "`target` must be 0 and 1.* got 1, 2, 3, 4, 5"),
            (IMAGE, 255 * (ROWS == 1) + (ROWS == 2), ValueError, "`target` must .* got 1, 255"),
            (IMAGE, -1 * IMAGE.long(), ValueError, "`target` must be 0 and 1.* got -1"),
            (-3 * IMAGE, IMAGE, ValueError, rf"{RANGE} \(pass from_logits=True .* got -3"),
            (1.5 * IMAGE, IMAGE, ValueError, rf"{RANGE} \(pass from_logits=True .* got 1.5"),
            (IMAGE, 255 * IMAGE, ValueError, "`target` must be between 0 and 1 .*got 255"),
            (CHANNELS[None], CHANNELS[None], ValueError, "at most 4 axes.*n_spatial=3 for volumes"),
        ],
    )
    def test_calls(self, prediction, target, error, message):
        with pytest.raises(error, match=message):
            EulerCurveLoss()(prediction, target)

    def test_points_that_are_left_out_may_be_anything(self):
        prediction = noise(6, 7)
        target = noise(6, 7, seed=1)
        shown = noise(6, 7, seed=2) > 0.3
        wanted = EulerCurveLoss()(prediction, target, mask=shown)
        hidden = [x.where(shown, math.nan) for x in (prediction, target)]
        assert EulerCurveLoss()(*hidden, mask=shown) == wanted
        hidden = [x.where(shown, 7) for x in (prediction, target)]
        assert EulerCurveLoss()(*hidden, mask=shown) == wanted
        marked = (target > 0.5).long().where(shown, 255)
        loss = EulerCurveLoss(ignore_index=255)
        assert loss(prediction, marked) == EulerCurveLoss()(prediction, target > 0.5, mask=shown)

    @pytest.mark.parametrize("window", [None, 4])
    def test_an_empty_batch_keeps_the_graph(self, window):
        empty = torch.ones(0, 2, 6, 7, requires_grad=True)
        EulerCurveLoss(window=window)(empty, empty.detach()).backward()
        assert empty.grad.shape == empty.shape

    def test_an_empty_batch(self):
        empty = torch.ones(0, 2, 6, 7)
        assert EulerCurveLoss(reduction="none")(empty, empty).shape == (0, 2)
        assert EulerCurveLoss(reduction="sum")(empty, empty) == 0
        assert EulerCurveLoss(window=4)(empty, empty).isnan()
