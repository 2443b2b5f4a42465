"""Curves of the tiles of a block."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._blocks.quantities import Curve

Array = NDArray[Any]


def tile_chunks(
    chunks: tuple[tuple[int, ...], ...], tile: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    """Chunks of about the given sizes that hold whole tiles."""
    aligned = []
    for lengths, window in zip(chunks, tile, strict=True):
        total = sum(lengths)
        step = -(-max(lengths, default=1) // window) * window or window
        aligned.append(tuple(min(step, total - at) for at in range(0, total, step)) or (0,))
    return tuple(aligned)


def curves_of_tiles(
    image: Array, *mask: Array, tile: tuple[int, ...], quantity: Curve
) -> NDArray[np.int64]:
    """Return the curve of each tile on its own, of shape (tiles along each axis, n).

    Tiles of one shape form a batch: the complete ones, and for each set of axes those that the
    image's end cuts off.
    """
    shape = tuple(-(-n // window) for n, window in zip(image.shape, tile, strict=True))
    values = np.zeros_like(image, shape=(*shape, quantity.size), dtype=np.int64)
    spans = [_spans(n, window) for n, window in zip(image.shape, tile, strict=True)]
    for parts in itertools.product(*spans):
        region = tuple(slice(start, stop) for start, stop, _ in parts)
        sizes = [size for _, _, size in parts]
        counts = [(stop - start) // size for start, stop, size in parts]
        box = tuple(_batch(array[region], counts, sizes) for array in (image, *mask))
        at = tuple(
            slice(start // window, start // window + count)
            for (start, _, _), window, count in zip(parts, tile, counts, strict=True)
        )
        values[at] = quantity.of_box(*box).reshape((*counts, -1))
    return values


def _spans(length: int, window: int) -> list[tuple[int, int, int]]:
    """Start and stop of the whole tiles and of the rest, with the size of these tiles."""
    whole = length - length % window
    spans = [(0, whole, window), (whole, length, length - whole)]
    return [span for span in spans if span[0] < span[1]]


def _batch(part: Array, counts: list[int], sizes: list[int]) -> Array:
    """Tiles as a batch, (tiles, *size)."""
    ndim = part.ndim
    split = part.reshape([n for pair in zip(counts, sizes, strict=True) for n in pair])
    ordered = split.transpose([*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2)])
    return ordered.reshape((-1, *sizes))
