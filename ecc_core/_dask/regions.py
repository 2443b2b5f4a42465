"""Regions of the lasting components of dask arrays.

Labels spread from chunk to chunk until none changes. The number of steps is not known before, so
they cannot be a graph. A single task computes the labels: it computes the chunks of the image one
after another, as `ecc objects` reads the boxes of a file, and holds the labels as runs. Other tasks
take the labels of their chunks from it.
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import indices_of
from ecc_core._backends import betti_numbers
from ecc_core._backends.pair_options import PairOptions
from ecc_core._blocks.box_grid import BoxGrid
from ecc_core._blocks.marked_boxes import held_bytes
from ecc_core._blocks.pair_boxes import PairTree, Read
from ecc_core._blocks.region_boxes import MARKS, KeptLabels, RegionBoxes
from ecc_core._dask.arguments import single_image
from ecc_core._dask.graph import Graph, da, dask, graphs
from ecc_core._dask.pairs import PairBoxes
from ecc_core._partition import Partition
from ecc_core._request.masks import as_booleans
from ecc_core._request.options import ImageOptions
from ecc_core._request.resources import available_cores
from ecc_core.results import PersistentRegions, curve_facts

Array = NDArray[Any]

MOST_HELD_BYTES = 1 << 29
"""The most memory for chunks that are held while labels spread, if one for each thread fits."""
COMPRESSION_LEVEL = 1
"""zlib's fastest level."""
OF_RESUMED_RUNS = "group"
"""The kind of arrays that only an interrupted computation needs, which does not exist here."""


class Packed(NamedTuple):
    """A compressed array. Runs of labels are repetitive, so compression saves much memory."""

    words: bytes
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, values: Array) -> Self:
        words = zlib.compress(values.tobytes(), COMPRESSION_LEVEL)
        return cls(words, values.dtype, values.shape)

    def array(self) -> Array:
        words = bytearray(zlib.decompress(self.words))  # The array must be writable.
        return np.frombuffer(words, self.dtype).reshape(self.shape)


