"""The complexes and orders that tests go through."""

from typing import Any

from hypothesis import strategies as st


def connectivities(ndim: int) -> list[int]:
    return sorted({1, ndim})


def sides(ndim: int) -> list[dict[str, Any]]:
    """Options of both constructions and both orders."""
    return [
        {"connectivity": connectivity, "superlevel": superlevel}
        for connectivity in connectivities(ndim)
        for superlevel in (False, True)
    ]


def any_side(ndim: int) -> st.SearchStrategy[dict[str, Any]]:
    """One of them."""
    return st.sampled_from(sides(ndim)).map(dict)
