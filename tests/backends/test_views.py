"""Views without an owner, of which kernels read all elements one behind the other."""

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

from ecc_core._backends.cpu.llvm import bare, part_of


@numba.njit
def second_of_all(array):
    return bare(array)[1]


@numba.njit
def second_of_a_part(array):
    return part_of(array, 1, 1)[0]


@pytest.mark.parametrize("read", [second_of_all, second_of_a_part])
def test_views_are_of_arrays_in_c_order(read):
    array = np.arange(6)
    assert read(array) == 1
    with pytest.raises(TypingError, match="must be of arrays in C order"):
        read(array[::2])
