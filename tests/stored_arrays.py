"""Arrays of equal values in other layouts of memory, byte orders and subclasses."""

import tempfile

import numpy as np


class Subclass(np.ndarray):
    """An array whose comparisons and reductions return plain arrays and scalars."""

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return np.asarray(array)[()]

    def max(self, *args, **kwargs):
        return "not a number"


def strided(array):
    big = np.zeros([2 * n + 1 for n in array.shape], array.dtype)
    view = big[tuple(slice(1, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def reversed_view(array):
    back = (slice(None, None, -1),) * array.ndim
    return np.ascontiguousarray(array[back])[back]


def of_records(array):
    records = np.zeros(array.shape, [("flag", "u1"), ("value", array.dtype), ("rest", "u2")])
    records["value"] = array
    return records["value"]


def unaligned(array):
    view = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def read_only(array):
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def mapped(array):
    if array.size == 0:
        return array
    with tempfile.TemporaryFile() as file:
        array.tofile(file)
        return np.memmap(file, array.dtype, "r", shape=array.shape)


def odd_bytes(array):
    """Return booleans whose True is any byte but 0, as in 1-bit PNGs and views of uint8."""
    if array.dtype != np.bool_:
        return array
    stored = np.arange(array.size, dtype=np.int64).reshape(array.shape) % 255 + 1
    return (array * stored).astype(np.uint8).view(bool)


WAYS = {
    "plain": lambda array: array,
    "Fortran": np.asfortranarray,
    "transposed": lambda array: array.T.copy().T,
    "window": lambda array: np.pad(array, 3)[(slice(3, -3),) * array.ndim],
    "strided": strided,
    "reversed": reversed_view,
    "records": of_records,
    "unaligned": unaligned,
    "read-only": read_only,
    "memory map": mapped,
    "swapped": lambda array: array.astype(array.dtype.newbyteorder()),
    "subclass": lambda array: array.view(Subclass),
    "odd bytes": odd_bytes,
    "no mask": np.ma.asarray,
}
