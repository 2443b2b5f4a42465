"""Births and deaths of the components of values on a graph, from a union-find over its edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.trees import JOINED, join_eldest
from ecc_core._backends.cpu.order import entry_values, sort_keys, stable_order

Points = NDArray[np.int64]


def component_pairs(
    values: NDArray[Any], edges: NDArray[Any], superlevel: bool
) -> tuple[Points, Points]:
    """Return the points of birth and death of all components, oldest first; -1 for no death.

    Components that die at the value at which they are born are left out. Where two components meet,
    the younger one dies; of equal values, that of the larger number.
    """
    order = stable_order(entry_values(values, superlevel)).astype(np.int64)
    ages = np.empty(order.size, np.int64)
    ages[order] = np.arange(order.size)
    ends = ages[edges]
    entered = ends.max(axis=1)
    age_dtype = np.uint32 if order.size < 2**32 else np.uint64
    sequence = sort_keys(entered.astype(age_dtype))
    parents = np.arange(order.size)
    younger = np.empty(len(ends), np.int64)
    nothing = np.empty((0, 0), np.int64)
    join_eldest(ends[sequence], parents, eldest=nothing, younger=younger, ended=nothing)
    joining = younger != JOINED
    young = younger[joining]
    deaths = np.full(order.size, -1)
    deaths[young] = order[entered[sequence][joining]]
    lives = np.ones(order.size, np.bool_)
    lives[young] = values[order[young]] != values[deaths[young]]
    return order[lives], deaths[lives]
