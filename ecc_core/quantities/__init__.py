"""What is computed: one module for each quantity, from which all others learn what they need.

A quantity says for which borders it is defined, what is computed of a box of an image, how boxes
are joined, what its result and its columns are, and which words the commands and docks use. Another
one is a module here, named in `QUANTITIES`.
"""

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
