"""Filtrations: the complex, the order in which points enter, and whether NaN is an error."""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ecc_core._request.boundary import CLOSED, Boundary, Domain, boundary_of, check_boundary
from ecc_core._request.dtypes import dtype_in_words
from ecc_core._request.nan_policy import check_nan
from ecc_core._request.plain_numbers import refuse_masked, refuse_unit
from ecc_core._request.resources import check_unused

EVERYWHERE_CLOSED = Boundary(())
"""The default of filtrations, which replace it by a closed border along each of their axes."""
DIRECTED = Domain(
    reason="together with `direction`, whose heights differ on opposite sides of the image"
)


@dataclass(frozen=True)
class Direction:
    """The term a * <u, x(p)> of a directional filtration, x(p) = (index - centre) * spacing."""

    vector: tuple[float, ...]
    """u, of unit length."""
    scale: float
    """The factor a."""
    spacing: tuple[float, ...]
    shape: tuple[int, ...]
    """The spatial shape of the whole image."""

    @cached_property
    def terms(self) -> list[NDArray[Any]]:
        """The products u * x along each axis, without the scale."""
        return [
            u * ((np.arange(n) - (n - 1) / 2) * step)
            for n, u, step in zip(self.shape, self.vector, self.spacing, strict=True)
        ]

    def add(self, part: NDArray[Any], start: tuple[int, ...]) -> NDArray[np.float64]:
        """Return X + a * <u, x> for a box of the image that begins at index `start`, in float64.

        The terms are added in the order of the axes.
        """
        height: NDArray[Any] = np.zeros(())
        ndim = len(self.terms)
        for axis, (terms, first) in enumerate(zip(self.terms, start, strict=True)):
            count = part.shape[part.ndim - ndim + axis]
            shape = (count,) + (1,) * (ndim - axis - 1)
            term = np.asarray(terms[first : first + count].reshape(shape), like=part)
            height = term if axis == 0 else height + term
        return part.astype(np.float64) + self.scale * height


@dataclass(frozen=True)
class Filtration:
    """A filtration of images."""

    ndim: int
    """The number of spatial axes."""
    connectivity: int
    """1: points are vertices (V-construction); `ndim`: closed cubes (T-construction). In 1-D both
    are the same, and called 1."""
    superlevel: bool = False
    """Whether points enter from high to low values."""
    nan: str = "raise"
    """What NaN means: an error ("raise"), or points that never enter ("omit")."""
    direction: Direction | None = None
    """The term that is added to the image."""
    boundary: Boundary = EVERYWHERE_CLOSED

    def __post_init__(self) -> None:
        if not self.boundary.axes:
            object.__setattr__(self, "boundary", Boundary.alike(CLOSED, self.ndim))

    @property
    def cubes(self) -> bool:
        """Whether points are closed cubes, see `uses_cubes`."""
        return uses_cubes(self.connectivity)

    @property
    def classes(self) -> int:
        """The number of dimensions that homology classes can have.

        It is one more for an image that is periodic along all axes, because the torus is a class.
        """
        return self.ndim + 1 if all(self.boundary.wraps) else self.ndim

    def in_axes(self, ndim: int) -> Self:
        """Return the filtration for another number of axes, all with the border of the first one.

        This is the filtration of the planes of a volume with the same border along all axes.
        """
        if ndim == self.ndim:
            return self
        connectivity = 1 if self.connectivity == 1 else ndim
        boundary = Boundary.alike(self.boundary.axes[0], ndim)
        return replace(self, ndim=ndim, connectivity=connectivity, boundary=boundary)


def uses_cubes(connectivity: int) -> bool:
    """Whether points are closed cubes (T-construction) rather than vertices (V-construction).

    Kernels are compiled for either, and call it `cubes`, or `kCubes` in CUDA. In 1-D, where both
    constructions are the same, it is False.
    """
    return connectivity > 1


def filtration_of(
    ndim: int,
    connectivity: Any = None,
    superlevel: Any = False,
    nan: Any = "raise",
    direction: Direction | None = None,
    boundary: Any = "closed",
) -> Filtration:
    try:
        found = _kept_filtration(ndim, connectivity, superlevel, nan, boundary)
    except TypeError:  # Some arguments have no hash.
        found = _filtration(ndim, connectivity, superlevel=superlevel, nan=nan, boundary=boundary)
    if direction is None:
        return found
    check_boundary(boundary, DIRECTED)
    return replace(found, direction=direction)


