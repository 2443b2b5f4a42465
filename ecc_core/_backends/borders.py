"""Curves of periodic images and half-open windows, computed from the curve of the closed image.

The cells of these images differ from those of the closed image only in planes at the border. Along
one axis, the differences are:

- V, periodic: an additional edge connects the last point and the first. Its value is their maximum.
- V, half-open: the last vertex is missing.
- T, periodic: the two outer faces are replaced by one face between the last cube and the first. Its
  value is their minimum.
- T, half-open: the two outer faces and the last cube are missing.

Along several axes, each with its own border, the changes are combined in all ways. Each combination
is a count of the cells of a box whose thickness is one point along some of the axes.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ecc_core._backends.signed_boxes import Box, signed_sum
from ecc_core._request.boundary import CLOSED, Boundary
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import changes, distinct_values


def closed(filtration: Filtration, ndim: int) -> Filtration:
    """Return the filtration for closed images with `ndim` axes."""
    boundary = Boundary.alike(CLOSED, filtration.ndim)
    return replace(filtration, boundary=boundary).in_axes(ndim)


def _boxes(image: Any, mask: Any, filtration: Filtration) -> Iterator[tuple[int, Box]]:
    """Yield an image and the boxes at its border, and how often each of their curves counts.

    A box loses each axis along which it is one point thick, but keeps at least one spatial axis.
    """

    def taken(box: Box, axis: int) -> Iterator[tuple[int, Box]]:
        if axis == 0:
            yield 1, box
            return
        planes = filtration.boundary.axes[axis - 1].planes[filtration.cubes]
        parts = ((sign, _plane(box, axis, take, filtration)) for take, sign in planes)
        for sign, part in ((1, box), *parts):
            for other, smaller in taken(part, axis - 1):
                yield sign * other, smaller

    box = (image,) if mask is None else (image, np.broadcast_to(mask, image.shape))
    boxes = taken(box, filtration.ndim) if image.size else iter([(1, box)])
    for sign, part in boxes:
        if part[0].ndim > 1:
            yield sign, part
        else:
            yield sign, tuple(array[:, None] for array in part)


def _plane(box: Box, axis: int, take: str, filtration: Filtration) -> Box:
    before = (slice(None),) * axis
    first = tuple(part[(*before, 0)] for part in box)
    last = tuple(part[(*before, -1)] for part in box)
    if take != "joined":
        return first if take == "first" else last
    low = first[0]
    high = last[0]
    if not filtration.cubes:  # NaN must be propagated, because it never enters.
        later = np.minimum if filtration.superlevel else np.maximum
        return (later(low, high), *(a & b for a, b in zip(first[1:], last[1:], strict=True)))
    earlier = np.fmax if filtration.superlevel else np.fmin
    joined = earlier(low, high)
    if len(box) == 1:
        return (joined,)
    shown = first[1]
    hidden = last[1]
    return np.where(shown & hidden, joined, np.where(shown, low, high)), shown | hidden


def bordered_curve(
    curve: Callable[..., Any],
    image: Any,
    thresholds: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    **options: Any,
) -> Any:
    """Return what the planes at the border add to the curve of a closed image, (images, n) or 0.

    `curve` is the function of a backend, and `image` a NumPy-like array.
    """
    if 0 in image.shape:
        return 0
    _, *planes = _boxes(image, mask, filtration)
    groups: dict[int, list[tuple[int, Box]]] = {}
    for sign, part in planes:
        groups.setdefault(part[0].ndim, []).append((sign, part))

    def of_boxes(boxes: Any, shown: Any = None) -> Any:
        flat = closed(filtration, boxes.ndim - 1)
        return curve(boxes, thresholds, flat, mask=shown, **options)

    return sum(signed_sum(terms, of_boxes) for terms in groups.values())


def bordered_exact_curve(
    exact_curve: Callable[..., Any],
    curve: Callable[..., Any],
    image: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    **options: Any,
) -> tuple[Any, Any]:
    """Return the levels at which the curve of one image changes, and the values there.

    `exact_curve` and `curve` are the functions of a backend, and `image` is a NumPy-like array.
    """
    found = []
    for _, (values, *shown) in _boxes(image, mask, filtration):
        flat = closed(filtration, values.ndim - 1)
        own = shown[0] if shown else None
        changing, _ = exact_curve(values, flat, mask=own, **options)
        found.append(changing)
    levels = distinct_values(np.concatenate(found))
    values = curve(image, levels, filtration, mask=mask, **options)[0]
    return changes(levels, values, filtration.superlevel)
