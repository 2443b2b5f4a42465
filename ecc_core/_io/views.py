"""Parts of images on the disk, in blocks that fit in memory."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.limits import check_memory
from ecc_core._optional import import_optional
from ecc_core._request.filtration import Direction

__all__ = ["REQUESTS", "Blocks", "View", "grown_chunks"]

REQUESTS = 32  # on their way at once, for files behind an address
LEAST_PART, SHARE_OF_PART = 1 << 20, 128  # bytes that are read at once, and share of the image

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


class Source(Protocol):
    """An array on disk that is read in boxes."""

    path: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    parts: tuple[int, ...]

    def reads_at_once(self, index: tuple[slice | int, ...]) -> bool: ...

    @property
    def remote(self) -> bool: ...

    def __getitem__(self, index: tuple[slice | int, ...]) -> Array: ...

    def stamps(self, index: tuple[slice | int, ...]) -> list[Any]: ...

    def description(self) -> list[Any]: ...


class View(NamedTuple):
    """A part of an array on disk, with its axes in another order.

    Attributes
    ----------
    source : Source
    order : tuple of int
        For each axis of the view the axis of the source.
    start, shape : tuple of int
        First point in the source and length, for each axis of the view.
    fixed : mapping of int to int
        Index along each axis of the source that the view does not have.
    """

    source: Source
    order: tuple[int, ...]
    start: tuple[int, ...]
    shape: tuple[int, ...]
    fixed: Mapping[int, int]

    def read(self, box: Box) -> Array:
        """Return the values in a box."""
        values = self.source[self._index(box)]
        # integers have removed their axes: rank those that are left
        order = np.argsort(np.argsort(self.order)).tolist()
        return values.transpose(order)

    def read_all(self) -> Array:
        """Return all values, read in parts, so that little more memory is needed than for them."""
        source, whole = self.source, tuple(slice(0, n) for n in self.shape)
        if source.reads_at_once(self._index(whole)):
            return self.read(whole)
        check_memory(math.prod(self.shape) * source.dtype.itemsize, source.path)
        values = np.empty(self.shape, source.dtype)
        least = LEAST_PART
        if source.remote:
            least = REQUESTS * math.prod(source.parts) * source.dtype.itemsize
        limit = max(least, values.nbytes // SHARE_OF_PART)
        sizes = grown_chunks(source.parts, source.shape, self.order, source.dtype.itemsize, limit)
        edges = [[0, *itertools.accumulate(lengths)] for lengths in self.chunks(sizes)]
        for ends in itertools.product(*map(itertools.pairwise, edges)):
            box = tuple(slice(*pair) for pair in ends)
            values[box] = self.read(box)
        return values

    def stamps(self, box: Box) -> list[Any]:
        """What tells whether the files of a box have changed."""
        return list(self.source.stamps(self._index(box)))

    def _index(self, box: Box) -> tuple[slice | int, ...]:
        index: dict[int, slice | int] = dict(self.fixed)
        for axis, start, part in zip(self.order, self.start, box, strict=True):
            index[axis] = slice(start + part.start, start + part.stop)
        return tuple(index[axis] for axis in range(len(self.source.shape)))

    def chunks(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the lengths of blocks, aligned with blocks of the given sizes in the source."""
        return tuple(
            _lengths(start, start + n, sizes[axis])
            for axis, start, n in zip(self.order, self.start, self.shape, strict=True)
        )


def _lengths(start: int, stop: int, size: int) -> tuple[int, ...]:
    edges = [start, *range((start // size + 1) * size, stop, size), stop]
    return tuple(np.diff(edges).tolist()) if stop > start else ()


class Blocks:
    """Reads blocks of an image, with the labels of their points if there are any.

    Parameters
    ----------
    image : View
        Its batch axes come first.
    labels : View, optional
    label_axes : tuple of int
        Which axes of the image the labels have; all of the spatial ones are among them.
    direction : Direction, optional
        What to add to the image.
    device : {"cpu", "cuda"}
        Where the blocks are to be.
    """

    def __init__(
        self,
        image: View,
        labels: View | None = None,
        label_axes: tuple[int, ...] = (),
        direction: Direction | None = None,
        device: str = "cpu",
    ) -> None:
        self.image, self.labels, self.label_axes = image, labels, label_axes
        self.direction, self.device = direction, device

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64) if self.direction else self.image.source.dtype

    @property
    def bytes_a_point(self) -> int:
        """Return the bytes per point in memory, including its label."""
        sources = [view.source for view in (self.image, self.labels) if view is not None]
        added = np.dtype(np.float64).itemsize if self.direction else 0
        total: int = added + sum(source.dtype.itemsize for source in sources)
        return total

    def __call__(self, box: Box) -> tuple[Array, ...]:
        """Return the image in a box, and the labels."""
        image = self.image.read(box)
        if self.direction:
            spatial = box[image.ndim - len(self.direction.shape) :]
            image = self.direction.add(image, tuple(part.start for part in spatial))
        arrays = [image]
        if self.labels is not None:
            labels = self.labels.read(self._label_box(box))
            axes = range(image.ndim)
            index = tuple(slice(None) if axis in self.label_axes else None for axis in axes)
            arrays.append(np.broadcast_to(labels[index], image.shape))
        if self.device == "cuda":
            cupy = import_optional("cupy", extra="cuda12", purpose="--device cuda")
            arrays = [cupy.asarray(array) for array in arrays]
        return tuple(arrays)

    @property
    def remote(self) -> bool:
        """Whether files are remote, so that each access is a request."""
        return any(view.source.remote for view in (self.image, self.labels) if view is not None)

    def stamps(self, box: Box) -> list[Any]:
        """What tells whether the files of a box have changed."""
        stamps = self.image.stamps(box)
        if self.labels is not None:
            stamps += self.labels.stamps(self._label_box(box))
        return stamps

    def _label_box(self, box: Box) -> Box:
        return tuple(box[axis] for axis in self.label_axes)
