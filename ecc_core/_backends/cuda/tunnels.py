"""Persistence of tunnels on a device: the classes of dimension 1 of a volume.

Rows and columns of the boundary matrix are the edges that close loops of both forests
(`Forests.loops`). Each column is traced along the paths of the discrete gradient by a thread, and
all columns are reduced at once. The few that need more memory than a thread has are traced again
with more, and reduced on the host.
"""

from typing import Any, NamedTuple, Self

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import on_device, on_host
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.classes import lasting_classes
from ecc_core._backends.cuda.forests import BLOCKS, COLUMNS, SLICES, Forests
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct
from ecc_core.errors import BackendError

COLUMNS_OF_MATRIX = Struct("columns.cuh", "Columns")
LINKS = 1 << 18
"""Sets of the neighbours that share squares with a point, `kLinks` in tunnels.cu."""
SPAN_BITS = 24
"""Bits of the length of a column, `kSpanBits` in columns.cuh."""
END_BITS = 3
WORD_BITS = 64
# The threads of a block, the same for all kernels, so that those of a file are compiled once.
THREADS = 128
MOST_BLOCKS = 4096  # The most blocks that trace columns.
WARP = 32
BUSY_LANES = 1 << 18  # So many lanes keep a device busy.
HEAP = 64  # The entries of a heap in local memory.
MERGED = 256  # The rows of a sum of columns in local memory.
ROWS_A_COLUMN = 12  # There is room at first for so many rows of each column, sums included.
# The words of a thread whose column does not fit in local memory, and their factor each time that
# these do not suffice.
LARGE_ROOM = 1 << 12
LARGER = 16
OWN_MEMORY = 1 << 31  # The bytes of all threads or blocks together.
LATE_BLOCKS = 528  # The most blocks that reduce late columns.
MOST_MORE = 1 << 24  # Late columns have room for so many rows besides.


def tunnel_pairs(forests: Forests) -> tuple[Any, Any]:
    """Return the points at which tunnels of a volume are born and die, or -1: int64.

    They are those of `lasting_classes`. The forests are those of the sets and of the complement.
    """
    narrow = [kind.connectivity for kind in forests.kinds].index(1)
    complement = forests.kinds[narrow].complement
    matrix = _Matrix(forests, complement, forests.loops(narrow), forests.loops(1 - narrow))
    births, deaths, rows_left, columns_left = matrix.reduced()
    left = rows_left
    if complement:
        births, deaths = deaths, births
        left = columns_left
    births = cupy.concatenate([births, left])
    deaths = cupy.concatenate([deaths, cupy.full(left.size, -1, np.int64)])
    return lasting_classes(forests.codes, forests.levels, births, deaths)


class _Listed(NamedTuple):
    """The memory of the rows of all columns, see the kernel's Columns."""

    spans: Any
    rows: Any
    taken: Any
    late: Any

    @classmethod
    def of(cls, columns: int, room: int) -> Self:
        rows = cupy.empty(room, np.int32)
        late = cupy.empty(columns, np.int32)
        return cls(cupy.zeros(columns, np.uint64), rows, cupy.zeros(2, np.uint64), late)

    def counts(self) -> tuple[int, int]:
        """Return the number of rows, and that of late columns, which is reset."""
        rows, late = map(int, on_host(self.taken))
        self.taken[:] = on_device(np.array([min(rows, self.rows.size), 0], np.uint64))
        return rows, late

    def with_late(self, count: int, more: int) -> tuple[Any, Self]:
        """Return the columns that are late, and memory for others, with room for more rows."""
        rows = self.rows
        if more:
            rows = cupy.empty(rows.size + more, np.int32)
            rows[: self.rows.size] = self.rows
        late = cupy.empty(count, np.int32)
        return cupy.sort(self.late[:count]), self._replace(rows=rows, late=late)


