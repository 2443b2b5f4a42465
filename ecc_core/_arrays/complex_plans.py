"""Cached plans of transforms of complexes, for arrays of one layout."""

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from ecc_core._arrays import adapter_of
from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.shapes import unit_vectors
from ecc_core._request.transform import parse_heights, spread_heights

MOST_PLANS = 64
"""The most plans that are kept."""
MOST_NUMBERS = 1 << 14
"""The most numbers of directions, or of thresholds, that are compared with those of other calls."""
NOT_GIVEN = "not given"
"""The key of an argument that is None. A key of None means that the call cannot be planned."""

Run = Callable[[Any, Any], tuple[Any, Any, Any] | None]


class _Call:
    """A call. Calls are equal if all but the values of points and simplices is."""

    def __init__(self, key: Hashable, *given: Any) -> None:
        self.key = key
        self.hash = hash(key)
        self.given: tuple[Any, ...] | None = given

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Call) and self.key == other.key


def planned_transform(
    points: Any, simplices: Any, directions: Any, thresholds: Any, bounds: Any
) -> tuple[Any, Any, Any] | None:
    """Return directions, heights and the transform of a complex by a cached plan.

    None if there is no plan, or if arguments are invalid: then the call must be made in full.
    """
    if type(points) is np.ndarray:
        return None
    alone = not isinstance(simplices, list | tuple)
    parts = [simplices] if alone else simplices
    adapter = adapter_of(points)
    is_alike = [adapter_of(part) is adapter for part in parts]
    if not parts or not all(is_alike):
        return None
    numbers = numbers_key(directions), numbers_key(thresholds), numbers_key(bounds)
    layouts = adapter.layout(points), *map(adapter.layout, parts)
    if None in layouts or None in numbers:
        return None
    key = adapter.name, layouts, numbers, alone
    call = _Call(key, points, parts, directions, thresholds, bounds, alone)
    run = _plan(call)
    call.given = None  # The cache keeps the call, and must not keep its arrays alive.
    return None if run is None else run(points, parts)


def numbers_key(given: Any) -> Hashable:
    """Return a key that is equal for equal numbers, or None if calls with them are not planned."""
    if type(given) is np.ndarray:  # Subclasses may be masked, or have a unit.
        if given.size > MOST_NUMBERS or given.dtype.kind not in "iuf":
            return None
        return given.dtype, given.shape, given.tobytes()
    if given is None:
        return NOT_GIVEN
    if type(given) is int:
        return given
    if isinstance(given, tuple):
        types = {type(end) for end in given}
        if types <= {int, float}:
            return given
    return None


@lru_cache(maxsize=MOST_PLANS)
def _plan(call: _Call) -> Run | None:
    """Return the plan of a backend, or None if it has none for such a call."""
    assert call.given is not None
    points, simplices, directions, thresholds, bounds, alone = call.given
    is_table = [len(part.shape) == 2 for part in (points, *simplices)]
    if not all(is_table):
        return None
    backend = origin_of(points, "points").simplicial_complexes()
    plan: Callable[..., Run | None] | None = getattr(backend, "plan_transform", None)
    if plan is None:
        return None
    try:
        vectors = unit_vectors(directions, points.shape[1])
        heights, count = parse_heights(thresholds, bounds, name="thresholds")
        if heights is None:
            if bounds is None:  # Heights depend on the values of the points.
                return None
            heights = spread_heights(count, bounds, None)
    except (TypeError, ValueError):
        return None  # The call is made in full, and raises the error.
    return plan(points, simplices, vectors, heights, alone)
