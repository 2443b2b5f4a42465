"""What is computed: one module for each quantity, from which all others learn what they need.

A quantity says for which borders it is defined, what is computed of a box of an image, how boxes
are joined, what its result and its columns are, and which words the commands and docks use. Another
one is a module here, which ``registry.py`` finds.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ecc_core.quantities._base import CurveQuantity, Function, Quantity
    from ecc_core.quantities.registry import CURVES, QUANTITIES

__all__ = ["CURVES", "QUANTITIES", "CurveQuantity", "Function", "Quantity"]


def __getattr__(name: str) -> Any:
    """Import the list when it is used: a function needs its own quantity only."""
    if name in __all__:
        from ecc_core.quantities import registry

        return getattr(registry, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
