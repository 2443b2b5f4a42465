"""Boxes that are copied in the order of memory: every element in its place."""

import itertools

import numpy as np
import pytest

from ecc_core._backends.cpu.sources import copy_box

SHAPES = [(1, 1, 1), (3, 17, 35), (16, 2, 48), (33, 1, 17), (3, 3, 300)]


def views(shape, dtype):
    """Boxes of one shape whose axes lie in memory in any order, with gaps, and reversed."""
    for order, step in itertools.product(itertools.permutations(range(3)), (1, 2, 3, -1)):
        laid = [shape[axis] for axis in order]
        laid[-1] *= abs(step)
        whole = np.random.default_rng(0).integers(0, 255, laid).astype(dtype)
        yield whole[..., ::step].transpose(np.argsort(order))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "int64"])
def test_copies_are_equal(dtype):
    for shape in SHAPES:
        for view in views(shape, dtype):
            assert view.shape == shape
            out = np.zeros(view.size + 8, dtype)
            copy_box(view, out[: view.size])
            np.testing.assert_array_equal(out[: view.size].reshape(shape), view)
            assert not out[view.size :].any()
