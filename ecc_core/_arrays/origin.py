"""The library and device of an image, which decide what computes it and what results are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ecc_core import _backends
from ecc_core._arrays import adapter_of
from ecc_core._request.image import check_image_dtype
from ecc_core._request.labels import check_label_type, check_label_values
from ecc_core._request.masks import as_booleans, check_mask, without_masked
from ecc_core._request.resources import AtMost, check_positive_int
from ecc_core._request.spatial_axes import Geometry

if TYPE_CHECKING:
    from ecc_core._backends import protocols


class Origin:
    """The library and device of an image."""

    __slots__ = ("adapter", "device", "like")

    def __init__(self, image: Any, name: str = "image") -> None:
        self.adapter = adapter_of(image)
        self.device = self.adapter.device(image)
        self.like = image
        if not _backends.supports(self.device):
            self._fall_back(name)

    def _fall_back(self, name: str) -> None:
        """Compute by functions of the array API standard, with a warning, if the library can."""
        standard = self.adapter.standard(self.like)
        if standard is None:
            raise _backends.no_backend(name, self.place)
        kind = type(self.adapter.unwrap(self.like, name))
        _backends.fall_back(self.device, kind, standard, self.place)

    @property
    def place(self) -> str:
        """Library and device, for messages."""
        return self.adapter.place(self.like)

    @property
    def on_host(self) -> bool:
        return self.device == "cpu"

    def unwrap(self, array: Any, name: str) -> Any:
        """Return an array as the backend takes it, without a copy and on the same device."""
        if array is self.like:
            return self.adapter.unwrap(array, name)
        adapter = adapter_of(array)
        device = adapter.device(array)
        if device != self.device or not (self.on_host or adapter is self.adapter):
            raise ValueError(
                f"`{name}` must be on the image's device, {self.place}, got {adapter.place(array)}"
            )
        return adapter.unwrap(array, name)

    def image(self, image: Any, name: str = "image") -> Any:
        """Return the image as the backend takes it, with a supported dtype."""
        array = self.unwrap(image, name)
        check_image_dtype(self.dtype(array, name), name)
        return array

    def dtype(self, array: Any, name: str) -> np.dtype[Any]:
        if self.on_host:
            found: np.dtype[Any] = array.dtype
            return found
        return self.adapter.dtype(array, name)

    def wrap(self, result: Any) -> Any:
        """Return a result of the backend, or a NumPy array, as an array of the image's library."""
        return self.adapter.wrap(result, self.like)

    def thresholds(self, given: Any, at: NDArray[Any]) -> Any:
        """Return the thresholds of a result: those given, or new ones in the image's library."""
        return given if getattr(given, "ndim", 0) else self.wrap(at)

    def workers(self, given: Any) -> int | None:
        """Return the argument `workers`, or the library's limit by default."""
        if given is not None:
            return check_positive_int(given, "workers", "a positive int or None")
        limit = self.adapter.threads()
        return None if limit is None else AtMost(limit)

    def backend(self) -> protocols.Backend:
        return _backends.backend(self.device)

    def betti_numbers(self) -> protocols.HostBettiNumbers:
        return _backends.betti_numbers(self.device)

    def surfaces(self) -> protocols.Surfaces:
        return _backends.surfaces(self.device)

    def cell_counts(self) -> protocols.WindowCellCounts:
        return _backends.cell_counts(self.device)

    def simplicial_complexes(self) -> protocols.HostSimplicialComplexes:
        return _backends.simplicial_complexes(self.device)

    def transforms(self) -> protocols.Transforms:
        return _backends.transforms(self.device)


HOST = Origin(np.empty(0))


def origin_of(image: Any, name: str = "image") -> Origin:
    return HOST if type(image) is np.ndarray else Origin(image, name)


def kept_points(origin: Origin, mask: Any, geometry: Geometry, name: str = "mask") -> Any:
    """Return a mask of the image's shape as the backend takes it."""
    given = origin.unwrap(without_masked(mask), name)
    dtype = origin.dtype(given, name)
    stored = getattr(mask, "dtype", None)
    check_mask(
        tuple(given.shape),
        dtype,
        image_shape=geometry.shape,
        spatial=geometry.spatial,
        name=name,
        stored=stored,
    )
    return geometry.spread(as_booleans(given) if origin.on_host else given)


def region_labels(origin: Origin, labels: Any, mask: Any, shape: tuple[int, ...]) -> Any:
    """Return labels as the backend takes them, 0 where the image is masked."""
    regions = origin.unwrap(without_masked(labels), "labels")
    dtype = origin.dtype(regions, "labels")
    check_label_type(dtype, tuple(regions.shape), shape, getattr(labels, "dtype", None))
    if origin.on_host:  # On a device, the backend checks labels when it numbers the regions.
        check_label_values(regions, dtype)
        regions = as_booleans(regions) if dtype.kind == "b" else regions
    return regions if mask is None else np.where(mask, regions, dtype.type(0))
