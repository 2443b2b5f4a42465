"""`PersistenceLoss` against the diagrams of GUDHI."""

import itertools
from functools import partial

import numpy as np
import pytest
import torch
from nn_helpers import noise
from topology_helpers import intervals

from ecc_core.nn import PersistenceLoss

draw = partial(noise, dtype=torch.float64)


def diagrams(image, connectivity):
    """Births and deaths (k, 2) of superlevel sets by dimension; what never dies dies at 0."""
    found = intervals(-np.asarray(image, float), connectivity)
    return [-np.where(np.isinf(pairs), 0, pairs) for pairs in found]


def error_of(image, target, connectivity, least=0.0):
    total = 0.0
    both = (diagrams(x, connectivity) for x in (image, target))
    for own, true in zip(*both, strict=True):
        births, deaths = own[np.argsort(own[:, 1] - own[:, 0], kind="stable")].T
        count = int(((true[:, 0] >= 0.5) & (true[:, 1] < 0.5)).sum())
        others = (births - deaths)[count:]
        total += ((1 - births[:count]) ** 2 + deaths[:count] ** 2).sum()
        total += (others[others >= least] ** 2).sum()
    return total


@pytest.mark.parametrize("shape", [(9,), (8, 11), (5, 6, 7)])
@pytest.mark.parametrize("connectivity", [1, None])
@pytest.mark.parametrize("least", [0, 0.4])
def test_equals_diagrams(shape, connectivity, least):
    images = draw(2, 3, *shape)
    targets = draw(2, 3, *shape, seed=1) > 0.6
    options = {"connectivity": connectivity, "n_spatial": len(shape), "min_persistence": least}
    found = PersistenceLoss(**options, reduction="none")(images, targets)
    assert found.shape == (2, 3)
    used = len(shape) if connectivity is None else 1
    wanted = np.empty((2, 3))
    for place in np.ndindex(2, 3):
        wanted[place] = error_of(images[place].numpy(), targets[place].numpy(), used, least)
    assert found.numpy() == pytest.approx(wanted)
    assert PersistenceLoss(**options)(images, targets) == found.mean()
    total = PersistenceLoss(**options, reduction="sum")(images, targets.to(torch.uint8))
    torch.testing.assert_close(total, found.sum())


def test_classes_that_last_just_so_long_are_penalized():
    """The second component of the prediction is born at 0.5 and dies at 0.25."""
    prediction = torch.tensor([0.75, 0.25, 0.5])
    target = torch.tensor([True, False, False])
    found = PersistenceLoss(n_spatial=1, min_persistence=0.25)(prediction, target)
    without = PersistenceLoss(n_spatial=1, min_persistence=0.26)(prediction, target)
    assert (found - without).item() == 0.25**2


def test_windows():
    image = draw(10, 13)
    target = draw(10, 13, seed=1) > 0.7
    padded = [np.pad(x.numpy(), ((0, 2), (0, 5))) for x in (image, target)]
    windows = [np.s_[y : y + 6, x : x + 6] for y in (0, 6) for x in (0, 6, 12)]
    wanted = [error_of(padded[0][window], padded[1][window], 2) for window in windows]
    assert PersistenceLoss(6)(image, target).item() == pytest.approx(np.mean(wanted))


