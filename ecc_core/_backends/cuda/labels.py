"""The regions of label images: which labels occur, and the number of each one's region."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

from ecc_core._backends.cuda.calls import Call
from ecc_core._backends.cuda.compile import function
from ecc_core._backends.cuda.recipe import ELEMENTS
from ecc_core._request.image import check_label_values

__all__ = ["Ranking", "label_call", "rank_labels"]

THREADS, EACH = 256, 8  # as in labels.cu
BLOCK = 32 * THREADS  # labels that a block ranks
DENSE = 8 * BLOCK  # labels that are ranked by marks, at least
MOST = 1 << 24  # and at most
MARKS = 16  # bytes before the marks
NARROW = 1 << 27  # points whose coefficients are summed in 32 bits


class Ranked(NamedTuple):
    """Labels as kernels read them, and the numbers of their regions.

    Attributes
    ----------
    labels : array
        Another stream may write to them at any time, so each label has to be compared with the
        size of `ranks` in the same read.
    ids : array
        The labels that occur, increasing; part of an array that has room for all.
    ranks : array
        The number of each label's region, from 1 on, or 0.
    """

    labels: Any
    ids: Any
    ranks: Any


class Ranking:
    """Numbers the labels of an image; `finish` waits for the device."""

    def __init__(self, labels: Any) -> None:
        if labels.dtype == np.bool_:
            labels = (labels.view(np.uint8) != 0).astype(np.uint8)
        self.labels = labels = cupy.ascontiguousarray(labels)
        device, name = labels.device.id, labels.dtype.name
        size = -(-min(max(labels.size // 16, DENSE), MOST) // BLOCK) * BLOCK
        stream, bytes_found = cupy.cuda.get_current_stream().ptr, MARKS + size // 8
        found = cupy.cuda.alloc(bytes_found)
        cupy.cuda.runtime.memsetAsync(found.ptr, 0, bytes_found, stream)
        self._found = cupy.ndarray((2,), np.int32, found)
        self._ranks = cupy.empty(size, np.int32)
        self._ids = cupy.empty(min(size, labels.size), labels.dtype)
        marked = labels.data.ptr, labels.size, size - 1, found.ptr
        if labels.size:
            blocks = -(-labels.size // (THREADS * EACH))
            label_call("mark_labels", name, "int32", False, device, blocks, 4)(marked)
        ranked = found.ptr, self._ranks.data.ptr, self._ids.data.ptr
        label_call("rank_labels", name, "int32", False, device, size // BLOCK, 3)(ranked)

    def finish(self) -> Ranked:
        """Wait for the device, and raise ValueError if a label is negative."""
        count, beyond = self._found.get().tolist()
        if not beyond:
            return Ranked(self.labels, self._ids[:count], self._ranks)
        check_label_values(self.labels, self.labels.dtype)
        labels = self.labels.ravel().copy()  # which nobody writes to
        ids, places = cupy.unique(labels, return_inverse=True)
        empty = ids.size > 0 and int(ids[0]) == 0
        labels = (places.reshape(self.labels.shape) + (0 if empty else 1)).astype(np.int32)
        ids = ids[1:] if empty else ids
        return Ranked(labels, ids, cupy.arange(ids.size + 1, dtype=np.int32))


def rank_labels(labels: Any) -> Ranked:
    """Number the labels of an image. Waits for the device."""
    ranked = Ranking(labels).finish()
    return ranked._replace(ids=ranked.ids.astype(labels.dtype))


@lru_cache(maxsize=256)
def label_call(
    name: str, label: str, count: str, superlevel: bool, device: int, blocks: int, arguments: int
) -> Any:
    """Return a launch of a kernel of labels.cu, which takes 64-bit arguments."""
    macros = {"LABEL": ELEMENTS[label], "COUNT": ELEMENTS[count], "SUPER": int(superlevel)}
    macros["THREADS"] = THREADS
    found = function("labels", name, device, tuple(macros.items())).kernel
    call = Call(found, (blocks,), THREADS, 0, [np.zeros(1, np.int64)] * arguments)

    def launch(given: tuple[int, ...]) -> None:
        call.launch(cupy.cuda.get_current_stream().ptr, zip(call.places, given, strict=True))

    return launch
