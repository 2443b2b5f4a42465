"""Thresholds: an array, a number of evenly spaced ones, or every level ("exact")."""

import math
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._request.dtypes import dtype_in_words
from ecc_core._request.plain_numbers import refuse_masked, refuse_unit
from ecc_core.errors import warn_caller

Array = NDArray[Any]
Number = int | float

MOST_CACHED = 1 << 12
"""The largest number of thresholds, or components of directions, that are cached."""
SUBNORMAL_SPAN = 2.0**-900
"""The span of thresholds below which the step between them may be subnormal and lose bits."""
SCALE = 2.0**200
"""The factor by which such thresholds are scaled up while they are computed."""
LEAST_POSITIVE = np.array([np.nextafter(0.0, 1.0)])
"""The smallest positive number: the values of any dtype that are at least this are positive."""
THRESHOLDS_FOR_EACH_INSIDE = 50
"""If fewer than one threshold in this many lies within the values, a warning says so."""
HARDLY_ANY = "hardly any threshold"
"""The first words of this warning."""


@dataclass(frozen=True)
class Thresholds:
    """The requested thresholds."""

    array: Array | None = None
    """Increasing thresholds without NaN."""
    count: int = 0
    """The number of evenly spaced thresholds, if there is no array."""
    bounds: tuple[Number, Number] | None = None
    """The range of evenly spaced thresholds; None for that of the image's values."""
    exact: bool = False
    """Whether every level at which the curve changes is requested."""
    range_name: str = "range"
    """The name of the range in messages."""

    @property
    def needs_range(self) -> bool:
        """Whether the thresholds depend on the values of the image."""
        return self.array is None and self.bounds is None

    def over(
        self,
        find_range: Callable[[], tuple[Any, Any]],
        shape: tuple[int, ...],
        *,
        what: str = "an image",
    ) -> Array:
        """Return the thresholds as an array.

        `find_range` returns the finite minimum and maximum of the values, or None for both. `what`
        is the word for the object that has no finite values, in messages.
        """
        if self.array is not None:
            return self.array
        bounds = self.bounds
        if bounds is None:
            low, high = find_range()
            if low is None:
                raise ValueError(
                    f"`{self.range_name}` must be given for {what} without finite values, got None "
                    f"(shape {shape})"
                )
            bounds = _number(low), _number(high)
        return even_thresholds(*bounds, self.count)

    def warn_if_missed(
        self, at: Array, values: Array, find_range: Callable[[], tuple[Any, Any]], name: str
    ) -> None:
        """Warn if hardly any of the thresholds given lies among the values of the image."""
        if self.needs_range:
            return
        missed = missed_values(at, values, find_range)
        if missed is not None:
            low, high = missed
            warn_caller(hardly_any(at, f"`{name}`, which are from {low:g} to {high:g}"))


def hardly_any(at: Array, images: str) -> str:
    """Return the warning that hardly any threshold lies among the values of some images."""
    return f"{HARDLY_ANY} from {at[0]:g} to {at[-1]:g} lies among the values of {images}"


