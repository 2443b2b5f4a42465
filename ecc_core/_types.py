"""Types of the arguments of public functions."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, SupportsIndex, TypedDict, TypeVar

from numpy.typing import ArrayLike

from ecc_core._request.boundary import BorderName, ComplexBorderName

Thresholds = ArrayLike | Literal["exact"]
AnyBoundary = BorderName | Sequence[BorderName]
"""One word for all spatial axes, or one for each."""
ComplexBoundary = ComplexBorderName | Sequence[ComplexBorderName]
Axes = SupportsIndex | str | Sequence[SupportsIndex | str] | None
"""Spatial axes, by number, or for a DataArray by the name of their dimension."""


class _Tensor(Protocol):
    """A torch tensor."""

    def cpu(self) -> Any: ...


class _JaxArray(Protocol):
    def block_until_ready(self) -> Any: ...


class LazyArray(Protocol):
    """A dask array."""

    def compute(self) -> Any: ...


DeviceT = TypeVar("DeviceT", bound=_Tensor | _JaxArray)
"""An array of a library other than NumPy; functions return arrays of the same library for it."""
LazyT = TypeVar("LazyT", bound=LazyArray)


class CoefficientOptions(TypedDict, total=False):
    """Keywords of :func:`ecc_core.euler_coefficients`."""

    connectivity: int | None
    superlevel: bool
    mask: ArrayLike | None
    nan: Literal["raise", "omit"]


class _CommonCurveOptions(TypedDict, total=False):
    range: tuple[float, float] | None
    connectivity: int | None
    superlevel: bool


class ShardOptions(_CommonCurveOptions, total=False):
    """Keywords of :func:`ecc_core.euler_curve_shards`."""

    nan: Literal["raise", "omit"]


class RegionOptions(_CommonCurveOptions, total=False):
    """Keywords of :func:`ecc_core.region_curves`."""

    workers: int | None
    boundary: AnyBoundary
    axis: Axes


class CurveOptions(RegionOptions, total=False):
    """Keywords of :func:`ecc_core.euler_curve`."""

    mask: ArrayLike | None
    nan: Literal["raise", "omit"]
    direction: ArrayLike | None
    direction_scale: float | None
    spacing: ArrayLike | None
    devices: Sequence[SupportsIndex] | None


class _CommonTransformOptions(TypedDict, total=False):
    range: tuple[float, float] | None
    connectivity: int | None
    spacing: ArrayLike | None
    workers: int | None
    boundary: Literal["closed"]


class TransformOptions(_CommonTransformOptions, total=False):
    """Keywords of :func:`ecc_core.euler_transform`."""

    weighted: bool


class RegionTransformOptions(_CommonTransformOptions, total=False):
    """Keywords of :func:`ecc_core.region_transforms`."""

    normalize: Literal["radius"] | None
