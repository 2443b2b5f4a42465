"""Forests over the basins of an image on a device.

They are those of the CPU backend (docs/design/betti.md). Every point that is not a minimum follows
a neighbour before it in the order of the filtration. Only points whose lower link has several
components can join basins. The edges at these points are added to a forest in any order, by all
threads at once.
"""

from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.components import Kind
from ecc_core._backends.cuda.arrays import address_of
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct
from ecc_core.errors import BackendError

VOLUME = Struct("betti.cu", "Volume")
FOREST = Struct("betti.cu", "Forest")
ORDERED = Struct("classes.cu", "Ordered")
ROOT = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
THREADS = 256
COLUMNS = 32
MOST_BINS = 2048  # Blocks count up to so many bins in shared memory.
SLICES = 64  # The most slices of a block.
BLOCKS = 2048  # So many blocks keep a device busy.
EDGES_A_THREAD = 16  # The most edges of a thread, as in betti.cu.
RANKS = 64  # Keys have so many ranks, as in betti.cu.
PASSES = 8  # More edges than FEW_EDGES are added in so many passes, by rank.
FEW_EDGES = 1 << 22
MOST_POINTS = 1 << 31
MOST_WITH_TURNS = 1 << 29  # With more nodes, links have no bits for the sides that they cross.
TURNS = 8  # Classes of loops by the sides that they cross: one bit for each axis.
NO_LOOP = (1 << 32) - 1
EDGES_A_POINT = 0.375  # There is room for so many edges at first; noise has fewer.
NO_CODES = {"CODE": ELEMENTS["uint8"], "PLANAR": 0, "REVERSE": 0, "TORUS": 0}
"""Macros of kernels that read a forest, but no codes of points."""


class Tree(NamedTuple):
    """A forest whose edges are added one by one."""

    minima: Any
    """Places of the minima in the order in which they enter."""
    edges: Any
    """The kernel's edges in the order in which they enter."""
    joined: Any
    """The kernel's forest: for each minimum the edge at which its component ends in the upper half,
    and an older minimum in the lower half."""
    of_minima: Any
    """The kernel's entries of minima, in increasing order."""
    of_edges: Any
    """The kernel's entries of edges, in increasing order."""

    @property
    def links(self) -> Any:
        """The edge at which the component of each minimum ends; the number of edges for none."""
        return cupy.minimum((self.joined >> np.uint64(32)).astype(np.int64), len(self.edges))


