"""The list of all quantities."""

from typing import Any

from ecc_core.quantities._base import CurveQuantity, Function, Quantity
from ecc_core.quantities.betti import BETTI
from ecc_core.quantities.components import COMPONENTS
from ecc_core.quantities.euler import EULER
from ecc_core.quantities.minkowski import MINKOWSKI
from ecc_core.quantities.persistence import PERSISTENCE
from ecc_core.quantities.surface import SURFACE

__all__ = ["CURVES", "QUANTITIES", "CurveQuantity", "Function", "Quantity"]

QUANTITIES: tuple[Quantity, ...] = (EULER, SURFACE, BETTI, MINKOWSKI, COMPONENTS, PERSISTENCE)
CURVES: dict[str, CurveQuantity[Any]] = {
    one.name: one for one in QUANTITIES if isinstance(one, CurveQuantity)
}
"""Those that commands, tables and docks take, by name; the Euler characteristic comes first."""
