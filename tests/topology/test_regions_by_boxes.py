"""Regions of an image that is read by boxes are those of the image in memory, for any boxes."""

import time
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import pytest
from filtrations import omitting
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import ndimage

import ecc_core as ecc
from ecc_core._backends.cpu.betti import flood_boxes, pair_pieces
from ecc_core._backends.cpu.betti.mark_runs import lengths_of, read_runs, runs_of
from ecc_core._backends.pair_options import PairOptions
from ecc_core._blocks import pair_boxes, region_boxes
from ecc_core._blocks.box_grid import BoxGrid, shell_of
from ecc_core._blocks.marked_boxes import MarkedBoxes
from ecc_core._blocks.pair_boxes import PairTree
from ecc_core._blocks.region_boxes import KeptLabels, RegionBoxes
from ecc_core._blocks.shells import Shells
from ecc_core._partition import Partition
from ecc_core._request.filtration import filtration_of
from ecc_core.testing import strategies


class Held:
    """What is kept of boxes, in memory."""

    def __init__(self) -> None:
        self.arrays: dict[tuple[str, int], Any] = {}

    def load(self, kind: str, number: int) -> Any:
        return self.arrays.get((kind, number))

    def keep(self, kind: str, number: int, values: Any) -> None:
        self.arrays[kind, number] = values

    def drop(self, kind: str) -> None:
        self.arrays = {key: array for key, array in self.arrays.items() if key[0] != kind}


def tree_of(image, chunks, least, mask=None, workers=1, **options):
    """The tree of an image in memory, which is read by boxes."""
    words = {"connectivity": None, "superlevel": False, "nan": "raise", "boundary": "closed"}
    words |= options
    *points, boundary = words.values()
    filtration = filtration_of(image.ndim, *points, None, boundary)
    lengths = [tuple(filter(None, along)) for along in chunks]
    partition = Partition.of_blocks(lengths, filtration.boundary.axes)
    grid = BoxGrid(partition, flood_boxes.MARGIN)
    dtype = image.dtype.newbyteorder("=")
    pairs = PairOptions(dtype, filtration, 0, mask is not None, 0, short=True)
    shown = None if mask is None else np.broadcast_to(mask, image.shape)

    def read(box):
        return image[box], None if shown is None else shown[box]

    return PairTree(grid, read, pairs, least, Held(), workers)


def assert_alike(image, chunks, least, *, cut=None, up_to=None, held=2, workers=1, **options):
    known = ecc.persistent_regions(image, least, rel_height=cut, threshold=up_to, **options)
    tree = tree_of(image, chunks, least, workers=workers, **options)
    boxes = RegionBoxes(tree, up_to, cut, held)
    found = boxes.regions(boxes.found(len_of), len_of)
    whole = tuple(slice(0, n) for n in image.shape)
    assert_array_equal(KeptLabels(tree, found.births.size)[whole], known.labels)
    assert_array_equal(found.births, known.births)
    assert_array_equal(found.death_places < 0, known.essential)
    assert_array_equal(found.deaths[~known.essential], known.deaths[~known.essential])
    points = np.stack(np.unravel_index(found.birth_places, image.shape), axis=1)
    assert_array_equal(points, known.birth_points)
    assert_array_equal(found.merged_into, known.merged_into)
    counts = np.bincount(known.labels.ravel(), minlength=found.births.size + 1)
    assert_array_equal(found.points, counts[1:])
    return tree


def len_of(count: int) -> int:
    """Take the place of a progress bar."""
    return count


@settings(max_examples=15)
@given(st.data())
def test_any_boxes_masks_and_boundaries(data):
    image = data.draw(
        strategies.images(data.draw(st.integers(1, 3)), dtypes=("uint8", "float32"), nan=True)
    )
    options = data.draw(omitting(image))
    words = st.sampled_from(["closed", "periodic"])
    options["boundary"] = tuple(data.draw(words) for _ in range(image.ndim))
    least = data.draw(st.sampled_from([0, 1, 3, 50]))
    cut = data.draw(st.sampled_from([None, None, 0, 0.5, 1]))
    up_to = data.draw(st.sampled_from([None, None, -1, 3, 100.5, 255]))
    chunks = data.draw(strategies.chunkings(image.shape))
    held = data.draw(st.integers(1, 4))
    assert_alike(image, chunks, least, cut=cut, up_to=up_to, held=held, **options)


@pytest.mark.sweep
@pytest.mark.parametrize("boundary", ["closed", "periodic"])
@pytest.mark.parametrize("cut", [None, 0.5])
def test_groups_of_boxes_and_threads(boundary, cut, monkeypatch):
    """With few levels, the places of points decide which component is older."""
    monkeypatch.setattr(pair_boxes, "MOST_BOXES_OF_GROUP", 3)
    rng = np.random.default_rng(7)
    image = rng.integers(0, 6, (13, 14, 15), np.uint8)
    mask = rng.random(image.shape) < 0.7  # The points in it are in several components.
    chunks = ((5, 4, 4), (7, 7), (4, 4, 7))
    options = {"cut": cut, "workers": 2, "boundary": boundary, "connectivity": 1, "mask": mask}
    assert_alike(image, chunks, 2, **options)