def missed_values(
    at: Array, values: Array, find_range: Callable[[], tuple[Any, Any]]
) -> tuple[float, float] | None:
    """Return the range of an image if hardly any threshold lies among its values, otherwise None.

    The range is only computed if the first of the curves (..., thresholds) changes so rarely that
    this is possible. Where a curve changes from one threshold to the next, there are values between
    them.
    """
    if at.size < 3 or values.size == 0:
        return None
    first = values.reshape(-1, at.size)[0]
    step = max(1, (at.size - 1) // 8)
    some = set(first[::step].tolist())
    if len(some) > 3:
        return None  # With at most one of these thresholds inside, there are at most 3 values.
    changes = np.flatnonzero(first[1:] != first[:-1])
    if changes.size and THRESHOLDS_FOR_EACH_INSIDE * (changes[-1] - changes[0]) >= at.size:
        return None
    low, high = find_range()
    if low is None or low == high:
        return None
    t = at.astype(np.float64)
    inside = (t >= float(low)) & (t <= float(high))
    if THRESHOLDS_FOR_EACH_INSIDE * np.count_nonzero(inside) >= at.size:
        return None
    return float(low), float(high)


def parse_thresholds(
    given: Any, bounds: Any, *, name: str = "thresholds", no_exact: str | None = None
) -> Thresholds:
    """Return the thresholds that the arguments `thresholds` and `range` describe.

    `given` is on the host. Unless `no_exact` is None, "exact" is an error whose message ends with
    it. Messages call the range of "thresholds_first" "range_first".
    """
    range_name = name.replace("thresholds", "range").replace("heights", "range")
    if isinstance(given, str):
        if given != "exact" or no_exact is not None:
            allowed = (
                "an int or an array" if no_exact is not None else 'an int, an array or "exact"'
            )
            raise ValueError(f"`{name}` must be {allowed}{no_exact or ''}, got {given!r}")
        if bounds is not None:
            raise ValueError(f'`{name}` must not be "exact" together with `range`')
        return Thresholds(exact=True)
    count = as_count(given, name)
    if count is not None:
        checked = None if bounds is None else check_range(bounds, range_name)
        return Thresholds(count=count, bounds=checked, range_name=range_name)
    if bounds is not None:
        raise ValueError(f"`{range_name}` must be None where `{name}` is an array, got both")
    return Thresholds(check_threshold_array(given, name))


def as_count(number: Any, name: str) -> int | None:
    """Return an argument as an int, or None if it is an array."""
    if isinstance(number, bool | np.bool_):
        raise TypeError(f"`{name}` must be an int or an array, got {number}")
    if isinstance(number, list | tuple) or getattr(number, "ndim", 0) > 0:
        return None
    try:
        count = operator.index(number)
    except TypeError:
        if np.ndim(number) > 0:
            return None
        shown = number.item() if hasattr(number, "item") else number
        raise TypeError(f"`{name}` must be an int or an array, got {shown!r}") from None
    if count < 0:
        raise ValueError(f"`{name}` must not be negative, got {count}")
    if count > sys.maxsize:
        raise ValueError(f"`{name}` must fit in 63 bits, got an int of {count.bit_length()} bits")
    return count


def check_threshold_array(thresholds: Any, name: str = "thresholds") -> Array:
    """Return thresholds as a 1-D, non-decreasing array without NaN; numbers are not rounded."""
    refuse_masked(thresholds, name)
    refuse_unit(thresholds, name)
    array = (
        np.asarray(thresholds) if hasattr(thresholds, "dtype") else exact_array(thresholds, name)
    )
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        if array.size == 0 and array.ndim == 1:
            return array.astype(np.float64)
        raise TypeError(
            f"`{name}` must be real numbers of at most 64 bits, got {dtype_in_words(array.dtype)}"
        )
    if array.ndim != 1:
        raise ValueError(f"`{name}` must be one-dimensional, got shape {array.shape}")
    if array.size <= MOST_CACHED:
        checked = _known_to_increase(array.tobytes(), array.dtype.str)
    else:
        checked = _increases(array)
    if checked:
        return array
    if array.dtype.kind == "f" and bool(np.isnan(array).any()):
        raise ValueError(f"`{name}` must not contain NaN, got NaN")
    i = int(np.flatnonzero(array[1:] < array[:-1])[0])
    raise ValueError(f"`{name}` must be increasing, got {array[i]} before {array[i + 1]}")


def _increases(array: Array) -> bool:
    """Whether numbers do not decrease, and none of them is NaN."""
    return bool((array[1:] >= array[:-1]).all()) and not (array.size == 1 and array[0] != array[0])


@lru_cache(maxsize=64)
def _known_to_increase(raw: bytes, dtype: str) -> bool:
    return _increases(np.frombuffer(raw, dtype))


def exact_array(sequence: Any, name: str) -> Array:
    """Return an array of a sequence of numbers, none of which is rounded."""
    try:
        array = np.asarray(sequence)
    except ValueError:
        raise ValueError(f"`{name}` must be one-dimensional, got a ragged sequence") from None
    if array.ndim != 1 or array.dtype.kind not in "fO":
        return array
    numbers = list(sequence)
    integers = [int(n) for n in numbers if isinstance(n, int | np.integer)]
    if not integers:
        return array
    if len(integers) == len(numbers):
        low = min(integers)
        high = max(integers)
        if (kind := _integer_type(low, high)) is None:
            raise ValueError(f"`{name}` must fit 64-bit integers of one type, got {low} and {high}")
        return np.array(integers, kind)
    for number in integers:
        if not _is_float(number):
            raise ValueError(
                f"`{name}` must be float64 where not all are integers, which {number} is not"
            )
    return array if array.dtype.kind == "f" else np.array(numbers, np.float64)


def _integer_type(low: int, high: int) -> type[np.int64 | np.uint64] | None:
    """Return a dtype that holds two integers, or None if there is none."""
    if low >= -(2**63) and high < 2**63:
        return np.int64
    return np.uint64 if low >= 0 and high < 2**64 else None


def _is_float(number: Number) -> bool:
    """Whether float64 holds a number exactly."""
    try:
        return float(number) == number
    except OverflowError:
        return False


def _number(value: Any) -> Number:
    if type(value) is int or type(value) is float:
        return value
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if not isinstance(value, int | float):
        raise TypeError
    return value


def check_range(bounds: Any, name: str = "range") -> tuple[Number, Number]:
    try:
        low, high = map(_number, bounds)
        finite = math.isfinite(low) and math.isfinite(high)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"`{name}` must be two numbers (low, high), got {bounds!r}") from None
    if not finite or low > high:
        raise ValueError(f"`{name}` must be finite with low <= high, got {bounds!r}")
    return low, high


def even_thresholds(low: Number, high: Number, count: int) -> Array:
    """Return evenly spaced thresholds, both ends included.

    They are float64, or integers if an end is an integer that float64 cannot represent.
    """
    if count > MOST_CACHED:
        return _spread(low, high, count)
    return _kept_spread(low, high, count).copy()


def _spread(low: Number, high: Number, count: int) -> Array:
    if not (_is_float(low) and _is_float(high)):
        return _spread_integers(low, high, count)
    low = float(low)
    high = float(high)
    if not math.isfinite(high - low):
        return 4 * np.linspace(low / 4, high / 4, count)
    if 0 < high - low < SUBNORMAL_SPAN:
        return np.linspace(low * SCALE, high * SCALE, count) / SCALE
    return np.linspace(low, high, count)


_kept_spread = lru_cache(maxsize=64)(_spread)


def _spread_integers(low: Number, high: Number, count: int) -> Array:
    """Return evenly spaced integers, rounded down."""
    if int(low) != low or int(high) != high:
        raise ValueError(
            f"`range` must be float64 where not both ends are integers, got {(low, high)}"
        )
    low = int(low)
    high = int(high)
    if (kind := _integer_type(low, high)) is None:
        raise ValueError(f"`range` must fit 64-bit integers of one type, got {(low, high)}")
    steps = max(count - 1, 1)
    step, rest = divmod(high - low, steps)
    # Computed modulo 2**64, in which sums of signed and unsigned integers are the same.
    index = np.arange(count, dtype=np.uint64)
    even = index * np.uint64(step) + index * np.uint64(rest) // np.uint64(steps)
    return (even + np.uint64(low % 2**64)).view(kind)