class HeldArrays:
    """A store of arrays in memory, by kind and number: a `Kept` of ``pair_boxes``."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[str, int], Packed] = {}

    def load(self, kind: str, number: int) -> Array | None:
        found = self._arrays.get((kind, number))
        return None if found is None else found.array()

    def keep(self, kind: str, number: int, values: Array) -> None:
        if kind != OF_RESUMED_RUNS:
            self._arrays[kind, number] = Packed.of(values)

    def drop(self, kind: str) -> None:
        for key in [key for key in self._arrays if key[0] == kind]:
            del self._arrays[key]

    def drop_all_but(self, kind: str) -> None:
        self._arrays = {key: array for key, array in self._arrays.items() if key[0] == kind}


class Labelled(NamedTuple):
    """The regions of an image and its labels."""

    births: Array
    deaths: Array
    birth_points: NDArray[np.int64]
    merged_into: NDArray[np.int32]
    labels: KeptLabels


@dataclass(frozen=True)
class LazyRegions:
    """The arguments of the task that finds the regions of an image."""

    image: Any
    """A dask array without batch axes."""
    mask: Any
    """A dask array with the chunks of the image, or None."""
    options: PairOptions
    least: float
    threshold: float | None
    rel_height: float | None

    def read(self, scheduler: Any, box: tuple[slice, ...]) -> tuple[Array, Array | None]:
        """Compute the values of a box, and its mask or None."""
        parts = [self.image[box]] if self.mask is None else [self.image[box], self.mask[box]]
        values, *shown = dask.compute(*parts, scheduler=scheduler)
        values = as_booleans(values) if values.dtype.kind == "b" else values
        return values, as_booleans(shown[0]) if shown else None

    def found(self) -> Labelled:
        """Return the regions of the image."""
        with _scheduler([self.image, self.mask]) as scheduler:
            return self._found(partial(self.read, scheduler))

    def _found(self, read: Read) -> Labelled:
        margin = betti_numbers("cpu").flood_boxes.MARGIN
        borders = self.options.filtration.boundary.axes
        grid = BoxGrid(Partition.of_blocks(self.image.chunks, borders), margin)
        kept = HeldArrays()
        threads = min(dask.config.get("num_workers", None) or available_cores(), grid.size)
        tree = PairTree(
            grid=grid,
            read=read,
            options=self.options,
            least=self.least,
            kept=kept,
            workers=threads,
        )
        most = max(map(math.prod, map(grid.window_of, range(grid.size))))
        held = held_bytes(self.options.dtype, self.options.filtration.boundary.wraps)
        room = MOST_HELD_BYTES // (most * held)
        boxes = RegionBoxes(tree, self.threshold, self.rel_height, max(room, threads))
        found = boxes.regions(boxes.found(_no_step), _no_step)
        kept.drop_all_but(MARKS)
        points = indices_of(found.birth_places, grid.shape)
        alone = PairTree(
            grid=grid,
            read=_nothing,
            options=self.options,
            least=self.least,
            kept=kept,
            workers=threads,
        )
        labels = KeptLabels(alone, found.births.size)
        return Labelled(
            births=found.births,
            deaths=found.deaths,
            birth_points=points,
            merged_into=found.merged_into,
            labels=labels,
        )


@contextmanager
def _scheduler(arrays: Sequence[Any]) -> Iterator[Any]:
    """Return the scheduler with which a task computes parts of arrays.

    This is the task's own thread. If chunks are held by workers of distributed, it is a client of
    their cluster; while the task waits for them, it occupies no thread of its worker.
    """
    distributed = sys.modules.get("distributed")
    if distributed is None or not any(map(distributed.futures_of, arrays)):
        yield "synchronous"
        return
    with distributed.worker_client() as client:
        yield client


def _no_step(count: int) -> None:
    """Report no progress."""


def _nothing(_box: tuple[slice, ...]) -> tuple[Array, Array | None]:
    raise AssertionError("labels are read without the image")


def _label_chunk(labelled: Labelled, box: list[slice]) -> NDArray[np.int32]:
    return labelled.labels[tuple(box)]


def whole_persistent_regions(
    image: Any,
    least: float,
    threshold: float | None,
    rel_height: float | None,
    options: ImageOptions,
) -> PersistentRegions[Any]:
    """Return the result of :func:`ecc_core.persistent_regions` for a dask array."""
    request, values, mask = single_image(image, options)
    filtration = request.filtration
    dtype = values.dtype.newbyteorder("=")
    pairs = PairOptions(
        dtype=dtype,
        filtration=filtration,
        dimension=0,
        masked=mask is not None,
        least=0,
        short=True,
    )
    own = LazyRegions(
        image=values,
        mask=mask,
        options=pairs,
        least=least,
        threshold=threshold,
        rel_height=rel_height,
    )
    labels, *others = _tasks(own)
    facts = {"min_persistence": least, "rel_height": rel_height, **curve_facts(filtration)}
    return PersistentRegions(request.geometry.unstack(labels), *others, **facts)


def _tasks(own: LazyRegions) -> list[Any]:
    """Return the labels in the chunks of the image, and the other arrays of a result.

    These have unknown lengths.
    """
    image = own.image
    values = np.empty(0, own.options.dtype)
    points = np.empty((0, image.ndim), np.int64)
    metas = [values, values, points, np.empty(0, np.int32)]
    if image.size == 0:
        none = da.zeros(image.shape, dtype=np.int32, chunks=image.chunks)
        return [none, *map(da.from_array, metas)]
    backend = origin_of(image._meta).betti_numbers()
    PairBoxes(own.options, image.shape).functions(backend)  # This raises for CuPy arrays.
    token = dask.base.tokenize(own)
    given = dask.delayed(own, name=f"ecc-lazy-regions-{token}", traverse=False)
    find = dask.delayed(LazyRegions.found, nout=len(Labelled._fields), traverse=False)
    found = find(given, dask_key_name=f"ecc-regions-{token}")
    name = f"ecc-region-labels-{token}"
    tasks: Graph = {}
    blocks = Partition.of_blocks(image.chunks)
    for place in blocks.indices():
        tasks[name, *place] = (_label_chunk, found.key, list(blocks.box(place)))
    layers = graphs.HighLevelGraph.from_collections(name, tasks, dependencies=[found])
    labels = da.Array(layers, name, image.chunks, meta=np.empty((0,) * image.ndim, np.int32))
    parts = zip(list(found)[: len(metas)], metas, strict=True)
    others = [da.from_delayed(part, (np.nan, *meta.shape[1:]), meta=meta) for part, meta in parts]
    return [labels, *others]
