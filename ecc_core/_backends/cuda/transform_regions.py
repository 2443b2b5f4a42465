"""Transforms of labelled regions on CUDA: a list of their corners, from which curves are counted.

Everything runs on the current device and stream.
"""

from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import address_of, on_device, on_host
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct
from ecc_core._backends.cuda.regions import Ranked, rank_labels, with_margin
from ecc_core._backends.cuda.transform_sampling import (
    DIRECTIONS,
    THREADS,
    accumulate,
    sample,
    split,
)
from ecc_core._orthants import coefficient_table
from ecc_core._request.filtration import uses_cubes

Floats = NDArray[np.float64]

SOURCE = "transform_regions"
LABELS, CORNERS, ROWS, MEASURES = (
    Struct(f"{SOURCE}.cu", name) for name in ("Labels", "RegionCorners", "RegionRows", "Measures")
)
CORNER_BYTES = 8 + 4 + 1  # The index of a window, a row and a pattern.
BOX_BYTES = 6 * 4
NUMBER_BYTES = 4
HEADER_WORDS = 3  # The counts of `_Found`.
REGIONS = 2  # The index of the number of regions among them.
MOST_ROWS = 4096  # Labels up to this one have a row each; images with larger ones are ranked.
FIRST_REGIONS = 64  # There is room for so many in the first image.
WINDOWS_A_CORNER = 8  # Of smooth images, one window in so many has a corner at most.
LEAST_CORNERS = 1 << 12


@programs.fact
def _tables(ndim: int, connectivity: int, _device: int) -> tuple[Any, Any]:
    """Return coefficients by (orthant, pattern), and the orthants where they are not zero."""
    table = np.zeros((8, 256), np.int8)
    known = coefficient_table(ndim, connectivity)
    table[:, : known.shape[1]] = known
    critical = np.packbits(table != 0, axis=0, bitorder="little")[0]
    return programs.upload(table), programs.upload(critical)


class _Room(NamedTuple):
    """How many corners and regions a search can write."""

    corners: int
    regions: int


class _Corners:
    """Memory of a list of corners."""

    def __init__(self, room: int) -> None:
        self._memory = cupy.cuda.alloc(CORNER_BYTES * room)
        windows = self._memory.ptr
        rows = windows + 8 * room
        patterns = rows + 4 * room
        self.struct = CORNERS(windows=windows, rows=rows, patterns=patterns, room=room)


class _Table:
    """Memory of the rows of labels, and of the regions that are found in them."""

    def __init__(self, rows: int, regions: int) -> None:
        self._regions = regions
        self._cleared = BOX_BYTES * rows + 8 * HEADER_WORDS
        written = (8 + BOX_BYTES) * regions
        self._memory = cupy.cuda.alloc(self._cleared + written + NUMBER_BYTES * rows)
        self.bounds: int = self._memory.ptr
        self.header = self.bounds + BOX_BYTES * rows
        self.labels = self.bounds + self._cleared
        self.boxes = self.labels + 8 * regions
        self.numbers = self.labels + written

    def clear(self, stream: int) -> None:
        """Clear what kernels expect to be 0."""
        cupy.cuda.runtime.memsetAsync(self.bounds, 0, self._cleared, stream)

    def read(self) -> tuple[list[int], NDArray[np.int32]]:
        """Wait for the header, and for the boxes (regions, axis, 2) for which there was room."""
        words = HEADER_WORDS + self._regions * (8 + BOX_BYTES) // 8
        header = self._memory + (self.header - self.bounds)
        found = on_host(cupy.ndarray((words,), np.int64, header))
        counts: list[int] = found[:HEADER_WORDS].tolist()
        boxes = found[HEADER_WORDS + self._regions :].view(np.int32).reshape(-1, 3, 2)
        return counts, boxes[: counts[REGIONS]]

    def labels_of(self, count: int) -> Any:
        """Return the labels of the first regions."""
        return cupy.ndarray((count,), np.int64, self._memory + (self.labels - self.bounds))


class _Found(NamedTuple):
    """What a search has found, of which it has written what there was room for."""

    counts: list[int]
    """The corners of the image, the largest label without a row or 0, and the regions."""
    boxes: NDArray[np.int32]
    """The lowest and the highest padded index of each region, (regions, axis, 2)."""
    corners: _Corners
    table: _Table