def flag_pair(superlevel: Any) -> Sequence[Any]:
    """Return the flags of two images; `superlevel` is one flag for both, or a pair of flags."""
    pair = superlevel if isinstance(superlevel, tuple | list) else (superlevel, superlevel)
    if len(pair) != 2:
        raise ValueError(f"`superlevel` must be one flag or two of them, got {superlevel!r}")
    return pair


def _filtration(
    ndim: int, connectivity: Any, superlevel: Any, nan: Any, boundary: Any
) -> Filtration:
    connectivity = check_connectivity(connectivity, ndim)
    superlevel = check_flag(superlevel, "superlevel")
    nan = check_nan(nan)
    boundary = boundary_of(boundary, ndim)
    return Filtration(ndim, connectivity, superlevel, nan, boundary=boundary)


_kept_filtration = lru_cache(maxsize=64, typed=True)(_filtration)


def check_connectivity(connectivity: Any, ndim: int) -> int:
    """Return a connectivity, which must be 1 or `ndim`, the default."""
    if connectivity is None:
        return ndim
    try:
        number = operator.index(connectivity)
    except TypeError:
        number = 0
    if isinstance(connectivity, bool) or number not in (1, ndim):
        allowed = f"1 or {ndim}" if ndim > 1 else "1"
        raise ValueError(
            f"`connectivity` must be {allowed} for a {ndim}-D image, got {connectivity!r}"
        )
    return number


def check_flag(value: Any, name: str) -> bool:
    if isinstance(value, bool | np.bool_) or (type(value) is int and value in (0, 1)):
        return bool(value)
    raise TypeError(f"`{name}` must be True or False, got {value!r}")


def direction_of(
    direction: Any, scale: Any, spacing: Any, shape: tuple[int, ...]
) -> Direction | None:
    """Return the directional term that the arguments describe, or None."""
    if direction is None:
        check_unused("without `direction`", direction_scale=scale, spacing=spacing)
        return None
    ndim = len(shape)
    array = as_numbers(direction, "direction")
    if array.shape != (ndim,):
        raise ValueError(f"`direction` must have shape ({ndim},), got {array.shape}")
    vector = array.astype(np.float64)
    if not np.isfinite(vector).all() or not vector.any():
        raise ValueError(f"`direction` must be finite and not zero, got {array}")
    # Components of at most 1 have squares that neither overflow nor vanish together.
    vector = vector / np.abs(vector).max()
    unit: NDArray[np.float64] = vector / np.sqrt(np.sum(vector * vector))
    steps = check_spacing(spacing, ndim)
    factor = 1.0 if scale is None else check_scale(scale)
    with np.errstate(over="ignore", invalid="ignore"):
        reach = factor * np.sum(np.abs(unit) * (np.array(shape) / 2) * steps)
    if not np.isfinite(reach):
        raise ValueError(
            "`direction_scale` and `spacing` must keep the added heights finite, "
            f"got {factor} and {steps}"
        )
    return Direction(tuple(unit.tolist()), factor, tuple(steps.tolist()), shape)


def check_scale(scale: Any) -> float:
    try:
        if isinstance(scale, str | bytes) or getattr(scale, "ndim", 0) > 0:
            raise TypeError
        number = float(scale)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"`direction_scale` must be a real number, got {scale!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"`direction_scale` must be finite, got {scale}")
    return number


def check_spacing(spacing: Any, ndim: int) -> NDArray[np.float64]:
    """Return the positive distances between neighbouring points along each axis; 1 by default."""
    if spacing is None:
        return np.ones(ndim)
    array = as_numbers(spacing, "spacing", kinds="iuf")
    if array.shape not in ((), (ndim,)):
        raise ValueError(f"`spacing` must be one number or {ndim} of them, got {spacing}")
    if not np.isfinite(array).all() or (array <= 0).any():
        raise ValueError(f"`spacing` must be positive and finite, got {spacing}")
    return np.broadcast_to(array, (ndim,)).astype(np.float64)


def as_numbers(given: Any, name: str, kinds: str = "biuf") -> NDArray[Any]:
    refuse_masked(given, name)
    refuse_unit(given, name)
    try:
        array = np.asarray(given)
    except ValueError:
        raise ValueError(f"`{name}` must be numbers, got a ragged sequence") from None
    if array.dtype.kind not in kinds:
        raise TypeError(f"`{name}` must be real numbers, got {dtype_in_words(array.dtype)}")
    return array
