"""Whether curves can be compared with each other, from what they know of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ecc_core.results._base import Result
from ecc_core.results._curves import agreed_superlevel


def functionals_of(curve: Any) -> tuple[str, ...]:
    """Return the names of what a result has along the last axis but one; "euler" without one."""
    return curve._functionals if isinstance(curve, Result) else ("euler",)


def meaning(curve: Any, functional: str | None = None) -> dict[str, Any]:
    """Return the facts in which a result must agree with others; none of a pair of arrays."""
    return curve._meaning(functional) if isinstance(curve, Result) else {}


def agree(meanings: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that what is known of curves, by their names, agrees.

    Raises
    ------
    ValueError
        Naming the fact and two of the curves.
    """
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

    Pairs of arrays know nothing of themselves and agree with everything.

    Parameters
    ----------
    superlevel : bool or None
        What is given for pairs of thresholds and values.
    functional : str or None
        Which functional of Minkowski or Betti curves is compared. None: all of them.
    **given : curves, transforms or list of these
        By name.

    Raises
    ------
    ValueError
        If the curves differ in connectivity, boundary, direction, functional, units or in the
        number of axes of their images, or if some are of sublevel and some of superlevel sets.
    """
    named: dict[str, Any] = {}
    for name, curves in given.items():
        several = isinstance(curves, list)
        named |= {f"{name}[{i}]": c for i, c in enumerate(curves)} if several else {name: curves}
    orders = {name: agreed_superlevel(c, superlevel, name) for name, c in named.items()}
    if len(set(orders.values())) > 1:
        first, other = (next(n for n, o in orders.items() if o is order) for order in (False, True))
        raise ValueError(
            "curves must all be of sublevel or all of superlevel sets, "
            f"got sublevel sets in `{first}` and superlevel sets in `{other}`"
        )
    agree({name: meaning(curve, functional) for name, curve in named.items()})
    return any(orders.values())
