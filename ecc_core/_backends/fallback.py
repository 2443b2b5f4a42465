"""What computes on devices without kernels, and whether a device has them.

All functions that can do without kernels ask here. Curves and surfaces are computed by the plain
backend, in functions of the array's library; soft curves by operators of torch. Other functions
refuse such a device (`registry`).
"""

from functools import cache
from importlib import import_module
from typing import Any

from ecc_core._backends import registry
from ecc_core._backends.plain.namespaces import Standard, make_known
from ecc_core._backends.soft import SoftCurves
from ecc_core.errors import BackendError, warn_caller

PLAIN = "ecc_core._backends.plain.curves"

_without_kernels: set[str] = set()
"""The kinds of devices on which functions of the array library compute."""


def has_kernels(device: str) -> bool:
    """Whether the kernels of a device can be used; those of CUDA devices need CuPy."""
    return registry.kind_of(device) not in _without_kernels and registry.is_usable(device)


def no_backend(name: str, place: str) -> BackendError:
    """Return the error of an argument whose library cannot compute; `place` is where it is."""
    return BackendError(
        f"`{name}` must be in host memory or on a CUDA device as a CuPy array or torch tensor, "
        f"got {place}"
    )


def fall_back(device: str, kind: type, standard: Standard, place: str) -> None:
    """Let arrays of a type compute curves and surfaces on a device without a backend, and say so.

    `standard` has the functions of their library.
    """
    make_known(kind.__module__.partition(".")[0], standard)
    _without_kernels.add(registry.kind_of(device))
    registry.register(registry.kind_of(device), PLAIN, surfaces=PLAIN)
    warn_caller(
        f"there are no kernels for {place}: curves are computed slowly, by functions of "
        "the library (copy arrays to the host for speed)"
    )


def soft_curves(device: str) -> SoftCurves:
    """Return what computes soft curves: kernels, or operators of torch where there are none."""
    if has_kernels(device):
        return registry.soft_curves(device)
    in_torch: SoftCurves = _in_torch(device)
    return in_torch


@cache
def _in_torch(device: str) -> Any:
    """Return soft curves in operators of torch, and say so when it is called first."""
    warn_caller(
        f"soft curves on {device} are computed by operators of torch: kernels, which take less "
        f"time and memory, need CuPy ({registry.CUPY})"
    )
    return import_module("ecc_core._torch.plain")
