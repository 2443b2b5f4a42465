"""What a backend is: the functions that it has, in parts, of which only `Backend` is required.

Parts are modules or other objects; mypy checks that those of this package have these signatures.
Arguments have been checked. Images are (images, *spatial) with 1 to 3 spatial axes, in the arrays
that the adapter unwraps; results may be NumPy arrays or arrays of the device. Masks have the
image's shape. Thresholds are sorted NumPy arrays of real numbers. `workers` is a number of threads
or None, and may be ignored. NaN raises ValueError with ``errors.NAN_MESSAGE`` where
``filtration.nan`` is "raise". Points are numbered in C order.
"""

from ecc_core._backends.protocols.arrays import DeviceArray
from ecc_core._backends.protocols.betti import BettiNumbers, HostBettiNumbers
from ecc_core._backends.protocols.cells import CellCounts, WindowCellCounts
from ecc_core._backends.protocols.curves import Backend, Planner, Shards, Surfaces
from ecc_core._backends.protocols.pieces import (
    BettiPieces,
    PairPieces,
    SizePieces,
    TunnelPieces,
)
from ecc_core._backends.protocols.shapes import (
    HostSimplicialComplexes,
    SimplicialComplexes,
    Transforms,
)

__all__ = [
    "Backend",
    "BettiNumbers",
    "BettiPieces",
    "CellCounts",
    "DeviceArray",
    "HostBettiNumbers",
    "HostSimplicialComplexes",
    "PairPieces",
    "Planner",
    "Shards",
    "SimplicialComplexes",
    "SizePieces",
    "Surfaces",
    "Transforms",
    "TunnelPieces",
    "WindowCellCounts",
]
