"""The dtypes, constructions, orders and estimators that tests cover."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from ecc_core.testing import strategies

EVERY_DTYPE = (*strategies.NATIVE_DTYPES, *strategies.SWAPPED_DTYPES)
OF_16_BITS = tuple(name for name in EVERY_DTYPE if np.dtype(name).itemsize == 2)
OTHERS = tuple(name for name in EVERY_DTYPE if name not in OF_16_BITS)
"""Kernels of persistence are compiled for each width of values, and tests take only three."""
ESTIMATORS = {1: ("exact",), 2: ("exact", "crofton-4"), 3: ("exact", "crofton-3", "crofton-13")}
"""The estimators of Minkowski functionals for each number of axes."""


def connectivities(ndim: int) -> list[int]:
    return sorted({1, ndim})


def sides(ndim: int) -> list[dict[str, Any]]:
    """Return the options of both constructions and both orders."""
    return [
        {"connectivity": connectivity, "superlevel": superlevel}
        for connectivity in connectivities(ndim)
        for superlevel in (False, True)
    ]


def with_connectivities(shapes: Iterable[tuple[int, ...]]) -> list[Any]:
    """Return parameters: each shape with each connectivity."""
    return [
        pytest.param(shape, connectivity, id=f"{size_of(shape)}-{connectivity}")
        for shape in shapes
        for connectivity in connectivities(len(shape))
    ]


def with_sides(shapes: Iterable[tuple[int, ...]]) -> list[Any]:
    """Return parameters: each shape with each pair of construction and order."""
    return [
        pytest.param(shape, side, id=f"{size_of(shape)}-{name_of(side)}")
        for shape in shapes
        for side in sides(len(shape))
    ]


def cases_of_connectivities(shapes: Iterable[tuple[int, ...]]) -> list[Any]:
    """Return `with_connectivities` as values of one parameter, so that sweeps run them all."""
    return [pytest.param(row.values, id=row.id) for row in with_connectivities(shapes)]


def cases_of_sides(shapes: Iterable[tuple[int, ...]]) -> list[Any]:
    """Return `with_sides` as values of one parameter, so that sweeps run them all."""
    return [pytest.param(row.values, id=row.id) for row in with_sides(shapes)]


def size_of(shape: tuple[int, ...]) -> str:
    """Return a shape for the name of a case, such as 5x7."""
    return "x".join(map(str, shape))


def name_of(side: dict[str, Any]) -> str:
    """Return options of `sides` for the name of a case, such as 1-super."""
    return f"{side['connectivity']}-{'super' if side['superlevel'] else 'sub'}"


def any_side(ndim: int) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for one of the options of `sides`."""
    return st.sampled_from(sides(ndim)).map(dict)


@st.composite
def omitting(draw: st.DrawFn, image: np.ndarray) -> dict[str, Any]:
    """Draw options of `sides` with a mask or none, where points with NaN never enter."""
    mask = draw(st.none() | strategies.masks(image.shape))
    return {**draw(any_side(image.ndim)), "mask": mask, "nan": "omit"}
