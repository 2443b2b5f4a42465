"""Persistence pairs of an image of keys on a device."""

import math
from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from ecc_core._backends.components import kind_of
from ecc_core._backends.cuda.classes import lasting_classes
from ecc_core._backends.cuda.forests import Forests
from ecc_core._backends.cuda.torus import Torus, circles_of, without_circles
from ecc_core._backends.cuda.tunnels import tunnel_pairs
from ecc_core._request.filtration import Filtration

Points = tuple[Any, Any]
"""Where classes are born and die, -1 if they do not die: in the order of `lasting_classes`."""


def pairs_of_keys(
    keys: Any, never: int, dimensions: Sequence[int], filtration: Filtration
) -> list[Points]:
    """Return the classes of each dimension; points with the key `never` do not enter."""
    circles = circles_of(keys.shape, filtration)
    if circles:
        return _pairs_around(
            keys, never, dimensions=dimensions, filtration=filtration, circles=circles
        )
    if filtration.boundary.is_closed:
        forests, outer = _grown(keys, never, dimensions, filtration, torus=False)
        classes = []
        for k in dimensions:
            if k in outer:
                classes.append(forests.lasting_pairs(outer.index(k)))
            else:
                classes.append(tunnel_pairs(forests))
        return classes
    torus = Torus.of(keys, filtration)
    on_torus = torus.laid_out(keys, never)
    forests, outer = _grown(on_torus, never, dimensions, filtration, torus=True)
    found = []
    for k in dimensions:
        if k == filtration.ndim:
            found.append(_whole(keys, never))
            continue
        if k not in outer:
            births, deaths = tunnel_pairs(forests)
        elif k == 0:
            births, deaths = forests.lasting_pairs(outer.index(k))
        else:
            births, deaths = _with_loops(forests, outer.index(k))
        found.append((torus.places_of(births), torus.places_of(deaths)))
    return found


def _grown(
    keys: Any, never: int, dimensions: Sequence[int], filtration: Filtration, *, torus: bool
) -> tuple[Forests, list[int]]:
    """Return the forests that classes of some dimensions need, and the dimension of each.

    Those of a torus itself need none, but there is one.
    """
    last = filtration.ndim - 1
    if any(0 < k < last for k in dimensions):
        outer = [0, last]
    else:
        outer = [k for k in dimensions if k <= last] or [0]
    kinds = [kind_of(filtration, complement=k > 0) for k in outer]
    forests = Forests(keys, kinds, never, reverse=False, paired=True, torus=torus)
    for i in range(len(kinds)):
        forests.tree(i)  # All are launched before the host waits for any number of pairs.
    return forests, outer


def _with_loops(forests: Forests, index: int) -> Points:
    """Return the classes of components of the complement of a torus.

    A class of loops that the complement loses is one that begins and never ends.
    """
    births, deaths = forests.lasting_pairs(index)
    edges = forests.closed_loops(index)
    if not edges:
        return births, deaths
    begun = forests.tree(index).edges[cupy.asarray(np.array(edges)), 0].astype(np.int64)
    births = cupy.concatenate([births, begun])
    deaths = cupy.concatenate([deaths, cupy.full(len(edges), -1, np.int64)])
    return lasting_classes(forests.codes, forests.levels, births, deaths)


def _whole(keys: Any, never: int) -> Points:
    """Return the class of a torus itself, which is born at the last point if all enter."""
    last = keys.max()
    births = cupy.flatnonzero(keys.ravel() == last)[-1:]
    births = births[: int(last) < never]
    return births, cupy.full(births.size, -1, np.int64)


def _pairs_around(
    keys: Any, never: int, dimensions: Sequence[int], filtration: Filtration, circles: int
) -> list[Points]:
    """Return the classes of an image times circles: see :mod:`ecc_core._backends.cuda.torus`."""
    rest, sets = without_circles(keys, filtration)
    shifts = range(circles + 1)
    asked = sorted({k - shift for k in dimensions for shift in shifts} & {*range(sets.classes)})
    known = dict(zip(asked, pairs_of_keys(rest, never, asked, sets), strict=True))
    found = []
    for k in dimensions:
        parts = [(cupy.empty(0, np.int64),) * 2]
        for shift in shifts:
            parts += math.comb(circles, shift) * [known[k - shift]] if k - shift in known else []
        births, deaths = (cupy.concatenate(points) for points in zip(*parts, strict=True))
        found.append(lasting_classes(keys, never, births, deaths))
    return found
