"""Backends, one folder each, found by the kind of device of an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.forks import paused
from ecc_core._backends.soft import SoftCurves
from ecc_core._request.estimator import Cells
from ecc_core._request.filtration import Filtration
from ecc_core.errors import BackendError

__all__ = [
    "Backend",
    "BettiNumbers",
    "CellCounts",
    "Shards",
    "SoftCurves",
    "Surfaces",
    "Transforms",
    "backend",
    "betti_numbers",
    "cell_counts",
    "register",
    "shards",
    "soft_curves",
    "supports",
    "surfaces",
    "transforms",
]


class Backend(Protocol):
    """Curves and coefficients of images (images, *spatial) with 1 to 3 spatial axes.

    Arrays are what the adapter unwraps; results may be NumPy arrays or arrays of the device.
    Arguments have been checked. Masks have the image's shape; thresholds are sorted NumPy arrays
    of real numbers. `workers` is a number of threads or None, and may be ignored. NaN raises
    ValueError with ``errors.NAN_MESSAGE`` where ``filtration.nan`` is "raise".

    A backend may also have ``plan(kind, images, labels, levels, filtration)``, which returns a
    function of arrays that are laid out as the only image of a batch and its labels, or None; see
    ``cuda/planned.py``.
    """

    def curve(
        self,
        image: Any,
        thresholds: Any,
        filtration: Filtration,
        *,
        mask: Any = None,
        workers: int | None = None,
    ) -> Any:
        """Return the Euler characteristics, (images, n) int64."""
        ...

    def exact_curve(
        self, image: Any, filtration: Filtration, *, mask: Any = None, workers: int | None = None
    ) -> tuple[Any, Any]:
        """Return the levels at which the curve of one image changes, and the values there."""
        ...

    def coefficients(
        self, image: Any, filtration: Filtration, *, mask: Any = None, workers: int | None = None
    ) -> Any:
        """Return the coefficient of every point, int8."""
        ...

    def region_curves(
        self,
        image: Any,
        labels: Any,
        thresholds: Any,
        filtration: Filtration,
        *,
        workers: int | None = None,
    ) -> tuple[Any, Any]:
        """Return ids (k,) and curves (k, n) int64 of an image and labels without a batch axis."""
        ...

    def number(
        self,
        image: Any,
        level: Any,
        filtration: Filtration,
        *,
        mask: Any = None,
        workers: int | None = None,
    ) -> int:
        """Return the Euler characteristic of one image at one level, (1,)."""
        ...

    def value_range(
        self, image: Any, filtration: Filtration, *, mask: Any = None, workers: int | None = None
    ) -> tuple[Any, Any]:
        """Return the smallest and largest finite value; (None, None) if there is none."""
        ...


class Shards(Protocol):
    """Curves of images in parts."""

    def curve(self, shards: Sequence[Any], thresholds: Any, filtration: Filtration) -> Any:
        """Return the Euler characteristics of the image, (n,) int64."""
        ...


class BettiNumbers(Protocol):
    """Betti curves and persistence pairs; arguments are as for `Backend`."""

    def betti_curves(
        self,
        image: Any,
        thresholds: Any,
        filtration: Filtration,
        *,
        mask: Any = None,
        workers: int | None = None,
    ) -> Any:
        """Return the Betti numbers, (images, ndim, n) int64."""
        ...

    def exact_betti_curves(
        self, image: Any, filtration: Filtration, *, mask: Any = None, workers: int | None = None
    ) -> tuple[Any, Any]:
        """Return the levels at which a Betti number of one image changes, and the numbers there."""
        ...

    def region_betti_curves(
        self,
        image: Any,
        labels: Any,
        thresholds: Any,
        filtration: Filtration,
        *,
        workers: int | None = None,
    ) -> tuple[Any, Any]:
        """Ids (k,) and the Betti numbers of the regions (k, ndim, n) int64, each counted alone."""
        ...

    def persistence_pairs(
        self,
        image: Any,
        dimensions: Sequence[int],
        filtration: Filtration,
        *,
        mask: Any = None,
        workers: int | None = None,
    ) -> list[tuple[Any, Any]]:
        """Numbers of the points of birth and death, in C order; -1 for classes that last.

        There is a pair of arrays for each dimension.
        """
        ...

    def component_curves(
        self,
        image: Any,
        thresholds: Any,
        filtration: Filtration,
        *,
        mask: Any = None,
        workers: int | None = None,
    ) -> Any:
        """Return points, those of the largest component, and components that span each axis.

        They are (images, ndim + 2, n) int64.
        """
        ...

    def persistent_regions(
        self,
        image: Any,
        shown: Any,
        least: float,
        threshold: Any,
        filtration: Filtration,
        *,
        workers: int | None = None,
    ) -> tuple[Any, Any, Any, Any]:
        """Labels of the components of persistence `least`, and births, deaths and elders of each.

        `image` and `shown` have no batch axis. Points are numbered as persistence pairs are.
        """
        ...

    def piece_of(
        self,
        image: Any,
        thresholds: Any,
        filtration: Filtration,
        open_sides: tuple[tuple[int, int], ...],
        *,
        mask: Any = None,
        workers: int | None = None,
    ) -> Any:
        """A box of an image, without a batch axis, reduced to what other boxes can change.

        `open_sides` are pairs of axis and side (0: low, 1: high) beyond which the image goes on.
        """
        ...

    def join_pieces(
        self,
        low: Any,
        high: Any,
        axis: int,
        dtype: Any,
        thresholds: Any,
        filtration: Filtration,
        *,
        masked: bool,
    ) -> Any:
        """One piece of two that touch across an axis, of an image of a dtype."""
        ...

    def betti_numbers_of(
        self, piece: Any, dtype: Any, thresholds: Any, filtration: Filtration, *, masked: bool
    ) -> Any:
        """The Betti numbers of a piece without open sides, (ndim, n) int64."""
        ...

    def pack_piece(self, piece: Any) -> Any:
        """A piece as one int64 array."""
        ...

    def unpack_piece(self, values: Any) -> Any:
        """The piece of such an array."""
        ...


class Surfaces(Protocol):
    """Surfaces of pairs of images; arguments are as for `Backend`, one for each image."""

    def surface(
        self,
        first: Any,
        second: Any,
        thresholds: tuple[Any, Any],
        filtrations: tuple[Filtration, Filtration],
        *,
        mask: Any = None,
        workers: int | None = None,
    ) -> Any:
        """The Euler characteristics of the intersections, (images, n, m) int64."""
        ...


class CellCounts(Protocol):
    """Numbers of cells, from which Minkowski functionals follow; arguments are as for `Backend`."""

    def cell_counts(
        self,
        image: Any,
        thresholds: Any,
        cells: Cells,
        filtration: Filtration,
        *,
        mask: Any = None,
        workers: int | None = None,
    ) -> NDArray[np.int64]:
        """Numbers in host memory of the groups of each kind in the sets, (images, kinds, n)."""
        ...

    def region_cell_counts(
        self,
        image: Any,
        labels: Any,
        thresholds: Any,
        cells: Cells,
        filtration: Filtration,
        *,
        workers: int | None = None,
    ) -> tuple[Any, NDArray[np.int64]]:
        """Ids (k,) and their numbers (k, kinds, n), of an image without a batch axis."""
        ...


class Transforms(Protocol):
    """Transforms of images without a batch axis."""

    def numbers(self, array: Any) -> AbstractContextManager[Any]:
        """Yield an array as NumPy's functions take it, with its device and stream current."""
        ...

    mask_transform: Callable[..., Any]
    weighted_transform: Callable[..., Any]
    find_regions: Callable[..., Any]
    region_transforms: Callable[..., Any]


