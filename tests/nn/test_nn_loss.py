"""The loss: values, targets of every kind, windows, gradients, and what training with it does."""

import copy
import math
import pickle

import numpy as np
import pytest

import ecc_core as ecc

torch = pytest.importorskip("torch", reason="torch is not installed")
from ecc_core.nn import EulerCurveLoss  # noqa: E402
from ecc_core.nn.functional import soft_euler_curve  # noqa: E402

SHAPES = {1: (13,), 2: (6, 7), 3: (4, 5, 3)}


def noise(*shape, dtype=torch.float32, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def ring(side=9):
    """A closed ring of probability 1."""
    image = torch.zeros(1, 1, side, side)
    image[..., 1:-1, 1:-1] = 1
    image[..., 3:-3, 3:-3] = 0
    return image


def curves(image, n=8, sharpness=32.0, **options):
    at = (torch.arange(n) + 0.5) / n
    return soft_euler_curve(image, at, sharpness=sharpness, superlevel=True, **options)


class TestValues:
    @pytest.mark.parametrize("n_spatial", [1, 2, 3])
    @pytest.mark.parametrize("p", [1, 2, 3.5, math.inf])
    def test_definition(self, n_spatial, p):
        shape = SHAPES[n_spatial]
        prediction, target = noise(2, 3, *shape), noise(2, 3, *shape, seed=1) > 0.5
        options = {"connectivity": 1, "n_spatial": n_spatial}
        gap = curves(prediction, **options) - curves(target.float(), **options)
        gap = gap.numpy().astype(np.float64) / math.prod(shape)
        largest = np.abs(gap).max(-1)
        expected = largest if p == math.inf else (np.abs(gap) ** p).mean(-1) ** (1 / p)
        for reduction, wanted in {
            "none": expected,
            "mean": expected.mean(),
            "sum": expected.sum(),
        }.items():
            loss = EulerCurveLoss(p=p, reduction=reduction, **options)
            found = loss(prediction, target)
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
        absolute = EulerCurveLoss(p=p, reduction="none", normalize=False, **options)
        np.testing.assert_allclose(
            absolute(prediction, target), expected * math.prod(shape), rtol=1e-5
        )

    def test_thresholds_and_sharpness(self):
        prediction, target = noise(6, 7), noise(6, 7, seed=1) > 0.5
        loss = EulerCurveLoss(3, sharpness=5.0, normalize=False)
        assert loss.thresholds.tolist() == pytest.approx([1 / 6, 1 / 2, 5 / 6])
        gap = curves(prediction, 3, 5.0) - curves(target.float(), 3, 5.0)
        torch.testing.assert_close(loss(prediction, target), gap.abs().mean())

    def test_counts_holes_and_fragments(self):
        """A sharp loss is the error of the Euler characteristic."""
        loss = EulerCurveLoss(sharpness=1000, normalize=False)
        target = ring() == 1
        assert loss(ring(), target).item() == pytest.approx(0, abs=1e-6)
        torn = ring()
        torn[..., 4, :4] = 0
        assert loss(torn, target).item() == pytest.approx(1, abs=1e-4)
        scattered = ring()
        scattered[..., 0, ::2] = scattered[..., -1, ::2] = 0
        scattered[..., 4, 4] = 1
        assert loss(scattered, target).item() == pytest.approx(1, abs=1e-4)

    @pytest.mark.parametrize("connectivity", [1, 2])
    def test_connectivity_is_that_of_the_object(self, connectivity):
        diagonal = torch.eye(5)[None]
        loss = EulerCurveLoss(sharpness=1000, normalize=False, connectivity=connectivity)
        count = ecc.euler_number(np.eye(5), connectivity)
        assert count == {1: 5, 2: 1}[connectivity]
        assert loss(diagonal, torch.zeros_like(diagonal)).item() == pytest.approx(count, abs=1e-4)

    def test_does_not_depend_on_the_size_of_the_image(self):
        """Four copies of an image have the loss of one, with windows and without."""
        prediction, target = noise(1, 1, 32, 32), noise(1, 1, 32, 32, seed=1) > 0.6
        prediction[..., 0], target[..., 0] = 0, False  # copies that do not touch
        prediction[..., 0, :], target[..., 0, :] = 0, False
        for window in (None, 16):
            loss = EulerCurveLoss(window=window, connectivity=1)
            one = loss(prediction, target)
            four = loss(prediction.tile(2, 2), target.tile(2, 2))
            torch.testing.assert_close(one, four, rtol=1e-3, atol=0)
            assert one > 1e-3


class TestTargets:
    @pytest.mark.parametrize("kind", [torch.uint8, torch.int64, torch.float32, torch.float64])
    def test_masks(self, kind):
        prediction, mask = noise(2, 3, 6, 7), noise(2, 3, 6, 7, seed=1) > 0.5
        loss = EulerCurveLoss()
        assert loss(prediction, mask.to(kind)) == loss(prediction, mask)

    def test_any_integer_but_zero_is_the_object(self):
        prediction, mask = noise(2, 3, 6, 7), noise(2, 3, 6, 7, seed=1) > 0.5
        loss = EulerCurveLoss()
        assert loss(prediction, 255 * mask.to(torch.uint8)) == loss(prediction, mask)

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

    def test_masks_of_one_channel_may_lack_its_axis(self):
        prediction, target = noise(2, 1, 6, 7), noise(2, 6, 7, seed=1) > 0.5
        for kind in (torch.bool, torch.int64, torch.float32):
            found = EulerCurveLoss()(prediction, target.to(kind))
            assert torch.equal(found, EulerCurveLoss()(prediction, target[:, None]))

    def test_logits(self):
        logits, masks = 4 * noise(2, 3, 6, 7) - 2, noise(2, 3, 6, 7, seed=1) > 0.5
        classes = torch.randint(3, (2, 6, 7), generator=torch.Generator().manual_seed(0))
        loss, of_logits = EulerCurveLoss(), EulerCurveLoss(from_logits=True)
        assert torch.equal(of_logits(logits, masks), loss(logits.sigmoid(), masks))
        assert torch.equal(of_logits(logits, classes), loss(logits.softmax(1), classes))
        one, mask = logits[:, :1], masks[:, 0]
        assert torch.equal(of_logits(one, mask), loss(one.sigmoid(), mask))

    @pytest.mark.parametrize("window", [None, 4])
    def test_points_that_are_left_out(self, window):
        prediction, target = noise(2, 1, 6, 7), (noise(2, 1, 6, 7, seed=1) > 0.5).long()
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


class TestWindows:
    @pytest.mark.parametrize("shape", [(6, 8), (7, 5), (2, 3)])
    def test_average_over_windows(self, shape):
        side = 4
        prediction, target = noise(2, *shape), noise(2, *shape, seed=1) > 0.5
        rows, columns = (-(-n // side) * side for n in shape)
        padded = [torch.zeros(2, rows, columns) for _ in "ab"]
        for whole, part in zip(padded, (prediction, target), strict=True):
            whole[:, : shape[0], : shape[1]] = part
        whole = EulerCurveLoss(reduction="none")
        pieces = [
            whole(*(array[:, i : i + side, j : j + side] for array in padded))
            for i in range(0, rows, side)
            for j in range(0, columns, side)
        ]
        found = EulerCurveLoss(window=side, reduction="none")(prediction, target)
        torch.testing.assert_close(found, torch.stack(pieces).mean(0))

    def test_volumes(self):
        prediction, target = noise(2, 4, 4, 6), noise(2, 4, 4, 6, seed=1) > 0.5
        whole, parts = (EulerCurveLoss(n_spatial=3, window=w) for w in (None, 2))
        pieces = [
            whole(*(a[:, i : i + 2, j : j + 2, k : k + 2] for a in (prediction, target)))
            for i in (0, 2)
            for j in (0, 2)
            for k in (0, 2, 4)
        ]
        torch.testing.assert_close(parts(prediction, target), torch.stack(pieces).mean())

    def test_a_hole_here_does_not_make_up_for_a_fragment_there(self):
        target = torch.zeros(1, 16, 16)
        target[:, 1:7, 1:7] = 1
        prediction = target.clone()
        prediction[:, 3:5, 3:5] = 0
        prediction[:, 12, 12] = 1
        options = {"sharpness": 1000, "normalize": False}
        assert EulerCurveLoss(**options)(prediction, target).item() == pytest.approx(0, abs=1e-4)
        windows = EulerCurveLoss(window=8, **options)
        assert windows(prediction, target).item() == pytest.approx(2 / 4, abs=1e-4)


class TestGradients:
    @pytest.mark.parametrize("n_spatial", [2, 3])
    @pytest.mark.parametrize("window", [None, 3])
    @pytest.mark.parametrize("p", [1, 2])
    def test_finite_differences(self, n_spatial, window, p):
        shape = SHAPES[n_spatial]
        prediction = noise(2, *shape, dtype=torch.float64).requires_grad_()
        target = noise(2, *shape, seed=1) > 0.5
        loss = EulerCurveLoss(n_spatial=n_spatial, window=window, p=p).double()
        assert torch.autograd.gradcheck(lambda x: loss(x, target), (prediction,), fast_mode=True)

    def test_only_of_the_prediction(self):
        prediction, target = noise(2, 6, 7).requires_grad_(), noise(2, 6, 7, seed=1)
        target.requires_grad_()
        loss = EulerCurveLoss()
        loss(prediction, target).backward()
        assert prediction.grad.abs().max() > 0
        assert target.grad is None
        assert list(loss.parameters()) == []
        assert loss.state_dict() == {}

    @pytest.mark.parametrize("p", [1, 2, 3, math.inf])
    def test_zero_at_the_goal(self, p):
        prediction = noise(2, 6, 7).requires_grad_()
        EulerCurveLoss(p=p)(prediction, prediction.detach()).backward()
        assert torch.equal(prediction.grad, torch.zeros(2, 6, 7))

    def test_closes_a_gap(self):
        """Descent on the loss alone gives a torn ring the topology of a closed one."""
        target = ring() == 1
        torn = ring() * 0.8 + 0.1
        torn[..., 4, :4] = 0.3
        logits = torn.logit().requires_grad_()
        loss = EulerCurveLoss(normalize=False)
        optimizer = torch.optim.Adam([logits], lr=0.1)
        values = []
        for _ in range(60):
            value = loss(logits.sigmoid(), target)
            values.append(value.item())
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
        assert values[-1] < 0.1 * values[0]
        before, after = (
            [ecc.euler_number(np.asarray(p[0, 0] > t)) for t in (0.3, 0.5, 0.7)]
            for p in (torn, logits.detach().sigmoid())
        )
        assert before == [1, 1, 1]
        assert after == [0, 0, 0]


class TestTransformations:
    def test_compile(self):
        loss = EulerCurveLoss(window=4)
        prediction, target = noise(2, 1, 6, 7).requires_grad_(), noise(2, 1, 6, 7, seed=1) > 0.5
        values = [
            call(prediction, target)
            for call in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager"))
        ]
        torch.testing.assert_close(*values)
        torch.testing.assert_close(*(torch.autograd.grad(v, prediction)[0] for v in values))

    def test_vmap(self):
        loss = EulerCurveLoss(window=3)
        prediction, target = noise(4, 2, 6, 7), noise(4, 2, 6, 7, seed=1) > 0.5
        expected = torch.stack([loss(*pair) for pair in zip(prediction, target, strict=True)])
        torch.testing.assert_close(torch.vmap(loss)(prediction, target), expected)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_low_precision(self, dtype):
        """As good as the rounded probabilities are."""
        prediction = noise(2, 2, 6, 7).to(dtype).requires_grad_()
        target = noise(2, 2, 6, 7, seed=1) > 0.5
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = EulerCurveLoss()(prediction, target)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, EulerCurveLoss()(prediction.float(), target))
        found.backward()
        assert prediction.grad.dtype == dtype
        assert prediction.grad.abs().max() > 0

    def test_copies(self):
        loss = EulerCurveLoss(5, p=2, window=4)
        prediction, target = noise(2, 6, 7), noise(2, 6, 7, seed=1) > 0.5
        for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
            assert other(prediction, target) == loss(prediction, target)

    def test_repr(self):
        assert repr(EulerCurveLoss(5, window=16)) == (
            "EulerCurveLoss(thresholds=5, p=1.0, window=16, normalize=True, connectivity=2, "
            "n_spatial=2, reduction='mean')"
        )


class TestWeights:
    def test_reductions(self):
        prediction = noise(4, 3, 6, 7).softmax(1)
        target = torch.randint(3, (4, 6, 7), generator=torch.Generator().manual_seed(2))
        weight = torch.tensor([0.0, 1.0, 3.0])
        errors = EulerCurveLoss(reduction="none")(prediction, target)
        found = {
            reduction: EulerCurveLoss(weight=weight, reduction=reduction)(prediction, target)
            for reduction in ("none", "sum", "mean")
        }
        torch.testing.assert_close(found["none"], errors * weight)
        torch.testing.assert_close(found["sum"], (errors * weight).sum())
        torch.testing.assert_close(found["mean"], (errors * weight).sum() / (4 * weight.sum()))
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
    @pytest.mark.parametrize(
        ("prediction", "got"), [(-noise(6, 7) - 3, "-3"), (noise(6, 7) * 0 + 1.5, "1.5")]
    )
    def test_logits_without_from_logits(self, prediction, got):
        target = noise(6, 7) > 0.5
        message = rf"`prediction` must be between 0 and 1 \(pass from_logits=True .* got {got}"
        with pytest.raises(ValueError, match=message):
            EulerCurveLoss()(prediction, target)
        assert EulerCurveLoss(from_logits=True)(prediction, target).isfinite()

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
            ({"p": "2"}, TypeError, "`p` must be a number, got '2'"),
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
            (
                torch.ones(6, 7, dtype=torch.int64),
                torch.ones(6, 7),
                TypeError,
                r"`prediction` must be a tensor of floats, got torch\.int64",
            ),
            (np.ones((6, 7)), torch.ones(6, 7), TypeError, "`prediction` .* got float64"),
            (torch.ones(6, 7), [[1]], TypeError, "`target` must be a tensor .* got list"),
            (torch.ones(7), torch.ones(7), ValueError, "at least 2 axes"),
            (torch.ones(6, 7), torch.ones(7, 6), ValueError, r"`target` .* got \(7, 6\)"),
            (
                torch.ones(2, 3, 6, 7),
                torch.ones(2, 6, 7),
                TypeError,
                r"`target` must be integers if it holds class indices, got torch\.float32",
            ),
            (
                torch.full((6, 7), math.nan),
                torch.ones(6, 7),
                ValueError,
                "must not contain NaN",
            ),
        ],
    )
    def test_calls(self, prediction, target, error, message):
        with pytest.raises(error, match=message):
            EulerCurveLoss()(prediction, target)

    def test_an_empty_batch(self):
        empty = torch.ones(0, 2, 6, 7)
        assert EulerCurveLoss(reduction="none")(empty, empty).shape == (0, 2)
        assert EulerCurveLoss(reduction="sum")(empty, empty) == 0
        assert EulerCurveLoss(window=4)(empty, empty).isnan()
