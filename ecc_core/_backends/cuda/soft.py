"""Soft curves on CUDA devices: launches of the soft_*.cu kernels on torch's stream.

Nothing here waits for the device or reads a value, so calls can be captured in CUDA graphs. Memory
is allocated by torch. Images are (batch, *spatial) with any strides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import cupy
import torch
from torch import Tensor

from ecc_core._backends.cuda import soft_plans as plans
from ecc_core._backends.cuda.arrays import borrowed_stream
from ecc_core._backends.cuda.calls import Call
from ecc_core._backends.soft import SoftImages

__all__ = ["Arguments", "Forward", "coefficients", "curves", "gradients", "on_stream", "windows"]

MEMORY = 1 << 25  # bytes of moments or tables at once


class Arguments(SoftImages):
    """What the kernels take: images that are not float64, and float32 numbers."""

    def scanned(self, part: range) -> tuple[Any, ...]:
        """Return what the plan of a scan of some images depends on."""
        image, mask = self.image, self.mask
        return (
            (len(part), *image.shape[1:]),
            image.stride(),
            None if mask is None else mask.stride(),
            image.dtype,
            self.direction_terms is not None,
            self.connectivity,
            self.superlevel,
        )

    def gathered(self, part: range) -> tuple[Any, ...]:
        """Return what the plan of the gradients of some images depends on."""
        image, directional = self.image, self.direction_terms is not None
        shape = (len(part), *image.shape[1:])
        return shape, image.stride(), image.dtype, directional, self.superlevel

    def offsets(self, place: int) -> list[tuple[int, int]]:
        """Return the words, from `place` on, with the addresses of the terms along z, y and x."""
        terms = self.direction_terms
        if terms is None:
            return []
        start, shape = terms.data_ptr(), self.image.shape[1:]
        axes = {1: (2,), 2: (0, 2), 3: (0, 1, 2)}[len(shape)]
        return [
            (place + axis, start + terms.itemsize * sum(shape[:i])) for i, axis in enumerate(axes)
        ]


class Forward(NamedTuple):
    """Addresses of what the forward pass computes, or 0 for what is not wanted.

    The windows around the levels and the packed coefficients are for the backward pass. Curves and
    their derivatives by thresholds (slopes) and sharpness (spreads) are (batch, n) and contiguous.
    """

    curves: int
    slopes: int
    spreads: int
    windows: int
    packed: int


def curves(given: Arguments, out: Forward) -> None:
    """Compute curves and what the backward pass needs; neither images nor levels may be empty.

    NaN in an image makes its curve NaN, and NaN elsewhere makes all curves NaN.
    """
    image, levels, superlevel = given.image, given.thresholds.numel(), given.superlevel
    numbers = given.thresholds.data_ptr(), given.sharpness.data_ptr()
    whole = range(image.shape[0])
    with _launching(image) as (device, stream):
        plan = plans.scan(*given.scanned(whole), levels, device)
        if plan.small:
            addresses = (*numbers, out.curves, out.slopes, out.spreads, out.windows, out.packed)
            _scan(plan.call, stream, given, whole, addresses)
            return
        windows, memory = out.windows, None
        if not windows:
            memory = given.thresholds.new_empty(plans.window_words(levels))
            windows = memory.data_ptr()
        words, row = 4 * plans.packed_words(image.shape), 4 * levels
        slots = plans.table_slots(levels)
        for part in _parts(whole, MEMORY // (8 * (plans.MOMENTS * slots + 1))):
            count, first = len(part), part.start
            plan = plans.scan(*given.scanned(part), levels, device)
            moments = image.new_empty(plan.moments, dtype=torch.int64)
            prepare = plans.preparation(count, levels, superlevel, device)
            _launch(prepare, stream, (*numbers, windows, moments.data_ptr()))
            packed = out.packed and out.packed + first * words
            _scan(plan.call, stream, given, part, (windows, moments.data_ptr(), packed))
            rows = (out.curves, out.slopes, out.spreads)
            found = (address and address + first * row for address in rows)
            evaluate = plans.evaluation(count, levels, plan.scale, superlevel, device)
            _launch(evaluate, stream, (*numbers, windows, moments.data_ptr(), *found))


def windows(given: Arguments) -> Tensor:
    """Compute the windows around the levels, as `curves` does for the backward pass."""
    levels = given.thresholds.numel()
    found = given.thresholds.new_empty(plans.window_words(levels))
    with _launching(given.image) as (device, stream):
        prepare = plans.preparation(1, levels, given.superlevel, device)
        addresses = [t.data_ptr() for t in (given.thresholds, given.sharpness, found)]
        _launch(prepare, stream, (*addresses, 0))
    return found


def gradients(
    given: Arguments,
    forward: Forward,
    upstream: Tensor,
    by_image: Tensor | None,
    by_threshold: Tensor | None = None,
    by_sharpness: Tensor | None = None,
) -> None:
    """Compute gradients and write them to contiguous tensors, where there are any.

    Parameters
    ----------
    forward : Forward
        The addresses that `curves` wrote to. Without slopes and spreads, there are no gradients of
        thresholds and sharpness; without packed coefficients, each of them counts as one.
    upstream : (batch, n) float32 tensor
        The gradient of the loss by the curves, with any strides.
    by_image : tensor of the shape of the image, optional
    by_threshold : (n,) float32 tensor, optional
    by_sharpness : () float32 tensor, optional
    """
    image, levels, superlevel = given.image, given.thresholds.numel(), given.superlevel
    whole = range(image.shape[0])
    total = [0 if t is None else t.data_ptr() for t in (by_threshold, by_sharpness)]
    totals = any(total)
    struct = (upstream.data_ptr(), *upstream.stride(), forward.slopes, forward.spreads, *total)
    with _launching(image) as (device, stream):
        if by_image is None:
            if totals:
                call = plans.tabulation(0, 0, len(whole), levels, True, superlevel, device)
                _launch(call, stream, struct)
            return
        options = (levels, by_image.dtype, not forward.packed, totals, device)
        plan = plans.gather(*given.gathered(whole), *options)
        sharpness, out = given.sharpness.data_ptr(), by_image.data_ptr()
        if plan.small:
            work = (forward.windows, sharpness, 0, forward.packed, out)
            _gather(plan.call, stream, given, whole, work, struct)
            return
        words, slots = 4 * plans.packed_words(image.shape), plans.table_slots(levels)
        row = by_image.stride(0) * by_image.itemsize
        for part in _parts(whole, MEMORY // (8 * slots)):
            count, first = len(part), part.start
            table = image.new_empty((count, slots, 2), dtype=torch.float32)
            with_totals = totals and not first
            call = plans.tabulation(
                count, first, len(whole), levels, with_totals, superlevel, device
            )
            address = table.data_ptr()
            tail = zip(call.places[1:4], (sharpness, forward.windows, address), strict=True)
            call.launch(stream, (*enumerate(struct, call.places[0]), *tail))
            plan = plans.gather(*given.gathered(part), *options)
            packed = forward.packed and forward.packed + first * words
            work = (forward.windows, sharpness, address, packed, out + first * row)
            _gather(plan.call, stream, given, part, work, ())


def coefficients(given: Arguments, packed: Tensor) -> None:
    """Write the packed coefficients of images of any float type, zero outside of the mask."""
    if packed.numel():
        with _launching(given.image) as (device, stream):
            part = range(given.image.shape[0])
            plan = plans.scan(*given.scanned(part), 0, device)
            _scan(plan.call, stream, given, part, (0, 0, packed.data_ptr()))


def _parts(images: range, most: int) -> list[range]:
    """Return the images in parts of at most `most`, but at least one."""
    step = max(1, most)
    return [images[first : first + step] for first in range(0, len(images), step)]


def _launch(call: Call, stream: int, words: Iterable[int]) -> None:
    """Launch with the first words of the arguments."""
    call.launch(stream, enumerate(words, call.places[0]))


def _scan(
    call: Call, stream: int, given: Arguments, part: range, addresses: tuple[int, ...]
) -> None:
    """Launch a scan of some images, with the addresses at the start of its last argument."""
    image, work = call.places[0], call.places[-1]
    words = [(image, _row(given.image, part)), *given.offsets(image + 2)]
    if given.mask is not None:
        words.append((image + 1, _row(given.mask, part)))
    call.launch(stream, (*words, *enumerate(addresses, work)))


def _gather(
    call: Call,
    stream: int,
    given: Arguments,
    part: range,
    addresses: tuple[int, ...],
    totals: tuple[int, ...],
) -> None:
    """Launch the gradients of some images, with the first words of the last two arguments."""
    image, work, last = call.places
    words = ((image, _row(given.image, part)), *given.offsets(image + 1))
    call.launch(stream, (*words, *enumerate(addresses, work), *enumerate(totals, last)))


def _row(tensor: Tensor, part: range) -> int:
    """Return the address of the first image of a part."""
    return tensor.data_ptr() + part.start * tensor.stride(0) * tensor.itemsize


def _launching(image: Tensor) -> AbstractContextManager[tuple[int, int]]:
    """Make an image's device current. Yields its number and the address of torch's stream there."""
    device = image.device.index
    stream = torch._C._cuda_getCurrentRawStream(device)
    runtime = cupy.cuda.runtime
    if torch._C._cuda_getDevice() == device == runtime.getDevice():
        runtime.setDevice(device)  # in a thread that has only used torch's memory so far
        return nullcontext((device, stream))
    return _launching_on(device, stream)


@contextmanager
def _launching_on(device: int, stream: int) -> Iterator[tuple[int, int]]:
    with torch.cuda.device(device), cupy.cuda.Device(device):
        yield device, stream


@contextmanager
def on_stream(image: Tensor) -> Iterator[int]:
    """Make the image's device and torch's stream current for CuPy. Yields the device's number."""
    device = image.device.index
    with torch.cuda.device(device), cupy.cuda.Device(device), borrowed_stream(device):
        yield device
