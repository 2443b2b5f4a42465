"""Surfaces of two images: the Euler characteristic at all pairs of thresholds."""

import math
from dataclasses import dataclass

from ecc_core._arrays.origin import origin_of
from ecc_core._blocks.boxes import BoxValues, Values
from ecc_core._blocks.planes import Array
from ecc_core._request.boundary import Domain
from ecc_core._request.filtration import Filtration
from ecc_core.quantities._base import Function, Joins, Quantity
from ecc_core.results import EulerSurface


@dataclass(frozen=True)
class SurfaceValues(BoxValues):
    """Surfaces of two images, as curves over all pairs of thresholds in C order.

    `thresholds` are those of both images, `filtration` that of the first one.
    """

    second: Filtration

    @property
    def size(self) -> int:
        return math.prod(at.size for at in self.thresholds)

    def of_box(self, *box: Array) -> Values:
        first, second, *mask = (array if array.ndim > 1 else array[:, None] for array in box)
        a, b = (one.in_axes(first.ndim - 1) for one in (self.filtration, self.second))
        backend = origin_of(first).surfaces()
        shown = mask[0] if mask else None
        values: Values = backend.surface(
            first, second, self.thresholds, (a, b), mask=shown, workers=1
        )
        return values.reshape((len(first), self.size))

    def curves(self, sums: Array) -> Array:
        """Return the surfaces, (..., n_first, n_second)."""
        return sums.reshape((*sums.shape[:-1], *(at.size for at in self.thresholds)))


class Surface(Quantity):
    name = "surface"
    position = 1
    boundaries = Domain()
    joins = Joins("add", regions=False)
    result = EulerSurface
    functions = (Function("euler_surface", lazy=True, plain=True),)


SURFACE = Surface()
