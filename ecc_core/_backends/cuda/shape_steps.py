"""Soft transforms of batches of simplicial complexes: the passes for shapes of any size.

All points weigh 1, and are in the order of their shapes. Memory is allocated by torch.
"""

from typing import NamedTuple

import torch

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs, soft
from ecc_core._backends.cuda.arrays import element_of
from ecc_core._backends.cuda.calls import Call, Reply, plan_call, take_reply
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct, function, processors, shared_limit
from ecc_core._backends.cuda.passes import NONE, Named, Pass

SHAPES = Struct("soft_shapes.cu", "SoftShapes")
PARAMETERS = Struct("soft_shapes.cu", "ShapeParameters")
THREADS = 256
FINISHING_THREADS = 1024
WARPS = THREADS // 32
DOUBLE_BYTES = 8
POINTS_A_CHUNK = 256
MOST_CHUNKS = 64
MOST_SIZES = 8  # The most sizes of simplices that kernels take.
MOST_COLUMNS = 2048  # The most sums of a row, of which each warp of a block has one.
MOST_AXES = 32  # Each axis is a lane of a warp.
MOST_DIRECTIONS = FINISHING_THREADS  # The last launch has a number for each in shared memory.

NUMBERS = "directions", "scale", "levels", "step", "sharpness"
"""The names of the numbers of `cuda_simplicial.Numbers`; the step is 0 if levels are given."""
KEPT = "heights", "coefficients", "vectors", "own_levels", "own_sharpness"
FOUND = "by_points", "by_directions", "by_scale", "by_levels", "by_sharpness"


class Kind(NamedTuple):
    """Transforms of shapes, whatever the numbers of shapes and points."""

    axes: int
    directions: int
    levels: int
    sizes: tuple[int, ...]
    """The numbers of points of simplices, of one dimension after another."""
    is_increasing: bool
    """Whether levels are given by free numbers and a step."""
    is_logarithm: bool
    """Whether scale and sharpness are given by their logarithms."""

    @property
    def columns(self) -> int:
        """The number of sums of a backward pass, as in the kernels."""
        return 2 * self.levels + self.directions * self.axes

    @property
    def shared_bytes(self) -> int:
        """The shared memory of a block of the backward pass."""
        return DOUBLE_BYTES * WARPS * self.columns

    def fits(self, device: int) -> bool:
        """Whether there are kernels for a device."""
        if self.axes > MOST_AXES or len(self.sizes) > MOST_SIZES:
            return False
        if self.directions > MOST_DIRECTIONS or self.columns > MOST_COLUMNS:
            return False
        if self.shared_bytes > shared_limit(device):
            return False
        return min(self.axes, self.directions, self.levels) > 0


class Shapes(NamedTuple):
    """Addresses and sizes of a batch of shapes."""

    points: int
    batch: int
    rows: tuple[int, ...]
    """Addresses of the simplices of each size."""
    counts: tuple[int, ...]
    """The number of simplices of each size."""
    length: int
    """The number of points."""
    shapes: int


