"""Layers that turn images and complexes into soft curves, transforms and lifetimes."""

from ecc_core.nn.layers._base import parameter_groups
from ecc_core.nn.layers.betti import BettiCurveLayer, LifetimeLayer
from ecc_core.nn.layers.curve import EulerCurveLayer
from ecc_core.nn.layers.curve_map import EulerCurveMap
from ecc_core.nn.layers.simplicial import SimplicialTransformLayer
from ecc_core.nn.layers.transform import EulerTransformLayer

__all__ = [
    "BettiCurveLayer",
    "EulerCurveLayer",
    "EulerCurveMap",
    "EulerTransformLayer",
    "LifetimeLayer",
    "SimplicialTransformLayer",
    "parameter_groups",
]
