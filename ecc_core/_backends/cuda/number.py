"""Euler characteristics of 8-bit images at a single threshold (number.cu)."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.arrays import Layout
from ecc_core._backends.cuda.bins import Prepared
from ecc_core._backends.cuda.calls import plan_call, take_reply
from ecc_core._backends.cuda.kernels import Struct, Variant, processors
from ecc_core._request.levels import round_to_levels

BYTES = Struct("number.cu", "Bytes")
ARRIVAL = 1 << 42
THREADS = 256
COUNTER = 7  # of the words of a reply; other kernels leave the first ones at zero
WIDTH = 16  # columns of a lane
ROWS = 4  # half of the rows of a lane
RESIDENT = 16  # warps that keep a multiprocessor busy
CHUNK = 8  # slices of a warp, at least


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
        if ndim == 2:
            step = 0
        lanes = min(32, 1 << (-(-width // WIDTH) - 1).bit_length())
        across = -(-width // (WIDTH * lanes))
        down = -(-height // (2 * ROWS * (32 // lanes)))
        columns = layout.images * across * down
        chunk = max(CHUNK, -(-depth // max(1, RESIDENT * processors(device) // columns)))
        chunk = min(chunk, depth)
        self._blocks = -(-columns * -(-depth // chunk) // (THREADS // 32))
        least, flip = _least_byte(variant, thresholds)
        sign = -1 if variant.cubes and ndim == 3 else 1
        steps = {"batch": batch, "slice": step, "row": row, "images": layout.images}
        sizes = {"depth": depth, "height": height, "width": width}
        units = {"lanes": lanes, "across": across, "down": down, "chunk": chunk}
        high, flipped = 0 if least > 127 else 0xFFFFFFFF, 0xFFFFFFFF if flip else 0
        level = {"least": 0x01010101 * (128 - least % 128), "high": high, "flip": flipped}
        given = BYTES(**steps, **sizes, **units, **level, sign=sign)
        macros = variant.options() | {"FLAT": int(ndim == 2), "ROWS": ROWS}
        self._call = plan_call("number", "number", macros, (self._blocks,), THREADS, (given,))
        self._device = device

    def curves(self, data: int, _mask: int = 0, _flag: int = 0) -> tuple[Any, Any]:
        """Return the curves at the level, (images, 1), and their memory."""
        values = cupy.zeros((self.layout.images, 1), np.int64)
        (place,) = self._call.places
        words = (place, data + self.layout.offset), (place + 1, values.data.ptr)
        self._call.launch(words)
        return values, values

    def number(self, data: int) -> int:
        """Return the number of a single image, once it is there."""
        reply = take_reply(self._device)
        (place,) = self._call.places
        words = (
            (place, data + self.layout.offset),
            (place + 1, reply.memory.data.ptr + 8 * COUNTER),
            (place + 2, reply.address),
            (place + 3, reply.state),
        )
        self._call.launch(words)
        (found,) = reply.wait(1)
        reply.state += self._blocks * ARRIVAL + found  # modulo 2**64
        reply.release()
        return found

    def flags(self, _memory: Any) -> None:
        """Return None, since integers are never NaN."""


def _least_byte(variant: Variant, thresholds: NDArray[Any]) -> tuple[int, bool]:
    """Return the least byte of the set, or of its complement, and whether it is the complement.

    Bytes are counted from the least value of the type.
    """
    dtype = np.dtype(variant.element)
    (level,) = round_to_levels(thresholds, dtype, variant.superlevel).values.tolist()
    place = level + (128 if variant.element == "int8" else 0)
    if variant.superlevel:
        return place, False
    return (place + 1) % 256, place < 255
