"""The vector intrinsics of numbers of cells and their plain twins: equal on random input."""

import inspect

import numpy as np
import pytest
from numba import njit
from oracles import vector_fields as plain

from ecc_core._backends.cpu.minkowski import vector_fields as vector

ALL = 0xFFFFFFFFFFFFFFFF
STRIDE = 32  # planes of one kind: rows, and spare words for the vectors' ends
ROWS = 8


def both(name):
    """A compiled call of an operation, once of the intrinsic and once of its plain twin."""

    def compiled(operation):
        @njit
        def call(*arguments):
            return operation(*arguments)

        return call

    return compiled(getattr(vector, name)), compiled(getattr(plain, name))


def words(rng, *shape):
    return rng.integers(0, ALL, shape, dtype=np.uint64, endpoint=True)


@pytest.mark.parametrize("ndim", [2, 3])
def test_fields(ndim):
    rng = np.random.default_rng(ndim)
    functions = both(f"fields_{ndim}d")
    starts = (3, 3 * STRIDE + 3, 7 * STRIDE + 3)[: 1 if ndim == 2 else 3]
    used = vector.CARRIES if ndim == 3 else 4
    for case in range(12):
        planes, carry = words(rng, 11 * STRIDE), words(rng, (vector.CARRIES + 2) * ROWS)
        if case % 2:  # many rows without a field
            planes[:] = np.where(rng.random(planes.size) < 0.9, np.uint64(ALL), planes)
        edge = np.uint64(case % 3 == 0)
        if edge:  # the first word of a row: nothing came before
            carry[:] = 0
        found = []
        for function in functions:
            own, out = carry.copy(), np.zeros((vector.PLANES + 1) * ROWS, np.uint64)
            function(planes, *starts, STRIDE, own, 8, edge, out)
            found.append((own[8 : 8 + used * ROWS], out))
        for first, second in zip(*found, strict=True):
            np.testing.assert_array_equal(first, second)
        assert found[0][1].any()


def test_expand_and_add_fields():
    rng = np.random.default_rng(4)
    planes = words(rng, (vector.PLANES + 1) * ROWS)
    expand, add = both("expand_fields"), both("add_fields")
    for row in range(ROWS):
        found = []
        for one_expand, one_add in zip(expand, add, strict=True):
            out, histogram = np.zeros(64 * vector.FIELDS, np.int8), np.full((3, 8), 100, np.int32)
            one_expand(planes, row, np.uint64(row % 2), out)
            for point in range(64):
                one_add(out, point, histogram, point % 3)
            found.append((out, histogram))
        for first, second in zip(*found, strict=True):
            np.testing.assert_array_equal(first, second)


def test_twins_have_the_same_arguments():
    for name in plain.__all__:
        found = list(inspect.signature(getattr(plain, name).py_func).parameters)
        expected = list(inspect.signature(getattr(vector, name)._defn).parameters)[1:]
        assert found == expected, name
    intrinsics = [name for name in vector.__all__ if hasattr(getattr(vector, name), "_defn")]
    assert set(intrinsics) == set(plain.__all__)
