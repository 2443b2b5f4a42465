"""The gradient of the 2-D image between two boxes, beside the components of lower links."""

import numpy as np
import pytest

from ecc_core._backends.cpu.betti.seams import (
    COLUMN_STEPS,
    MINIMUM,
    ROW_STEPS,
    links_of_face,
    match_face,
    with_frame,
)

CIRCLE = [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1)]
"""The eight neighbours of a point, one next to the other; those of even index are ends of edges."""


def components(lower):
    """Components of the ends around a point, joined through corners that are lower, too."""
    ends = [i for i in range(0, 8, 2) if lower[i]]
    parent = {end: end for end in ends}
    for corner in range(1, 8, 2):
        low, high = corner - 1, (corner + 1) % 8
        if lower[low] and lower[corner] and lower[high]:
            for end in ends:
                if parent[end] == parent[high] and end != high:
                    parent[end] = parent[low]
            parent[high] = parent[low]
    return {CIRCLE[end]: parent[end] for end in ends}


def is_lower(order, framed, y, x, step):
    v, u = y + step[0], x + step[1]
    beyond = [v < 0, v >= order.shape[0], u < 0, u >= order.shape[1]]
    if any(beyond):
        return all(is_frame for is_frame, out in zip(framed, beyond, strict=True) if out)
    return order[v, u] < order[y, x]


@pytest.mark.parametrize("seed", range(6))
def test_gradient_of_a_face(seed):
    """A minimum has no way; another point one edge down for each component of its lower link."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 8, 2)
    keys = rng.integers(0, 4, shape).astype(np.uint64)
    keys[keys == 3] = np.iinfo(np.uint64).max
    places = rng.permutation(3 * keys.size)[: keys.size].reshape(shape)
    order = np.lexsort((places.ravel(), keys.ravel())).argsort().reshape(shape)
    framed = tuple(bool(flag) for flag in rng.random(4) < 0.5)

    directions = np.empty(keys.shape, np.int8)
    saddles = np.empty((3 * keys.size, 2), np.int64)
    minima = np.empty(keys.size, np.int64)
    after = np.iinfo(np.int64).max
    padded = (
        with_frame(keys, framed, 0, np.iinfo(np.uint64).max),
        with_frame(places, framed, -1, after),
    )
    count, least = match_face(*padded, links_of_face(), directions, saddles, minima)

    found: dict[int, list[int]] = {}
    for place, direction in saddles[:count].tolist():
        found.setdefault(place, []).append(direction)
    for place, way in enumerate(directions.ravel().tolist()):
        y, x = divmod(place, keys.shape[1])
        lower = [is_lower(order, framed, y, x, step) for step in CIRCLE]
        of_end = components(lower)
        own = [] if way == MINIMUM else [way, *found.get(place, [])]
        reached = [of_end[ROW_STEPS[i], COLUMN_STEPS[i]] for i in own]
        assert sorted(reached) == sorted(set(of_end.values()))
    assert minima[:least].tolist() == np.flatnonzero(directions.ravel() == MINIMUM).tolist()
