"""The curves of the CPU backend: what `Backend` and `Planner` of the protocols ask for."""

from ecc_core._backends.cpu.curves import after_range, coefficients, curve, exact_curve, number
from ecc_core._backends.cpu.prepared import plan
from ecc_core._backends.cpu.regions.curves import region_curves
from ecc_core._backends.cpu.value_range import value_range

__all__ = [
    "after_range",
    "coefficients",
    "curve",
    "exact_curve",
    "number",
    "plan",
    "region_curves",
    "value_range",
]