class _Search:
    """The launches that find the corners of label images of one layout, and the boxes of regions.

    How many there are is guessed from the last image. An image with more is searched again.
    """

    def __init__(
        self, shape: tuple[int, ...], label: np.dtype[Any], connectivity: int, device: int
    ) -> None:
        missing = 3 - len(shape)
        depth, height, width = (1,) * missing + shape
        deep = int(missing < 1)
        wide = int(missing < 2)
        self._image = LABELS(slices=depth, rows=height, columns=width, deep=deep, wide=wide)
        self.type = ELEMENTS[label.name]
        macros = {"LABEL": self.type}
        windows = (depth + deep) * (height + wide) * (width + 1)
        critical = _tables(len(shape), connectivity, device)[1]
        given = self._image, CORNERS(), ROWS(), critical, windows
        blocks = (ceil_div(windows, THREADS),)
        self._list = plan_call(SOURCE, "list_corners", macros, blocks, THREADS, given)
        self._number = plan_call(SOURCE, "number_regions", macros, (1,), THREADS, [0] * 8)
        self._room = _Room(max(LEAST_CORNERS, windows // WINDOWS_A_CORNER), FIRST_REGIONS)

    def run(self, labels: Any, ranked: Ranked | None = None) -> _Found:
        """Search labels up to MOST_ROWS, or those that are ranked. Waits for the device."""
        room = self._room
        found = self._search(labels, ranked, room)
        corners, _, regions = found.counts
        if corners > room.corners or regions > room.regions:
            room = _Room(*map(with_margin, (corners, regions)))
            found = self._search(labels, ranked, room)
            self._room = room
        return found

    def _search(self, labels: Any, ranked: Ranked | None, room: _Room) -> _Found:
        stream = cupy.cuda.get_current_stream().ptr
        ids = ranks = 0
        rows = most = MOST_ROWS
        if ranked is not None:
            ids, ranks = ranked.ids.data.ptr, ranked.ranks.data.ptr
            rows, most = ranked.ids.size, ranked.ranks.size - 1
        table = _Table(rows, room.regions)
        table.clear(stream)
        corners = _Corners(room.corners)
        of_rows = ranks, most, table.bounds, table.header
        self._list.launch_with(((labels.data.ptr,), corners.struct.tolist(), of_rows), stream)
        count = table.header + 8 * REGIONS
        given = table.bounds, rows, ids, room.regions, table.numbers, count
        written = table.labels, table.boxes
        self._number.launch(zip(self._number.places, (*given, *written), strict=True), stream)
        return _Found(*table.read(), corners, table)

    def image(self, labels: Any) -> Any:
        """Return the kernels' Labels of an image of this layout."""
        found = self._image.copy()
        found[LABELS.word("data")] = labels.data.ptr
        return found


@programs.plan
def _search_of(
    shape: tuple[int, ...], label: np.dtype[Any], connectivity: int, device: int
) -> _Search:
    return _Search(shape, label, connectivity, device)


class Regions(NamedTuple):
    """The corners and the bounding boxes of labelled regions."""

    labels: Any
    """Labels of the regions (k,), increasing, on the device."""
    radii: Floats
    """Half the diagonal of each bounding box of closed pixels."""
    image: Any
    """Contiguous labels, as kernels read them."""
    search: _Search
    found: _Found
    spacing: Floats
    connectivity: int


def find_regions(labels: Any, spacing: Floats, connectivity: int) -> Regions:
    """Find the corners of all regions of an int32 or int64 label image. Waits for the device.

    ValueError if a label is negative.
    """
    image = cupy.ascontiguousarray(labels)
    device = cupy.cuda.runtime.getDevice()
    search = _search_of(labels.shape, image.dtype, connectivity, device)
    found = search.run(image)
    _, largest, _ = found.counts
    if largest:
        ranked = rank_labels(image)
        image = ranked.labels
        search = _search_of(labels.shape, image.dtype, connectivity, device)
        found = search.run(image, ranked._replace(ids=ranked.ids.astype(np.int64, copy=False)))
    box = found.boxes[:, 3 - labels.ndim :].astype(np.int64)
    return Regions(
        labels=found.table.labels_of(len(box)),
        radii=np.linalg.norm((box[..., 1] - box[..., 0] + 1) * spacing / 2, axis=1),
        image=image,
        search=search,
        found=found,
        spacing=spacing,
        connectivity=connectivity,
    )


def region_transforms(
    regions: Regions,
    directions: Floats,
    heights: Floats,
    scales: Floats | None,
    workers: int | None = None,
) -> Any:
    """Return the transforms (regions, directions, heights), int64.

    The levels of a region are the heights times its scale.
    """
    count = regions.labels.size
    values = cupy.zeros((count, len(directions), heights.size), np.int64)
    if values.size == 0:
        return values
    factors = np.ones(count) if scales is None else scales
    reach = float((3 * regions.radii / factors).max())
    sampling = sample(directions.tobytes(), directions.shape[1], heights.tobytes(), reach)
    jobs = split(sampling.starts, DIRECTIONS)
    _memory, samples = sampling.upload(jobs)
    spacing = regions.spacing
    table = _tables(spacing.size, regions.connectivity, cupy.cuda.runtime.getDevice())[0]
    units = None if scales is None else on_device(scales)
    search, found = regions.search, regions.found
    measures = MEASURES(
        boxes=found.table.boxes,
        scales=address_of(units),
        regions=count,
        coefficients=table.data.ptr,
        spacing=[*[0.0] * (3 - spacing.size), *spacing.tolist()],
        cubes=uses_cubes(regions.connectivity),
    )
    corners = found.corners.struct
    listed = min(found.counts[0], int(corners[CORNERS.word("room")]))
    image = search.image(regions.image)
    given = image, corners, found.table.numbers, listed, measures, samples, values
    grid = ceil_div(listed, THREADS), len(jobs)
    macros = {"LABEL": search.type}
    plan_call(SOURCE, "count_regions", macros, grid, THREADS, given).launch()
    accumulate(values, values.size // heights.size, heights.size).launch()
    return values
