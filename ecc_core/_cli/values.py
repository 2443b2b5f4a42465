"""What the texts of options mean: the types of arguments."""

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli.errors import one_line
from ecc_core._io.units import UNITS, unit_named
from ecc_core._request.thresholds import exact_array
from ecc_core.io import check_output

__all__ = [
    "channel",
    "index_or_range",
    "memory",
    "number",
    "output",
    "positive",
    "roi",
    "sigma",
    "spacing",
    "thresholds",
    "unit",
    "value_range",
    "vector",
]

RANGE = r"\d*:\d*"


def _unlike(what: str, text: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"must be {what}, got {text!r}")


def channel(text: str) -> int | str | slice:
    """Return the index or name of a channel, or a range."""
    return index_or_range(text) if re.fullmatch(rf"\d+|{RANGE}", text) else text


def index_or_range(text: str) -> int | slice:
    """Return an index, or a range of them."""
    if text.isdecimal():
        return int(text)
    if not re.fullmatch(RANGE, text):
        raise _unlike("an index or a range such as 0:9", text)
    return _slice(text)


def roi(text: str) -> tuple[slice, ...]:
    """Return ranges of indices."""
    parts = text.split(",")
    if not all(re.fullmatch(RANGE, part) for part in parts):
        raise _unlike("ranges such as 0:64,:,100:", text)
    return tuple(map(_slice, parts))


def _slice(text: str) -> slice:
    return slice(*(int(end) if end else None for end in text.split(":")))


def thresholds(text: str) -> int | str | NDArray[Any]:
    """Return a number of thresholds, "exact", or the thresholds themselves."""
    if text == "exact":
        return text
    if re.fullmatch(r"0*[1-9]\d*", text):
        return int(text)
    if re.fullmatch(r"[+-]?\d+", text):
        raise argparse.ArgumentTypeError(
            f"must be how many, at least 1, got {text!r}; the one threshold {text} is '{text},'"
        )
    try:
        return _numbers(text)
    except ValueError:
        raise _unlike("how many, exact, or numbers with commas between", text) from None


def value_range(text: str) -> tuple[Any, Any]:
    """Return the two ends of a range."""
    try:
        low, high = _numbers(text).tolist()
    except ValueError:
        raise _unlike("two numbers lo,hi", text) from None
    return low, high


def number(text: str) -> NDArray[Any]:
    """Return one number, as an array of it."""
    try:
        (_,) = numbers = _numbers(text)
    except ValueError:
        raise _unlike("a number", text) from None
    return numbers


def _numbers(text: str) -> NDArray[Any]:
    """Return comma-separated numbers; integers are not rounded."""
    return exact_array([_number(word) for word in text.rstrip(",").split(",")], "numbers")


def _number(word: str) -> int | float:
    try:
        return int(word)
    except ValueError:
        return float(word)


def sigma(text: str) -> list[float]:
    """Return a standard deviation for all axes, or one for each; some of them may be 0."""
    what = "a positive number, or one for each axis"
    numbers = _floats(text, what)
    if not (np.isfinite(numbers).all() and min(numbers) >= 0 and max(numbers) > 0):
        raise _unlike(what, text)
    return numbers


def persistence(text: str) -> int | float:
    """Return a least difference of values."""
    try:
        value = _number(text)
    except ValueError:
        value = np.nan
    if not value >= 0:
        raise _unlike("a number that is not negative", text)
    return value


def spacing(text: str) -> float | list[float]:
    """Return one distance, or one for each axis."""
    numbers = _floats(text, "numbers")
    return numbers[0] if len(numbers) == 1 else numbers


def vector(text: str) -> NDArray[np.float64]:
    """Return a number for each axis."""
    return np.array(_floats(text, "numbers such as 1,0,0"))


def _floats(text: str, what: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise _unlike(what, text) from None


def unit(text: str) -> str:
    """Return the usual name of a unit."""
    name = unit_named(text)
    if name not in UNITS:
        raise _unlike(f"one of {', '.join(UNITS)}", text)
    return name


def positive(text: str) -> int:
    """Return a positive number."""
    if not re.fullmatch(r"0*[1-9]\d*", text):
        raise _unlike("a positive number", text)
    return int(text)


def memory(text: str) -> int:
    """Return a number of bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)B?", text.upper())
    size = 0 if found is None else int(float(found[1]) * 1024 ** " KMGT".index(found[2] or " "))
    if size < 1:
        raise _unlike("a size such as 600M or 4G", text)
    return size


def output(suffixes: tuple[str, ...]) -> Callable[[str], Path]:
    """Return the type of an argument that names a file to write, checked before any work."""

    def path(text: str) -> Path:
        try:
            return check_output(text, suffixes)
        except (ValueError, OSError, ImportError) as error:
            raise argparse.ArgumentTypeError(one_line(error)) from None

    return path
