"""The quantities of transformers, by the values of their parameter `quantity`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ecc_core
from ecc_core.quantities import CURVES, CurveQuantity


class Parameter(NamedTuple):
    """A parameter of transformers that only one quantity has."""

    quantity: str
    default: Any


PARAMETERS = {
    "min_persistence": Parameter("betti", 0),
    "spacing": Parameter("minkowski", None),
    "estimator": Parameter("minkowski", "exact"),
}


def quantity_named(name: Any, *, of_regions: bool = False) -> CurveQuantity[Any]:
    """Return the quantity with a name, which must have a function of regions if `of_regions`."""
    names = [key for key, one in CURVES.items() if one.of_regions or not of_regions]
    if name not in names:
        words = ", ".join(f'"{key}"' for key in names[:-1])
        raise ValueError(f'`quantity` must be {words} or "{names[-1]}", got {name!r}')
    return CURVES[name]


def function_of(name: Any, *, of_regions: bool = False) -> Callable[..., Any]:
    """Return the public function that computes a quantity of images, or of regions."""
    quantity = quantity_named(name, of_regions=of_regions)
    found: Callable[..., Any] = getattr(
        ecc_core, quantity.of_regions if of_regions else quantity.of_image
    )
    return found


def options_of(transformer: Any) -> dict[str, Any]:
    """Return the parameters of a transformer's quantity. Those of others must be the default."""
    found = {}
    for name, (quantity, default) in PARAMETERS.items():
        value = getattr(transformer, name)
        if transformer.quantity == quantity:
            found[name] = value
        elif not _is_default(value, default):
            raise ValueError(
                f'`{name}` must be {default!r} unless `quantity` is "{quantity}", got {value!r}'
            )
    return found


def _is_default(value: Any, default: Any) -> bool:
    is_scalar = isinstance(value, str | int | float)  # An array has no single truth value.
    return value is default or (is_scalar and value == default)


def names_of_features(functionals: tuple[str, ...], count: int) -> list[str]:
    """Return the names of the features of an image, for each functional at each threshold."""
    prefixes = ["ecc" if functionals == ("euler",) else f"{name}_" for name in functionals]
    return [f"{prefix}{i}" for prefix in prefixes for i in range(count)]
