"""The types of arguments, which convert texts to values."""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._cli.errors import one_line
from ecc_core._io.metadata import Condition, condition_of
from ecc_core._io.stack_parts import Part
from ecc_core._io.units import UNITS, unit_named
from ecc_core._io.write_image import check_image_output
from ecc_core._request.boundary import BORDERS, check_boundary
from ecc_core._request.thresholds import exact_array
from ecc_core.io import check_output

INPUT = "{input}"
"""The placeholder for the path of the image in that of an output."""
RANGE = r"\d*:\d*"
FROM_EITHER_END = r"(-?\d+)?:(-?\d+)?"
PREFIXES = ("", "K", "M", "G", "T")  # Powers of 1024 bytes.
Parse = Callable[[str], Any]


def _must_be(what: str) -> Callable[[Parse], Parse]:
    """Decorate a type: if it fails, the message is that the text must be `what`."""

    def decorated(parse: Parse) -> Parse:
        def checked(text: str) -> Any:
            try:
                return parse(text)
            except (ValueError, OverflowError):  # Many digits are an infinite float.
                raise argparse.ArgumentTypeError(f"must be {what}, got {text!r}") from None

        return checked

    return decorated


def channel(text: str) -> int | str | slice:
    """Return the index or name of a channel, or a range."""
    return index_or_range(text) if re.fullmatch(rf"\d+|{RANGE}", text) else text


@_must_be("an index or a range such as 0:9")
def index_or_range(text: str) -> int | slice:
    return int(text) if text.isdecimal() else _slice(text)


@_must_be("ranges such as 0:64,:,100: or :-60")
def roi(text: str) -> tuple[slice, ...]:
    """Return ranges. Negative numbers count from the end."""
    return tuple(_slice(part, FROM_EITHER_END) for part in text.split(","))


def _slice(text: str, pattern: str = RANGE) -> slice:
    if not re.fullmatch(pattern, text):
        raise ValueError
    ends = [int(end) if end else None for end in text.split(":")]
    return slice(*ends)


@_must_be("how many, exact, or numbers with commas between")
def thresholds(text: str) -> int | str | NDArray[Any]:
    """Return a number of thresholds, "exact", or the thresholds themselves."""
    if text == "exact":
        return text
    if re.fullmatch(r"0*[1-9]\d*", text):
        count = int(text)
        if count > sys.maxsize:  # No array has so many.
            raise ValueError
        return count
    if re.fullmatch(r"[+-]?\d+", text):
        raise argparse.ArgumentTypeError(
            f"must be how many, at least 1, got {text!r}; the one threshold {text} is '{text},'"
        )
    return _numbers(text)


@_must_be("two numbers lo,hi")
def value_range(text: str) -> tuple[Any, Any]:
    low, high = _numbers(text).tolist()
    return low, high


@_must_be("a number")
def number(text: str) -> NDArray[Any]:
    """Return an array of one number."""
    (_,) = numbers = _numbers(text)
    return numbers


def _numbers(text: str) -> NDArray[Any]:
    """Return comma-separated numbers. Integers stay exact."""
    words = text.rstrip(",").split(",")
    return exact_array([_number(word) for word in words], "numbers")


def _number(word: str) -> int | float:
    try:
        return int(word)
    except ValueError:
        return float(word)


@_must_be("a positive number, or one for each axis")
def sigma(text: str) -> list[float]:
    """Return a standard deviation for all axes, or one for each; some of them may be 0."""
    numbers = _floats(text)
    if not (np.isfinite(numbers).all() and min(numbers) >= 0 and max(numbers) > 0):
        raise ValueError
    return numbers


@_must_be("a number that is not negative")
def persistence(text: str) -> int | float:
    value = _number(text)
    if not value >= 0:
        raise ValueError
    return value


@_must_be("half or a number from 0 to 1")
def height(text: str) -> float:
    """Return the part of the height of an object at which it is cut."""
    found = 0.5 if text == "half" else float(text)
    if not 0 <= found <= 1:
        raise ValueError
    return found


@_must_be("numbers")
def spacing(text: str) -> float | list[float]:
    """Return one distance, or one for each axis."""
    numbers = _floats(text)
    return numbers[0] if len(numbers) == 1 else numbers


@_must_be(f"{' or '.join(BORDERS)}, or one of them for each axis such as closed,periodic")
def boundary(text: str) -> str | tuple[str, ...]:
    """Return a word, or one for each axis."""
    words = check_boundary(text.split(","))
    return words[0] if len(words) == 1 else words


@_must_be("numbers such as 1,0,0")
def vector(text: str) -> NDArray[np.float64]:
    return np.array(_floats(text))


def _floats(text: str) -> list[float]:
    return [float(word) for word in text.split(",")]


@_must_be(f"one of {', '.join(UNITS)}")
def unit(text: str) -> str:
    """Return the usual name of a unit."""
    name = unit_named(text)
    if name not in UNITS:
        raise ValueError
    return name


@_must_be("a condition such as channel=DAPI or label!=0")
def condition(text: str) -> Condition:
    return condition_of(text)


@_must_be("a label or several of them, such as 1 or 1,4")
def label_ids(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


@_must_be("a positive number")
def positive(text: str) -> int:
    return _positive(text)


def _positive(text: str) -> int:
    if not re.fullmatch(r"0*[1-9]\d*", text):
        raise ValueError
    return int(text)


@_must_be("positive numbers such as 64,512,512")
def shape(text: str) -> tuple[int, ...]:
    return tuple(_positive(word) for word in text.split(","))


@_must_be("a number of bytes")
def offset(text: str) -> int:
    if not text.isdecimal():
        raise ValueError
    return int(text)


@_must_be("one of several parts, such as 3/64, the first of which is 1/64")
def part(text: str) -> Part:
    """Return a part of the blocks of an image."""
    number, count = map(_positive, text.split("/"))
    if number > count:
        raise ValueError
    return Part(number, count)


@_must_be("a size such as 600M or 4G")
def memory(text: str) -> int:
    """Return a number of bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)B?", text.upper())
    if found is None:
        raise ValueError
    number, prefix = found.groups()
    size = int(float(number) * 1024 ** PREFIXES.index(prefix))
    if size < 1:
        raise ValueError
    return size


def least_memory(size: int) -> str:
    """Return the shortest text with one decimal that stands for at least a number of bytes."""
    prefix, unit = _unit_of(size)
    return f"{ceil_div(10 * size, unit) / 10:g}{prefix}"


def given_memory(size: int) -> str:
    """Return a number of bytes as users write it, cut off after one decimal."""
    prefix, unit = _unit_of(size)
    return f"{10 * size // unit / 10:g}{prefix}"


def _unit_of(size: int) -> tuple[str, int]:
    """Return the prefix in which a number of bytes is from 1 to 1024, and what it stands for."""
    power = min(max(size.bit_length() - 1, 0) // 10, len(PREFIXES) - 1)
    return PREFIXES[power], 1024**power


def image_output(text: str) -> Path:
    """Return the path of an image to write, checked unless it contains {input}."""
    if INPUT in text:
        return Path(text)
    try:
        return check_image_output(text)[0]
    except (ValueError, OSError, ImportError) as error:
        raise argparse.ArgumentTypeError(one_line(error)) from None


def output(suffixes: tuple[str, ...]) -> Callable[[str], Path]:
    """Return the type of an argument that is the path of a file to write, which is checked."""

    def path(text: str) -> Path:
        try:
            return check_output(text, suffixes)
        except (ValueError, OSError, ImportError) as error:
            raise argparse.ArgumentTypeError(one_line(error)) from None

    return path
