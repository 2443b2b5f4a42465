"""Which classes of pieces last, in 2-D: a class is counted once it is final.

Keys are in the order of the values, so that the value of each is known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import Kind, kind_of
from ecc_core._backends.cpu.betti.forest import Forest
from ecc_core._backends.cpu.betti.launch import entered, rank_plans
from ecc_core._backends.cpu.encoders.order import unsigned, values_of
from ecc_core._backends.cpu.encoders.plans import Plan, coefficient_plan
from ecc_core._request.filtration import Filtration
from ecc_core._request.persistence import lasting

Array = NDArray[Any]
Values = NDArray[np.int64]
Points = tuple[Array, NDArray[np.bool_]]
"""Values, and which of them enter."""


class Lasting(NamedTuple):
    """Which classes count, and where.

    Attributes
    ----------
    keyed : Plan
        Keys that are in the order of the values, so that the value of each is known.
    ranked : Plan
        Those of values among the thresholds.
    dtype : numpy.dtype
        Of the image, native.
    filtration : Filtration
    least : float
    masked : bool
    """

    keyed: Plan
    ranked: Plan
    dtype: np.dtype[Any]
    filtration: Filtration
    least: float
    masked: bool

    @classmethod
    def of(
        cls, dtype: Any, thresholds: Array, filtration: Filtration, masked: bool, least: float
    ) -> Lasting:
        """Return what counts of an image."""
        native = dtype.newbyteorder("=")
        ranked = rank_plans(native, thresholds, filtration, masked=False, points=0)[-1]
        keyed = coefficient_plan(native, filtration.superlevel, False, masked)
        return cls(keyed, ranked, native, filtration, least, masked)

    @property
    def kinds(self) -> list[Kind]:
        """The components that begin and end: those of the sets, and of their complements."""
        dimensions = range(self.filtration.ndim)
        return [kind_of(self.filtration, complement=k > 0) for k in dimensions]

    def counted(self, births: Points, deaths: Points | None = None) -> Values:
        """Count classes at the thresholds; those without deaths never die."""
        (born, begins), (died, ends) = births, deaths or (births[0], np.zeros_like(births[1]))
        lasts = begins & (lasting(born, died, self.least) | ~ends)
        found: Values = entered(born[lasts], self.ranked)
        return found - entered(died[lasts & ends], self.ranked)

    def of_keys(self, keys: Array, kind: Kind) -> Points:
        """Return the values of keys in the order of a kind, and which of them enter."""
        keys = keys.astype(self.keyed.key_dtype)
        if kind.complement:
            keys = keys.dtype.type(self.keyed.top) - keys
        enter = np.ones(keys.size, np.bool_)
        if self.masked or self.dtype.kind == "f":
            enter = keys != self.keyed.never
        bits = keys.astype(unsigned(self.dtype))
        if self.filtration.superlevel:
            bits = ~bits
        return values_of(bits, self.dtype), enter

    def ended(self, kind: Kind, births: Array, deaths: Array) -> Values:
        """Count components by the keys at which they begin and end."""
        points = self.of_keys(births, kind), self.of_keys(deaths, kind)
        return self.counted(*(points[::-1] if kind.complement else points))

    def ended_within(self, forest: Forest, image: Array, mask: Array | None) -> Values:
        """Count the components that end within the blocks of a forest."""
        births, deaths = (
            _points(image, mask, places)
            for places in np.concatenate([part.pairs for part in forest.parts]).T
        )
        return self.counted(*((deaths, births) if forest.kind.complement else (births, deaths)))


def _points(image: Array, mask: Array | None, places: Array) -> Points:
    """Return the values at places in C order, and which of them enter."""
    values = image.reshape(-1)[places].astype(image.dtype.newbyteorder("="), copy=False)
    enter = np.ones(places.size, np.bool_) if mask is None else mask.reshape(-1)[places]
    return values, enter & ~np.isnan(values) if values.dtype.kind == "f" else enter