@pytest.mark.parametrize("window", [None, 4])
def test_gradients(window):
    logits = draw(2, 8, 9) * 6 - 3
    target = draw(2, 8, 9, seed=1) > 0.6
    loss = PersistenceLoss(window, from_logits=True)
    assert torch.autograd.gradcheck(lambda x: loss(x, target), logits.requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_narrow_values_are_widened_before_anything_is_computed(dtype, reduction):
    """The loss of the same values in float64; the gradient has the dtype of the image."""
    image = draw(3, 1, 40, 40, dtype=dtype)
    target = draw(3, 1, 40, 40, seed=1) > 0.5
    results = []
    for given in (image, image.double()):
        loss = PersistenceLoss(reduction=reduction)(given.requires_grad_(), target)
        results.append((loss, torch.autograd.grad(loss.sum(), given)[0]))
    (found, gradient), (wanted, slope) = results
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), wanted, rtol=1e-6, atol=0)
    assert gradient.dtype == dtype
    torch.testing.assert_close(gradient, slope.to(dtype), rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize("window", [None, 4])
@pytest.mark.parametrize("shape", [(6, 9), (5, 6, 4)])
def test_points_that_are_left_out_never_enter(shape, window):
    """GUDHI of images in which these points are infinite, and target classes of the rest."""
    image = draw(*shape)
    target = draw(*shape, seed=1) > 0.6
    shown = draw(*shape, seed=2) > 0.15
    hidden = torch.where(shown, image, torch.nan).requires_grad_()
    loss = PersistenceLoss(window, n_spatial=len(shape))
    found = loss(hidden, target, mask=shown)
    found.backward()
    assert hidden.grad[~shown].abs().max() == 0
    side = window or max(shape)
    starts = [range(0, n, window or n) for n in shape]
    places = itertools.product(*starts)
    errors = []
    for place in places:
        part = tuple(slice(start, start + side) for start in place)
        sizes = [window or n for n in shape]
        own = np.full(sizes, -np.inf)
        true = np.full(sizes, -np.inf)
        inner = tuple(slice(0, n) for n in image[part].shape)
        own[inner] = np.where(shown[part], image[part], -np.inf)
        true[inner] = np.where(shown[part], target[part], -np.inf)
        errors.append(error_of_shown(own, true, len(shape)))
    assert found.item() == pytest.approx(np.mean(errors))


def error_of_shown(image, target, connectivity):
    """The error of images in which hidden points are -inf; what dies only there dies at 0."""
    total = 0.0
    for own, true in zip(
        *(intervals(-part, connectivity) for part in (image, target)), strict=True
    ):
        born = own[own[:, 0] < np.inf]
        births, deaths = (-np.where(np.isinf(born), 0, born)).T
        true = true[true[:, 0] == -1]
        count = (true[:, 1] > -1).sum()
        order = np.argsort(deaths - births, kind="stable")
        births = births[order]
        deaths = deaths[order]
        total += ((1 - births[:count]) ** 2 + deaths[:count] ** 2).sum()
        total += ((births[count:] - deaths[count:]) ** 2).sum()
    return total


class TestTargets:
    """What `EulerCurveLoss` takes: the loss of the masks that a target stands for."""

    images = draw(2, 3, 7, 8)
    masks = draw(2, 3, 7, 8, seed=1) > 0.5
    classes = torch.randint(3, (2, 7, 8), generator=torch.Generator().manual_seed(0))
    one_hot = torch.nn.functional.one_hot(classes, 3).movedim(-1, 1).bool()
    loss = PersistenceLoss(reduction="none")

    @pytest.mark.parametrize("factor", [1, 255])
    @pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.uint16])
    def test_integers(self, dtype, factor):
        target = (factor * self.masks.long()).to(dtype)
        assert torch.equal(self.loss(self.images, target), self.loss(self.images, self.masks))

    @pytest.mark.parametrize("axis", [False, True])
    def test_class_indices(self, axis):
        target = self.classes[:, None] if axis else self.classes
        found = self.loss(self.images.softmax(1), target)
        assert torch.equal(found, self.loss(self.images.softmax(1), self.one_hot))
        logits = PersistenceLoss(reduction="none", from_logits=True)(self.images, target)
        assert torch.equal(logits, found)

    def test_masks_of_one_channel_may_lack_its_axis(self):
        images = self.images[:, :1]
        masks = self.masks[:, 0]
        assert torch.equal(self.loss(images, masks), self.loss(images, masks[:, None]))

    def test_ignored_points_are_masked(self):
        shown = draw(2, 7, 8, seed=3) > 0.2
        loss = PersistenceLoss(reduction="none", ignore_index=255)
        found = loss(self.images, torch.where(shown, self.classes, 255))
        mask = shown[:, None].expand(self.images.shape)
        assert torch.equal(found, self.loss(self.images, self.one_hot, mask=mask))

    def test_weights_of_classes(self):
        weight = torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64)
        errors = self.loss(self.images, self.classes)
        found = PersistenceLoss(weight=[0, 1, 3])(self.images, self.classes)
        torch.testing.assert_close(found, (errors * weight).sum() / 8)


def test_volumes_are_not_taken_for_slices():
    volumes = draw(2, 1, 4, 4, 4)
    with pytest.raises(ValueError, match=r"`input` must have at most 4 axes.*n_spatial=3"):
        PersistenceLoss()(volumes, volumes)


