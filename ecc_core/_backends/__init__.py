"""Backends, one folder each, found by the kind of device of an array."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.forks import paused
from ecc_core._backends.soft import SoftCurves as SoftCurves
from ecc_core._optional import INSTALL
from ecc_core.errors import BackendError


class Backend(Protocol):
    """Curves and coefficients of images (images, *spatial) with 1 to 3 spatial axes.

    Most functions are called as ``function(image, thresholds, filtration, *, mask=None,
    workers=None)``; the others as their comments say. Arrays are what the adapter unwraps; results
    may be NumPy arrays or arrays of the device. Arguments have been checked. Masks have the image's
    shape; thresholds are sorted NumPy arrays of real numbers. `workers` is a number of threads or
    None, and may be ignored. NaN raises ValueError with ``errors.NAN_MESSAGE`` where
    ``filtration.nan`` is "raise".

    A backend may also have ``plan(kind, images, labels, levels, filtration, mask=, geometry=)``,
    which returns a function of an image, labels and a mask of the same layout, or None; see
    ``cuda/plans.py``.
    """

    curve: Callable[..., Any]
    """Euler characteristics, (images, n) int64."""
    exact_curve: Callable[..., tuple[Any, Any]]
    """Without thresholds: the levels at which the curve of one image changes, and the values."""
    coefficients: Callable[..., Any]
    """Without thresholds: the coefficient of every point, int8."""
    region_curves: Callable[..., tuple[Any, Any]]
    """With labels behind the image and no mask: ids (k,) and curves (k, n) int64.

    Images and labels have no batch axis.
    """
    number: Callable[..., int]
    """The Euler characteristic of one image at one level, (1,)."""
    value_range: Callable[..., tuple[Any, Any]]
    """Without thresholds: the smallest and largest finite value; (None, None) if there is none."""


class Shards(Protocol):
    """Curves of images in parts."""

    curve: Callable[..., Any]
    """Of shards, thresholds and a filtration: the curve of the image, (n,) int64."""


class BettiNumbers(Protocol):
    """Betti curves and persistence pairs; arguments are as for `Backend`.

    Points are numbered in C order.
    """

    betti_curves: Callable[..., Any]
    """Betti numbers, (images, ndim, n) int64."""
    exact_betti_curves: Callable[..., tuple[Any, Any]]
    """Without thresholds: the levels at which a number of one image changes, and the numbers."""
    region_betti_curves: Callable[..., tuple[Any, Any]]
    """As `region_curves`: ids (k,) and Betti numbers (k, ndim, n), each region counted alone."""
    persistence_pairs: Callable[..., list[tuple[Any, Any]]]
    """With dimensions in place of thresholds: the points of birth and death for each of them.

    The death of classes that last is -1.
    """
    component_curves: Callable[..., Any]
    """Points, those of the largest component, and components that touch both ends of each pair.

    They are (images, pairs + 2, n) int64. ``ends`` are masks of the inlet and the outlet. None for
    the first or the last slice along each axis that has points: then there is a pair for each axis.
    """
    persistent_regions: Callable[..., tuple[Any, Any, Any, Any]]
    """Labels of the components of some persistence, and births, deaths and elders of each.

    Called as ``(image, shown, least, threshold, filtration, *, workers=None)``, without batch axes.
    """
    betti_pieces: "Pieces"
    """Boxes of an image for Betti numbers, (ndim, n) of a whole image.

    In 2-D functions take ``least``, for those of classes that last for at least that much.
    """
    size_pieces: "Pieces"
    """Boxes of an image for component curves, (pairs + 2, n) of a whole image.

    ``piece_of`` takes ``ends`` as ``component_curves`` does.
    """


class Pieces(Protocol):
    """Boxes of an image, reduced to what other boxes can change, and how they are joined.

    Images have no batch axis. Pairs of axis and side (0: low, 1: high) beyond which an image goes
    on follow the filtration.
    """

    piece_of: Callable[..., Any]
    """The piece of a box."""
    join_pieces: Callable[..., Any]
    """``(low, high, axis, dtype, thresholds, filtration, *, masked)``: one piece of two."""
    numbers_of: Callable[..., Any]
    """``(piece, dtype, thresholds, filtration, *, masked)``: numbers of a whole image."""
    pack_piece: Callable[[Any], Any]
    """A piece as one int64 array."""
    unpack_piece: Callable[[Any], Any]
    """The piece of such an array."""


class Surfaces(Protocol):
    """Surfaces of pairs of images."""

    surface: Callable[..., Any]
    """``(first, second, thresholds, filtrations, *, mask, workers)``: (images, n, m) int64.

    Thresholds and filtrations are pairs. Values are Euler characteristics of intersections.
    """


class CellCounts(Protocol):
    """Numbers of cells in host memory, from which Minkowski functionals follow.

    Arguments are as for `Backend`, with the kinds of cells behind the thresholds.
    """

    cell_counts: Callable[..., NDArray[np.int64]]
    """Numbers of each kind in the sets, (images, kinds, n)."""
    region_cell_counts: Callable[..., tuple[Any, NDArray[np.int64]]]
    """As `region_curves`: ids (k,) and their numbers (k, kinds, n)."""
    window_counts: Callable[..., NDArray[np.int64]]
    """Numbers of the cells whose lowest corner is a point of a window, (images, kinds, n).

    Windows, booleans (images, *spatial), follow the images, and may have fewer points at the ends
    of axes. The images are closed. With ``signs`` of the kinds: their sum, (images, 1, n).
    """
    region_window_counts: Callable[..., tuple[Any, NDArray[np.int64]]]
    """The same of each region of an image without a batch axis: ids (k,) and (k, kinds, n).

    ``mask`` is a keyword, as for images: regions may have points that never enter.
    """
    region_sizes: Callable[[Any], tuple[Any, NDArray[np.int64]]]
    """Of labels: the same ids, and the numbers of points, (k,)."""
    window_sums: Callable[..., Any]
    """Called as ``(images, coefficients, windows, thresholds, filtration)``: the sums of the
    coefficients of the points of windows that have entered, (images, n) int64.

    Windows have the shape of the images.
    """
    region_window_sums: Callable[..., tuple[Any, Any]]
    """The same for labels of one image: ids (k,) and (k, n)."""
    window_levels: Callable[..., Any]
    """Called as ``(images, coefficients, windows)``: distinct values of points with a coefficient,
    increasing."""


class Transforms(Protocol):
    """Transforms of images without a batch axis."""

    numbers: Callable[[Any], AbstractContextManager[Any]]
    """An array as NumPy's functions take it, with its device and stream current."""
    mask_transform: Callable[..., Any]
    weighted_transform: Callable[..., Any]
    find_regions: Callable[..., Any]
    region_transforms: Callable[..., Any]


