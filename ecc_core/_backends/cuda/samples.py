"""Images with any strides, which kernels read sample by sample: their range and coefficients."""

import math
from typing import Any, NamedTuple, Self

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import ArrayView, Placement, check_not_capturing, is_alike
from ecc_core._backends.cuda.bins import BINS, Prepared
from ecc_core._backends.cuda.calls import Call, plan_call, take_reply
from ecc_core._backends.cuda.kernels import (
    ELEMENTS,
    ITEM_BYTES,
    Struct,
    Variant,
    processors,
    variant_of,
)
from ecc_core._request.filtration import Direction, Filtration

SAMPLES = Struct("samples.cuh", "Samples")
DATA, MASK, HEIGHTS, SCALE = map(SAMPLES.word, ("data", "mask", "heights", "scale"))
LANES = SAMPLES.word("lanes", 4)
THREADS = 256
BLOCKS = 8  # Blocks on a multiprocessor.
BLOCKS_OF_RANGE = 6
SAMPLES_A_BLOCK = 16 * THREADS
PIECE_OF_ROW = 1 << 14  # samples, as in samples.cuh
SIGN = 1 << 63


class Images(NamedTuple):
    """Images (batch, *spatial), and how their samples are compared with thresholds."""

    view: ArrayView
    mask: Any  # which broadcasts to them, or None
    direction: Direction | None  # of what is added to them; their keys are then float64
    variant: Variant

    @classmethod
    def of(cls, view: ArrayView, filtration: Filtration, mask: Any = None) -> Self:
        return cls(view, mask, filtration.direction, variant_of(filtration, view.element, mask))

    @property
    def hidden(self) -> Any:
        """The mask in the shape of the images, or None."""
        return None if self.mask is None else cupy.broadcast_to(self.mask, self.view.array.shape)

    @property
    def addresses(self) -> tuple[int, int]:
        """The addresses of the images and of their masks, 0 without a mask."""
        return self.view.array.data.ptr, 0 if self.mask is None else self.mask.data.ptr

    def words(self, first: int = 0) -> list[tuple[int, int]]:
        """Return the addresses among the words of Samples, which begin at index `first`."""
        data, mask = self.addresses
        return [(first + DATA, data), (first + MASK, mask)]


class Samples(NamedTuple):
    """An image as kernels read it sample by sample, and the macros that they are compiled with."""

    image: NDArray[Any]  # the kernels' Samples
    options: dict[str, Any]
    shape: tuple[int, ...]  # (images, depth, height, width); 1 for the axes of absent dimensions
    device: int
    memory: Any = None  # must live until the kernel is launched

    def plan(
        self,
        source: str,
        name: str,
        macros: dict[str, Any],
        *arguments: Any,
        shared: int = 0,
        rows: int = 1,
        resident: int = BLOCKS,
    ) -> Call:
        """Return a launch with as many blocks as are resident at a time, in `rows` of a grid."""
        lines = math.prod(self.shape[:-1]) * ceil_div(self.shape[-1], PIECE_OF_ROW)
        working = ceil_div(lines * int(self.image.view(np.int32)[LANES]), THREADS)
        blocks = min(working, resident * processors(self.device))
        given = (self.image, *arguments)
        grid = (ceil_div(blocks, rows), rows)
        return plan_call(source, name, self.options | macros, grid, THREADS, given, shared)


class Arrangement(NamedTuple):
    """All that kernels that read samples one by one depend on, but for addresses."""

    placement: Placement
    element: str
    variant: Variant
    mask: Placement | None
    direction: Direction | None

    @classmethod
    def of(cls, images: Images) -> Self:
        hidden = images.hidden
        shown = None if hidden is None else Placement.of(hidden)
        placement = Placement.of(images.view.array)
        return cls(placement, images.view.element, images.variant, shown, images.direction)

    @property
    def is_scanned_in_place(self) -> bool:
        """Whether a scan may read the images as they are; a mask must have the same layout."""
        if self.direction is not None:
            return False
        return self.mask is None or is_alike(self.mask, self.placement, ITEM_BYTES[self.element])


def samples_of(images: Images, prepared: Prepared | None = None, *, vector: bool = True) -> Samples:
    """Return the samples of images.

    `vector`: whether threads may take four samples next to each other.
    """
    kept = placed_samples(Arrangement.of(images), vector)
    image = kept.image.copy()
    for place, address in images.words():
        image[place] = address
    rule = {} if prepared is None else {"BINS": prepared.rules.single}
    memory = images, kept.memory
    return kept._replace(image=image, options=kept.options | rule, memory=memory)


@programs.plan
def placed_samples(arrangement: Arrangement, vector: bool) -> Samples:
    """Return samples without the addresses of images and masks, and without a rule for bins."""
    placement, element, variant, mask, direction = arrangement
    # Values along a direction are compared as float64, and read as they are.
    own = variant._replace(element=element)
    directional = direction is not None
    plain = plain_samples(placement, own, mask, directional, vector)
    if direction is None:
        return plain
    image = plain.image.copy()
    heights = _heights(direction, placement.device)
    image[HEIGHTS] = heights.data.ptr
    image[SCALE : SCALE + 1].view(np.float64)[0] = direction.scale
    return plain._replace(image=image, memory=heights)


