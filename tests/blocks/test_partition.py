"""Partitions of arrays: what blocks cover, own and touch, by enumeration of all points."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecc_core._partition import Partition, block_count
from ecc_core._request.boundary import BORDERS, CLOSED, HALF_OPEN, PERIODIC

LENGTHS = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=3)


def parts_of(length):
    """Slices of an axis that are not empty."""
    ends = st.lists(st.integers(0, length), min_size=2, max_size=2, unique=True)
    return ends.map(lambda two: slice(*sorted(two)))


@given(LENGTHS, st.data())
def test_blocks_that_meet_a_box(lengths, data):
    """The blocks of its points: a block is where its number stands in an array of numbers."""
    partition = Partition.of_blocks(lengths)
    numbers = np.full(partition.shape, -1)
    for number, box in enumerate(partition.boxes()):
        assert (numbers[box] == -1).all()
        numbers[box] = number
        assert partition.box(partition.index(number)) == box
    assert set(numbers.ravel().tolist()) == set(range(partition.size))
    parts = [parts_of(n) for n in partition.shape]
    box = tuple(map(data.draw, parts))
    met = [partition.number(index) for index in partition.that_meet(box)]
    assert met == np.unique(numbers[box]).tolist()


@given(LENGTHS, st.data())
def test_neighbours_and_open_sides(lengths, data):
    """Those of blocks that are beside each other in an array of numbers, which is rolled."""
    words = data.draw(st.tuples(*[st.sampled_from(["closed", "periodic"])] * len(lengths)))
    partition = Partition.of_blocks(lengths, [BORDERS[word] for word in words])
    numbers = np.arange(partition.size).reshape(partition.counts)
    mode = [(1, 1)] * numbers.ndim
    framed = np.pad(numbers, mode, constant_values=-1)
    for axis, word in enumerate(words):
        if word == "periodic":
            ends = [0, -1]
            opposite = [-2, 1]
            frame = np.moveaxis(framed, axis, 0)
            frame[ends] = frame[opposite]
    for index in partition.indices():
        found = {offset: partition.number(other) for offset, other in partition.neighbours(index)}
        window = tuple(slice(i, i + 3) for i in index)
        around = framed[window]
        expected = {}
        for offset in itertools.product((-1, 0, 1), repeat=numbers.ndim):
            number = around[tuple(step + 1 for step in offset)]
            if any(offset) and number >= 0:
                expected[offset] = number
        assert found == expected
        sides = {(axis, 0) for axis, i in enumerate(index) if i > 0}
        sides |= {(axis, 1) for axis, i in enumerate(index) if i + 1 < partition.counts[axis]}
        assert set(partition.open_sides(index)) == sides


@given(LENGTHS)
def test_halves(lengths):
    """Halves have all blocks of a box once, down to single blocks."""
    partition = Partition.of_blocks(lengths)
    assert sorted(partition.in_halves(partition.whole)) == list(partition.indices())
    cut = partition.halves(partition.whole)
    if cut is None:
        assert partition.size == 1
        return
    axis, low, high = cut
    assert block_count(low) + block_count(high) == partition.size
    assert low[axis][1] == high[axis][0]
    assert partition.shape[axis] == max(
        length for length, count in zip(partition.shape, partition.counts, strict=True) if count > 1
    )


@pytest.mark.parametrize(
    ("border", "ends", "owners"),
    [
        (CLOSED, [slice(0, 3), slice(3, 5)], 2),
        (PERIODIC, [slice(0, 3), slice(3, 5), slice(0, 1)], 2),
        (HALF_OPEN, [slice(0, 3), slice(3, 4), slice(4, 5)], 2),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_block_behind_the_last_one(border, ends, owners):
    """The first point of a periodic image, the last point of a window."""
    partition = Partition.of_blocks([(7,), (3, 2)], [border]).with_ends()
    assert [partition.box((0, i))[1] for i in range(partition.counts[1])] == ends
    assert partition.owners == (1, owners)
    assert partition.shape == (7, 5)
    assert partition.lead == 1
    after = [partition.place((0, i)).after[0] for i in range(owners)]
    assert after == [True, border is not CLOSED]


def test_a_window_of_one_point_owns_nothing():
    partition = Partition.of_blocks([(2, 1), (1,)], [HALF_OPEN, HALF_OPEN])
    assert partition.owns_nothing
    assert partition.with_ends() == partition


@pytest.mark.parametrize(
    ("shape", "sizes", "edges"),
    [
        ((10, 3), (4, 5), ((0, 4, 8, 10), (0, 3))),
        ((0, 4), (2, 4), ((0,), (0, 4))),
    ],
)
def test_chunks_of_one_size(shape, sizes, edges):
    assert Partition.of_chunks(shape, sizes).edges == edges


def test_nearly_equal_blocks():
    """Ten points in blocks of about four are two blocks of five, not four, four and two."""
    assert Partition.evenly((10,), (4,)).lengths == ((5, 5),)