class Forests:
    """The basins and edges of a contiguous image of codes, for forests of some kinds.

    Points that never enter have the key `levels`. If `reverse`, keys are `levels` minus the codes.
    If `paired`, there are :meth:`pairs`, of codes that are keys; otherwise :meth:`histograms`.

    With `torus` the last point along each axis of more than one point touches the first, and the
    components of the complement have no frame.
    """

    def __init__(
        self,
        codes: Any,
        kinds: list[Kind],
        levels: int,
        *,
        reverse: bool,
        paired: bool = False,
        torus: bool = False,
    ) -> None:
        if codes.size >= MOST_POINTS:
            raise BackendError(
                f"`image` must have fewer than 2**31 points on a device, got shape {codes.shape}"
            )
        *lead, width = codes.shape
        depth, height = lead if len(lead) == 2 else (*lead, *(1,) * (2 - len(lead)))
        self.codes = codes
        self.kinds = kinds
        self.levels = levels
        self.shape = depth, height, width
        few = levels < MOST_BINS and not paired
        self.macros = {
            "CODE": ELEMENTS[codes.dtype.name],
            "PLANAR": int(codes.ndim < 3),
            "WIDE": int((kinds[0].connectivity > 1) != kinds[0].complement),
            "REVERSE": int(reverse),
            "COUNTS": int(few),
            "PAIRS": int(paired),
            "TORUS": int(torus),
        }
        self.loop_keys = cupy.full((len(kinds), TURNS if torus else 0), NO_LOOP, np.uint32)
        self.shared = few * 8 * (levels + 1)
        self.counted = cupy.zeros((len(kinds), 0 if paired else levels + 1), np.int64)
        self.labels = cupy.empty((len(kinds), codes.size), np.int32)
        self.edges, self.found = self._follow()
        self._trees: dict[int, Tree] = {}

    def histograms(self) -> Any:
        """Return minima less edges, by the key at which they enter: (kinds, levels + 1) int64.

        Components of the sets are the sum up to a key, those of their complements the sum beyond.
        """
        volume = self.volume(self.levels + 1)
        for i, kind in enumerate(self.kinds):
            nodes = int(self.found[i, 0])
            joined = cupy.full(nodes, ROOT)
            forest = self._forest(i, self.edges[i])
            self._join(i, forest, volume, joined)
            blocks = min(max(1, ceil_div(nodes, THREADS)), BLOCKS)
            arguments = volume, forest, np.uint32(nodes), joined
            self._run("count_edges", [kind], blocks, arguments)
        return self.counted

    def pairs(self, index: int) -> tuple[Any, Any]:
        """Return the points at which classes of a kind are born and die, or -1: int64.

        A class that is a component of the complement is born where this component ends and dies
        where it begins. The frame, which never ends, is left out.
        """
        first = int(self.kinds[index].complement)
        tree = self.tree(index)
        ends = cupy.concatenate([tree.edges[:, 0], cupy.full(1, -1, np.int32)])
        found = tree.minima, ends[tree.links].astype(np.int64)
        return found[::-1] if first else found

    def loops(self, index: int) -> Any:
        """Return the edges that close loops when they enter, in this order, as the kernel's."""
        tree = self.tree(index)
        closes = cupy.ones(len(tree.edges) + 1, np.bool_)
        closes[tree.links] = False
        return tree.edges[cupy.flatnonzero(closes[:-1])]

    def lasting_pairs(self, index: int) -> tuple[Any, Any]:
        """Return the pairs whose points have different keys, by birth, and of one birth by death.

        Points of the last key never enter: no class is born at them, and none dies.
        """
        tree = self.tree(index)
        complement = self.kinds[index].complement
        nodes = len(tree.minima)
        listed = len(tree.edges)
        forest = self._ordered(tree)
        marked = cupy.zeros(listed if complement else nodes, np.int32)
        if nodes:
            self._run_ordered("mark_classes", index, nodes, forest, marked)
        places = cupy.flatnonzero(marked)
        births = cupy.empty(places.size, np.int64)
        deaths = cupy.empty_like(births)
        if places.size:
            given = forest, marked, places, np.uint32(places.size), births, deaths
            self._run_ordered("list_classes", index, places.size, *given)
        return births, deaths

    def tree(self, index: int) -> Tree:
        """Return the forest of a kind, if they are `paired`."""
        known = self._trees.get(index)
        if known is not None:
            return known
        first = int(self.kinds[index].complement)
        labels = self.labels[index]
        basins, listed = self.found[index].tolist()
        nodes = basins - first
        raw = self.edges[index]
        of_minima = cupy.empty(nodes, np.uint64)
        of_edges = cupy.empty(listed, np.uint64)
        points = self.codes.size
        firsts = cupy.empty(points, np.uint32)
        where = self.codes, labels, np.int64(points), raw, np.uint32(listed)
        entries = of_minima, of_edges, firsts
        self._run_ordered("list_entries", index, max(points, listed), *where, *entries)
        of_minima.sort()
        of_edges.sort()
        minima = cupy.empty(nodes, np.int64)
        edges = cupy.empty((listed, 2), np.int32)
        joined = cupy.empty(basins, np.uint64)
        ranks = cupy.empty(listed, np.uint32)
        ages = cupy.empty(basins, np.uint32)
        tree = Tree(minima, edges, joined[first:], of_minima, of_edges)
        given = self._ordered(tree), raw, firsts, labels, minima, edges, joined, ranks, ages
        self._run_ordered("number_entries", index, max(basins, listed), *given)
        forest = self._forest(index, raw, ranks=ranks, ages=ages)
        self._join(index, forest, self.volume(listed), joined)
        # Until here, nodes have the numbers of basins, which are similar for neighbours.
        numbered = cupy.empty_like(joined)
        blocks = max(1, ceil_div(nodes, THREADS))
        found = forest, minima, np.uint32(nodes), joined, numbered
        self._run("number_nodes", [self.kinds[index]], blocks, found)
        return self._trees.setdefault(index, tree._replace(joined=numbered[first:]))

    def _ordered(self, tree: Tree) -> NDArray[Any]:
        """Return the kernels' Ordered."""
        return ORDERED(
            of_minima=tree.of_minima.data.ptr,
            joined=tree.joined.data.ptr,
            of_edges=tree.of_edges.data.ptr,
            nodes=len(tree.of_minima),
            listed=len(tree.of_edges),
            never=self.levels,
        )

    def _run_ordered(self, name: str, index: int, threads: int, *given: Any) -> None:
        """Run a kernel on the order in which nodes and edges of a kind enter."""
        complement = int(self.kinds[index].complement)
        macros = {"CODE": self.macros["CODE"], "COMPLEMENT": complement}
        blocks = ceil_div(threads, THREADS)
        plan_call(
            "classes", name, macros=macros, grid=(blocks,), threads=THREADS, arguments=given
        ).launch()

    def _join(self, index: int, forest: NDArray[Any], volume: NDArray[Any], joined: Any) -> None:
        """Add all edges to a forest, which has none.

        Many edges are added in several passes, by rank, between which paths to roots are shortened.
        """
        kind = self.kinds[index]
        nodes, listed = self.found[index].tolist()
        if not listed:
            return
        passes, each = (PASSES, EDGES_A_THREAD) if listed > FEW_EDGES else (1, 1)
        ends = range(RANKS // passes, RANKS + 1, RANKS // passes)
        edges = np.uint32(listed), joined
        given = volume, forest, *edges, np.int32(0), np.int32(0), np.int32(each)
        add = self._plan(
            "join_basins",
            [kind],
            ceil_div(listed, THREADS * each),
            (*given, self.loop_keys[index]),
        )
        reached = volume, np.uint32(nodes), joined, np.int32(0)
        shorten = self._plan("flatten", [kind], ceil_div(nodes, THREADS), reached)
        begin = 0
        for end in ends:
            add.launch([(add.places[4], begin), (add.places[5], end)])
            if end < RANKS:
                shorten.launch([(shorten.places[3], end)])
            begin = end

    def closed_loops(self, index: int) -> list[int]:
        """Return the keys at which loops of classes that do not depend on others are closed.

        They are those of components of the complement on a torus, in their own order, when all
        edges have been added: the numbers of edges if the forests are `paired`. Classes are modulo
        2.
        """
        keys: list[int] = self.loop_keys[index].get().tolist()
        spanned = {0}
        found = []
        for turn in sorted(range(1, TURNS), key=keys.__getitem__):
            if turn not in spanned and keys[turn] != NO_LOOP:
                spanned |= {turn ^ other for other in spanned}
                found.append(keys[turn])
        return found

    def volume(self, keys: int) -> NDArray[Any]:
        """Return the kernel's Volume, with ranks of so many keys."""
        return VOLUME(
            codes=self.codes.data.ptr,
            **dict(zip(("depth", "height", "width"), self.shape, strict=True)),
            top=self.levels,
            scale=RANKS / max(keys, 1),
        )

    def _forest(
        self, index: int, edges: Any, counts: Any = None, ranks: Any = None, ages: Any = None
    ) -> NDArray[Any]:
        """Return the kernel's Forest of a kind."""
        return FOREST(
            labels=self.labels[index].data.ptr,
            edges=edges.data.ptr,
            histogram=self.counted[index].data.ptr,
            counts=0 if counts is None else counts[index].data.ptr,
            room=len(edges),
            ranks=address_of(ranks),
            ages=address_of(ages),
        )

    def _run(self, name: str, kinds: list[Kind], blocks: int, arguments: tuple[Any, ...]) -> None:
        self._plan(name, kinds, blocks, arguments).launch()

    def _plan(self, name: str, kinds: list[Kind], blocks: int, arguments: tuple[Any, ...]) -> Call:
        """Return the launch of a kernel that is compiled for some kinds."""
        complements = {kind.complement for kind in kinds}
        asked = {"SETS": int(False in complements), "OUTSIDE": int(True in complements)}
        return plan_call(
            "betti",
            name,
            macros=self.macros | asked,
            grid=(blocks,),
            threads=THREADS,
            arguments=arguments,
            shared=self.shared,
        )

    def _follow(self) -> tuple[Any, NDArray[np.uint32]]:
        """Label all points. Return the edges, and on the host the numbers of basins and edges."""
        depth, height, width = self.shape
        columns = THREADS if self.macros["PLANAR"] else COLUMNS
        tiles = ceil_div(width, columns) * ceil_div(height, THREADS // columns)
        slices = max(1, min(SLICES, depth * tiles // BLOCKS))
        room = int(EDGES_A_POINT * self.codes.size) + 1
        complements = [kind.complement for kind in self.kinds]
        while True:
            edges = cupy.empty((len(self.kinds), room, 2), np.int32)
            counts = cupy.asarray(np.array(complements, np.uint64)[:, None])
            self.counted.fill(0)
            forests = [self._forest(i, edges[i], counts) for i in range(len(self.kinds))]
            where = dict(zip(complements, forests, strict=True))
            pair = [where.get(key, forests[0]) for key in (False, True)]
            arguments = self.volume(self.levels + 1), *pair, np.int32(slices)
            self._run("follow_neighbours", self.kinds, tiles * ceil_div(depth, slices), arguments)
            found = counts.get().view(np.uint32)
            nodes = int(found[complements, 0].max(initial=0))
            if self.macros["TORUS"] and nodes >= MOST_WITH_TURNS:
                raise BackendError(
                    f"`image` must have fewer than 2**29 points that enter after all of their "
                    f"neighbours if it is periodic and on a device, got {nodes}"
                )
            most = int(found[:, 1].max())
            if most <= room:
                return edges, found
            room = most