@programs.plan
def plain_samples(
    images: Placement,
    variant: Variant,
    mask: Placement | None = None,
    directional: bool = False,
    vector: bool = False,
) -> Samples:
    """Return samples without addresses and a rule for bins.

    Heights are added as they are if `directional`. Threads take single samples, or four where they
    can if `vector`.
    """
    shape, strides, address, device = images
    lead = [0] * (4 - len(shape))
    item = ITEM_BYTES[variant.element]

    def aligned(values: tuple[int, ...], size: int, place: int) -> bool:
        four = min(4 * size, 16)
        return values[-1] == size and not any(value % four for value in (*values[:-1], place))

    sizes = (shape[0], *[1] * len(lead), *shape[1:])
    steps = [step // item for step in strides]
    hidden = (0,) * len(shape)
    vector = vector and sizes[3] % 4 == 0 and aligned(strides, item, address)
    if mask is not None:
        hidden = mask.strides
        vector = vector and aligned(mask.strides, 1, mask.address)
    threads = ceil_div(sizes[3], 16)
    if not vector:  # Lanes next to each other take samples next to each other.
        threads = max(threads, min(ceil_div(sizes[3], 4), 32))
    samples = SAMPLES(
        strides=[steps[0], *lead, *steps[1:]],
        mask_strides=[hidden[0], *lead, *hidden[1:]],
        **dict(zip(("images", "depth", "height", "width"), sizes, strict=True)),
        lanes=1 << min((threads - 1).bit_length(), THREADS.bit_length() - 1),
        scale=float(directional),
    )
    element = "Bool" if variant.element == "bool" else ELEMENTS[variant.element]
    options = {"VECTOR": int(vector), "DIRECTIONAL": int(directional), "BLOCKS": 4}
    return Samples(samples, variant.options() | {"ELEMENT": element, **options}, sizes, device)


@programs.plan
def _heights(direction: Direction, _device: int) -> Any:
    """Return the heights of slices, rows and columns, on the device; 0 along missing axes."""
    along = direction.terms
    missing = np.zeros(3 - len(along))
    return programs.upload(np.concatenate([missing, *along]))


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


NARROW_TYPES = ("bool", "uint8", "int8", "uint16", "int16")
POINTS = Struct("points.cuh", "Points")
WARPS = THREADS // 32
COLUMNS = 30  # Columns that a warp owns.
WIDE_ELEMENTS = [ELEMENTS[name] for name in ("float64", "int64", "uint64")]  # 64 bits
RESIDENT = {True: 3, False: 2}  # blocks that must fit on a multiprocessor
SLICES_A_WARP = (16, 128)  # The fewest slices of a warp, and the most.
MOST_ROWS_OF_LANE = 14  # The most rows of a lane in images of one slice.
FEW_ROWS_OF_LANE = 4
WAVES = 32  # blocks for each multiprocessor, if there are so many


def _rows_of_lane(samples: Samples, *, wide: bool) -> int:
    """Return how many rows of an image a lane reads: as many as registers allow, or a few.

    Small images take as long as one of their warps, so that a few rows are better.
    """
    images, depth, height, width = samples.shape
    if height == 1:
        return 1
    if depth > 1:
        return 4 if wide else 6
    warps = images * ceil_div(width, COLUMNS) * ceil_div(height, MOST_ROWS_OF_LANE)
    return FEW_ROWS_OF_LANE if warps < processors(samples.device) else MOST_ROWS_OF_LANE


def plan_points(samples: Samples, macros: dict[str, Any], rows: int = 0, bins: int = 0) -> Call:
    """Return the launch of the kernel of points.cu, without addresses and Bins.

    `rows` are the labels that a block counts in shared memory, `bins` those of each region.
    """
    images, depth, height, width = samples.shape
    flat = depth == 1
    wide = samples.options["ELEMENT"] in WIDE_ELEMENTS
    wide |= bool(samples.options["DIRECTIONAL"])
    lines = _rows_of_lane(samples, wide=wide)
    warps = images * ceil_div(width, COLUMNS) * ceil_div(height, lines)
    wanted = depth * warps // (WAVES * WARPS * processors(samples.device)) + 1
    steps = min(max(wanted, SLICES_A_WARP[0]), SLICES_A_WARP[1], depth)
    macros = samples.options | macros
    macros |= {"FLAT": int(flat), "ROWS": lines, "BLOCKS": RESIDENT[flat]}
    points = POINTS(label_strides=[height * width, width, 1], steps=steps, rows=rows)
    grid = (ceil_div(warps * ceil_div(depth, steps), WARPS),)
    shared = 16 * ceil_div(rows * bins, 4)
    given = samples.image, points, BINS()
    return plan_call("points", "points", macros, grid, THREADS, given, shared)
