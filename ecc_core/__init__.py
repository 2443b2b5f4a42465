"""Euler characteristic curves and transforms of 2-D and 3-D images: exact and fast."""

import importlib
from typing import Any

from ecc_core.curves import (
    euler_coefficients,
    euler_curve,
    euler_number,
    region_curves,
    warmup,
)
from ecc_core.geometry import minkowski_curves, region_minkowski
from ecc_core.results import (
    BettiCurves,
    EulerCurve,
    EulerSurface,
    EulerTransform,
    MinkowskiCurves,
    PersistencePairs,
    RegionBettiCurves,
    RegionCurves,
    RegionMinkowski,
    RegionTransforms,
)
from ecc_core.shards import euler_curve_shards
from ecc_core.surfaces import euler_surface
from ecc_core.topology import (
    betti_curves,
    betti_numbers,
    persistence_pairs,
    region_betti_curves,
)
from ecc_core.transforms import (
    euler_transform,
    region_transforms,
    sample_directions,
    smooth_transform,
    transform_distance,
)

__all__ = [
    "BettiCurves",
    "EulerCurve",
    "EulerSurface",
    "EulerTransform",
    "MinkowskiCurves",
    "PersistencePairs",
    "RegionBettiCurves",
    "RegionCurves",
    "RegionMinkowski",
    "RegionTransforms",
    "betti_curves",
    "betti_numbers",
    "euler_coefficients",
    "euler_curve",
    "euler_curve_shards",
    "euler_number",
    "euler_surface",
    "euler_transform",
    "minkowski_curves",
    "persistence_pairs",
    "region_betti_curves",
    "region_curves",
    "region_minkowski",
    "region_transforms",
    "sample_directions",
    "smooth_transform",
    "transform_distance",
    "warmup",
]

_SUBMODULES = ("dask", "features", "io", "nn", "plotting", "testing")


def __getattr__(name: str) -> Any:
    """Import a public submodule when it is first used: each loads a library of its own."""
    if name in _SUBMODULES:
        return importlib.import_module(f"ecc_core.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