class _Modules(NamedTuple):
    """The modules of a backend, or their names."""

    curves: Any
    transforms: Any
    shards: Any
    betti_numbers: Any
    surfaces: Any
    cell_counts: Any
    soft_curves: Any
    needs: Callable[[], None]


_registered: dict[str, _Modules] = {}


def register(
    device: str,
    curves: Backend | str,
    *,
    transforms: Transforms | str | None = None,
    shards: Shards | str | None = None,
    betti_numbers: BettiNumbers | str | None = None,
    surfaces: Surfaces | str | None = None,
    cell_counts: CellCounts | str | None = None,
    soft_curves: SoftCurves | str | None = None,
    needs: Callable[[], None] = lambda: None,
) -> None:
    """Make a backend known for a kind of device.

    Parameters
    ----------
    device : str
        As in `Adapter.device`, without the number.
    curves, transforms, shards, ... : module, object or name
        Modules are named by strings and imported when they are needed. A backend without one of
        those after the first raises a clear error for it.
    needs : callable
        Raises BackendError where the backend cannot be imported.
    """
    _registered[device] = _Modules(
        curves, transforms, shards, betti_numbers, surfaces, cell_counts, soft_curves, needs
    )


def supports(device: str) -> bool:
    """Whether there is a backend for a device."""
    return _kind(device) in _registered