@pytest.mark.parametrize("batch", [(0,), (0, 2), (2, 0)])
def test_an_empty_batch_keeps_the_graph(batch):
    image = draw(*batch, 6, 7).requires_grad_()
    assert PersistenceLoss(reduction="sum")(image, image.detach()) == 0
    PersistenceLoss(4)(image, image.detach()).backward()
    assert image.grad.shape == image.shape


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # Forward mode warns so.
class TestTransforms:
    """What torch does with the loss, against derivatives of the plain call and differences."""

    images = draw(3, 1, 6, 7)
    targets = draw(3, 1, 6, 7, seed=1) > 0.6
    loss = PersistenceLoss()

    def gradients(self):
        images = self.images.clone().requires_grad_()
        return torch.autograd.grad(self.loss(images, self.targets), images)[0]

    def test_grad(self):
        found = torch.func.grad(self.loss)(self.images, self.targets)
        assert torch.equal(found, self.gradients())

    def test_gradients_of_each_image(self):
        each = torch.func.vmap(torch.func.grad(self.loss))(self.images, self.targets)
        torch.testing.assert_close(each / 3, self.gradients())

    def test_vmap_over_images_alone(self):
        found = torch.func.vmap(self.loss, (0, None))(self.images, self.targets[0])
        wanted = [self.loss(image, self.targets[0]) for image in self.images]
        torch.testing.assert_close(found, torch.stack(wanted))

    def test_forward_mode(self):
        change = draw(3, 1, 6, 7, seed=5)
        given = partial(self.loss, target=self.targets)
        _, found = torch.func.jvp(given, (self.images,), (change,))
        torch.testing.assert_close(found, (self.gradients() * change).sum())
        step = 1e-6
        ends = [given(self.images + sign * step * change) for sign in (1, -1)]
        torch.testing.assert_close(found, (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-8)

    def test_no_second_derivatives(self):
        images = self.images.clone().requires_grad_()
        (slope,) = torch.autograd.grad(self.loss(images, self.targets), images, create_graph=True)
        with pytest.raises(RuntimeError, match="pairs have no second derivatives"):
            slope.sum().backward()
        gradient = torch.func.grad(self.loss)
        with pytest.raises(RuntimeError, match="pairs have no second derivatives"):
            torch.func.jacrev(gradient)(self.images, self.targets)
        with pytest.raises(RuntimeError, match="pairs have no second derivatives"):
            torch.func.jacfwd(gradient)(self.images, self.targets)

    @pytest.mark.parametrize("masked", [False, True])
    def test_opcheck(self, masked):
        images = self.images[:, 0].clone().requires_grad_()
        mask = self.images[:, 0] > 0.1 if masked else None
        operators = torch.ops.ecc
        given = images, self.targets[:, 0], mask, 2, 0.1
        torch.library.opcheck(operators.pair_errors.default, given)
        rows = images.detach().sum((1, 2)), images.detach(), images.detach()
        torch.library.opcheck(operators.pair_errors_backward.default, rows)
        torch.library.opcheck(operators.pair_errors_push.default, (rows[1], *rows[1:]))

    @pytest.mark.parametrize(
        "options",
        [pytest.param({}, marks=pytest.mark.slow), {"window": 4, "from_logits": True}],
        ids=str,
    )
    def test_compiles_into_one_graph_for_all_sizes(self, options):
        loss = PersistenceLoss(**options)
        compiled = torch.compile(loss, fullgraph=True, dynamic=True, backend="aot_eager")
        for shape in ((2, 1, 6, 7), (3, 2, 8, 9)):
            target = draw(*shape, seed=1) > 0.5
            results = []
            for call in (compiled, loss):
                image = draw(*shape).requires_grad_()
                value = call(image, target)
                results.append((value, torch.autograd.grad(value, image)[0]))
            torch.testing.assert_close(*results)
        torch.compiler.reset()

    def test_meta(self):
        image = self.images.to("meta").requires_grad_()
        loss = PersistenceLoss(reduction="none")(image, self.targets.to("meta"))
        assert loss.is_meta
        assert loss.shape == (3, 1)
        loss.sum().backward()
        assert image.grad.shape == image.shape


@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("where", ["input", "target"])
def test_nan_is_refused_with_what_the_loss_has(where, from_logits):
    given = {"input": draw(2, 6, 7), "target": draw(2, 6, 7, seed=1)}
    given[where][0, 1, 2] = torch.nan
    message = rf"`{where}` must not contain NaN \(pass `mask` to leave such points out\), got NaN"
    with pytest.raises(ValueError, match=message):
        PersistenceLoss(from_logits=from_logits)(**given)


def test_bad_input():
    image = draw(2, 6, 7)
    with pytest.raises(ValueError, match=r"`min_persistence`.*-1"):
        PersistenceLoss(min_persistence=-1)
    with pytest.raises(ValueError, match="`window` must be a positive int, got 0"):
        PersistenceLoss(0)
    with pytest.raises(ValueError, match=r"`reduction` must be .* got .median"):
        PersistenceLoss(reduction="median")
    with pytest.raises(ValueError, match=r"`target` must have the shape of `input`, \(2, 6, 7\)"):
        PersistenceLoss()(image, image[:, 0])
    with pytest.raises(ValueError, match="`input` must be between 0 and 1"):
        PersistenceLoss()(image * 4, image > 0.5)
    with pytest.raises(TypeError, match="`input` must be a tensor of floats, got float64"):
        PersistenceLoss()(image.numpy(), image)
    with pytest.raises(ValueError, match="`input` must have at least 2 axes"):
        PersistenceLoss()(image[0, 0], image[0, 0])
    with pytest.raises(ValueError, match="`target` must be on the device of `input`, cpu, got met"):
        PersistenceLoss()(image, image.to("meta"))
    assert PersistenceLoss(reduction="sum")(image[:0], image[:0]) == 0
