"""The regions of label images: which labels occur, and the number of each one's region."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

from ecc_core._backends.cuda.calls import Call
from ecc_core._backends.cuda.compile import function
from ecc_core._backends.cuda.replies import take_reply
from ecc_core._backends.cuda.variants import ELEMENTS
from ecc_core._request.image import check_label_values

__all__ = ["Ranked", "contiguous_labels", "label_call", "rank_labels"]

THREADS, EACH = 256, 8  # as in labels.cu
BLOCK = 32 * THREADS  # labels that a block ranks
DENSE = 8 * BLOCK  # labels that are ranked by marks, at least
MOST = 1 << 24  # and at most
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


def contiguous_labels(labels: Any) -> Any:
    """Return labels of any integer type as kernels read them."""
    if labels.dtype == np.bool_:
        labels = (labels.view(np.uint8) != 0).astype(np.uint8)
    return cupy.ascontiguousarray(labels)


def rank_labels(labels: Any) -> Ranked:
    """Number contiguous labels. Waits for the device; ValueError if a label is negative."""
    device, name, stream = labels.device.id, labels.dtype.name, cupy.cuda.get_current_stream()
    size = -(-min(max(labels.size // 16, DENSE), MOST) // BLOCK) * BLOCK
    marks, reply = cupy.cuda.alloc(size + 16), take_reply(device)
    beyond = marks.ptr + size
    cupy.cuda.runtime.memsetAsync(marks.ptr, 0, size + 16, stream.ptr)
    bits, ranks = cupy.empty(size // 32, np.uint32), cupy.empty(size, np.int32)
    ids = cupy.empty(min(size, labels.size), labels.dtype)

    def launch(kernel: str, blocks: int, *given: int) -> None:
        label_call(kernel, name, "int32", False, device, blocks, len(given))(stream, given)

    if labels.size:
        width = labels.shape[-1]
        place = labels.data.ptr, labels.size, width, size - 1, marks.ptr, beyond
        launch("mark_labels", -(-labels.size // (THREADS * EACH)), *place)
    launch("pack_marks", size // BLOCK, marks.ptr, bits.data.ptr)
    found = bits.data.ptr, beyond, ranks.data.ptr, ids.data.ptr, reply.address
    launch("rank_labels", size // BLOCK, *found)
    (answer,) = reply.wait(1, stream)
    reply.release()
    if not answer >> 32:
        return Ranked(labels, ids[:answer], ranks)
    check_label_values(labels, labels.dtype)
    labels = labels.copy()  # which nobody writes to
    ids, places = cupy.unique(labels.ravel(), return_inverse=True)
    empty = ids.size > 0 and int(ids[0]) == 0
    labels = (places.reshape(labels.shape) + (0 if empty else 1)).astype(np.int32)
    ids = ids[1:] if empty else ids
    return Ranked(labels, ids, cupy.arange(ids.size + 1, dtype=np.int32))


@lru_cache(maxsize=256)
def label_call(
    name: str, label: str, count: str, superlevel: bool, device: int, blocks: int, arguments: int
) -> Any:
    """Return a launch of a kernel of labels.cu, which takes 64-bit arguments."""
    macros = {"LABEL": ELEMENTS[label], "COUNT": ELEMENTS[count], "SUPER": int(superlevel)}
    macros["THREADS"] = THREADS
    found = function("labels", name, device, macros).kernel
    call = Call(found, (blocks,), THREADS, 0, [np.int64(0)] * arguments)

    def launch(stream: Any, given: tuple[int, ...]) -> None:
        call.launch(stream.ptr, zip(call.places, given, strict=True))

    return launch
