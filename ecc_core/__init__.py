"""Euler characteristic curves and transforms of 2-D and 3-D images: exact and fast."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ecc_core._warmup import warmup
    from ecc_core.coefficients import euler_coefficients
    from ecc_core.components import component_curves, persistent_regions
    from ecc_core.curves import euler_curve, euler_number
    from ecc_core.geometry import minkowski_curves, region_minkowski
    from ecc_core.matching import betti_matching
    from ecc_core.persistence import persistence_pairs
    from ecc_core.regions import region_curves
    from ecc_core.results import (
        BettiCurves,
        BettiMatching,
        ComponentCurves,
        EulerCurve,
        EulerSurface,
        EulerTransform,
        MinkowskiCurves,
        PersistencePairs,
        PersistentRegions,
        RegionBettiCurves,
        RegionCurves,
        RegionMinkowski,
        RegionTransforms,
    )
    from ecc_core.shards import euler_curve_shards
    from ecc_core.simplicial import simplicial_curve, simplicial_pairs, simplicial_transform
    from ecc_core.surfaces import euler_surface
    from ecc_core.topology import (
        betti_curves,
        betti_numbers,
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
    "BettiMatching",
    "ComponentCurves",
    "EulerCurve",
    "EulerSurface",
    "EulerTransform",
    "MinkowskiCurves",
    "PersistencePairs",
    "PersistentRegions",
    "RegionBettiCurves",
    "RegionCurves",
    "RegionMinkowski",
    "RegionTransforms",
    "betti_curves",
    "betti_matching",
    "betti_numbers",
    "component_curves",
    "euler_coefficients",
    "euler_curve",
    "euler_curve_shards",
    "euler_number",
    "euler_surface",
    "euler_transform",
    "minkowski_curves",
    "persistence_pairs",
    "persistent_regions",
    "region_betti_curves",
    "region_curves",
    "region_minkowski",
    "region_transforms",
    "sample_directions",
    "simplicial_curve",
    "simplicial_pairs",
    "simplicial_transform",
    "smooth_transform",
    "transform_distance",
    "warmup",
]

_MODULES = (
    "components",
    "coefficients",
    "curves",
    "geometry",
    "matching",
    "persistence",
    "regions",
    "results",
    "shards",
    "simplicial",
    "surfaces",
    "topology",
    "transforms",
)
_SUBMODULES = (*_MODULES, "dask", "errors", "features", "io", "nn", "plotting", "testing")


def __getattr__(name: str) -> Any:
    """Import names and public submodules when they are first used, so that `ecc` starts at once."""
    if name in _SUBMODULES:
        return importlib.import_module(f"ecc_core.{name}")
    if name in __all__:
        modules = (
            importlib.import_module(f"ecc_core.{module}") for module in (*_MODULES, "_warmup")
        )
        found = next(getattr(module, name) for module in modules if name in module.__all__)
        return globals().setdefault(name, found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
