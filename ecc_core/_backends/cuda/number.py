"""Euler characteristics of 8-bit images at a single threshold (number.cu)."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.arrays import Layout
from ecc_core._backends.cuda.bins import Prepared
from ecc_core._backends.cuda.calls import Call
from ecc_core._backends.cuda.compile import function, processors
from ecc_core._backends.cuda.recipe import Variant
from ecc_core._request.levels import round_to_levels

__all__ = ["Number"]

# As in number.cu.
BYTES = np.dtype(
    [(name, "i8") for name in ("data", "sums", "batch", "slice", "row")]
    + [(name, "i4") for name in ("images", "depth", "height", "width")]
    + [(name, "i4") for name in ("across", "down", "chunk")]
    + [(name, "u4") for name in ("bias", "least", "high", "flip")]
    + [("sign", "i4")]
)
THREADS = 256
WORD, ROWS = 32, 4  # columns of a thread, and in volumes rows
RESIDENT = 1024  # threads that keep a multiprocessor busy
CHUNK = (8, 128)  # slices of a thread, at least and at most


class Number:
    """A kernel for 8-bit images of one layout at one level, with the methods of a `Scan`."""

    simple = True

    def __init__(
        self,
        layout: Layout,
        ndim: int,
        variant: Variant,
        thresholds: NDArray[Any],
        prepared: Prepared,
        device: int,
    ) -> None:
        self.prepared, self.layout = prepared, layout
        depth, height, width = layout.shape
        batch, step, row = layout.strides
        if flat := ndim == 2:
            depth, height, step, row = height, 1, row, 0
        across = width // WORD + 1
        down = 1 if flat else height // ROWS + 1
        wanted = layout.images * across * down * depth // (RESIDENT * processors(device))
        chunk = min(max(CHUNK[0], wanted), CHUNK[1])
        threads = layout.images * across * down * (depth // chunk + 1)
        bias, least, flip = _least_byte(variant, thresholds)
        sign = -1 if variant.cubes and not flat else 1
        fields = (
            *(0, 0, batch, step, row, layout.images, depth, height, width, across, down, chunk),
            *(0x01010101 * bias, 0x01010101 * (128 - least % 128)),
            *(0 if least > 127 else 0xFFFFFFFF, 0xFFFFFFFF if flip else 0, sign),
        )
        macros = {**variant.options(None), "FLAT": int(flat), "THREADS": THREADS}
        found = function("number", "number", device, tuple(macros.items()))
        given = (np.array([fields], BYTES),)
        self._call = Call(found.kernel, (-(-threads // THREADS),), THREADS, 0, given)

    def begin(self, data: int) -> Any:
        """Launch the kernel for an array at this address, and return the memory of the curves."""
        size = 8 * self.layout.images
        memory, stream = cupy.cuda.alloc(size), cupy.cuda.get_current_stream().ptr
        cupy.cuda.runtime.memsetAsync(memory.ptr, 0, size, stream)
        (place,) = self._call.places
        self._call.launch(stream, ((place, data + self.layout.offset), (place + 1, memory.ptr)))
        return memory

    def curves(self, data: int, _superlevel: bool) -> tuple[Any, Any]:
        """Return the curves at the level, (images, 1), and their memory."""
        memory = self.begin(data)
        return cupy.ndarray((self.layout.images, 1), np.int64, memory), memory

    def single(self, data: int) -> Any:
        """Return the curve (1,) of a batch of one image."""
        return cupy.ndarray((1,), np.int64, self.begin(data))

    def flags(self, _memory: Any) -> None:
        """Return None: integers are finite."""


def _least_byte(variant: Variant, thresholds: NDArray[Any]) -> tuple[int, int, bool]:
    """Return what makes bytes unsigned, a bound, and whether the set lies below it."""
    dtype = np.dtype(variant.element)
    (level,) = round_to_levels(thresholds, dtype, variant.superlevel).values.tolist()
    bias = 128 if variant.element == "int8" else 0
    place = level + bias
    if variant.superlevel:
        return bias, place, False
    return bias, (place + 1) % 256, place < 255
