"""Curves at a single level, whose set the CPU backend counts without finding coefficients."""

import numpy as np
import pytest
from filtrations import sides
from oracles import euler as reference

import ecc_core as ecc
from ecc_core.testing import assert_curves_equal

SHAPES = [(1,), (130,), (1, 1), (1, 200), (65, 63), (17, 257), (1, 1, 1), (11, 20, 67), (3, 1, 129)]
BLOCKS = [(40, 9000), (8000, 9), (5, 150, 66)]
"""Shapes of images that are counted in several blocks."""


@pytest.mark.parametrize("shape", [*SHAPES, *BLOCKS], ids=str)
def test_euler_number_of_blocks(shape):
    rng = np.random.default_rng(1)
    for fraction in (0, 0.1, 0.5, 0.9, 1):
        image = rng.random(shape) < fraction
        for connectivity in {1, len(shape)}:
            expected = reference.euler_number(image, connectivity)
            assert ecc.euler_number(image, connectivity) == expected
            assert ecc.euler_number(np.asfortranarray(image), connectivity) == expected


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("shape", [(40, 130), *BLOCKS[1:]], ids=str)
def test_curves_at_one_level(shape, dtype):
    """Also where thresholds are repeated, or beyond all values, and where points never enter."""
    rng = np.random.default_rng(2)
    image = (rng.random(shape) * 100).astype(dtype)
    mask = rng.random(shape) < 0.8
    for at in ([40], [40, 40, 40], [-5], [300], [-5, 40], [99, 300]):
        for options in sides(len(shape)):
            for shown in (None, mask):
                found = ecc.euler_curve(image, at, mask=shown, **options)
                expected = reference.euler_curve(image, at, mask=shown, **options)
                assert_curves_equal(found, expected)
            if image.dtype.kind == "f":
                holes = np.where(mask, image, image.dtype.type(np.nan))
                found = ecc.euler_curve(holes, at, nan="omit", **options)
                assert_curves_equal(found, expected)


def test_stack_at_one_level():
    stack = np.random.default_rng(3).random((5, 33, 70)) < 0.4
    found = ecc.euler_curve(stack, [0.5], axis=(1, 2), superlevel=True).values[:, 0]
    np.testing.assert_array_equal(found, [reference.euler_number(image) for image in stack])
