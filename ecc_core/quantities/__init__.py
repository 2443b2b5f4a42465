"""The quantities that are computed, one module each.

A quantity defines for which borders it exists, what is computed of a box of an image, how boxes are
joined, its result, the columns of its tables, and its words in commands and docks. To add one, add
a module here, which ``registry.py`` finds.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ecc_core.quantities._base import CurveQuantity, Function, Quantity
    from ecc_core.quantities.registry import CURVES, QUANTITIES

__all__ = ["CURVES", "QUANTITIES", "CurveQuantity", "Function", "Quantity"]


def __getattr__(name: str) -> Any:
    """Import the registry when it is used, because a public function needs one quantity only."""
    if name in __all__:
        from ecc_core.quantities import registry

        return getattr(registry, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
