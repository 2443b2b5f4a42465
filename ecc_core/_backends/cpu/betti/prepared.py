"""Betti curves of small images: what the calls for images of one layout share is prepared once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import complete, kinds_of
from ecc_core._backends.cpu.betti.blocks import SPARE, Field, Staged, grid_of
from ecc_core._backends.cpu.betti.forest import count_block
from ecc_core._backends.cpu.betti.launch import cumulate, rank_plans
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.sources import Block, Box, Source, scratch
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]
Values = NDArray[np.int64]


class OneForest:
    """The forests of an image that is one block, for all images of a layout."""

    def __init__(self, block: Block, dtype: np.dtype[Any], filtration: Filtration) -> None:
        self.dtype = dtype
        self.filtration = filtration
        self.kinds = kinds_of(filtration)
        self.grid = grid_of(block.stop, block.stop)
        # Only the shape of this image is used.
        nothing = Source(np.broadcast_to(np.zeros((), dtype), block.stop))
        self.staged = Staged(block, Field(nothing, None, filtration.ndim))
        self.place = self.staged.at, self.staged.steps[:2]
        self._known: tuple[Any, list[Plan]] = (None, [])  # Thresholds and their plans.

    def _plans_at(self, thresholds: Array) -> list[Plan]:
        """Return the plans of ranks; those of the last call if its thresholds come again."""
        known, plans = self._known
        if known is not thresholds:
            plans = rank_plans(self.dtype, thresholds, self.filtration, masked=False)
            self._known = thresholds, plans
        return plans

    def curves(self, box: Box, thresholds: Array, euler: Values) -> Values:
        """Return the Betti curves of a box, (d, n), whose Euler curve (n,) is known.

        The box has no NaN, unless these are omitted, and thresholds are never written to.
        """
        plans = self._plans_at(thresholds)
        for plan in plans:
            keys = scratch.take("ranked keys", self.staged.size + SPARE, plan.key_dtype)
            _, unfit = plan.load(box, keys, self.place)
            if not unfit:
                break
        ends = []
        last = plans[-1]
        reverse = False
        for kind in self.kinds:
            if kind.complement != reverse:
                np.subtract(plan.key_dtype.type(plan.top), keys, out=keys)
                reverse = not reverse
            # Reversed keys of any plan are counted from the top of the last plan.
            shift = last.top - plan.top if reverse else 0
            histogram = np.zeros(last.top + 1, np.int64)
            count_block(self.grid, kind, histogram=histogram[shift:], keys=keys, staged=self.staged)
            ends.append(cumulate(histogram, last, kind))
        values: Values = complete(ends, self.kinds, euler, self.filtration.ndim)
        return values
