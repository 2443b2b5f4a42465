"""Soft curves on CUDA devices: launches of the soft_*.cu kernels on torch's stream.

Nothing here waits for the device or reads a value, so calls can be captured in CUDA graphs. Memory
is allocated by torch.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import cupy
import torch
from torch import Tensor

from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda import soft_plans as plans
from ecc_core._backends.cuda.calls import Call

MEMORY = 1 << 25  # The most bytes of moments or tables at once.


class Arguments(NamedTuple):
    """The arguments of the kernels.

    Values are those of the filtration, (batch, *spatial). Points that never enter are infinite, or
    False in the mask of the same shape. All tensors are contiguous. Values of float64 have
    coefficients only.
    """

    values: Tensor
    mask: Tensor | None
    thresholds: Tensor
    sharpness: Tensor
    connectivity: int
    superlevel: bool

    @property
    def points(self) -> int:
        return math.prod(self.values.shape[1:])


class Forward(NamedTuple):
    """Addresses of the results of the forward pass, or 0 for those that are not wanted.

    The windows around the levels and the coefficients (batch, points) are for the backward pass.
    Curves and their derivatives by thresholds (slopes) and sharpness (spreads) are (batch, n). All
    are contiguous.
    """

    curves: int
    slopes: int
    spreads: int
    windows: int
    coefficients: int


def values(
    image: Tensor, direction_terms: Tensor | None, mask: Tensor | None, superlevel: bool, fill: bool
) -> tuple[Tensor, Tensor | None]:
    """Return values and mask for `Arguments`: those given, if possible.

    With `fill` there is no mask. Other floats than float64 become float32 where values have memory
    of their own.
    """
    shape = tuple(image.shape)
    directional = direction_terms is not None
    plain = image.is_contiguous() and not directional and not (fill and mask is not None)
    if plain or not image.numel():
        shown = None if mask is None else mask.expand(shape).contiguous()
        return image, shown if shown is None or shown.data_ptr() % 4 == 0 else shown.clone()
    dtype = image.dtype if image.dtype == torch.float64 else torch.float32
    found = torch.empty(shape, dtype=dtype, device=image.device)
    shown = None if mask is None else mask.expand(shape)
    heights = None
    if direction_terms is not None:  # Heights along axes that the image does not have are 0.
        absent = 4 - len(shape)
        heights = direction_terms.new_zeros(absent + len(direction_terms), dtype=torch.float64)
        heights[absent:] = direction_terms
    tensors = image, shown, heights, found
    addresses = [0 if tensor is None else tensor.data_ptr() for tensor in tensors]
    strides = None if shown is None else shown.stride()
    with launching(image) as (device, stream):
        places = addresses[0] % 16, addresses[1] % 16
        key = shape, image.stride(), strides, image.dtype, superlevel, directional
        call, words = plans.values(*key, places, device)
        call.launch(zip(words, addresses, strict=True), stream)
    return found, None


def curves(given: Arguments, out: Forward) -> None:
    """Compute curves and what the backward pass needs; neither images nor levels may be empty.

    NaN in an image makes its curve NaN, and NaN elsewhere makes all curves NaN.
    """
    values = given.values
    points = given.points
    levels = given.thresholds.numel()
    images = values.shape[0]
    options = (points, values.dtype, given.superlevel, levels)
    numbers = given.thresholds.data_ptr(), given.sharpness.data_ptr()
    mask = 0 if given.mask is None else given.mask.data_ptr()
    with launching(values) as (device, stream):
        kept = None if out.coefficients else values.new_empty(values.shape, dtype=torch.int8)
        weights = out.coefficients if kept is None else kept.data_ptr()
        _write_coefficients(given, weights, device, stream)
        plan = plans.scan(images, *options, device)
        if plan.small:
            results = out.curves, out.slopes, out.spreads, plans.WITHOUT_POSITIONS, out.windows
            own = values.data_ptr(), weights, points, mask
            launch(plan.call, stream, (*own, *numbers, *results))
            return
        windows = out.windows
        memory = None
        if not windows:
            memory = given.thresholds.new_empty(plans.window_words(levels))
            windows = memory.data_ptr()
        for part in _parts(images, MEMORY // (8 * (plans.MOMENTS * plans.table_slots(levels) + 1))):
            count = len(part)
            first = part.start
            plan = plans.scan(count, *options, device)
            moments = values.new_empty(plan.moments, dtype=torch.int64)
            prepare = plans.preparation(count, levels, given.superlevel, device)
            launch(prepare, stream, (*numbers, windows, moments.data_ptr()))
            shown = mask and mask + first * points
            data = values.data_ptr() + first * points * values.itemsize
            own = data, weights + first * points, points, shown
            launch(plan.call, stream, (*own, windows, moments.data_ptr()))
            rows = (out.curves, out.slopes, out.spreads)
            found = (address and address + 4 * levels * first for address in rows)
            evaluate = plans.evaluation(count, levels, plan.scale, given.superlevel, device)
            launch(evaluate, stream, (*numbers, windows, moments.data_ptr(), *found))


def windows(given: Arguments) -> Tensor:
    """Compute the windows around the levels, as `curves` does for the backward pass."""
    levels = given.thresholds.numel()
    found = given.thresholds.new_empty(plans.window_words(levels))
    with launching(given.values) as (device, stream):
        prepare = plans.preparation(1, levels, given.superlevel, device)
        addresses = [t.data_ptr() for t in (given.thresholds, given.sharpness, found)]
        launch(prepare, stream, (*addresses, 0))
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

    `forward` are the addresses that `curves` wrote to; without slopes and spreads, there are no
    gradients of thresholds and sharpness. `upstream`, (batch, n) float32, is the gradient of the
    loss by the curves, with any strides.
    """
    values = given.values
    points = given.points
    superlevel = given.superlevel
    images = values.shape[0]
    levels = given.thresholds.numel()
    total = [0 if t is None else t.data_ptr() for t in (by_threshold, by_sharpness)]
    totals = any(total)
    strides = *upstream.stride(), 0, plans.WITHOUT_POSITIONS
    struct = (upstream.data_ptr(), *strides, forward.slopes, forward.spreads, *total)
    with launching(values) as (device, stream):
        if by_image is None:
            if totals:
                call = plans.tabulation(0, 0, images, levels, True, superlevel, device)
                launch(call, stream, struct)
            return
        options = (points, values.dtype, superlevel, levels, by_image.dtype, totals, device)
        gather, tabled = plans.gather(images, *options)
        sharpness = given.sharpness.data_ptr()
        out = by_image.data_ptr()
        weights = forward[-1]
        if not tabled:
            work = (values.data_ptr(), weights, points, 0, forward.windows, sharpness, 0, out)
            launch(gather, stream, work, struct)
            return
        slots = plans.table_slots(levels)
        for part in _parts(images, MEMORY // (8 * slots)):
            count = len(part)
            first = part.start
            table = values.new_empty((count, slots, 2), dtype=torch.float32)
            sums = totals and not first
            call = plans.tabulation(count, first, images, levels, sums, superlevel, device)
            tail = sharpness, forward.windows, table.data_ptr()
            launch(call, stream, struct, tail)
            gather, _ = plans.gather(count, *options)
            data = values.data_ptr() + first * points * values.itemsize
            own = data, weights + first * points, points, 0
            to = out + first * points * by_image.itemsize
            launch(gather, stream, (*own, forward.windows, 0, table.data_ptr(), to))


def coefficients(given: Arguments) -> Tensor:
    """Return the coefficients (batch, points) of images of any float type."""
    found = given.values.new_empty((len(given.values), given.points), dtype=torch.int8)
    if found.numel():
        with launching(given.values) as (device, stream):
            _write_coefficients(given, found.data_ptr(), device, stream)
    return found


def _write_coefficients(given: Arguments, out: int, device: int, stream: int) -> None:
    values = given.values
    mask = given.mask
    address = values.data_ptr()
    options = (given.connectivity, given.superlevel, device)
    key = tuple(values.shape), values.dtype, address % 16, mask is not None, *options
    call, data, shown, to = plans.coefficients(*key)
    words = (data, address), (to, out)
    call.launch(words if mask is None else (*words, (shown, mask.data_ptr())), stream)


def _parts(images: int, most: int) -> list[range]:
    """Return the images in parts of at most `most`, but at least one."""
    step = max(1, most)
    return [range(first, min(first + step, images)) for first in range(0, images, step)]


def launch(call: Call, stream: int, *words: Iterable[int]) -> None:
    """Launch with the first words of the first arguments."""
    call.launch_with(words, stream)


def launching(image: Tensor) -> AbstractContextManager[tuple[int, int]]:
    """Make an image's device current. Yields its number and the address of torch's stream there."""
    device = image.get_device()
    stream = torch._C._cuda_getCurrentRawStream(device)
    runtime = cupy.cuda.runtime
    if torch._C._cuda_getDevice() == device == runtime.getDevice():
        runtime.setDevice(device)  # A thread that has only used torch's memory has no context.
        return _here(device, stream)
    return _entering(device, stream)


@programs.plan
def _here(device: int, stream: int) -> AbstractContextManager[tuple[int, int]]:
    return nullcontext((device, stream))


def planning(device: int) -> AbstractContextManager[Any]:
    """Make a device current while launches are planned, whose kernels are loaded there."""
    here = device == cupy.cuda.runtime.getDevice()
    return nullcontext() if here else cupy.cuda.Device(device)


@contextmanager
def _entering(device: int, stream: int) -> Iterator[tuple[int, int]]:
    with torch.cuda.device(device), cupy.cuda.Device(device):
        yield device, stream
