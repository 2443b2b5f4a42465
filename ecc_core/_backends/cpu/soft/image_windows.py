"""Windows of images, as images of their own, and the sums of their gradients at each point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.pool import ranges, share, thread_count
from ecc_core._backends.image_cuts import Cut

Array = NDArray[Any]

MOST_SERIAL_POINTS = 1 << 18
"""For fewer points of windows, waking a thread takes longer than it saves."""


@kernel(inline="always")
def _place(position, begins, stride, side, width):
    """Return where a window begins, and which of the points of its rows are in the image."""
    z = begins[0] + position[0] * stride
    y = begins[1] + position[1] * stride
    x = begins[2] + position[2] * stride
    start = min(max(-x, 0), side)
    stop = max(min(width - x, side), start)
    return (z, y, x), start, stop


@kernel()
def _cut_windows(images, first, last, begins, stride, sign, fill, out):
    """Write windows (images, *positions, *sides) of images with three axes, times a sign.

    The first window begins at `begins`, which are negative before the image.
    """
    depth, height, width = images.shape[1:]
    for image in range(first, last):
        for position in np.ndindex(out.shape[1:4]):
            window = out[image, position[0], position[1], position[2]]
            (z, y, x), start, stop = _place(position, begins, stride, window.shape[2], width)
            for k, j in np.ndindex(window.shape[:2]):
                row = window[k, j]
                if not (0 <= z + k < depth and 0 <= y + j < height):
                    row[:] = fill
                    continue
                row[:start] = fill
                row[stop:] = fill
                source = images[image, z + k, y + j]
                for i in range(start, stop):
                    row[i] = sign * source[x + i]


@kernel()
def _add_windows(gradients, first, last, begins, stride, out):
    """Add the gradients of windows to those of images."""
    depth, height, width = out.shape[1:]
    for image in range(first, last):
        for position in np.ndindex(gradients.shape[1:4]):
            window = gradients[image, position[0], position[1], position[2]]
            (z, y, x), start, stop = _place(position, begins, stride, window.shape[2], width)
            for k, j in np.ndindex(window.shape[:2]):
                if not (0 <= z + k < depth and 0 <= y + j < height):
                    continue
                row = window[k, j]
                target = out[image, z + k, y + j]
                for i in range(start, stop):
                    target[x + i] += row[i]


class ImageWindows(NamedTuple):
    """Windows of images (batch, *spatial)."""

    cut: Cut
    workers: int | None

    def values(self, images: Array, sign: int) -> Array:
        """Return windows (batch, *positions, *window) of images, times a sign."""
        cut = self.cut
        sides = (cut.side,) * len(cut.positions)
        out: Array = np.empty((len(images), *cut.positions, *sides), images.dtype)
        padded = self._with_three_axes(out)
        begins = self._begins()
        volumes = self._volumes(np.ascontiguousarray(images))
        factor = images.dtype.type(sign)
        fill = images.dtype.type(sign * cut.fill)

        def write(parts: Iterator[tuple[int, int]]) -> None:
            for part in parts:
                _cut_windows(volumes, *part, begins, cut.stride, factor, fill, padded)

        self._share(out, write)
        return out

    def gradients(self, of_windows: Array, shape: tuple[int, ...]) -> Array:
        """Return the gradients of images of a shape by those of windows."""
        out: Array = np.zeros(shape, of_windows.dtype)
        padded = self._with_three_axes(of_windows)
        begins = self._begins()
        volumes = self._volumes(out)

        def add(parts: Iterator[tuple[int, int]]) -> None:
            for part in parts:
                _add_windows(padded, *part, begins, self.cut.stride, volumes)

        self._share(of_windows, add)
        return out

    def _share(self, windows: Array, work: Callable[[Iterator[tuple[int, int]]], None]) -> None:
        """Call a function for the images, of which each thread takes some."""
        threads = thread_count(self.workers, windows.size // MOST_SERIAL_POINTS)
        share(ranges(len(windows), threads), work, threads)

    def _begins(self) -> tuple[int, ...]:
        missing = 3 - len(self.cut.before)
        return *[0] * missing, *[-steps for steps in self.cut.before]

    def _volumes(self, images: Array) -> Array:
        batch, *spatial = images.shape
        return images.reshape(batch, *[1] * (3 - len(spatial)), *spatial)

    def _with_three_axes(self, windows: Array) -> Array:
        ones = [1] * (3 - len(self.cut.positions))
        batch, *axes = windows.shape
        positions, sides = axes[: len(axes) // 2], axes[len(axes) // 2 :]
        return windows.reshape(batch, *ones, *positions, *ones, *sides)
