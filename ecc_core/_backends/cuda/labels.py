"""The regions of label images: which labels occur, and the number of each one's region."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

from ecc_core._backends.cuda.calls import Call
from ecc_core._backends.cuda.compile import function
from ecc_core._backends.cuda.recipe import ELEMENTS
from ecc_core._backends.cuda.replies import take_reply
from ecc_core._request.image import check_label_values

__all__ = ["Ranked", "contiguous_labels", "label_call", "rank_labels"]

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


def contiguous_labels(labels: Any) -> Any:
    """Return labels of any integer type as kernels read them."""
    if labels.dtype == np.bool_:
        labels = (labels.view(np.uint8) != 0).astype(np.uint8)
    return cupy.ascontiguousarray(labels)


def rank_labels(labels: Any) -> Ranked:
    """Number contiguous labels. Waits for the device; ValueError if a label is negative."""
    device, name, stream = labels.device.id, labels.dtype.name, cupy.cuda.get_current_stream()
    size = -(-min(max(labels.size // 16, DENSE), MOST) // BLOCK) * BLOCK
    found, reply = cupy.cuda.alloc(MARKS + size // 8), take_reply(device)
    cupy.cuda.runtime.memsetAsync(found.ptr, 0, MARKS + size // 8, stream.ptr)
    ranks, ids = cupy.empty(size, np.int32), cupy.empty(min(size, labels.size), labels.dtype)
    if labels.size:
        blocks = -(-labels.size // (THREADS * EACH))
        call = label_call("mark_labels", name, "int32", False, device, blocks, 4)
        call(stream, (labels.data.ptr, labels.size, size - 1, found.ptr))
    call = label_call("rank_labels", name, "int32", False, device, size // BLOCK, 4)
    call(stream, (found.ptr, ranks.data.ptr, ids.data.ptr, reply.address))
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
    found = function("labels", name, device, tuple(macros.items())).kernel
    call = Call(found, (blocks,), THREADS, 0, [np.zeros(1, np.int64)] * arguments)

    def launch(stream: Any, given: tuple[int, ...]) -> None:
        call.launch(stream.ptr, zip(call.places, given, strict=True))

    return launch
