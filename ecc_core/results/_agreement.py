"""Whether curves can be compared with each other, from what they know of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ecc_core.results._curves import CurveResult, agreed_superlevel
from ecc_core.results._minkowski import MinkowskiCurves, RegionMinkowski
from ecc_core.results._topology import BettiResult

__all__ = ["agree", "check_agreement", "functionals_of", "meaning"]


def functionals_of(curve: Any) -> tuple[str, ...]:
    """Return the names of what a result has along the last axis but one; "euler" without one."""
    if isinstance(curve, MinkowskiCurves | RegionMinkowski):
        return curve.measures
    if isinstance(curve, BettiResult):
        return tuple(f"b{k}" for k in np.arange(np.shape(curve.values)[-2]))
    return ("euler",)


def meaning(curve: Any, functional: str | None = None) -> dict[str, Any]:
    """Return the facts in which curves must agree to be compared, without those that are unknown.

    With a functional, of that one of Betti or Minkowski curves.
    """
    if not isinstance(curve, CurveResult):
        return {}
    facts = curve.facts
    several = functionals_of(curve)
    name = functional or (several[0] if len(several) == 1 else type(curve)._quantity)
    known = {fact: facts.get(fact) for fact in ("ndim", "connectivity", "units")}
    known = {fact: value for fact, value in known.items() if value is not None}
    known |= {
        "functional": name,
        "superlevel": curve.superlevel,
        "boundary": facts.get("boundary", "closed"),
        "density": facts.get("density", False),
        "direction": facts.get("direction"),
    }
    measured = "estimator" in facts and name != "euler"  # or all functionals
    if measured:
        known["estimator"] = facts["estimator"]
    if known["direction"] is not None:
        known["direction_scale"] = facts["direction_scale"]
    if measured or known["density"] or known["direction"] is not None:
        known["spacing_units"] = facts.get("spacing_units")  # numbers depend on it, known or not
    return known


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
    **given : curves or list of curves
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
