"""Euler characteristic curves."""

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import on_host
from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request
from ecc_core._backends.borders import closed
from ecc_core._blocks.boxes import BoxValues, Values
from ecc_core._blocks.planes import Array
from ecc_core._request.filtration import Filtration
from ecc_core.quantities._base import EULER_NUMBER, CurveQuantity, Function, Joins, NoOptions
from ecc_core.quantities.windows import curves_of_regions
from ecc_core.results import EulerCurve, RegionCurves


@dataclass(frozen=True)
class CurveValues(BoxValues):
    """Euler characteristic curves."""

    def of_box(self, *box: Array) -> Values:
        image, *mask = (array if array.ndim > 1 else array[:, None] for array in box)
        curve = origin_of(image).backend().curve
        # A plane of the image has fewer axes than the image.
        flat = closed(self.filtration, image.ndim - 1)
        shown = mask[0] if mask else None
        values: Values = curve(image, self.thresholds, flat, mask=shown, workers=1)
        return on_host(values) if self.lands_on_host else values

    def of_regions(self, image: Array, labels: Array, *_: Array) -> tuple[Array, Values]:
        flat = closed(self.filtration, image.ndim)
        curves = origin_of(image).backend().region_curves
        found = curves(image, labels, self.thresholds, flat, workers=self.workers)
        return (on_host(found[0]), on_host(found[1])) if self.lands_on_host else found


class HostCurveValues(CurveValues):
    """Euler characteristic curves in host memory, to be concatenated with numbers of cells."""

    lands_on_host = True


def coefficients_of(image: Array, *mask: Array, computed: CurveValues) -> NDArray[np.int8]:
    """Return the coefficients of a block with a halo of one point."""
    kept = mask[0][None] if mask else None
    compute = origin_of(image).backend().coefficients
    found: NDArray[np.int8] = compute(image[None], computed.filtration, mask=kept, workers=1)[0]
    return found


class Euler(CurveQuantity[NoOptions]):
    name = "euler"
    position = 0
    title = "Euler curves"
    columns = (EULER_NUMBER,)
    joins = Joins("add")
    functions = (
        Function("euler_curve", lazy=True, plain=True),
        Function("euler_number", lazy=True, plain=True),
        Function("euler_coefficients", lazy=True, plain=True),
        Function("region_curves", lazy=True, plain=True),
    )
    of_image = "euler_curve"
    result = EulerCurve
    of_regions = "region_curves"
    region_result = RegionCurves
    exact = True

    def boxes(self, at: Array, filtration: Filtration, own: NoOptions, **given: Any) -> CurveValues:
        return CurveValues(at, filtration, workers=given.get("workers", 1))

    def own_of(self, arguments: Namespace, spacing: Any) -> NoOptions:
        return NoOptions()

    def of_windowed_regions(
        self, request: Request, at: Array, own: NoOptions
    ) -> tuple[Array, Array, dict[str, Any]]:
        return *curves_of_regions(request, at), {}


EULER = Euler()
