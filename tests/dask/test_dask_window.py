"""Sums over the blocks of an image, in a window that moves over it: right, and bounded."""

import math
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from dask_helpers import noise
from hypothesis import given
from hypothesis import strategies as st

import ecc_core as ecc
from ecc_core._blocks import window
from ecc_core._blocks.window import sums_of_groups
from ecc_core._blocks.work import Group, Work
from ecc_core._request.boundary import COUNTS, boundary_of
from ecc_core._request.filtration import Filtration
from ecc_core.quantities.euler import CurveValues
from ecc_core.testing import strategies

LEVELS = np.arange(6)


def sums_of(
    work: Work, groups: list[Group], missing: list[int], workers: int = 1
) -> dict[int, Any]:
    """The sums of groups of blocks."""
    announced: list[int] = []
    numbers = (announced.append(number) or number for number in missing)
    sums: dict[int, Any] = {}
    for number, values in sums_of_groups(work, groups, numbers, workers=workers):
        assert number in announced
        assert number not in sums
        sums[number] = values
    assert announced == missing
    return sums


@given(st.data())
def test_any_blocks_groups_and_windows(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    lead = data.draw(st.integers(0, len(shape) - 1))
    image = noise(*shape)
    drawn = data.draw(strategies.chunkings(shape))
    chunks = tuple(tuple(filter(None, lengths)) for lengths in drawn)
    ndim = len(shape) - lead
    connectivity = data.draw(st.sampled_from([1, ndim]))
    words = st.sampled_from(COUNTS.names)
    boundary = data.draw(words | st.tuples(*[words] * ndim))
    filtration = Filtration(ndim, connectivity, boundary=boundary_of(boundary, ndim))
    curve = CurveValues(LEVELS, filtration)
    work = Work(lambda box: (image[box],), chunks, curve)
    size = data.draw(st.integers(1, 5))
    side = data.draw(st.integers(1, 3))
    cut = data.draw(st.integers(0, work.blocks))  # Another part begins here.
    blocks: list[tuple[int, ...]] = []
    total = np.zeros((*shape[:lead], LEVELS.size), np.int64)
    for span in ((0, cut), (cut, work.blocks)):
        groups = work.groups(size, side=side, span=span)
        blocks += [block for group in groups for block in group.blocks()]
        first = [n for n in range(len(groups)) if data.draw(st.booleans())]
        with pytest.MonkeyPatch.context() as patch:
            for name in ("AHEAD_A_THREAD", "MOST_SHARES_A_THREAD"):
                patch.setattr(window, name, data.draw(st.integers(0, 8)))
            sums = sums_of(work, groups, first)
            others = [n for n in range(len(groups)) if n not in first]
            sums |= sums_of(work, groups, others)
        for number, values in sums.items():
            total[work.partition.box(groups[number].images)] += values
    assert len(set(blocks)) == len(blocks) == work.blocks
    if filtration.boundary.is_closed:
        assert len(blocks) == math.prod(map(len, chunks))
    axis = tuple(range(lead, len(shape)))
    options = {"connectivity": connectivity, "boundary": boundary, "axis": axis}
    expected = ecc.euler_curve(image, LEVELS, **options).values
    np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("across", [6, 18])
def test_what_is_alive_does_not_grow_with_the_image(monkeypatch, across, workers):
    """Four times as long, or three times as wide: a layer of a column waits, and little more."""
    lock = threading.Lock()
    process = Work.process
    alive = most = 0

    def gone() -> None:
        nonlocal alive
        with lock:
            alive -= 1

    def counted(self: Work, block: tuple[int, ...]) -> Any:
        nonlocal alive, most
        processed = process(self, block)
        weakref.finalize(processed.own, gone)
        with lock:
            alive += 1
            most = max(most, alive)
        return processed

    monkeypatch.setattr(Work, "process", counted)
    for length in (10, 40):
        read: list[Any] = []

        def points(box: tuple[slice, ...], read: list[Any] = read) -> tuple[np.ndarray]:
            read.append(box)
            return (np.zeros((1, 1), np.uint8),)

        curve = CurveValues(LEVELS, Filtration(2, 1))
        work = Work(points, ((1,) * length, (1,) * across), curve)
        groups = work.groups(4, side=6)
        most = 0
        sums_of(work, groups, list(range(len(groups))), workers=workers)
        columns = -(-across // 6)
        # Blocks beside columns are read twice.
        assert len(read) == length * across + (columns - 1) * length
        near = (window.AHEAD_A_THREAD + window.MOST_SHARES_A_THREAD + 1) * workers
        # A layer, and the first two blocks of the next, are needed.
        assert most <= 7 + 2 + near + 1
    assert alive == 0
