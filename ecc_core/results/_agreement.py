"""Checks that curves can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ecc_core.results._base import Result
from ecc_core.results._curves import agreed_superlevel

if TYPE_CHECKING:
    from collections.abc import Mapping


def functionals_of(curve: Any) -> tuple[str, ...]:
    """Return the names of a result's functionals, ("euler",) if it has no axis of them."""
    return curve._functionals if isinstance(curve, Result) else ("euler",)


def meaning(curve: Any, functional: str | None = None) -> dict[str, Any]:
    """Return the facts in which a result must agree with others, {} for a pair of arrays."""
    return curve._meaning(functional) if isinstance(curve, Result) else {}


def agree(meanings: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that the facts of curves, by the names of the curves, agree."""
    first: dict[str, tuple[str, Any]] = {}
    for name, known in meanings.items():
        for fact, value in known.items():
            other, expected = first.setdefault(fact, (name, value))
            if value != expected:
                raise ValueError(
                    f"curves must agree in `{fact}` to be compared, "
                    f"got {expected!r} in `{other}` and {value!r} in `{name}`"
                )


def check_agreement(
    superlevel: bool | None = None, functional: str | None = None, /, **given: Any
) -> bool:
    """Check that curves can be compared, and return whether they are those of superlevel sets.

    Curves, transforms or lists of these are given by name. Pairs of arrays have no facts and agree
    with everything; `superlevel` says of which sets they are. With a functional, only this one of
    Minkowski or Betti curves is compared.
    """
    named: dict[str, Any] = {}
    for name, curves in given.items():
        several = isinstance(curves, list)
        named |= {f"{name}[{i}]": c for i, c in enumerate(curves)} if several else {name: curves}
    orders = {name: agreed_superlevel(c, superlevel, name) for name, c in named.items()}
    if len(set(orders.values())) > 1:
        # Reversed, so that the first curve of each kind is kept.
        name_of = {order: name for name, order in reversed(orders.items())}
        first = name_of[False]
        other = name_of[True]
        raise ValueError(
            "curves must all be of sublevel or all of superlevel sets, "
            f"got sublevel sets in `{first}` and superlevel sets in `{other}`"
        )
    agree({name: meaning(curve, functional) for name, curve in named.items()})
    return any(orders.values())
