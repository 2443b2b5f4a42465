"""Planes of the same shape and dtype as one array."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.views import Box


class Planes:
    """An array whose first axis numbers planes, which are read as they are needed.

    Parameters
    ----------
    names : sequence of str
        Name of the file of each plane, for errors.
    read : callable
        Yields the planes of some numbers.
    same : sequence of str
        Attributes that all planes share with the first one.
    """

    def __init__(
        self,
        names: Sequence[str],
        read: Callable[[Sequence[int]], Iterable[Any]],
        same: Sequence[str] = ("shape", "dtype"),
    ) -> None:
        self.names, self.read, self.same = names, read, same
        (self.first,) = read([0])
        self.shape, self.dtype = (len(names), *self.first.shape), self.first.dtype

    def __getitem__(self, box: Box) -> NDArray[Any]:
        at, *rest = box
        numbers = range(at.start, at.stop)
        parts = []
        for number, plane in zip(numbers, self.read(numbers), strict=True):
            for what in self.same:
                self.compare(number, what, getattr(plane, what), getattr(self.first, what))
            parts.append(plane[tuple(rest)])
        return np.stack(parts) if parts else np.empty((0, *self.shape[1:]), self.dtype)

    def compare(self, number: int, what: str, here: Any, there: Any) -> None:
        """Raise an error if a plane differs from the first one."""
        if here != there:
            raise ValueError(f"{self.names[number]} has {what} {here}, {self.names[0]} {there}")
