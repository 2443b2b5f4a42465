"""The checked arguments of a function of one image in parts along its first axis."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ecc_core import _backends
from ecc_core._arrays import adapter_of, given_on_host, is_lazy
from ecc_core._arrays.origin import Origin, origin_of
from ecc_core._request.filtration import Filtration, filtration_of
from ecc_core._request.image import check_image_dtype
from ecc_core._request.options import ImageOptions
from ecc_core._request.spatial_axes import spatial_axes
from ecc_core._request.thresholds import Thresholds, parse_thresholds


class ShardRequest(NamedTuple):
    """The checked arguments of a function of one image in parts."""

    origin: Origin
    """The origin of the first part. The curve is an array of this library, on this device."""
    parts: list[Any]
    """The parts that are not empty, as the backend takes them."""
    shape: tuple[int, ...]
    """The shape of the whole image."""
    filtration: Filtration
    levels: Thresholds

    @classmethod
    def of(cls, shards: Any, thresholds: Any, options: ImageOptions) -> Self:
        """Check the arguments of a public function."""
        origin, parts = _unwrap(shards)
        shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
        return cls(
            origin=origin,
            parts=[part for part in parts if 0 not in part.shape],
            shape=shape,
            filtration=filtration_of(
                len(shape), options.connectivity, options.superlevel, options.nan
            ),
            levels=parse_thresholds(given_on_host(thresholds), options.range, no_exact=""),
        )

    def find_range(self) -> tuple[Any, Any]:
        """Return the smallest and the largest finite value, or (None, None)."""
        find = self.origin.backend().value_range
        bounds = (find(part[None], self.filtration) for part in self.parts)
        finite = [(low, high) for low, high in bounds if low is not None]
        if not finite:
            return None, None
        return min(low for low, _ in finite), max(high for _, high in finite)

    def thresholds(self) -> NDArray[Any]:
        """Return the thresholds on the host."""
        return self.levels.over(self.find_range, self.shape)

    def curve(self, at: NDArray[Any]) -> Any:
        """Return the Euler characteristic at thresholds, (n,)."""
        if not self.parts or at.size == 0:
            return np.zeros(at.size, np.int64)
        return _backends.shards(self.origin.device).curve(self.parts, at, self.filtration)


def _unwrap(shards: Any) -> tuple[Origin, list[Any]]:
    """Return the origin of the first shard, and all shards as its backend takes them."""
    if not isinstance(shards, list | tuple):
        raise TypeError(f"`shards` must be a list or tuple of arrays, got {type(shards).__name__}")
    if not shards:
        raise ValueError("`shards` must be at least one array, got none")
    for shard in shards:
        if is_lazy(shard) or isinstance(shard, np.ma.MaskedArray):
            raise TypeError(
                "`shards` must be NumPy, CuPy or torch arrays without masks, "
                f"got {type(shard).__name__} of {adapter_of(shard).name}"
            )
    origins = [origin_of(shard, "shards") for shard in shards]
    kinds = [(origin.adapter.name, origin.device.partition(":")[0]) for origin in origins]
    _check_equal("library and kind of memory", kinds, [origin.place for origin in origins])
    pairs = list(zip(origins, shards, strict=True))
    parts = [origin.unwrap(shard, "shards") for origin, shard in pairs]
    dtypes = [getattr(s, "dtype", p.dtype) for s, p in zip(shards, parts, strict=True)]
    _check_equal("dtype", dtypes, dtypes)
    check_image_dtype(origins[0].dtype(parts[0], "shards"), "shards")
    shapes = [tuple(part.shape) for part in parts]
    spatial_axes(shapes[0], None, "shards")
    sections = [(len(shape), shape[1:]) for shape in shapes]
    _check_equal("shape beyond the first axis", sections, shapes)
    return origins[0], parts


def _check_equal(what: str, found: Sequence[Any], shown: Sequence[Any]) -> None:
    if len(set(found)) > 1:
        different = ", ".join(map(str, dict.fromkeys(shown)))
        raise ValueError(f"`shards` must have one {what}, got {different}")
