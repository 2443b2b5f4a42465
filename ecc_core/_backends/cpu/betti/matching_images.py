"""Two images and their union, in the orders in which their points enter."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.blocks import Field
from ecc_core._backends.cpu.betti.matching_keys import (
    from_zero,
    levels_of,
    ordering_keys,
    values_below_none,
)
from ecc_core._backends.cpu.betti.planar import Scan
from ecc_core._backends.cpu.compiling import subroutine
from ecc_core._backends.cpu.sources import Source
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]
Points = NDArray[np.int64]

NEVER = -1
"""The point at which a class dies that never does."""


class Levels(NamedTuple):
    """The levels at which the points of an image enter."""

    levels: Array
    """Unsigned integers that increase in the order of entry, flat."""
    shown: Array | None
    """False at points that never enter, flat."""

    def lasts(self, births: Points, union: Levels, deaths: Points) -> NDArray[np.bool_]:
        """Return whether points of this image enter before others do in another image."""
        ends = self.levels[births] < union.levels[deaths]
        ends |= deaths == NEVER
        if self.shown is None:
            return ends
        return self.shown[births] & (ends | ~self.shown[deaths])


@subroutine()
def enters_later(levels, birth, others, death, shown):
    """Return whether a point enters in one image before another one does in another, if it does.

    `shown` is empty if all points enter. This is :meth:`Levels.lasts` of one pair of points,
    without branches, which would be predicted wrongly.
    """
    dies = death != NEVER
    birth = np.uint64(birth)
    death = np.uint64(death) if dies else np.uint64(0)
    lasts = (not dies) | (levels[birth] < others[death])
    if shown.size == 0:
        return lasts
    return shown[birth] & (lasts | (not shown[death]))


class Image(NamedTuple):
    """One of the two images, or their union."""

    levels: Levels
    keys: Array
    """Unsigned integers that increase in the order of entry, flat; equal keys are in C order."""
    values: Array
    """Values in the same order, of the image's shape; a masked image has one value beyond all."""


class Images(NamedTuple):
    prediction: Image
    target: Image
    union: Image
    filtration: Filtration
    sets: bool
    """True if images are booleans of which points with the value that enters second join nothing.
    """

    @property
    def shown(self) -> Array | None:
        shown = self.union.levels.shown
        return None if shown is None else shown.reshape(self.union.values.shape)

    def scan(self, image: Image) -> Scan:
        lead = (None,) * (3 - image.values.ndim)
        shown = None if self.shown is None else Source(self.shown[lead], "mask")
        return Scan(Field(Source(image.values[lead]), shown, image.values.ndim), self.filtration)


def images_of(
    prediction: Array, target: Array, shown: Array | None, filtration: Filtration, sets: bool
) -> Images:
    """Bring both images and their union into the order of points.

    Of equal values those come first that enter the other image before: the classes of both images
    begin at the same points where they can.
    """
    own, other = levels_of(prediction, target, filtration.superlevel)
    if not sets:  # The levels of sets are 0 at their points already.
        own, other = from_zero(own, other)
    union, keys = ordering_keys(own, other, narrow=shown is None)
    flat = None if shown is None else shown.reshape(-1)
    found = []
    for levels, in_order in zip((own, other, union), keys, strict=True):
        values = in_order.reshape(prediction.shape)
        if shown is not None:
            values = values_below_none(values)
        found.append(Image(Levels(levels, flat), in_order, values))
    entering = Filtration(filtration.ndim, filtration.connectivity)
    return Images(found[0], found[1], found[2], entering, sets)
