"""The list of all quantities."""

from argparse import Namespace
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


def quantities_of(arguments: Namespace) -> list[CurveQuantity[Any]]:
    """Return the quantities that are computed, the Euler characteristic first."""
    found = [one for name, one in CURVES.items() if getattr(arguments, name, False)]
    if any(one.with_euler for one in found):
        return found
    return [CURVES["euler"], *found]
