"""Parts of images on the disk."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.limits import check_memory

if TYPE_CHECKING:
    from ecc_core._io.stored import StoredImage

REQUESTS = 32  # on their way at once, for files behind an address
LEAST_PART, SHARE_OF_PART = 1 << 20, 128  # bytes that are read at once, and share of the image
LUMINANCE = (0.2125, 0.7154, 0.0721)
"""Weights of red, green and blue, as in `skimage.color.rgb2gray`."""

Array = NDArray[Any]
Box = tuple[slice, ...]


def grown_chunks(
    stored: Sequence[int], shape: Sequence[int], grow: Sequence[int], itemsize: int, limit: int
) -> tuple[int, ...]:
    """Return a multiple of the stored chunks that is as large as the limit in bytes allows."""
    block = [max(1, min(c, n)) for c, n in zip(stored, shape, strict=True)]
    while True:
        shorter = [axis for axis in grow if block[axis] < shape[axis]]
        if not shorter or 2 * math.prod(block) * itemsize > limit:
            return tuple(block)
        axis = min(shorter, key=lambda a: (block[a], a))
        block[axis] = min(2 * block[axis], shape[axis])


def luminance(channels: Array) -> Array:
    """Return the luminance, from 0 to 1, of red, green, blue and maybe alpha on the first axis."""
    if channels.dtype.kind not in "uf":
        raise ValueError(f"gray needs colours of type uint or float, got {channels.dtype}")
    opaque = np.iinfo(channels.dtype).max if channels.dtype.kind == "u" else 1
    if len(channels) == 4 and np.any(channels[3] != opaque):
        raise ValueError("gray is not defined where colours are transparent")
    precision = channels.dtype if channels.dtype.kind == "f" else np.dtype(np.float64)
    weights = np.array(LUMINANCE, precision) / precision.type(opaque)
    values = weights[0] * channels[0]
    for weight, channel in zip(weights[1:], channels[1:3], strict=True):
        values += weight * channel  # a matrix product would round by the place in the block
    return np.asarray(values)


class View(NamedTuple):
    """A part of an array on disk, with its axes in another order."""

    source: "StoredImage"
    order: tuple[int, ...]  # for each axis of the view the axis of the source
    start: tuple[int, ...]  # first point in the source, for each axis of the view
    shape: tuple[int, ...]
    fixed: Mapping[int, int]  # index along each axis of the source that the view does not have
    gray: int | None = None  # axis of colours, instead of which their luminance is taken

    @classmethod
    def all_of(cls, source: "StoredImage") -> "View":
        """Return the view of a whole array."""
        axes = tuple(range(len(source.shape)))
        return cls(source, axes, (0,) * len(axes), source.shape, {})

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype = self.source.dtype
        return dtype if self.gray is None else luminance(np.ones((3, 0), dtype)).dtype

    def read(self, box: Box) -> Array:
        values = self.source.read_box(self._stored(box))
        if self.gray is not None:
            values = np.expand_dims(luminance(np.moveaxis(values, self.gray, 0)), self.gray)
        kept: Array = values.transpose((*self.fixed, *self.order))[(0,) * len(self.fixed)]
        return kept

    def read_all(self) -> Array:
        """Return all values, read in parts, so that little more memory is needed than for them."""
        source, whole = self.source, tuple(slice(0, n) for n in self.shape)
        if self.gray is None and source.reads_at_once(self._stored(whole)):
            return self.read(whole)
        check_memory(math.prod(self.shape) * self.dtype.itemsize, source.path)
        values = np.empty(self.shape, self.dtype)
        least = LEAST_PART
        if source.remote:
            least = REQUESTS * math.prod(source.parts) * values.itemsize
        limit = max(least, values.nbytes // SHARE_OF_PART)
        sizes = grown_chunks(source.parts, source.shape, self.order, values.itemsize, limit)
        for box in self.boxes(sizes):
            values[box] = self.read(box)
        return values

    def stamps(self, box: Box) -> list[Any]:
        """What tells whether the files of a box have changed."""
        return self.source.stamps(self._stored(box))

    def _stored(self, box: Box) -> Box:
        """Return a box along the axes of the source."""
        parts = {axis: slice(i, i + 1) for axis, i in self.fixed.items()}
        if self.gray is not None:
            parts[self.gray] = slice(0, self.source.shape[self.gray])
        for axis, start, part in zip(self.order, self.start, box, strict=True):
            parts[axis] = slice(start + part.start, start + part.stop)
        return tuple(parts[axis] for axis in range(len(self.source.shape)))

    def boxes(self, sizes: Sequence[int], numbers: Iterable[int] | None = None) -> Iterator[Box]:
        """Yield all blocks of these sizes in the source, or those of some numbers in C order."""
        edges = [[0, *itertools.accumulate(lengths)] for lengths in self.chunks(sizes)]
        counts = [len(along) - 1 for along in edges]
        for number in range(math.prod(counts)) if numbers is None else numbers:
            at = np.unravel_index(number, counts)
            yield tuple(slice(e[i], e[i + 1]) for e, i in zip(edges, at, strict=True))

    def chunks(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the lengths of blocks, aligned with blocks of the given sizes in the source."""
        return tuple(
            _lengths(start, start + n, sizes[axis])
            for axis, start, n in zip(self.order, self.start, self.shape, strict=True)
        )


def _lengths(start: int, stop: int, size: int) -> tuple[int, ...]:
    edges = [start, *range((start // size + 1) * size, stop, size), stop]
    return tuple(np.diff(edges).tolist()) if stop > start else ()
