"""Which backend computes: chosen by the library that an array comes from, imported when needed."""

from __future__ import annotations

from types import ModuleType

__all__ = ["cpu"]


def cpu() -> ModuleType:
    """The backend of NumPy arrays."""
    from ecc_core._cpu import launch

    return launch
