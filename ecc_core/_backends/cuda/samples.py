"""Images with any strides, which kernels read sample by sample, and their range of values."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.arrays import ArrayView, Placement
from ecc_core._backends.cuda.bins import Prepared
from ecc_core._backends.cuda.calls import Call, take_reply
from ecc_core._backends.cuda.compile import function, processors
from ecc_core._backends.cuda.structures import Struct
from ecc_core._backends.cuda.variants import ELEMENTS, ITEM_BYTES, Variant

SAMPLES = Struct("samples.cuh", "Samples")
DATA, MASK, HEIGHTS, SCALE = map(SAMPLES.word, ("data", "mask", "heights", "scale"))
LANES = SAMPLES.half("lanes")
THREADS = 256
BLOCKS = 8  # on a multiprocessor
BLOCKS_OF_RANGE = 6
PIECE = 16 * THREADS  # samples
PIECE_OF_ROW = 1 << 14  # samples, as in samples.cuh
SIGN = 1 << 63


class Samples(NamedTuple):
    """An image as kernels read it sample by sample, and the macros that they are compiled with.

    Attributes
    ----------
    image : array
        The kernels' Samples.
    options : dict
    shape : tuple of int
        (images, depth, height, width), where the axes of absent dimensions are 1.
    device : int
    memory : object
        What must live until the kernel is launched.
    """

    image: NDArray[Any]
    options: dict[str, Any]
    shape: tuple[int, ...]
    device: int
    memory: Any

    def launch(
        self,
        source: str,
        name: str,
        macros: dict[str, Any],
        *arguments: Any,
        shared: int = 0,
        rows: int = 1,
    ) -> None:
        """Launch a kernel with as many blocks as are resident at a time, in `rows` of a grid."""
        call = self.plan(source, name, macros, *arguments, shared=shared, rows=rows)
        call.launch(cupy.cuda.get_current_stream().ptr, ())

    def plan(
        self,
        source: str,
        name: str,
        macros: dict[str, Any],
        *arguments: Any,
        shared: int = 0,
        rows: int = 1,
    ) -> Call:
        """Return the launch of a kernel, whose further arguments are passed by value."""
        found = kernel(source, name, self.device, self.options, macros).kernel
        blocks = -(-_blocks(self.image, self.shape, self.device) // rows)
        return Call(found, (blocks, rows), THREADS, shared, (self.image, *arguments))


def _blocks(image: NDArray[np.int64], shape: tuple[int, ...], device: int) -> int:
    """Return the number of resident blocks, or of those that have work; rows are the last axis."""
    rows = THREADS // int(image.view(np.int32)[LANES])
    lines = math.prod(shape[:-1]) * -(-shape[-1] // PIECE_OF_ROW)
    return min(-(-lines // rows), BLOCKS * processors(device))


def kernel(
    source: str, name: str, device: int, options: dict[str, Any], macros: dict[str, Any]
) -> Any:
    """Return a kernel from a file that includes samples.cuh."""
    given = {**options, **macros, "THREADS": THREADS}
    return function(source, name, device, given)


def samples_of(
    view: ArrayView,
    mask: Any,
    variant: Variant,
    prepared: Prepared | None,
    direction: Any,
    *,
    vector: bool = True,
) -> Samples:
    """Return the samples of images (batch, *spatial), with a mask that broadcasts to them.

    `direction` is what is added to them, or None; their keys are then float64. `vector`: whether
    threads may take four samples next to each other.
    """
    array = view.array
    hidden = None if mask is None else cupy.broadcast_to(mask, array.shape)
    places = (array.data.ptr % 16, 0 if hidden is None else hidden.data.ptr % 16)
    mask_strides = None if hidden is None else hidden.strides
    struct, vector = _struct(
        array.shape, array.strides, array.itemsize, mask_strides, places, vector
    )
    image = struct.copy()
    image[DATA] = array.data.ptr
    if hidden is not None:
        image[MASK] = hidden.data.ptr
    heights = None
    if direction is not None:
        heights = _heights(_Terms(direction), array.device.id)
        image[HEIGHTS] = heights.data.ptr
        image[SCALE : SCALE + 1].view(np.float64)[0] = direction.scale
    # Values along a direction are compared as float64, and read as they are.
    own = variant._replace(element=view.element)
    options = _options(own, prepared, vector, direction is not None)
    lead = 4 - array.ndim
    shape = (array.shape[0], *[1] * lead, *array.shape[1:])
    return Samples(image, options, shape, array.device.id, (array, hidden, heights))


def plain_samples(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    variant: Variant,
    device: int,
    mask_strides: tuple[int, ...] | None = None,
    directional: bool = False,
    places: tuple[int, int] | None = None,
) -> Samples:
    """Return samples without addresses and a rule for bins.

    Heights are added as they are if `directional`. Threads take single samples, or four where
    `places` allow it, which are the addresses of image and mask modulo 16.
    """
    given = shape, strides, ITEM_BYTES[variant.element], mask_strides, places or (0, 0)
    image, vector = _struct(*given, places is not None)
    if directional:
        image = image.copy()
        image[SCALE : SCALE + 1].view(np.float64)[0] = 1.0
    whole = (shape[0], *[1] * (4 - len(shape)), *shape[1:])
    return Samples(image, _options(variant, None, vector, directional), whole, device, None)


def _options(
    variant: Variant, prepared: Prepared | None, vector: bool, directional: bool
) -> dict[str, Any]:
    """Return the macros of kernels that read images sample by sample."""
    element = "Bool" if variant.element == "bool" else ELEMENTS[variant.element]
    options = {"VECTOR": int(vector), "DIRECTIONAL": int(directional), "BLOCKS": 4}
    return variant.options(prepared) | {"ELEMENT": element, **options}


@lru_cache(maxsize=1024)
def _struct(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    itemsize: int,
    mask_strides: tuple[int, ...] | None,
    places: tuple[int, int],
    vector: bool,
) -> tuple[NDArray[np.int64], bool]:
    """Return the structure without addresses, and whether threads take four samples at a time.

    `places` are the addresses of image and mask modulo 16.
    """
    lead = 4 - len(shape)

    def axes(values: tuple[int, ...], size: int) -> tuple[int, ...]:
        return (values[0] // size, *[0] * lead, *(value // size for value in values[1:]))

    def aligned(values: tuple[int, ...], size: int, place: int) -> bool:
        four = min(4 * size, 16)
        return values[-1] == size and not any(value % four for value in (*values[:-1], place))

    sizes = (shape[0], *[1] * lead, *shape[1:])
    vector = vector and sizes[3] % 4 == 0 and aligned(strides, itemsize, places[0])
    hidden: tuple[int, ...] = (0,) * 4
    if mask_strides is not None:
        hidden = axes(mask_strides, 1)
        vector = vector and aligned(mask_strides, 1, places[1])
    threads = -(-sizes[3] // 16)
    if not vector:  # lanes next to each other take samples next to each other
        threads = max(threads, min(-(-sizes[3] // 4), 32))
    lanes = 1 << min((threads - 1).bit_length(), THREADS.bit_length() - 1)
    samples = SAMPLES(
        strides=axes(strides, itemsize),
        mask_strides=hidden,
        **dict(zip(("images", "depth", "height", "width"), sizes, strict=True)),
        lanes=lanes,
    )
    return samples, vector


class _Terms:
    """A direction that is hashed and compared by its vector, spacing and shape."""

    def __init__(self, direction: Any) -> None:
        self.direction = direction
        self.key = (direction.vector, direction.spacing, direction.shape)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Terms) and self.key == other.key


@lru_cache(maxsize=64)
def _heights(terms: _Terms, _device: int) -> Any:
    """Return the heights of slices, rows and columns, on the device; 0 along missing axes."""
    along = terms.direction.terms
    heights = cupy.asarray(np.concatenate([np.zeros(3 - len(along)), *along]))
    # Other streams may use them next, and kernels on any stream may still use what the cache drops.
    cupy.cuda.Device().synchronize()
    return heights


def find_range(
    view: ArrayView, mask: Any, variant: Variant, direction: Any
) -> tuple[Any, Any, bool]:
    """Return the smallest and the largest finite value or None, and whether there is a NaN.

    Waits for the device.
    """
    array = view.array
    if not array.size:
        return None, None, False
    device, stream = array.device.id, cupy.cuda.get_current_stream()
    reply = take_reply(device)
    if mask is None and direction is None:
        call = _plan_range(Placement.of(array), variant, device)
        samples, memory, answer = call.places
        words = (
            (samples + DATA, array.data.ptr),
            (memory, reply.memory.data.ptr),
            (answer, reply.address),
        )
        call.launch(stream.ptr, words)
    else:
        visited = samples_of(view, mask, variant, None, direction)
        addresses = np.int64(reply.memory.data.ptr), np.int64(reply.address)
        visited.launch("range", "find_range", {}, *addresses)
    found = reply.wait(5, stream)
    reply.release()
    least, largest = found[0] | found[1] << 32, found[2] | found[3] << 32
    some, nan = found[4] & 1, found[4] >> 1
    if not some:
        return None, None, bool(nan)
    element = "float64" if direction is not None else view.element
    low, high = (_value(number, element) for number in (~(least ^ SIGN), largest ^ SIGN))
    return low, high, bool(nan)


@lru_cache(maxsize=256)
def _plan_range(placement: Placement, variant: Variant, device: int) -> Call:
    """Return the launch that finds the range of images without masks and directions."""
    image, options, grid = range_arguments(placement, variant, device)
    found = function("range", "find_range", device, options).kernel
    return Call(found, grid, THREADS, 0, (image, np.int64(0), np.int64(0)))


def range_arguments(
    placement: Placement, variant: Variant, device: int
) -> tuple[NDArray[Any], dict[str, Any], tuple[int]]:
    """Return the samples without addresses, macros and grid of kernels that include range.cuh.

    The images have no mask and no direction.
    """
    shape, strides, address = placement
    item = ITEM_BYTES[variant.element]
    size, contiguous = math.prod(shape), item
    for length, step in zip(shape[::-1], strides[::-1], strict=True):
        if length > 1 and step != contiguous:
            break
        contiguous *= length
    else:
        if size % PIECE == 0:  # rows that one block reads at a time
            shape, strides = (1, size // PIECE, PIECE), (size * item, PIECE * item, item)
    image, vector = _struct(shape, strides, item, None, (address, 0), True)
    options = {**_options(variant, None, vector, False), "THREADS": THREADS}
    options["BLOCKS"] = BLOCKS_OF_RANGE
    rows = THREADS // int(image.view(np.int32)[LANES])
    blocks = min(-(-math.prod(shape[:-1]) // rows), BLOCKS_OF_RANGE * processors(device))
    return image, options, (blocks,)


def _value(bits: int, element: str) -> Any:
    """Return the value that belongs to the 64 bits of an ordinal (samples.cuh)."""
    if element == "float32":  # as below, for the most common type
        own = bits & 0xFFFFFFFF
        return np.uint32(own ^ 0x7FFFFFFF if own >> 31 else own).view(np.float32)
    ordinal = np.array([bits & (2 * SIGN - 1)], np.uint64).view(np.int64)
    if element in SMALL or ("float" in element and element != "float64"):
        whole = ordinal.astype(np.int32)
        key = (whole ^ (whole >> 31 & 0x7FFFFFFF)).view(np.float32)
        if "float" in element:
            return key.astype(np.float32 if element == "bfloat16" else element)[0]
        dtype = np.dtype(np.uint8 if element == "bool" else element)
        return dtype.type(int(key[0]) - (1 << 23) + int(np.iinfo(dtype).min))
    if element == "float64":
        return (ordinal ^ (ordinal >> 63 & (SIGN - 1))).view(np.float64)[0]
    unsigned = element.startswith("u")
    offset = 1 << (8 * ITEM_BYTES[element] - 1) if unsigned else 0
    return np.dtype(element).type(int(ordinal[0]) + offset)


SMALL = ("bool", "uint8", "int8", "uint16", "int16")
