"""Backends, one folder each: `registry` finds that of a device, `fallback` does without kernels."""

from ecc_core._backends.fallback import fall_back, has_kernels, no_backend, soft_curves
from ecc_core._backends.registry import (
    CUPY,
    backend,
    betti_numbers,
    cell_counts,
    need_cupy,
    register,
    shards,
    simplicial_complexes,
    supports,
    surfaces,
    transforms,
)
from ecc_core._backends.soft import SoftCurves

__all__ = [
    "CUPY",
    "SoftCurves",
    "backend",
    "betti_numbers",
    "cell_counts",
    "fall_back",
    "has_kernels",
    "need_cupy",
    "no_backend",
    "register",
    "shards",
    "simplicial_complexes",
    "soft_curves",
    "supports",
    "surfaces",
    "transforms",
]
