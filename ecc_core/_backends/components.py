"""Which components make up the Betti numbers of an image, on any backend."""

from typing import Any, NamedTuple

import numpy as np

from ecc_core._request.filtration import Filtration


class Kind(NamedTuple):
    """Which components to follow."""

    connectivity: int
    """1: along axes; the number of axes: also along diagonals. Rows count as planes."""
    complement: bool
    """True for components of the complement, in a frame around the image. They grow from the last
    point that enters to the first, so keys are reversed."""


def kinds_of(filtration: Filtration) -> list[Kind]:
    """Return the components to count; the other Betti number follows from the Euler characteristic.

    In 2-D only those that connect along diagonals are counted, because they have fewer minima.
    """
    if filtration.ndim == 3:
        return [kind_of(filtration, complement=False), kind_of(filtration, complement=True)]
    return [kind_of(filtration, complement=filtration.ndim == 2 and not filtration.cubes)]


def kind_of(filtration: Filtration, *, complement: bool) -> Kind:
    """Return the kind of components of sets, or of complements, which connect the other way."""
    full = max(filtration.ndim, 2)
    wide = filtration.ndim == 1 or filtration.cubes != complement
    return Kind(full if wide else 1, complement)


def complete(ends: list[Any], kinds: list[Kind], euler: Any, ndim: int) -> Any:
    """Return all Betti numbers, given those of `kinds` and the Euler characteristic."""
    if ndim == 1:
        curves = ends
    elif ndim == 3:
        curves = [ends[0], ends[0] + ends[1] - euler, ends[1]]
    else:
        first = ends[0] + euler if kinds[0].complement else ends[0]
        curves = [first, first - euler]
    return np.concatenate([one[None] for one in curves])  # np.stack takes longer.
