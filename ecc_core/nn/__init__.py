"""Euler characteristic and Betti curves and transforms as PyTorch layers, and losses."""

from ecc_core._optional import import_optional

import_optional("torch", extra="torch", purpose="`ecc_core.nn`")

from ecc_core.nn import functional  # noqa: E402 (after the check that torch is there)
from ecc_core.nn.layers import (  # noqa: E402
    BettiCurveLayer,
    EulerCurveLayer,
    EulerCurveMap,
    EulerTransformLayer,
    LifetimeLayer,
    SimplicialTransformLayer,
    parameter_groups,
)
from ecc_core.nn.loss import EulerCurveLoss  # noqa: E402
from ecc_core.nn.matching import BettiMatchingLoss  # noqa: E402
from ecc_core.nn.metrics import BettiError  # noqa: E402
from ecc_core.nn.persistence import PersistenceLoss  # noqa: E402

__all__ = [
    "BettiCurveLayer",
    "BettiError",
    "BettiMatchingLoss",
    "EulerCurveLayer",
    "EulerCurveLoss",
    "EulerCurveMap",
    "EulerTransformLayer",
    "LifetimeLayer",
    "PersistenceLoss",
    "SimplicialTransformLayer",
    "functional",
    "parameter_groups",
]