class _Room(NamedTuple):
    """Memory of threads, and how many blocks there are."""

    memory: Any
    words: int
    blocks: int

    @classmethod
    def of(cls, columns: int, words: int) -> Self:
        """Return room for a kernel that takes so many columns."""
        spread = _spread(columns)
        own = 8 * words * THREADS // spread
        blocks = max(1, min(ceil_div(columns * spread, THREADS), OWN_MEMORY // own))
        return cls(cupy.empty((blocks * THREADS // spread, words), np.uint64), words, blocks)


def _spread(columns: int) -> int:
    """Return how many lanes there are for each column that is traced, a power of two."""
    spread = WARP
    while spread > 1 and columns * spread > BUSY_LANES:
        spread //= 2
    return spread


class _Matrix:
    """Rows, those that enter last first, and columns in the order in which they enter.

    Orders are those of the narrow forest, and those of edges in the other one are opposite.
    """

    def __init__(self, forests: Forests, complement: bool, rows: Any, columns: Any) -> None:
        self.rows = cupy.ascontiguousarray(rows[::-1])
        self.columns = cupy.ascontiguousarray(columns[::-1])
        codes = forests.codes
        self._place_bits = (codes.size - 1).bit_length()
        if END_BITS + self._place_bits + forests.levels.bit_length() > WORD_BITS:
            raise BackendError(
                f"`image` of shape {codes.shape} has too many voxels for tunnels on a device: "
                "compute boxes of it, or copy the array to the host"
            )
        self._size = codes.size
        self._volume = forests.volume(1)
        self._macros = {
            "CODE": ELEMENTS[codes.dtype.name],
            "PLANAR": 0,
            "REVERSE": 0,
            "COMPLEMENT": int(complement),
            "TORUS": forests.macros["TORUS"],
            "HEAP": HEAP,
        }
        self._grown = self._grow(forests.shape, codes.device.id)
        self._first_rows = cupy.empty(codes.size, np.int32)
        if len(self.rows):
            blocks = ceil_div(len(self.rows), THREADS)
            arguments = self.rows, np.int32(len(self.rows)), self._grown, self._first_rows
            self._run("mark_rows", blocks, arguments)

    def reduced(self) -> tuple[Any, Any, Any, Any]:
        """Return the places of paired rows and columns, if these differ, and of those left alone.

        On a torus, three rows and three columns are left without a partner.
        """
        owners = cupy.full(len(self.rows), -1, np.int32)
        if len(self.columns):
            owners = self._reduced(self._traced(), owners)
        paired = cupy.flatnonzero(owners >= 0)
        births = self.rows[paired, 0]
        deaths = self.columns[owners[paired], 0]
        lives = cupy.flatnonzero(births != deaths)
        rows_left = self.rows[cupy.flatnonzero(owners < 0), 0]
        alone = cupy.ones(len(self.columns), np.bool_)
        alone[owners[paired]] = False
        columns_left = self.columns[cupy.flatnonzero(alone), 0]
        found = births[lives], deaths[lives], rows_left, columns_left
        a, b, c, d = (places.astype(np.int64) for places in found)
        return a, b, c, d

    def _run(self, name: str, blocks: int, arguments: Any) -> None:
        plan_call(
            "tunnels",
            name,
            macros=self._macros,
            grid=(blocks,),
            threads=THREADS,
            arguments=arguments,
        ).launch()

    def _reduce(self, name: str, blocks: int, arguments: Any) -> None:
        macros = {"MERGED": MERGED}
        plan_call(
            "reduction", name, macros=macros, grid=(blocks,), threads=THREADS, arguments=arguments
        ).launch()

    def _grow(self, shape: tuple[int, int, int], device: int) -> Any:
        """Return the forest of the lower link of each point."""
        depth, height, width = shape
        tiles = ceil_div(width, COLUMNS) * ceil_div(height, THREADS // COLUMNS)
        slices = max(1, min(SLICES, depth * tiles // BLOCKS))
        trees = _trees(device, tuple(self._macros.items()))
        grown = cupy.empty(self._size, np.uint32)
        arguments = self._volume, trees, grown, np.int32(slices)
        self._run("grow_trees", tiles * ceil_div(depth, slices), arguments)
        return grown

    def _given(
        self, chosen: Any, count: int, listed: _Listed, room: _Room | None = None
    ) -> NDArray[Any]:
        """Return the kernel's Columns; all of them in their order if none are chosen."""
        return COLUMNS_OF_MATRIX(
            edges=self.columns.data.ptr,
            chosen=0 if chosen is None else chosen.data.ptr,
            count=count,
            spans=listed.spans.data.ptr,
            rows=listed.rows.data.ptr,
            room=listed.rows.size,
            taken=listed.taken.data.ptr,
            late=listed.late.data.ptr,
            memory=0 if room is None else room.memory.data.ptr,
            own_room=0 if room is None else room.words,
        )

    def _traced(self) -> _Listed:
        """List the rows of all columns."""
        columns = len(self.columns)
        near = cupy.argsort(self.columns[:, 0]).astype(np.int32)
        room = ROWS_A_COLUMN * columns
        while True:
            listed = _Listed.of(columns, room)
            rows = self._trace(near, listed)
            if rows <= room:
                return listed
            room = rows + ROWS_A_COLUMN * columns

    def _trace(self, chosen: Any, listed: _Listed) -> int:
        """List the rows of columns, first in local memory, then with more and more of it."""
        room = None
        count = chosen.size
        words = LARGE_ROOM
        while True:
            given = self._given(chosen, count, listed, room)
            rows = self.rows, np.int32(len(self.rows)), self._first_rows
            spread = _spread(count)
            numbers = np.int32(self._place_bits), np.int32(spread)
            arguments = self._volume, self._grown, *rows, given, *numbers
            if room is None:
                blocks = min(ceil_div(count * spread, THREADS), MOST_BLOCKS)
            else:
                blocks = room.blocks
            self._run("trace_columns", blocks, arguments)
            found, count = listed.counts()
            if not count or found > listed.rows.size:
                return found
            chosen, listed = listed.with_late(count, 0)
            room = _Room.of(count, words)
            words = words * LARGER

    def _reduced(self, listed: _Listed, owners: Any) -> Any:
        """Return the owners of all rows.

        A thread reduces a column in local memory, or a block if that is not enough, and the host if
        there is no room for the rows of all blocks.
        """
        count = len(self.columns)
        blocks = ceil_div(count, THREADS)
        given = self._given(None, count, listed), owners
        self._reduce("reduce_columns", blocks, given)
        _, count = listed.counts()
        if not count:
            return owners
        chosen, listed = listed.with_late(count, listed.rows.size // 2 + MOST_MORE)
        words = len(self.rows) // WORD_BITS + 1
        blocks = max(1, min(count, LATE_BLOCKS, OWN_MEMORY // (8 * words)))
        room = _Room(cupy.zeros((blocks, words), np.uint64), words, blocks)
        given = self._given(chosen, count, listed, room), owners
        self._reduce("reduce_late", blocks, given)
        _, count = listed.counts()
        if not count:
            return owners
        return self._finished(listed, owners, listed.with_late(count, 0)[0])

    def _finished(self, listed: _Listed, owners: Any, late: Any) -> Any:
        """Reduce late columns on the host; return the owners of all rows."""
        from ecc_core._backends.cpu.betti import tunnels  # Importing it loads the compiler.

        packed = listed.spans.get()
        rows, _ = listed.counts()
        begins = (packed >> np.uint64(SPAN_BITS)).astype(np.int64)
        counts = (packed & np.uint64((1 << SPAN_BITS) - 1)).astype(np.int64)
        spans = np.stack([begins, begins + counts], axis=1)
        found = owners.get()
        tunnels.reduce_listed(late.get().astype(np.int64), listed.rows[:rows].get(), spans, found)
        return cupy.asarray(found)


@programs.plan
def _trees(_device: int, macros: tuple[tuple[str, Any], ...]) -> Any:
    """Return the forest of each link on the current device."""
    trees = cupy.empty(LINKS, np.uint32)
    arguments = (LINKS // THREADS,), THREADS, (trees,)
    plan_call("tunnels", "list_trees", dict(macros), *arguments).launch()
    return programs.lasting(trees)