def test_cut_of_parts_that_are_not_connected():
    """The last value of what an old region is connected with lies in a younger one."""
    image = np.array([0, 3, 1, 9, 0, 0, 5], np.uint8)
    mask = np.array([1, 1, 1, 1, 0, 1, 1], bool)
    tree = assert_alike(image, ((2, 2, 2, 1),), 2, cut=0.5, mask=mask)
    assert KeptLabels(tree, 9)[(slice(0, 7),)].tolist() == [1, 1, 3, 0, 0, 2, 0]


def test_cut_of_the_oldest_region_of_positive_superlevels():
    """All values are negative in the order of entry, including the last one."""
    noise = np.random.default_rng(3).random((12, 13)).astype(np.float32)
    assert_alike(noise + 2, ((5, 7), (6, 7)), 0.5, cut=0.5, superlevel=True)


def test_cut_in_boxes_of_many_words():
    """Points that enter after a region is cut are put aside by words of 64 points, all of them."""
    noise = np.random.default_rng(11).random((96, 200))
    image = (255 * ndimage.gaussian_filter(noise, 1)).astype(np.uint8)
    assert_alike(image, ((48, 48), (150, 50)), 6, cut=0.5)


@pytest.mark.parametrize("kinds", [("marks", "marks-shell"), ("marks",)])
def test_what_was_kept_is_used_again(kinds):
    """Labels may have spread only in part, or the run may have ended between marks and shell."""
    image = np.random.default_rng(8).integers(0, 50, (24, 25), np.uint8)
    chunks = ((6,) * 4, (5,) * 5)
    tree = assert_alike(image, chunks, 20)
    arrays = tree.kept.arrays
    whole = slice(0, 24), slice(0, 25)
    known = KeptLabels(tree, 99)[whole]
    again = tree_of(image, chunks, 20)
    for key in [
        ("group", 0),
        *((kind, i) for kind in ("short", "keys", "ends") for i in range(20)),
    ]:
        again.kept.arrays[key] = arrays[key]
    for i in range(1, 20, 4):
        for kind in kinds:
            again.kept.arrays[kind, i] = arrays[kind, i]

    def read(box):
        reads.append(box)
        return image[box], None

    reads: list[Any] = []
    again = PairTree(again.grid, read, again.options, 20, again.kept, 1)
    boxes = RegionBoxes(again, most_held=20)
    found = boxes.found(len_of)
    assert not reads
    boxes.regions(found, len_of)
    assert_array_equal(KeptLabels(again, 99)[whole], known)


class Interleaved(MarkedBoxes):
    """While labels spread in a box, they spread in its first neighbour that waits, too."""

    def _entries(self, number, held, changed):
        entries = super()._entries(number, held, changed)
        waiting = [other for _, other in self.grid.neighbours(number) if other in self.waiting]
        if waiting and number % 2:
            other = waiting[0]
            self.waiting_in_memory.pop(other, None)
            looked_at = self._visit(other, self.held.pop(other, None), self._taken(other))
            for one in looked_at:
                self._wait(one, other)
                if one in self.held:
                    self.waiting_in_memory[one] = None
        return entries

    def _taken(self, number):
        return self.waiting.pop(number).changed


@pytest.mark.parametrize("seed", [14, 15, 16])
def test_neighbours_that_spread_at_the_same_time(seed, monkeypatch):
    """Marks that a neighbour has found in the meantime are taken when they spread, not before."""
    monkeypatch.setattr(region_boxes, "MarkedBoxes", Interleaved)
    noise = np.random.default_rng(seed).standard_normal((40, 40))
    image = np.clip(128 + 200 * ndimage.gaussian_filter(noise, 1.5), 0, 255).astype(np.uint8)
    assert_alike(image, ((8,) * 5, (8,) * 5), 20, held=25)


class Meanwhile(MarkedBoxes):
    """While the next box is looked for, a thread puts another one in memory."""

    def _nearest(self, running):
        neighbours_of = BoxGrid.neighbours
        absent = self.grid.size

        def neighbours(grid, number):
            self.held[absent] = None
            return neighbours_of(grid, number)

        with mock.patch.object(BoxGrid, "neighbours", neighbours):
            found = super()._nearest(running)
        self.held.pop(absent, None)
        return found


def test_boxes_come_into_memory_while_the_next_one_is_looked_for(monkeypatch):
    monkeypatch.setattr(region_boxes, "MarkedBoxes", Meanwhile)
    image = np.random.default_rng(3).integers(0, 200, (13, 14), np.uint8)
    assert_alike(image, ((5, 4, 4), (7, 7)), 20, held=4)