class ShapeSteps:
    """The passes of transforms of a kind, by floats of a dtype."""

    def __init__(self, kind: Kind, dtype: torch.dtype, device: int) -> None:
        self.kind = kind
        self._item = dtype.itemsize
        self._device = device
        blocks = self._blocks = 2 * processors(device)
        macros = {"REAL": ELEMENTS[element_of(dtype)]}
        struct = SHAPES(
            sizes=[*kind.sizes, *[0] * (MOST_SIZES - len(kind.sizes))],
            kinds=len(kind.sizes),
            axes=kind.axes,
            directions=kind.directions,
            levels_count=kind.levels,
        )
        parameters = PARAMETERS(is_logarithm=kind.is_logarithm)

        def plan(name: str, grid: tuple[int, ...], *arguments: object, shared: int = 0) -> Call:
            given = struct, *arguments
            return plan_call("soft_shapes", name, macros, grid, THREADS, given, shared)

        groups = ceil_div(kind.directions, 32)
        self._begin = plan("begin_shapes", (blocks,), parameters, *[0] * 4)
        self._enter = plan("enter_simplices", (blocks,), 0)
        self._sum = plan("sum_shapes", (blocks, groups), *[0] * 5)
        add = blocks, *[0] * 4
        self._add = plan_call("soft_simplices", "add_chunks", macros, add[:1], THREADS, add[1:])
        shared = kind.shared_bytes
        self._differentiate = plan("differentiate_shapes", (blocks,), *[0] * 3, shared=shared)
        finish = function("soft_shapes", "finish_shapes", device, {**macros, "THREADS": THREADS})
        shared = DOUBLE_BYTES * (kind.columns + FINISHING_THREADS)
        given = struct, parameters, *[0] * 6
        self._finish = Call(finish, (1,), FINISHING_THREADS, shared, given)
        self._passes = {several: self._plan_forward(several) for several in (False, True)}
        self._backward: dict[tuple[bool, ...], Pass] = {}

    def chunks(self, shapes: Shapes) -> int:
        """Return the chunks of the points of a shape, of which each has its own sums."""
        chunks = ceil_div(shapes.length, shapes.shapes * POINTS_A_CHUNK)
        return min(max(chunks, 1), MOST_CHUNKS)

    def kept(self, length: int) -> int:
        """Return how many numbers of so many points the forward pass keeps."""
        kind = self.kind
        return 2 * length * kind.directions + kind.directions * kind.axes + kind.levels + 1

    @property
    def work(self) -> int:
        """The float64 numbers that the backward pass needs: a row of sums for each block."""
        return self._blocks * self.kind.columns

    def forward(
        self,
        stream: int,
        shapes: Shapes,
        numbers: tuple[int, ...],
        kept: int,
        sums: int,
        curves: int,
    ) -> Reply:
        """Write curves (shapes, k, n) and what is kept, with addresses of NUMBERS.

        `sums` is the address of float64 numbers (chunks, shapes, k, n), if there are several
        chunks. The reply has one word, which is not 0 if arguments must not be taken; then nothing
        else is valid.
        """
        reply = take_reply(self._device)
        chunks = self.chunks(shapes)
        size = shapes.shapes * self.kind.directions * self.kind.levels
        told = reply.memory.data.ptr, reply.address
        values = *self._values(shapes, numbers, kept), sums, curves, chunks, size, *told
        self._passes[chunks > 1].launch(values, stream)
        return reply

    def backward(
        self,
        stream: int,
        shapes: Shapes,
        numbers: tuple[int, ...],
        kept: int,
        upstream: int,
        work: int,
        found: tuple[int, ...],
    ) -> None:
        """Write the gradients of FOUND, by those of contiguous curves, to their addresses, or 0."""
        wanted = tuple(map(bool, found))
        launches = self._backward.get(wanted) or self._plan_backward(wanted)
        values = *self._values(shapes, numbers, kept), upstream, work, self._blocks, *found
        launches.launch(values, stream)

    def _values(self, shapes: Shapes, numbers: tuple[int, ...], kept: int) -> tuple[int, ...]:
        """Return the values of the names that both passes have."""
        kind = self.kind
        points, batch, rows, counts, length, number = shapes
        table = self._item * length * kind.directions
        vectors = kept + 2 * table
        levels = vectors + self._item * kind.directions * kind.axes
        own = kept, kept + table, vectors, levels, levels + self._item * kind.levels
        return *numbers, points, batch, *rows, *counts, length, number, *own

    @property
    def _names(self) -> tuple[str, ...]:
        """The names of `_values`."""
        places = range(len(self.kind.sizes))
        rows = (f"rows{place}" for place in places)
        counts = (f"counts{place}" for place in places)
        return *NUMBERS, "points", "batch", *rows, *counts, "count", "shapes", *KEPT

    def _plan_forward(self, has_chunks: bool) -> Pass:
        begin = self._named(self._begin, "vectors own_levels own_sharpness state", has_numbers=True)
        enter = self._named(self._enter, "state")
        sums = self._named(self._sum, "state reply sums curves chunks")
        launches = [begin, enter, sums]
        if has_chunks:
            words = ["sums", "size", "chunks", "curves"]
            launches.append(Named(self._add, dict(zip(self._add.places, words, strict=True))))
        names = *self._names, "sums", "curves", "chunks", "size", "state", "reply"
        return Pass(names, launches)

    def _plan_backward(self, wanted: tuple[bool, ...]) -> Pass:
        names = (name if is_wanted else NONE for name, is_wanted in zip(FOUND, wanted, strict=True))
        points, directions, scale, levels, sharpness = names
        launches = [self._named(self._differentiate, f"upstream {points} work")]
        if any(wanted[1:]):
            words = f"work {levels} {sharpness} {directions} {scale} blocks"
            launches.append(self._named(self._finish, words, has_numbers=True))
        given = *self._names, "upstream", "work", "blocks", *FOUND
        made = self._backward[wanted] = Pass(given, launches)
        return made

    def _named(self, call: Call, arguments: str, has_numbers: bool = False) -> Named:
        """Name the words of shapes, of numbers if the kernel takes them, and the arguments."""
        kind = self.kind
        words = {
            SHAPES.word(name): name
            for name in ("points", "vectors", "batch", "count", "shapes", "heights", "coefficients")
        }
        words[SHAPES.word("levels")] = "own_levels" if kind.is_increasing else "levels"
        words[SHAPES.word("sharpness")] = "own_sharpness"
        for field in ("rows", "counts"):
            first = SHAPES.word(field)
            words |= {first + i: f"{field}{i}" for i in range(len(kind.sizes))}
        places = iter(call.places[1:])
        if has_numbers:
            start = next(places)
            for name in ("directions", "scale", "step", "sharpness"):
                words[start + PARAMETERS.word(name)] = name
            numbers = "levels" if kind.is_increasing else NONE
            words[start + PARAMETERS.word("numbers")] = numbers
        words |= dict(zip(places, arguments.split(), strict=True))
        return Named(call, words)


@programs.plan
def plan_shapes(kind: Kind, dtype: torch.dtype, device: int) -> ShapeSteps | None:
    """Return the passes of a kind, or None if it does not fit."""
    if not kind.fits(device):
        return None
    with soft.planning(device):
        return ShapeSteps(kind, dtype, device)
