"""Plans of transforms that remember the complex of the calls before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import address_of, adopt, as_cupy
from ecc_core._backends.cuda.complexes import MOST_ROWS, make_complex
from ecc_core._backends.cuda.simplicial_layout import SIZES
from ecc_core._backends.cuda.simplicial_plans import CheckedTransform, Found, KnownTransform

Floats = NDArray[np.float64]
Run = Callable[[Any, Sequence[Any]], Found]

MOST_BYTES = 1 << 26  # The most bytes of simplices that a plan remembers.
MOST_KEPT = 8
"""The most complexes that are remembered."""
MOST_FORGOTTEN = 3
"""The complexes that a plan forgets before it stops remembering others."""

_remembering: deque[_Remembering] = deque(maxlen=MOST_KEPT)


def plan_transform(
    points: Any, simplices: Sequence[Any], directions: Floats, heights: Floats, complete: bool
) -> Run | None:
    """Return a function of points and simplices in the layout of these, or None.

    Points (n, d) are floats. Simplices are integers, one array for each number of points from 2 on,
    or one array alone whose faces are added (`complete`). The function returns directions, heights
    and the transform, or None if a call has to be made in full.
    """
    with adopt(points) as view:
        own = view.array
        rows = [as_cupy(part) for part in simplices]
        sizes = [part.shape[1] for part in rows]
        counts = [len(part) for part in rows]
        types = {part.dtype.name for part in rows}
        contiguous = all(array.flags.c_contiguous for array in (own, *rows))
        successive = range(2, 2 + len(sizes))
        in_order = complete or sizes == list(successive)
        known = view.element in ("float32", "float64") and types in ({"int32"}, {"int64"})
        if 0 in (own.size, *counts, heights.size, len(directions)):
            return None
        if not (contiguous and in_order and known):
            return None
        if max(sizes) > SIZES or max([*counts, len(own)]) > MOST_ROWS:
            return None
        if complete:
            return _Remembering(own, None, directions, heights)
        checked = CheckedTransform(own, types.pop(), counts, directions, heights)
        return _Remembering(own, checked, directions, heights)


class _Remembering:
    """A transform that compares simplices with those of an earlier call, if that was equal.

    The complex is remembered once two calls have had simplices at the same addresses. Without
    `checked`, simplices are one array whose faces are added.
    """

    def __init__(
        self, points: Any, checked: CheckedTransform | None, directions: Floats, heights: Floats
    ) -> None:
        self._device = points.device.id
        self._checked = checked
        self._spread = directions, heights
        self._known: KnownTransform | None = None
        self._last: list[int] = []
        self._forgotten = 0

    def __call__(self, points: Any, simplices: Sequence[Any]) -> Found:
        if cupy.cuda.runtime.getDevice() != self._device or programs.is_capturing():
            return None
        with adopt(points) as view:
            stream = cupy.cuda.get_current_stream().ptr
            found = self._find(view.array, simplices, stream)
            if found is None:
                return None
            directions, heights, values = map(view.wrap, found)
            return directions, heights, values

    def _find(self, points: Any, simplices: Sequence[Any], stream: int) -> Found:
        known = self._known
        found = None if known is None else known(points, simplices, stream)
        if found is not None:
            return found
        if known is not None:
            self._known = None
            self._forgotten += 1
        if self._checked is not None:
            found = self._checked(points, simplices, stream)
        if self._forgotten >= MOST_FORGOTTEN or not self._comes_again(simplices):
            return found
        if found is not None:
            self._remember(points, simplices, complete=False)
        elif self._checked is None:
            self._remember(points, simplices, complete=True)
            if self._known is not None:
                return self._known(points, simplices, stream)
        return found

    def _comes_again(self, simplices: Sequence[Any]) -> bool:
        """Return whether simplices, not too many to keep, have the addresses of the last call."""
        addresses = [address_of(part) for part in simplices]
        again = addresses == self._last
        self._last = addresses
        return again and sum(part.nbytes for part in simplices) <= MOST_BYTES

    def _remember(self, points: Any, simplices: Sequence[Any], *, complete: bool) -> None:
        """Keep the complex; if simplices are none, the call in full raises the error."""
        rows = [as_cupy(part) for part in simplices]
        try:
            complex_ = make_complex([part.astype(np.int64) for part in rows], len(points), complete)
        except ValueError:
            return
        if len(_remembering) == MOST_KEPT:
            _remembering[0]._known = None
        self._known = KnownTransform(points, rows, complex_, *self._spread)
        _remembering.append(self)
