"""The list of all quantities, which the modules beside this one declare."""

import pkgutil
from argparse import Namespace
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ecc_core import quantities
from ecc_core.quantities._base import CurveQuantity, Function, Quantity

__all__ = ["CURVES", "QUANTITIES", "CurveQuantity", "Function", "Quantity"]


def _declared() -> Iterator[Quantity]:
    """Yield the quantities that the modules of this folder declare."""
    for found in pkgutil.iter_modules(quantities.__path__, f"{quantities.__name__}."):
        module = import_module(found.name)
        for value in vars(module).values():
            if isinstance(value, Quantity) and type(value).__module__ == module.__name__:
                yield value


QUANTITIES: tuple[Quantity, ...] = tuple(
    sorted(_declared(), key=lambda one: (one.position, one.name))
)
CURVES: dict[str, CurveQuantity[Any]] = {
    one.name: one for one in QUANTITIES if isinstance(one, CurveQuantity)
}
"""The quantities that commands, tables and docks take, by name; the Euler characteristic is first.
"""


def quantities_of(arguments: Namespace) -> list[CurveQuantity[Any]]:
    """Return the quantities that a command computes, in the order of their columns."""
    found = [one for name, one in CURVES.items() if getattr(arguments, name, False)]
    if any(one.with_euler for one in found):
        return found
    return [CURVES["euler"], *found]
