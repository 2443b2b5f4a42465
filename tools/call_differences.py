"""Classes of what two checkouts answer differently to the same call, and which of it is wanted."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

LAST_BITS = 64
"""Units in the last place of the largest number, by which soft curves and losses may differ."""


class Answer(NamedTuple):
    """What one checkout answers to a call."""

    kind: str
    """Whether there is a result, or of which type an error is."""
    message: str
    fields: dict[str, Any]
    """The numbers of each field of a result, as nested lists of what `numbers_of` returns."""


class Difference(NamedTuple):
    """A call to which two checkouts answer differently."""

    call: str
    name: str
    base: Answer
    here: Answer
    fields: tuple[str, ...]
    """Fields of the results that differ."""

    @property
    def kind(self) -> str:
        """Return the class of the difference."""
        if self.base.kind != self.here.kind:
            if self.here.kind == "result":
                return "accepted now"
            if self.base.kind == "result":
                return "refused now"
            return "another type of error"
        if self.base.message != self.here.message:
            return "another message"
        pairs = [(self.base.fields[name], self.here.fields[name]) for name in self.fields]
        if all(same_but_last_bits(one, other) for one, other in pairs):
            return "last bits"
        return f"other {', '.join(self.fields)}"

    def told(self) -> str:
        """Return the call with both answers."""
        lines = [f"{self.kind}: {self.call}"]
        for answer in (self.base, self.here):
            numbers = [f"{name}={answer.fields[name]}" for name in self.fields]
            lines.append(f"    {answer.kind} {answer.message} {' '.join(numbers)}"[:400].rstrip())
        return "\n".join(lines)


def numbers_of(value: Any) -> Any:
    """Return a field of a result as lists of arrays, each as its dtype, shape and numbers."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.str, "shape": list(value.shape), "numbers": value.tolist()}
    if isinstance(value, (list, tuple)):
        return [numbers_of(one) for one in value]
    if dataclasses.is_dataclass(value):
        return [numbers_of(getattr(value, field.name)) for field in dataclasses.fields(value)]
    return repr(value)


def same_but_last_bits(one: Any, other: Any) -> bool:
    """Whether fields are equal but for the last bits of floating-point numbers."""
    if one == other:
        return True
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return all(map(same_but_last_bits, one, other))
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return False
    dtype = np.dtype(one["dtype"])
    if dtype.kind != "f" or (one["dtype"], one["shape"]) != (other["dtype"], other["shape"]):
        return False
    numbers = np.array(one["numbers"], np.float64)
    largest = np.abs(numbers[np.isfinite(numbers)]).max(initial=0)
    tolerance = LAST_BITS * float(np.finfo(dtype).eps) * largest
    close = np.isclose(numbers, np.array(other["numbers"]), 0, tolerance, equal_nan=True)
    return bool(close.all())


class Wanted(NamedTuple):
    """A kind of differences that is wanted, and where the changelog says so."""

    reason: str
    includes: Callable[[Difference], bool]


def _message(base: str, here: str) -> Callable[[Difference], bool]:
    """Return whether messages are of these kinds, of errors of any type."""

    def includes(difference: Difference) -> bool:
        before = re.match(base, difference.base.message)
        return bool(before and re.match(here, difference.here.message))

    return includes


def _is_soft(difference: Difference) -> bool:
    soft = ("soft_euler_curve", "EulerCurveLoss", "PersistenceLoss")
    return difference.kind == "last bits" and difference.name in soft


def _is_masked_window(difference: Difference) -> bool:
    """Whether the curve is of a half-open window of any shape: of a mask, NaN or regions."""
    if difference.kind not in ("other values", "other thresholds, values"):
        return False
    call = difference.call
    shaped = any(word in call for word in ("mask=", "nan='omit'", "region_"))
    return "'half-open'" in call and shaped


ONE_WORD = r'`boundary` must be "closed", "periodic" or "half-open", got '
WANTED = (
    Wanted(
        "CHANGELOG: a word of `boundary` for each axis",
        _message(ONE_WORD + r"\(", ".*"),
    ),
    Wanted(
        "CHANGELOG: half-open windows of a mask or regions have any shape",
        _is_masked_window,
    ),
    Wanted("the order of additions of soft curves", _is_soft),
    Wanted(
        "a message that says the words of `boundary` this function has, for each axis",
        _message(ONE_WORD, "`boundary` must be "),
    ),
    Wanted(
        "a message that says of which function of dask arrays the boundary must be closed",
        _message("`boundary` must be .closed. for a dask array", "`boundary` must be .closed. for"),
    ),
    Wanted(
        "a message that names the reader of masks first",
        _message("`mask` must be boolean", "`mask` must be an array"),
    ),
    Wanted(
        "a message with the shape as it was given",
        _message(r".*\(spatial shape \(", r".*\(shape \("),
    ),
    Wanted(
        "a message that quotes text",
        _message("`connectivity` must be .*, got two", "`connectivity` must be .*, got 'two'"),
    ),
    Wanted(
        "CHANGELOG: component curves along periodic axes",
        _message('`boundary` must be "closed" for component curves, since', ".*"),
    ),
    Wanted(
        "CHANGELOG: `inlet` and `outlet` of component curves",
        _message(r".*unexpected keyword argument 'inlet'", ".*"),
    ),
)
"""Differences to commit 6f16c2ee, at which all random calls were last compared."""


def reason_of(difference: Difference) -> str:
    """Return why a difference is wanted, or nothing."""
    return next((one.reason for one in WANTED if one.includes(difference)), "")
