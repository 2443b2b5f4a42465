"""Calls that repeat earlier ones, whose arguments need not be checked again.

Checks take longer than the kernels of small images on a device. A call is remembered by the layouts
of its arrays, by the values of its thresholds, and by its other arguments, of which only the most
common ones are supported. Nothing else may decide whether the arguments are valid: the values of
the arrays may only decide the result, and errors that the backend raises when it repeats the call,
for NaN or negative labels. The arrays themselves are not kept.
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
    """Return the key by which a call is remembered, or None if it is not remembered.

    Parameters
    ----------
    arrays : tuple of array
        The image, for curves of regions also their labels.
    thresholds : array or int
        An int is a number of evenly spaced thresholds over the range of the image.
    options : tuple
        What is computed, and arguments that are part of the key. Their types must be in `PLAIN`.
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
    raw, last = thresholds.tobytes(), _last  # another thread may replace `_last` at any time
    if raw == last:
        raw = last
    else:
        _last = raw
    return layout, raw, thresholds.dtype, options, kinds


def repeat_curve(
    arrays: tuple[Any, ...], thresholds: Any, options: tuple[Any, ...], others: tuple[Any, ...]
) -> tuple[Any, Hashable | None, tuple[Any, Any, dict[str, Any]] | None]:
    """Compute curves without checks if such a call is known. Arguments are as for `call_of`.

    Returns the thresholds on the host; the key by which the call should be remembered, or None; and
    the thresholds, values and facts of the curve, or None. For regions, values are (ids, values).
    """
    while True:
        given, is_right = given_early(thresholds)
        try:
            call = call_of(arrays, given, options, others)
            known = _known_call(call)
            found = None if known is None else known[0](*arrays)
        finally:  # also after an error, since `is_right` must be called once
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
    """Compute an Euler number without checks if such a call is known.

    Arguments are as for `call_of`. Returns the key by which the call should be remembered, or None,
    and the number or None.
    """
    return _repeat(image, level, options, ())


def repeat_coefficients(
    image: Any, options: tuple[Any, ...], others: tuple[Any, ...]
) -> tuple[Hashable | None, Any]:
    """Compute coefficients without checks if such a call is known.

    Arguments are as for `call_of`. Returns the key by which the call should be remembered, or None,
    and the coefficients or None.
    """
    return _repeat(image, 0, options, others)


def _repeat(
    image: Any, thresholds: Any, options: tuple[Any, ...], others: tuple[Any, ...]
) -> tuple[Hashable | None, Any]:
    call = call_of((image,), thresholds, options, others)
    known = _known_call(call)
    return (call, None) if known is None else (None, known[0](image))


def _known_call(call: Hashable | None) -> Again | None:
    """Return the function that repeats a call and the facts of its result, or None."""
    return None if call is None else _known.get(call)


def remember(
    call: Hashable,
    backend: Any,
    images: Any,
    thresholds: Any,
    filtration: Filtration,
    facts: dict[str, Any],
) -> None:
    """Keep the backend's function that repeats a curve, if it has one.

    If `thresholds` is an int, the function computes the thresholds as well, or returns None if it
    cannot do so for an image.
    """
    even = isinstance(thresholds, int)
    find = backend.repeated_even_curve if even else backend.repeated_curve
    _keep(call, find(images, thresholds, filtration), facts)


def remember_number(
    call: Hashable, backend: Any, images: Any, level: Any, filtration: Filtration
) -> None:
    """Keep the backend's function that repeats an Euler number, if it has one."""
    _keep(call, backend.repeated_number(images, level, filtration), {})


def remember_coefficients(
    call: Hashable, backend: Any, images: Any, filtration: Filtration
) -> None:
    """Keep the backend's function that repeats coefficients."""
    _keep(call, backend.repeated_coefficients(images, filtration), {})


def remember_regions(
    call: Hashable,
    backend: Any,
    arrays: tuple[Any, Any],
    thresholds: Any,
    filtration: Filtration,
    facts: dict[str, Any],
) -> None:
    """Keep the backend's function that repeats curves of regions, if it has one."""
    _keep(call, backend.repeated_regions(*arrays, thresholds, filtration), facts)


def _keep(call: Hashable, again: Callable[..., Any] | None, facts: dict[str, Any]) -> None:
    if again is None:
        return
    if len(_known) >= MOST_CALLS:
        _known.clear()
    _known[call] = again, facts