def backend(device: str) -> Backend:
    """Return the backend of a device."""
    return cast(Backend, _part(device, "curves"))


def transforms(device: str) -> Transforms:
    """Return the transforms of a device."""
    return cast(Transforms, _part(device, "transforms"))


def shards(device: str) -> Shards:
    """Return the curves of images in parts of a device."""
    return cast(Shards, _part(device, "shards"))


def betti_numbers(device: str, name: str = "betti_curves") -> BettiNumbers:
    """The Betti numbers of a device, which must have the function `name`."""
    part = _part(device, "betti_numbers")
    if not hasattr(part, name):
        raise BackendError(f"`{name}` is not available on {device}: copy the arrays to the host")
    return cast(BettiNumbers, part)


def surfaces(device: str) -> Surfaces:
    """The surfaces of a device."""
    return cast(Surfaces, _part(device, "surfaces"))


def cell_counts(device: str) -> CellCounts:
    """The numbers of cells of a device."""
    return cast(CellCounts, _part(device, "cell_counts"))


def soft_curves(device: str) -> SoftCurves:
    """The soft curves of a device."""
    return cast(SoftCurves, _part(device, "soft_curves"))


def _kind(device: str) -> str:
    return device.partition(":")[0]


def _part(device: str, name: str) -> Any:
    modules = _registered[_kind(device)]
    part = getattr(modules, name)
    if part is None:
        what = name.replace("_", " ").capitalize()
        raise BackendError(f"{what} are not available on {device}: copy the arrays to the host")
    if isinstance(part, str):
        modules.needs()
        with paused:
            part = import_module(part)
        fields = {**modules._asdict(), name: part}
        _registered[_kind(device)] = _Modules(**fields)
    return part


def need_cupy(what: str = "arrays on CUDA devices") -> None:
    """Raise an error unless CuPy can be imported."""
    try:
        import_module("cupy")
    except ImportError as error:
        raise BackendError(
            f"{what} need CuPy: install napari-ecc[cuda12] or napari-ecc[cuda13]"
        ) from error


register(
    "cpu",
    "ecc_core._backends.cpu.launch",
    transforms="ecc_core._backends.cpu.transforms.launch",
    shards="ecc_core._backends.cpu.shards",
    betti_numbers="ecc_core._backends.cpu.betti",
    surfaces="ecc_core._backends.cpu.surface.launch",
    cell_counts="ecc_core._backends.cpu.minkowski.launch",
    soft_curves="ecc_core._torch.cpu",
)
register(
    "cuda",
    "ecc_core._backends.cuda.launch",
    transforms="ecc_core._backends.cuda.transform",
    shards="ecc_core._backends.cuda.shards",
    betti_numbers="ecc_core._backends.cuda.betti",
    surfaces="ecc_core._backends.cuda.surface",
    cell_counts="ecc_core._backends.cuda.cells",
    soft_curves="ecc_core._torch.cuda",
    needs=need_cupy,
)
