"""Which backend serves which kind of device: those that are registered, and their parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ecc_core._backends.process_forks import paused
from ecc_core._optional import INSTALL
from ecc_core.errors import BackendError

if TYPE_CHECKING:
    from ecc_core._backends.protocols import (
        Backend,
        BettiNumbers,
        CellCounts,
        HostBettiNumbers,
        HostSimplicialComplexes,
        Planner,
        Shards,
        SimplicialComplexes,
        Surfaces,
        Transforms,
        WindowCellCounts,
    )
    from ecc_core._backends.soft import SoftCurves


class _MissingFunction(BackendError, AttributeError):
    """A backend lacks a function, for which `getattr` can return a default."""


class _Functions:
    """The functions of a module of a backend, which may lack some."""

    def __init__(self, module: Any, device: str) -> None:
        self._module = module
        self._device = device

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name, None)
        if found is None:
            raise _MissingFunction(
                f"`{name}` is not available on {self._device}: copy the arrays to the host"
            )
        return found


PARTS = (
    "transforms",
    "shards",
    "betti_numbers",
    "surfaces",
    "cell_counts",
    "soft_curves",
    "simplicial_complexes",
)
"""What a backend may have besides curves."""

CUPY = f"{INSTALL.format('cuda12')} or {INSTALL.format('cuda13')}"
"""How CuPy is installed."""

_registered: dict[str, dict[str, Any]] = {}
"""The modules of each backend, or their names."""


def register(
    device: str,
    curves: Backend | str,
    *,
    needs: Callable[[], None] = lambda: None,
    **others: Transforms
    | Shards
    | BettiNumbers
    | Surfaces
    | CellCounts
    | SoftCurves
    | SimplicialComplexes
    | str,
) -> None:
    """Make a backend known for a kind of device, the part of `Adapter.device` before the number.

    `curves` and `others` are modules, other objects, or names of modules, which are imported when
    they are needed. A backend may lack others, and functions of all of them, for which BackendError
    is raised. `needs` raises it where the backend cannot be imported.
    """
    if unknown := others.keys() - PARTS:
        raise TypeError(f"parts of a backend are {', '.join(PARTS)}, got {min(unknown)}")
    _registered[device] = {"curves": curves, "needs": needs, **others}
    is_usable.cache_clear()


def supports(device: str) -> bool:
    """Whether there is a backend for a device."""
    return kind_of(device) in _registered


@cache
def is_usable(device: str) -> bool:
    """Whether there is a backend for a device, and what it needs is installed."""
    if not supports(device):
        return False
    try:
        _registered[kind_of(device)]["needs"]()
    except BackendError:
        return False
    return True


def kind_of(device: str) -> str:
    """Return the kind of a device, without its number."""
    return device.partition(":")[0]


def _part(name: str, device: str) -> Any:
    modules = _registered[kind_of(device)]
    part = modules.get(name)
    if part is None:
        what = name.replace("_", " ").capitalize()
        raise BackendError(f"{what} are not available on {device}: copy the arrays to the host")
    if isinstance(part, str):
        modules["needs"]()
        with paused:
            part = modules[name] = import_module(part)
    return _Functions(part, device)


def backend(device: str) -> Backend:
    """Return the backend of a device; the functions below return its other parts."""
    found: Backend = _part("curves", device)
    return found


def transforms(device: str) -> Transforms:
    found: Transforms = _part("transforms", device)
    return found


def shards(device: str) -> Shards:
    found: Shards = _part("shards", device)
    return found


def betti_numbers(device: str) -> HostBettiNumbers:
    """Return the functions of a backend; those that it lacks raise BackendError."""
    found: HostBettiNumbers = _part("betti_numbers", device)
    return found


def surfaces(device: str) -> Surfaces:
    found: Surfaces = _part("surfaces", device)
    return found


def cell_counts(device: str) -> WindowCellCounts:
    """Return the functions of a backend; those that it lacks raise BackendError."""
    found: WindowCellCounts = _part("cell_counts", device)
    return found


def simplicial_complexes(device: str) -> HostSimplicialComplexes:
    """Return the functions of a backend; those that it lacks raise BackendError."""
    found: HostSimplicialComplexes = _part("simplicial_complexes", device)
    return found


def soft_curves(device: str) -> SoftCurves:
    """Return the kernels of soft curves; `fallback` says what there is without them."""
    found: SoftCurves = _part("soft_curves", device)
    return found


def need_cupy(what: str = "arrays on CUDA devices") -> None:
    """Raise an error unless CuPy can be imported."""
    try:
        import_module("cupy")
    except ImportError as error:
        raise BackendError(f"{what} need CuPy: {CUPY}") from error


register(
    "cpu",
    "ecc_core._backends.cpu.launch",
    transforms="ecc_core._backends.cpu.transforms.launch",
    shards="ecc_core._backends.cpu.shards",
    betti_numbers="ecc_core._backends.cpu.betti",
    surfaces="ecc_core._backends.cpu.surface",
    cell_counts="ecc_core._backends.cpu.cells",
    soft_curves="ecc_core._torch.cpu",
    simplicial_complexes="ecc_core._backends.cpu.simplicial.launch",
)
register(
    "cuda",
    "ecc_core._backends.cuda.launch",
    transforms="ecc_core._backends.cuda.transform",
    shards="ecc_core._backends.cuda.shards",
    betti_numbers="ecc_core._backends.cuda.homology",
    surfaces="ecc_core._backends.cuda.surface",
    cell_counts="ecc_core._backends.cuda.cells",
    soft_curves="ecc_core._torch.cuda",
    simplicial_complexes="ecc_core._backends.cuda.simplicial",
    needs=need_cupy,
)

if TYPE_CHECKING:  # mypy checks here that the backends have the signatures of the protocols.
    from ecc_core._backends.cpu import betti, cells, launch, surface
    from ecc_core._backends.cpu import shards as cpu_shards
    from ecc_core._backends.cpu.simplicial import launch as simplicial
    from ecc_core._backends.cpu.transforms import launch as transform
    from ecc_core._backends.cuda import cells as cuda_cells
    from ecc_core._backends.cuda import homology as cuda_homology
    from ecc_core._backends.cuda import launch as cuda_launch
    from ecc_core._backends.cuda import shards as cuda_shards
    from ecc_core._backends.cuda import simplicial as cuda_simplicial
    from ecc_core._backends.cuda import surface as cuda_surface
    from ecc_core._backends.cuda import transform as cuda_transform
    from ecc_core._backends.plain import curves as plain

    _curves: tuple[Backend, Backend, Backend] = launch, cuda_launch, plain
    _planners: tuple[Planner, Planner] = launch, cuda_launch
    _transforms: tuple[Transforms, Transforms] = transform, cuda_transform
    _simplicial: tuple[HostSimplicialComplexes, SimplicialComplexes] = simplicial, cuda_simplicial
    _shards: tuple[Shards, Shards] = cpu_shards, cuda_shards
    _betti_numbers: tuple[HostBettiNumbers, BettiNumbers] = betti, cuda_homology
    _surfaces: tuple[Surfaces, Surfaces, Surfaces] = surface, cuda_surface, plain
    _cell_counts: tuple[WindowCellCounts, CellCounts] = cells, cuda_cells
