"""What transformers compute of the sets of an image: the values of their parameter `quantity`."""

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
    """Return a quantity, after checking that it exists, of regions if wanted."""
    names = [key for key, one in CURVES.items() if one.of_regions or not of_regions]
    if name not in names:
        words = ", ".join(f'"{key}"' for key in names[:-1])
        raise ValueError(f'`quantity` must be {words} or "{names[-1]}", got {name!r}')
    return CURVES[name]


def function_of(name: Any, *, of_regions: bool = False) -> Callable[..., Any]:
    """Return the public function that computes a quantity, of regions if wanted."""
    quantity = quantity_named(name, of_regions=of_regions)
    found: Callable[..., Any] = getattr(
        ecc_core, quantity.of_regions if of_regions else quantity.of_image
    )
    return found


def options_of(transformer: Any) -> dict[str, Any]:
    """Return the parameters of a transformer that its quantity has, and refuse the others."""
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
    is_scalar = isinstance(value, str | int | float)  # arrays have no single truth value
    return value is default or (is_scalar and value == default)


def names_of_features(functionals: tuple[str, ...], count: int) -> list[str]:
    """Return the names of the features of one image: for each functional those at thresholds."""
    prefixes = ["ecc" if functionals == ("euler",) else f"{name}_" for name in functionals]
    return [f"{prefix}{i}" for prefix in prefixes for i in range(count)]
