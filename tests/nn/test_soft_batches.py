"""Coefficients of small images on the CPU, and batches of images against single ones."""

import numpy as np
import pytest

import ecc_core as ecc

torch = pytest.importorskip("torch", reason="torch is not installed")
from ecc_core._backends.cpu.soft.coefficients import coefficients  # noqa: E402
from ecc_core.nn.functional import soft_euler_curve  # noqa: E402


@pytest.mark.parametrize(
    "shape", [(3, 6, 7), (2, 1, 9), (2, 5, 1), (1, 1, 1), (0, 3, 3), (40, 2, 2)]
)
@pytest.mark.parametrize("connectivity", [1, 2])
def test_coefficients(shape, connectivity):
    rng = np.random.default_rng(0)
    ties = rng.integers(0, 4, shape).astype(np.float32)
    infinite = np.where(ties == 0, -np.inf, np.where(ties == 3, np.inf, ties)).astype(np.float32)
    for values in (rng.random(shape, np.float32), ties, infinite):
        found = coefficients(values, connectivity == 2)
        expected = [ecc.euler_coefficients(image, connectivity=connectivity) for image in values]
        expected = np.array(expected).reshape(shape)
        enters = values < np.inf
        np.testing.assert_array_equal(found[enters], expected[enters])


def test_coefficients_of_many_images_in_two_threads():
    values = np.random.default_rng(1).random((4, 300, 300), np.float32)
    expected = [ecc.euler_coefficients(image) for image in values]
    np.testing.assert_array_equal(coefficients(values, True, 2), expected)


@pytest.mark.parametrize(
    ("shape", "count", "sharpness"),
    [
        ((5, 8, 8), 32, 124.0),  # point by point
        ((3, 90, 90), 8, 32.0),
        ((3, 90, 90), 64, 900.0),  # windows
        ((3, 21), 5, 20.0),
        ((2, 5, 6, 7), 9, 20.0),
    ],
)
def test_a_batch_gives_what_its_images_give(shape, count, sharpness):
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(shape, generator=generator).requires_grad_()
    thresholds = torch.rand(count, generator=generator)
    options = {"sharpness": sharpness, "n_spatial": len(shape) - 1}
    curves = soft_euler_curve(image, thresholds, **options)
    weights = torch.rand(curves.shape, generator=generator)
    (gradient,) = torch.autograd.grad(curves, image, weights)
    for i in range(shape[0]):
        single = image[i].detach().requires_grad_()
        curve = soft_euler_curve(single, thresholds, **options)
        assert torch.equal(curve, curves[i])
        assert torch.equal(torch.autograd.grad(curve, single, weights[i])[0], gradient[i])
