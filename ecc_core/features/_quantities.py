"""What transformers compute of the sets of an image: the values of their parameter `quantity`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

from ecc_core.components import component_curves
from ecc_core.curves import euler_curve, region_curves
from ecc_core.geometry import minkowski_curves, region_minkowski
from ecc_core.topology import betti_curves, region_betti_curves

QuantityName: TypeAlias = Literal["euler", "betti", "minkowski", "components"]


class Quantity(NamedTuple):
    """The functions that compute a quantity."""

    of_image: Callable[..., Any]
    of_regions: Callable[..., Any] | None  # None if there is none
    options: tuple[str, ...] = ()  # parameters of transformers that only this quantity has


QUANTITIES = {
    "euler": Quantity(euler_curve, region_curves),
    "betti": Quantity(betti_curves, region_betti_curves, ("min_persistence",)),
    "minkowski": Quantity(minkowski_curves, region_minkowski, ("spacing", "estimator")),
    "components": Quantity(component_curves, None),
}
DEFAULTS: dict[str, Any] = {"min_persistence": 0, "spacing": None, "estimator": "exact"}
"""The values of parameters that a quantity ignores."""


def quantity_named(name: Any, *, of_regions: bool = False) -> Quantity:
    """Return a quantity, after checking that it exists, of regions if wanted."""
    names = [key for key, one in QUANTITIES.items() if one.of_regions or not of_regions]
    if name not in names:
        words = ", ".join(f'"{key}"' for key in names[:-1])
        raise ValueError(f'`quantity` must be {words} or "{names[-1]}", got {name!r}')
    return QUANTITIES[name]


def options_of(quantity: Quantity, transformer: Any) -> dict[str, Any]:
    """Return the parameters of a transformer that its quantity has, and refuse the others."""
    for name, default in DEFAULTS.items():
        value = getattr(transformer, name)
        is_default = value is default or (isinstance(value, str | int | float) and value == default)
        if name not in quantity.options and not is_default:
            owner = next(key for key, one in QUANTITIES.items() if name in one.options)
            raise ValueError(
                f'`{name}` must be {default!r} unless `quantity` is "{owner}", got {value!r}'
            )
    return {name: getattr(transformer, name) for name in quantity.options}


def names_of_features(functionals: tuple[str, ...], count: int) -> list[str]:
    """Return the names of the features of one image: for each functional those at thresholds."""
    prefixes = ["ecc" if name == "euler" == functionals[0] else f"{name}_" for name in functionals]
    return [f"{prefix}{i}" for prefix in prefixes for i in range(count)]
