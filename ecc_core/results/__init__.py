"""Results of the public functions: arrays together with how they were computed.

A result unpacks into its arrays, ``thresholds, values = euler_curve(image)``. It records the
connectivity and the other arguments on which its meaning depends, so that they need not be given
again when it is plotted, described, compared or saved.
"""

from ecc_core.results._agreement import agree, check_agreement, functionals_of, meaning
from ecc_core.results._base import Result, columns
from ecc_core.results._betti import BettiCurves, BettiResult, RegionBettiCurves
from ecc_core.results._components import ComponentCurves, PersistentRegions
from ecc_core.results._curves import (
    CurveResult,
    EulerCurve,
    LocalCurves,
    RegionCurves,
    agreed_superlevel,
    curve_facts,
    without_arrays,
)
from ecc_core.results._matching import BettiMatching
from ecc_core.results._minkowski import MinkowskiCurves, RegionMinkowski, minkowski_facts
from ecc_core.results._pairs import PersistencePairs
from ecc_core.results._surfaces import EulerSurface, surface_facts
from ecc_core.results._transforms import EulerTransform, RegionTransforms, TransformResult

__all__ = [
    "BettiCurves",
    "BettiMatching",
    "BettiResult",
    "ComponentCurves",
    "CurveResult",
    "EulerCurve",
    "EulerSurface",
    "EulerTransform",
    "LocalCurves",
    "MinkowskiCurves",
    "PersistencePairs",
    "PersistentRegions",
    "RegionBettiCurves",
    "RegionCurves",
    "RegionMinkowski",
    "RegionTransforms",
    "Result",
    "TransformResult",
    "agree",
    "agreed_superlevel",
    "check_agreement",
    "columns",
    "curve_facts",
    "functionals_of",
    "meaning",
    "minkowski_facts",
    "surface_facts",
    "without_arrays",
]
