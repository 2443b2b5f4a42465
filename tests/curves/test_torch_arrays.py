"""torch tensors on the CPU go in, and tensors come out with the values of NumPy arrays."""

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core.testing import assert_arrays_equal

torch = pytest.importorskip("torch", reason="torch is not installed")

IMAGE = np.random.default_rng(5).integers(0, 9, (7, 11, 66))
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("thresholds", [5, [1.0, 2.5, 7.0], "exact"])
def test_curves_of_every_dtype(dtype, thresholds):
    image = IMAGE.astype(dtype)
    found = ecc.euler_curve(torch.from_numpy(image), thresholds, connectivity=1)
    expected = ecc.euler_curve(image, thresholds, connectivity=1)
    like = torch.empty(0)
    assert_arrays_equal(found.values, expected.values, like=like)
    assert_arrays_equal(found.thresholds, expected.thresholds, like=like)


def test_bfloat16_is_exact():
    image = torch.from_numpy(IMAGE[0].astype(np.float32) * 1.01).to(torch.bfloat16)
    thresholds = np.unique(image.float().numpy())
    found = ecc.euler_curve(image, thresholds)
    expected = ecc.euler_curve(image.float().numpy(), thresholds)
    assert_arrays_equal(found.values, expected.values, like=image.float())
    assert ecc.euler_number(image) == ecc.euler_number(image.float().numpy())


def test_given_thresholds_come_back_as_they_are():
    thresholds = torch.tensor([1.0, 3.0])
    assert ecc.euler_curve(torch.from_numpy(IMAGE), thresholds).thresholds is thresholds


def test_batches_masks_and_other_layouts():
    image, mask = IMAGE.astype(np.float32), IMAGE % 3 > 0
    options = {"axis": (0, 2), "superlevel": True}
    found = ecc.euler_curve(
        torch.from_numpy(image).permute(2, 0, 1)[::2],
        [3.0, 4.0],
        mask=torch.from_numpy(mask).permute(2, 0, 1)[::2],
        **options,
    )
    expected = ecc.euler_curve(
        image.transpose(2, 0, 1)[::2], [3.0, 4.0], mask=mask.transpose(2, 0, 1)[::2], **options
    )
    assert_arrays_equal(found.values, expected.values, like=torch.empty(0))


def test_coefficients_and_regions():
    image, labels = torch.from_numpy(IMAGE), torch.from_numpy(IMAGE // 4)
    like = torch.empty(0)
    assert_arrays_equal(ecc.euler_coefficients(image), ecc.euler_coefficients(IMAGE), like=like)
    found = ecc.region_curves(image, labels, 4)
    for array, expected in zip(found, ecc.region_curves(IMAGE, IMAGE // 4, 4), strict=True):
        assert_arrays_equal(array, expected, like=like)


def test_a_tensor_that_requires_a_gradient_is_only_read():
    image = torch.from_numpy(IMAGE[0].astype(np.float64)).requires_grad_()
    values = ecc.euler_curve(image, [2.0]).values
    assert not values.requires_grad
    assert_arrays_equal(values, ecc.euler_curve(IMAGE[0], [2.0]).values, like=image)


def test_complex_tensors_are_refused():
    with pytest.raises(
        TypeError, match=r"`image` must have a boolean, integer or real floating dtype"
    ):
        ecc.euler_curve(torch.zeros(3, 3, dtype=torch.complex64), [0.0])


def test_bfloat16_thresholds_and_directions():
    image = torch.from_numpy(IMAGE[0].astype(np.float32))
    thresholds, direction = torch.tensor([1.0, 2.5]), torch.tensor([1.0, 0.5])
    for options in ({}, {"direction": direction, "direction_scale": 0.1}):
        narrow = {k: v.bfloat16() if isinstance(v, torch.Tensor) else v for k, v in options.items()}
        found = ecc.euler_curve(image, thresholds.bfloat16(), **narrow)
        assert torch.equal(found.values, ecc.euler_curve(image, thresholds, **options).values)
    found = ecc.euler_transform(image > 3, direction[None].bfloat16(), thresholds.bfloat16())
    expected = ecc.euler_transform(image > 3, direction[None], thresholds)
    assert torch.equal(found.values, expected.values)


def test_negated_views_are_what_they_show():
    image = torch.from_numpy(IMAGE[0].astype(np.float32))
    view = torch.complex(image, -image).conj().imag
    assert view.is_neg()
    assert torch.equal(ecc.euler_curve(view, 5).values, ecc.euler_curve(image, 5).values)


def test_tensors_that_are_no_arrays_of_numbers_are_refused():
    image = torch.from_numpy(IMAGE[0].astype(np.float32))
    with pytest.raises(TypeError, match="`image` must be a dense tensor, got layout torch"):
        ecc.euler_curve(image.to_sparse(), 5)
    pytest.importorskip("ml_dtypes", reason="ml_dtypes, which gives NumPy a float8, is missing")
    with pytest.raises(TypeError, match="`image` must have a boolean, integer or real"):
        ecc.euler_curve(image.to(torch.float8_e4m3fn), 5)