class OneThreadABox(MarkedBoxes):
    """Threads take long after they have put a box in memory, and never look at the same one."""

    looked_at: ClassVar[set[int]] = set()

    def _visit(self, number, held, changed):
        assert number not in self.looked_at
        self.looked_at.add(number)
        found = super()._visit(number, held, changed)
        self.looked_at.remove(number)
        return found

    def _note_ends(self, number, found):
        time.sleep(0.002)
        return super()._note_ends(number, found)


def test_no_two_threads_look_at_a_box(monkeypatch):
    monkeypatch.setattr(region_boxes, "MarkedBoxes", OneThreadABox)
    image = np.random.default_rng(3).integers(0, 200, (24, 24), np.uint8)
    assert_alike(image, ((4,) * 6, (4,) * 6), 20, held=30, workers=4)


def test_marks_are_found_while_they_are_kept():
    """Those of a box that leaves the memory, by a thread that looks at its neighbour."""
    found = []

    class LookedUp(Held):
        def keep(self, kind, number, values):
            found.append(shells.marks_beside(0, offset))
            super().keep(kind, number, values)

    grid = tree_of(np.zeros((8, 5), np.uint8), ((4, 4), (5,)), 1).grid
    ((offset, _),) = grid.neighbours(1)
    shells = Shells(grid, LookedUp(), "marks")
    own = shell_of(np.arange(20, dtype=np.int32).reshape(4, 5))
    shells.set(0, own)
    shells.keep(0)
    assert_array_equal(found, [grid.from_shell(own, 0, offset)])


class SharedByThreads(dict[int, Any]):
    """Runs of which another thread removes the first ones just after they were listed."""

    def __iter__(self):
        listed = list(self.keys())
        for number in listed[:1]:
            del self[number]
        return iter(listed)


def test_labels_are_read_by_threads():
    """Tasks of dask read chunks at the same time, as these threads do."""
    image = np.random.default_rng(8).integers(0, 50, (24, 25), np.uint8)
    tree = assert_alike(image, ((6,) * 4, (5,) * 5), 20)
    known = KeptLabels(tree, 99)[slice(0, 24), slice(0, 25)]
    labels = KeptLabels(tree, 99, SharedByThreads())
    boxes = list(tree.grid.partition.boxes())
    np.testing.assert_equal([labels[box] for box in boxes], [known[box] for box in boxes])


def test_pieces_of_pairs_are_packed():
    image = np.random.default_rng(9).integers(0, 50, (9, 8), np.uint8)
    options = tree_of(image, ((9,), (8,)), 0).options
    piece = pair_pieces.piece_of(image[:5, :4], options, (0, 0), image.shape)
    found = pair_pieces.unpack_piece(pair_pieces.pack_piece(piece))
    assert found.box == piece.box
    assert found.faces.keys() == piece.faces.keys()
    np.testing.assert_equal(list(found.pairs), list(piece.pairs))
    assert [own.dtype for own in found.pairs] == [other.dtype for other in piece.pairs]
    np.testing.assert_equal(list(found.graph[:-1]), list(piece.graph[:-1]))


@given(st.data())
def test_runs(data):
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    values = np.random.default_rng(0).integers(0, 3, shape).astype(np.int32)
    runs = runs_of(values)
    assert_array_equal(read_runs(runs, shape), values)
    firsts = [data.draw(st.integers(0, n - 1)) for n in shape]
    box = tuple(map(slice, firsts, shape))
    assert_array_equal(read_runs(runs, shape, box), values[box])
    found, lengths = lengths_of(runs, shape)
    assert_array_equal(np.repeat(found, lengths), values.ravel())


@pytest.mark.parametrize("shape", [(3, 63), (3, 64), (2, 65), (2, 128), (300,)])
@pytest.mark.parametrize("most", [1, 2, 40])
def test_runs_in_rows_of_several_words(shape, most):
    """Rows have equal points, short runs, or runs of single points."""
    values = np.random.default_rng(1).integers(0, most, shape).astype(np.int32)
    runs = runs_of(values)
    assert_array_equal(read_runs(runs, shape), values)
    found, lengths = lengths_of(runs, shape)
    assert_array_equal(np.repeat(found, lengths), values.ravel())
    rows = values.reshape(-1, shape[-1])
    changes = np.count_nonzero(np.diff(rows, axis=1))
    assert found.size == len(rows) + changes


def test_labels_must_fit_in_their_dtype(monkeypatch):
    monkeypatch.setattr(flood_boxes, "MOST_LABELS", 3)
    image = np.random.default_rng(1).integers(0, 50, (9, 9), np.uint8)
    boxes = RegionBoxes(tree_of(image, ((9,), (9,)), 0))
    with pytest.raises(ValueError, match=r"must leave at most 3 components.*int32, got"):
        boxes.found(len_of)
