"""Calls with arguments that were checked before, on arrays of the same layout.

Checks take longer than the kernels of small images on a device. A call is remembered if only its
result, or an error for NaN, depends on the values of the image, and only with the most common
arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import adapter_of, given_early
from ecc_core._request.filtration import Filtration

__all__ = [
    "remember",
    "remember_coefficients",
    "remember_number",
    "remember_regions",
    "repeat_coefficients",
    "repeat_curve",
    "repeat_number",
]

MOST_CALLS = 256
MOST_THRESHOLDS = 4096
PLAIN = {bool, int, str, type(None)}
"""Types of the options with which a call is remembered; others may not be hashable."""

Again = tuple[Callable[..., Any], dict[str, Any]]

_known: dict[Hashable, Again] = {}
_last = b""  # the thresholds of the last call: equal ones need no hash of their own


def call_of(
    arrays: tuple[Any, ...], thresholds: Any, options: tuple[Any, ...], others: tuple[Any, ...]
) -> Hashable | None:
    """What a call is remembered by; None if it is not.

    Parameters
    ----------
    arrays : tuple of array
        The image, for curves of regions also their labels.
    thresholds : array or int
        An int is a number of even ones over the range of the image.
    options : tuple
        Arguments that are part of what is remembered if they are numbers, strings or None.
    others : tuple
        Arguments that must be None.
    """
    global _last
    even = type(thresholds) is int
    if not even and type(thresholds) is not np.ndarray:
        return None
    for other in others:
        if other is not None:
            return None
    layout = tuple([adapter_of(array).layout(array) for array in arrays])
    if None in layout:
        return None
    kinds = tuple(map(type, options))  # part of the key, as True is not 1
    if not PLAIN.issuperset(kinds):
        return None
    if even:
        return layout, thresholds, options, kinds
    if thresholds.ndim != 1 or thresholds.size > MOST_THRESHOLDS:
        return None
    raw, last = thresholds.tobytes(), _last  # which another thread may replace at any time
    if raw == last:
        raw = last
    else:
        _last = raw
    return layout, raw, thresholds.dtype, options, kinds


def repeat_curve(
    arrays: tuple[Any, ...], thresholds: Any, options: tuple[Any, ...], others: tuple[Any, ...]
) -> tuple[Any, Hashable | None, tuple[Any, Any, dict[str, Any]] | None]:
    """Compute curves without checks if such a call is known; arguments are as for `call_of`.

    Returns the thresholds on the host; what the call is to be remembered by, or None; and the
    thresholds, values and facts of the curve, or None. For regions, values are (ids, values).
    """
    while True:
        given, is_right = given_early(thresholds)
        try:
            call = call_of(arrays, given, options, others)
            known = _known_call(call)
            found = None if known is None else known[0](*arrays)
        finally:  # also after an error, since it must be called once
            right = is_right is None or is_right()
        if right:
            break
    if known is None or found is None:
        return given, None if known else call, None
    at, values = found if isinstance(given, int) else (thresholds, found)
    return given, None, (at, values, known[1])


def repeat_number(
    image: Any, level: NDArray[Any], options: tuple[Any, ...]
) -> tuple[Hashable | None, int | None]:
    """Compute an Euler number without checks if such a call is known; arguments as for `call_of`.

    Returns what the call is to be remembered by, or None, and the number or None.
    """
    return _repeat(image, level, options, ())


def repeat_coefficients(
    image: Any, options: tuple[Any, ...], others: tuple[Any, ...]
) -> tuple[Hashable | None, Any]:
    """Compute coefficients without checks if such a call is known; arguments as for `call_of`.

    Returns what the call is to be remembered by, or None, and the coefficients or None.
    """
    return _repeat(image, 0, ("coefficients", *options), others)


def _repeat(
    image: Any, thresholds: Any, options: tuple[Any, ...], others: tuple[Any, ...]
) -> tuple[Hashable | None, Any]:
    call = call_of((image,), thresholds, options, others)
    known = _known_call(call)
    return (call, None) if known is None else (None, known[0](image))


def _known_call(call: Hashable | None) -> Again | None:
    """What computes the values of such a call from an image, and the facts of its result."""
    return None if call is None else _known.get(call)


def remember(
    call: Hashable,
    backend: Any,
    images: Any,
    thresholds: Any,
    filtration: Filtration,
    facts: dict[str, Any],
) -> None:
    """Keep what computes the values of a call, if the backend has something that does.

    If `thresholds` is an int, it computes the thresholds as well, or returns None for images for
    which it cannot.
    """
    even = isinstance(thresholds, int)
    find = backend.repeated_even_curve if even else backend.repeated_curve
    _keep(call, find(images, thresholds, filtration), facts)


def remember_number(
    call: Hashable, backend: Any, images: Any, level: Any, filtration: Filtration
) -> None:
    """Keep what computes the Euler number of such a call, if the backend has such a thing."""
    _keep(call, backend.repeated_number(images, level, filtration), {})


def remember_coefficients(
    call: Hashable, backend: Any, images: Any, filtration: Filtration
) -> None:
    """Keep what computes the coefficients of such a call."""
    _keep(call, backend.repeated_coefficients(images, filtration), {})


def remember_regions(
    call: Hashable,
    backend: Any,
    arrays: tuple[Any, Any],
    thresholds: Any,
    filtration: Filtration,
    facts: dict[str, Any],
) -> None:
    """Keep what computes the curves of regions of such a call, if the backend has such a thing."""
    _keep(call, backend.repeated_regions(*arrays, thresholds, filtration), facts)


def _keep(call: Hashable, again: Callable[..., Any] | None, facts: dict[str, Any]) -> None:
    if again is None:
        return
    if len(_known) >= MOST_CALLS:
        _known.clear()
    _known[call] = again, facts
