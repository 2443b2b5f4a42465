"""Persistence pairs of dask arrays: a task makes the piece of each chunk, and a tree joins them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import indices_of
from ecc_core._backends import betti_numbers
from ecc_core._backends.pair_options import PairOptions
from ecc_core._backends.protocols import HostBettiNumbers, PairPieces, TunnelPieces
from ecc_core._dask.arguments import single_image
from ecc_core._dask.graph import Graph, Task, add_halves, da, dask, graphs
from ecc_core._partition import Index, Partition
from ecc_core._request.masks import as_booleans
from ecc_core._request.options import ImageOptions
from ecc_core._request.persistence import check_dimension
from ecc_core.results import PersistencePairs, curve_facts

Array = NDArray[Any]

VOLUME = 3
"""The number of spatial axes of an image that has tunnels."""


@dataclass(frozen=True)
class PairBoxes:
    """The functions that the tasks of an image call."""

    options: PairOptions
    whole: tuple[int, ...]
    """The shape of the image."""

    @property
    def tunnels(self) -> bool:
        """Whether the pairs are those of tunnels, whose pieces need a halo around each chunk."""
        return self.options.dimension == 1 and len(self.whole) == VOLUME

    def functions(self, backend: HostBettiNumbers) -> PairPieces | TunnelPieces:
        """Return the functions of a backend, or raise BackendError."""
        return backend.tunnel_pieces if self.tunnels else backend.pair_pieces

    def piece(
        self, chunk: Array, mask: Array | None, start: tuple[int, ...], stop: tuple[int, ...]
    ) -> Any:
        """Return the piece of a chunk."""
        values = as_booleans(chunk) if chunk.dtype.kind == "b" else chunk
        backend = origin_of(chunk).betti_numbers()
        place = (start, stop, self.whole) if self.tunnels else (start, self.whole)
        piece_of: Any = self.functions(backend).piece_of
        return piece_of(values, self.options, *place, mask=mask, workers=1)

    @property
    def _joining(self) -> PairPieces | TunnelPieces:
        """The functions of the host's backend, because pieces are in host memory."""
        return self.functions(betti_numbers("cpu"))

    def joined(self, low: Any, high: Any, axis: int) -> Any:
        """Return the piece of two boxes that touch across an axis."""
        return self._joining.join_pieces(low, high, axis, self.options)

    def arrays(self, piece: Any) -> tuple[Array, ...]:
        """Return the births, the deaths and their points from the piece of the whole image."""
        pairs = self._joining.pairs_of(piece, self.options)
        births = indices_of(pairs.birth_places, self.whole)
        deaths = indices_of(pairs.death_places, self.whole)
        return pairs.births, pairs.deaths, births, deaths


def whole_pairs(
    image: Any, dimension: Any, options: ImageOptions, least: float
) -> PersistencePairs[Any]:
    """Return the result of :func:`ecc_core.persistence_pairs` for a dask array."""
    request, values, mask = single_image(image, options)
    filtration = request.filtration
    known = list(range(filtration.ndim))
    numbers = str(known[-1])
    if len(known) > 1:
        others = ", ".join(map(str, known[:-1]))
        numbers = f"{others} or {numbers}"
    wanted = f"{numbers} for a {filtration.ndim}-D dask array"
    asked = check_dimension(dimension, known, wanted)
    dtype = values.dtype.newbyteorder("=")
    boxes = PairBoxes(
        PairOptions(
            dtype=dtype,
            filtration=filtration,
            dimension=asked,
            masked=mask is not None,
            least=least,
        ),
        values.shape,
    )
    facts = curve_facts(filtration) | {"dimension": asked}
    return PersistencePairs(*pair_arrays(boxes, values, mask), **facts)


def pair_arrays(boxes: PairBoxes, image: Any, mask: Any | None) -> list[Any]:
    """Return births, deaths and their points as dask arrays of unknown length."""
    dtype = boxes.options.dtype
    ndim = len(boxes.whole)
    values = np.empty(0, dtype)
    points = np.empty((0, ndim), np.int64)
    metas = [values, values, points, points]
    if image.size == 0:
        return [da.from_array(meta) for meta in metas]
    boxes.functions(origin_of(image._meta).betti_numbers())
    given = dask.delayed(boxes, traverse=False, pure=True)
    name = "ecc-pairs-" + dask.base.tokenize(image, mask, given.key)
    blocks = Partition.of_blocks(image.chunks)
    if boxes.tunnels:
        wraps = boxes.options.filtration.boundary.wraps
        image = _with_neighbours(image, wraps)
        mask = None if mask is None else _with_neighbours(mask, wraps)

    def of_block(place: Index) -> Task:
        chunk = (image.name, *place)
        shown = None if mask is None else (mask.name, *place)
        box = blocks.box(place)
        start = tuple(part.start for part in box)
        stop = tuple(part.stop for part in box)
        return PairBoxes.piece, given.key, chunk, shown, start, stop

    def of_halves(first: Task, second: Task, axis: int) -> Task:
        return PairBoxes.joined, given.key, first, second, axis

    tasks: Graph = {}
    whole = add_halves(tasks, (f"{name}-box",), blocks, of_block=of_block, of_halves=of_halves)
    tasks[name] = (PairBoxes.arrays, given.key, whole)
    inputs = [one for one in (image, mask, given) if one is not None]
    layers = graphs.HighLevelGraph.from_collections(name, tasks, dependencies=inputs)
    arrays = Delayed(name, layers, length=len(metas))
    pairs = zip(arrays, metas, strict=True)
    return [da.from_delayed(array, (np.nan, ndim)[: meta.ndim], meta=meta) for array, meta in pairs]


def _with_neighbours(image: Any, wraps: tuple[bool, ...]) -> Any:
    """Return an image whose chunks have a halo of one point."""
    ends = {axis: "periodic" if touch else "none" for axis, touch in enumerate(wraps)}
    return da.overlap.overlap(image, depth=1, boundary=ends, allow_rechunk=False)
