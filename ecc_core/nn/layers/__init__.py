"""Layers that turn images and complexes into soft Euler characteristic curves and transforms."""

from ecc_core.nn.layers._base import parameter_groups
from ecc_core.nn.layers.curve import EulerCurveLayer
from ecc_core.nn.layers.curve_map import EulerCurveMap
from ecc_core.nn.layers.simplicial import SimplicialTransformLayer
from ecc_core.nn.layers.transform import EulerTransformLayer

__all__ = [
    "EulerCurveLayer",
    "EulerCurveMap",
    "EulerTransformLayer",
    "SimplicialTransformLayer",
    "parameter_groups",
]
