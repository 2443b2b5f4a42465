"""Soft curves and transforms in operators of torch, which devices without CuPy compute with."""

import sys
import warnings

import pytest
import torch
from nn_helpers import noise
from soft_helpers import check_transform, draw, gradients, leaves, plain_curve, relative

from ecc_core._backends import fallback, registry
from ecc_core._torch import plain
from ecc_core.nn import EulerCurveLoss
from ecc_core.nn.functional import soft_betti_curves, soft_euler_curve

SHAPES = [((2, 33), 1), ((2, 11, 13), 1), ((2, 11, 13), 2), ((2, 5, 1, 6), 1), ((2, 5, 4, 6), 3)]


@pytest.fixture
def in_torch(monkeypatch):
    monkeypatch.setitem(registry._registered["cpu"], "soft_curves", plain)


@pytest.mark.usefixtures("in_torch")
class TestValues:
    @pytest.mark.sweep
    @pytest.mark.parametrize("superlevel", [False, True], ids=["sub", "super"])
    @pytest.mark.parametrize("ties", ["raster", "split"])
    @pytest.mark.parametrize(("shape", "connectivity"), SHAPES)
    def test_curve_equals_the_reference(self, monkeypatch, shape, connectivity, superlevel, ties):
        """Points may be infinite, equal, masked or directed; a few levels are taken at a time."""
        monkeypatch.setattr(plain, "TERMS_AT_ONCE", 200)
        ndim = len(shape) - 1
        image = (draw(shape, torch.float64) * 20).round() / 20
        image[0, ..., 3], image[1, ..., 4] = torch.inf, -torch.inf
        thresholds = torch.linspace(-0.4, 1.3, 9, dtype=torch.float64)
        numbers = [torch.tensor(x, dtype=torch.float64) for x in (9.0, [0.3, 1, 0.8][:ndim], 0.11)]
        options = {"spacing": 0.5, "connectivity": connectivity, "superlevel": superlevel}
        options |= {"mask": draw(shape, seed=1) < 0.85, "ties": ties}
        found, wanted = leaves([image, thresholds, *numbers])
        vector = {"direction": found[3], "direction_scale": found[4], "n_spatial": ndim}
        curve = soft_euler_curve(*found[:2], sharpness=found[2], **vector, **options)
        oracle = plain_curve(*wanted, **options)
        assert relative(curve, oracle) < 1e-11
        errors = list(map(relative, gradients(curve, found), gradients(oracle, wanted)))
        if ndim == 1:
            del errors[3]  # In 1-D a direction has no derivative.
        assert max(errors) < 1e-11

    @pytest.mark.parametrize("extension", ["max", "min"])
    @pytest.mark.parametrize(("shape", "connectivity"), SHAPES)
    def test_transform_equals_the_reference(self, shape, connectivity, extension):
        tolerances = 1e-11, 1e-11
        check_transform(shape, connectivity, extension, torch.float64, tolerances=tolerances)

    @pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # Forward mode warns so.
    def test_betti_curves_and_forward_mode(self):
        thresholds = torch.linspace(0, 1, 5, dtype=torch.float64)

        def curves(image, sharpness):
            return soft_betti_curves(image, thresholds, sharpness=sharpness)

        given = noise(2, 6, 7, dtype=torch.float64), torch.tensor(5.0, dtype=torch.float64)
        tangents = torch.ones_like(given[0]) * 0.3, torch.tensor(0.2, dtype=torch.float64)

        def moved(step):
            return curves(*[x + step * y for x, y in zip(given, tangents, strict=True)])

        step = 1e-6
        expected = (moved(step) - moved(-step)) / (2 * step)
        _, found = torch.func.jvp(curves, given, tangents)
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_sums_are_in_float32_under_autocast(self, dtype):
        image = noise(2, 20, 21).to(dtype).requires_grad_()
        thresholds = torch.linspace(0, 1, 5)
        with torch.autocast("cpu", torch.bfloat16):
            found = soft_euler_curve(image, thresholds, sharpness=9.0)
        wanted = plain_curve(image.detach().double(), thresholds.double(), 9.0, connectivity=2)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.double(), wanted, atol=1e-4, rtol=1e-5)

    def test_what_has_no_curve_is_nan(self):
        image = noise(3, 6, 7)
        image[1, 2, 2] = torch.nan
        found = soft_euler_curve(image, [0.2, 0.6], sharpness=9.0)
        assert found.isnan().all(1).tolist() == [False, True, False]
        flat = soft_euler_curve(image[0], [0.2], sharpness=torch.tensor(0.0))
        assert flat.isnan().all()

    @pytest.mark.parametrize("shape", [(0, 4, 5), (2, 0, 5)])
    def test_empty(self, shape):
        image = torch.zeros(shape).requires_grad_()
        curve = soft_euler_curve(image, [0.2, 0.6], sharpness=9.0)
        assert curve.tolist() == [[0, 0]] * shape[0]
        curve.sum().backward()


@pytest.fixture
def without_cupy(monkeypatch):
    """A device of the kind "fake", whose kernels need CuPy, and no CuPy."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    modules = dict(registry._registered["cuda"])
    monkeypatch.setitem(registry._registered, "fake", modules)
    yield
    for remembered in (registry.is_usable, fallback._in_torch):
        remembered.cache_clear()


@pytest.mark.usefixtures("without_cupy")
def test_a_device_without_cupy_computes_in_torch_and_says_so_once():
    with pytest.warns(UserWarning, match="on fake are computed by operators of torch.*need CuPy"):
        found = fallback.soft_curves("fake")
    assert found is plain
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fallback.soft_curves("fake") is plain


def test_losses_and_layers_do_without_kernels(monkeypatch, in_torch):
    """They give the answers of the kernels, as on a device without kernels."""
    image = noise(2, 1, 12, 13)
    target = noise(2, 1, 12, 13, seed=1) > 0.5
    found = EulerCurveLoss(window=4)(image, target)
    monkeypatch.undo()
    torch.testing.assert_close(found, EulerCurveLoss(window=4)(image, target))
