"""Euler characteristic curves and transforms of 2-D and 3-D images: exact and fast."""

from ecc_core.curves import (
    EulerCurve,
    RegionCurves,
    euler_coefficients,
    euler_curve,
    euler_number,
    region_curves,
    warmup,
)

__all__ = [
    "EulerCurve",
    "RegionCurves",
    "euler_coefficients",
    "euler_curve",
    "euler_number",
    "region_curves",
    "warmup",
]
