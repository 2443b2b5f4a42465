"""Addresses of arrays, which kernels of small images read."""

import ctypes

import numpy as np
from numpy.testing import assert_equal

from ecc_core._backends.cpu.sources import address_of

DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, DESTRUCTOR)
STRUCT_BYTES = 64
PLACE_OF_ADDRESS = 40
ADDRESS = 0x1234


class Lent:
    """An object whose interface is overwritten once nothing holds its capsule."""

    def __init__(self):
        self.struct = (ctypes.c_ubyte * STRUCT_BYTES)()
        self.overwrite = DESTRUCTOR(lambda _: ctypes.memset(self.struct, 0xDD, STRUCT_BYTES))

    @property
    def __array_struct__(self):
        ctypes.c_void_p.from_buffer(self.struct, PLACE_OF_ADDRESS).value = ADDRESS
        return new_capsule(ctypes.addressof(self.struct), None, self.overwrite)


def test_the_interface_is_read_before_numpy_frees_it():
    lent = Lent()
    assert address_of(lent) == ADDRESS
    assert_equal(bytes(lent.struct), b"\xdd" * STRUCT_BYTES)


def test_address_is_that_of_the_first_point():
    array = np.arange(24).reshape(2, 3, 4)
    for part in (array, array[1:, 1:, 2:], array[::-1], array[:, :, 0], np.array(1)):
        assert address_of(part) == part.ctypes.data
