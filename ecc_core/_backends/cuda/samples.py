"""Images with any strides, as kernels read them sample by sample."""

import math
from typing import Any, NamedTuple, Self

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import ArrayView, Placement, is_alike
from ecc_core._backends.cuda.bins import Prepared
from ecc_core._backends.cuda.calls import Call, plan_call
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
PIECE_OF_ROW = 1 << 14
"""The samples of a piece of a row, `kPiece` in samples.cuh."""


class Images(NamedTuple):
    """Images (batch, *spatial), and how their samples are compared with thresholds."""

    view: ArrayView
    mask: Any
    """An array that broadcasts to the images, or None."""
    direction: Direction | None
    """The direction of what is added to the images, whose keys are then float64."""
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

    image: NDArray[Any]
    """The kernels' Samples."""
    options: dict[str, Any]
    shape: tuple[int, ...]  # (images, depth, height, width); 1 for the axes of absent dimensions
    device: int
    memory: Any = None
    """Memory that must live until the kernel is launched."""

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
