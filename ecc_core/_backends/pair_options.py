"""Which pairs of birth and death are listed by boxes of an image, and what is listed of them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._request.filtration import Filtration

Places = NDArray[np.int64]
"""Numbers of points of an image in C order."""


class Pairs(NamedTuple):
    """Where classes of an image are born and die."""

    births: NDArray[Any]
    deaths: NDArray[Any]
    birth_places: Places
    death_places: Places
    """-1 for classes that never die, whose deaths have no meaning before all pairs are known."""


@dataclass(frozen=True)
class PairOptions:
    """Which pairs are listed."""

    dtype: np.dtype[Any]
    """The dtype of the image."""
    filtration: Filtration
    dimension: int
    """0, the number of spatial axes minus 1, or 1 for tunnels of a volume."""
    masked: bool
    least: float
    """The least persistence of classes that are listed."""
    short: bool = False
    """Whether classes that die at the value at which they are born are listed, too."""

    def __post_init__(self) -> None:
        if self.masked and self.dtype.kind in "iu" and self.dtype.itemsize == 8:
            raise ValueError(
                f"`image` of masked {self.dtype} must be in memory, or in another dtype: pairs of "
                "its chunks have no value for points that never enter"
            )
