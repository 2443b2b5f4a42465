"""The smallest and the largest finite value of images on a device."""

import math
from typing import Any

import numpy as np

from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import Placement, check_not_capturing
from ecc_core._backends.cuda.calls import Call, take_reply
from ecc_core._backends.cuda.kernels import ITEM_BYTES, Variant
from ecc_core._backends.cuda.samples import (
    DATA,
    MASK,
    THREADS,
    Arrangement,
    Images,
    placed_samples,
    plain_samples,
)

BLOCKS_OF_RANGE = 6
"""Blocks on a multiprocessor."""
SAMPLES_A_BLOCK = 16 * THREADS
SIGN = 1 << 63
NARROW_TYPES = ("bool", "uint8", "int8", "uint16", "int16")
"""Types whose ordinals in the kernel have 32 bits."""


def find_range(images: Images) -> tuple[Any, Any, bool]:
    """Wait for the smallest and the largest finite value or None, and whether there is a NaN."""
    if not images.view.array.size:
        return None, None, False
    arrangement = Arrangement.of(images)
    device = arrangement.placement.device
    return as_range(read_range(range_of(arrangement), device, *images.addresses), arrangement)


def range_of(images: Arrangement) -> Call:
    """Return the launch that finds the range of images, which is kept for their layout."""
    if images.mask is None and images.direction is None:
        return _kept_plan("range", "find_range", images.placement, images.variant)
    return _kept_samples_plan(images, "range", "find_range")


def read_range(call: Call, device: int, data: int, mask: int) -> tuple[int, ...]:
    """Launch, and wait for what the kernel tells the host (range.cu)."""
    check_not_capturing()
    reply = take_reply(device)
    image, found_at, answer = call.places
    addresses = (found_at, reply.memory.data.ptr), (answer, reply.address)
    call.launch([(image + DATA, data), (image + MASK, mask), *addresses])
    found = reply.wait(5)
    reply.release()
    return tuple(found)


def as_range(found: tuple[int, ...], images: Arrangement) -> tuple[Any, Any, bool]:
    """Return the smallest and the largest finite value or None, and whether there is a NaN."""
    least = found[0] | found[1] << 32
    largest = found[2] | found[3] << 32
    some = found[4] & 1
    nan = found[4] >> 1
    if not some:
        return None, None, bool(nan)
    element = "float64" if images.direction is not None else images.element
    low, high = (_value(number, element) for number in (~(least ^ SIGN), largest ^ SIGN))
    return low, high, bool(nan)


def plan_range(source: str, name: str, placement: Placement, variant: Variant, *more: Any) -> Call:
    """Return the launch of a kernel that includes range.cuh, without addresses.

    The images have no mask and no direction. `more` are arguments behind those of range.cuh.
    """
    shape, strides, *_ = placement
    item = ITEM_BYTES[variant.element]
    size = math.prod(shape)
    contiguous = item
    for length, step in zip(shape[::-1], strides[::-1], strict=True):
        if length > 1 and step != contiguous:
            break
        contiguous *= length
    else:
        if size % SAMPLES_A_BLOCK == 0:  # Samples are divided into rows that a block reads at once.
            shape = (1, size // SAMPLES_A_BLOCK, SAMPLES_A_BLOCK)
            strides = (size * item, SAMPLES_A_BLOCK * item, item)
    placement = placement._replace(shape=shape, strides=strides)
    samples = plain_samples(placement, variant, vector=True)
    resident = BLOCKS_OF_RANGE
    return samples.plan(source, name, {"BLOCKS": resident}, 0, 0, *more, resident=resident)


_kept_plan = programs.plan(plan_range)


def plan_range_of_samples(arrangement: Arrangement, source: str, name: str, *more: Any) -> Call:
    """Return the launch of a kernel as :func:`plan_range` does, also with a mask or a direction."""
    samples = placed_samples(arrangement, vector=True)
    return samples.plan(source, name, {}, 0, 0, *more)


_kept_samples_plan = programs.plan(plan_range_of_samples)


def _value(bits: int, element: str) -> Any:
    """Return the value that belongs to the 64 bits of an ordinal (samples.cuh)."""
    if element in NARROW_TYPES or ("float" in element and element != "float64"):
        own = bits & 0xFFFFFFFF
        key = np.uint32(own ^ 0x7FFFFFFF if own >> 31 else own).view(np.float32)
        if "float" in element:
            return np.float16(key) if element == "float16" else key
        dtype = np.dtype(np.uint8 if element == "bool" else element)
        return dtype.type(int(key) - (1 << 23) + int(np.iinfo(dtype).min))
    ordinal = np.array([bits & (2 * SIGN - 1)], np.uint64).view(np.int64)
    if element == "float64":
        return (ordinal ^ (ordinal >> 63 & (SIGN - 1))).view(np.float64)[0]
    unsigned = element.startswith("u")
    offset = 1 << (8 * ITEM_BYTES[element] - 1) if unsigned else 0
    return np.dtype(element).type(int(ordinal[0]) + offset)
