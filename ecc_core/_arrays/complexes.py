"""The checked arguments of a curve or a transform of a simplicial complex in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import given_on_host
from ecc_core._arrays.origin import Origin, origin_of
from ecc_core._arrays.shapes import unit_vectors
from ecc_core._request.filtration import check_flag
from ecc_core._request.masks import as_booleans
from ecc_core._request.options import ComplexOptions
from ecc_core._request.simplicial import (
    as_point_weights,
    as_points,
    as_simplices,
    place_points,
    radius_of,
)
from ecc_core._request.thresholds import Thresholds, parse_thresholds
from ecc_core._request.transform import parse_heights, spread_heights
from ecc_core.errors import BackendError

if TYPE_CHECKING:
    from ecc_core._backends.protocols import HostSimplicialComplexes
    from ecc_core._backends.protocols.shapes import Complex

Array = NDArray[Any]
Floats = NDArray[np.float64]
MOST_POINTS = 12
"""The most points of a simplex whose faces are added: n points have 2**n faces."""
NO_LEVELS = parse_thresholds(0, None)


class ValueRequest(NamedTuple):
    """The checked arguments of a curve of values on a complex, as `Request` has those of images.

    Arrays can be passed to NumPy's functions. On a device, its stream is the current one within the
    context that `of` returns.
    """

    origin: Origin
    backend: HostSimplicialComplexes
    values: Any
    """(orders, points), without NaN, in the byte order of the machine."""
    batch: tuple[int, ...]
    simplices: Complex
    levels: Thresholds
    superlevel: bool
    workers: int | None

    @classmethod
    @contextmanager
    def of(
        cls,
        values: Any,
        simplices: Any,
        thresholds: Any,
        options: ComplexOptions,
        *,
        single: bool = False,
    ) -> Iterator[Self]:
        """Check the arguments of a public function.

        If `single` is True, values must have shape (n,) and be in host memory, and there are no
        thresholds.
        """
        origin = origin_of(values, "values")
        if single and not origin.on_host:
            raise BackendError(f"`values` must be in host memory, got {origin.place}")
        given = origin.image(values, "values")
        backend = origin.simplicial_complexes()
        if single and given.ndim != 1:
            raise ValueError(
                f"`values` must have shape (n,), one for each point, got {given.shape}"
            )
        if given.ndim == 0:
            raise ValueError("`values` must have shape (..., n), one for each point, got a number")
        superlevel = check_flag(options.superlevel, "superlevel")
        workers = origin.workers(options.workers)
        with origin.transforms().numbers(given) as numbers:
            batch = tuple(numbers.shape[:-1])
            points = numbers.shape[-1]
            flat = _native(numbers.reshape(math.prod(batch), points))
            complex_ = _complex(origin, backend, simplices, points, options.complete)
            levels = NO_LEVELS
            if not single:
                levels = parse_thresholds(given_on_host(thresholds), options.range)
            if levels.exact and batch:
                raise ValueError(
                    '`thresholds` must not be "exact" for a batch of values, got shape '
                    f"{numbers.shape}"
                )
            yield cls(
                origin=origin,
                backend=backend,
                values=flat,
                batch=batch,
                simplices=complex_,
                levels=levels,
                superlevel=superlevel,
                workers=workers,
            )

    def thresholds(self) -> Array:
        """Return the thresholds on the host; if they are "exact", all values."""
        if self.levels.exact:
            values: Array = given_on_host(np.unique(self.values))
            return values
        shape = (*self.batch, self.values.shape[1])
        return self.levels.over(self.find_range, shape, what="a complex")

    def find_range(self) -> tuple[Any, Any]:
        """Return the smallest and the largest finite value, or (None, None)."""
        values = self.values
        finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        if finite.size == 0:
            return None, None
        least, most = (given_on_host(end)[()] for end in (finite.min(), finite.max()))
        return least, most


class PointRequest(NamedTuple):
    """The checked arguments of a transform of a complex whose points have coordinates.

    Arrays are as those of a `ValueRequest`.
    """

    origin: Origin
    backend: HostSimplicialComplexes
    points: Floats
    """(n, d) coordinates, centred and scaled as requested."""
    simplices: Complex
    weights: Array | None
    directions: Floats
    """Unit vectors (k, d)."""
    heights: Floats
    workers: int | None

    @classmethod
    @contextmanager
    def of(
        cls,
        points: Any,
        simplices: Any,
        directions: Any,
        thresholds: Any,
        options: ComplexOptions,
        *,
        weights: Any,
        center: Any,
        normalize: Any,
    ) -> Iterator[Self]:
        """Check the arguments of a public function."""
        origin = origin_of(points, "points")
        backend = origin.simplicial_complexes()
        given = origin.image(points, "points")
        workers = origin.workers(options.workers)
        with origin.transforms().numbers(given) as numbers:
            placed = place_points(as_points(numbers), center, normalize)
            count, ndim = placed.shape
            vectors = unit_vectors(directions, ndim)
            heights, number = parse_heights(
                given_on_host(thresholds), options.range, name="thresholds"
            )
            if heights is None:
                reach = radius_of(placed) if count else None
                heights = spread_heights(number, options.range, reach, what="a complex")
            complex_ = _complex(origin, backend, simplices, count, options.complete)
            own = None
            if weights is not None:
                own = backend.place(origin.image(weights, "weights"))
                own = as_point_weights(own, count, sum(map(len, complex_)))
            yield cls(
                origin=origin,
                backend=backend,
                points=placed,
                simplices=complex_,
                weights=own,
                directions=vectors,
                heights=heights,
                workers=workers,
            )


def _native(values: Any) -> Any:
    """Return values in native byte order, and raise an error if any is NaN."""
    found = values.astype(values.dtype.newbyteorder("="), copy=False)
    if found.dtype.kind == "b" and isinstance(found, np.ndarray):
        found = as_booleans(found)  # On devices, all values but 0 are True.
    if found.dtype.kind == "f" and bool(np.isnan(found).any()):
        raise ValueError("`values` must not contain NaN, got NaN")
    return found


def _complex(
    origin: Origin,
    backend: HostSimplicialComplexes,
    simplices: Any,
    points: int,
    complete: Any,
) -> Complex:
    """Return a complex as the backend takes it, with faces added if requested."""
    given, alone = as_simplices(
        simplices, lambda part: origin.unwrap(part, "simplices"), backend.place
    )
    add_faces = check_flag(complete, "complete") or alone
    widest = max((part.shape[1] for part in given), default=0)
    if add_faces and widest > MOST_POINTS:
        raise ValueError(
            f"`simplices` must have at most {MOST_POINTS} points each for their faces to be added, "
            f"got {widest} (edges of shape (2, m) are to be transposed)"
        )
    return backend.make_complex(given, points, add_faces)