class _MissingFunction(BackendError, AttributeError):
    """A backend lacks a function, for which `getattr` can return a default."""


class _Functions:
    """The functions of a module of a backend, which may lack some."""

    def __init__(self, module: Any, device: str) -> None:
        self._module, self._device = module, device

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name, None)
        if found is None:
            raise _MissingFunction(
                f"`{name}` is not available on {self._device}: copy the arrays to the host"
            )
        return found


PARTS = "transforms", "shards", "betti_numbers", "surfaces", "cell_counts", "soft_curves"
"""What a backend may have besides curves."""

_registered: dict[str, dict[str, Any]] = {}
"""The modules of each backend, or their names."""


def register(
    device: str,
    curves: Backend | str,
    *,
    needs: Callable[[], None] = lambda: None,
    **others: Transforms | Shards | BettiNumbers | Surfaces | CellCounts | SoftCurves | str,
) -> None:
    """Make a backend known for a kind of device, the part of `Adapter.device` before the number.

    `curves` and `others` are modules, other objects, or names of modules, which are imported when
    they are needed. A backend may lack others, and functions of all of them, for which BackendError
    is raised. `needs` raises it where the backend cannot be imported.
    """
    if unknown := others.keys() - PARTS:
        raise TypeError(f"parts of a backend are {', '.join(PARTS)}, got {min(unknown)}")
    _registered[device] = {"curves": curves, "needs": needs, **others}


def supports(device: str) -> bool:
    """Whether there is a backend for a device."""
    return _kind(device) in _registered


def _kind(device: str) -> str:
    return device.partition(":")[0]


def _part(name: str, device: str) -> Any:
    modules = _registered[_kind(device)]
    part = modules.get(name)
    if part is None:
        what = name.replace("_", " ").capitalize()
        raise BackendError(f"{what} are not available on {device}: copy the arrays to the host")
    if isinstance(part, str):
        modules["needs"]()
        with paused:
            part = modules[name] = import_module(part)
    return _Functions(part, device)


backend: Callable[[str], Backend] = partial(_part, "curves")
"""Return the backend of a device; those below return its other parts."""
transforms: Callable[[str], Transforms] = partial(_part, "transforms")
shards: Callable[[str], Shards] = partial(_part, "shards")
betti_numbers: Callable[[str], BettiNumbers] = partial(_part, "betti_numbers")
surfaces: Callable[[str], Surfaces] = partial(_part, "surfaces")
cell_counts: Callable[[str], CellCounts] = partial(_part, "cell_counts")
soft_curves: Callable[[str], SoftCurves] = partial(_part, "soft_curves")


def need_cupy(what: str = "arrays on CUDA devices") -> None:
    """Raise an error unless CuPy can be imported."""
    try:
        import_module("cupy")
    except ImportError as error:
        raise BackendError(
            f"{what} need CuPy: {INSTALL.format('cuda12')} or {INSTALL.format('cuda13')}"
        ) from error


register(
    "cpu",
    "ecc_core._backends.cpu.launch",
    transforms="ecc_core._backends.cpu.transforms.launch",
    shards="ecc_core._backends.cpu.shards",
    betti_numbers="ecc_core._backends.cpu.betti",
    surfaces="ecc_core._backends.cpu.surface",
    cell_counts="ecc_core._backends.cpu.cells",
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
