"""Sizes of sets and of their largest components, and percolation."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ecc_core._blocks.glued import BoxPieces
from ecc_core._blocks.planes import Array
from ecc_core._request.boundary import CLOSED, PERIODIC, Domain
from ecc_core._request.filtration import Filtration
from ecc_core.quantities._base import CurveQuantity, Function, Joins, Option
from ecc_core.results import ComponentCurves

if TYPE_CHECKING:
    from ecc_core._backends import protocols


@dataclass(frozen=True)
class SizePieces(BoxPieces):
    """Sizes of components and percolation."""

    has_ends: bool = False  # Whether both an inlet and an outlet are given.

    @property
    def rows(self) -> int:
        spanning = 1 if self.has_ends else self.filtration.ndim
        return 2 + spanning

    def of_backend(self, backend: protocols.HostBettiNumbers) -> protocols.SizePieces:
        return backend.size_pieces


class ComponentOptions(NamedTuple):
    """The options of component curves. An inlet and an outlet are arrays of the image's shape."""

    spacing: Any = None
    inlet: Any = None
    outlet: Any = None


class Components(CurveQuantity[ComponentOptions]):
    name = "components"
    position = 4
    title = "Component curves"
    about = "points, those of the largest component, and components that span each axis"
    columns = ("points", "largest", "spanning_0", "spanning_1", "spanning_2")
    with_euler = False
    boundaries = Domain(
        (CLOSED, PERIODIC),
        "for component curves, since a window has no ends that components span",
    )
    joins = Joins(
        "glue",
        boundaries=Domain(reason="for component curves of a dask array that is not computed first"),
        regions=False,
    )
    functions = (Function("component_curves", lazy=True),)
    of_image = "component_curves"
    result = ComponentCurves
    option = Option(
        "add the points of the sets, of their largest components, and the numbers of components "
        "that span each of the axes Z, Y and X of the image, or of the sample that a mask leaves, "
        "or wind around a periodic axis"
    )
    point_bytes = 32  # The sizes of components of a block, while those of others are joined.
    no_density = "it divides measures, and components are counted"

    def boxes(
        self,
        at: Array,
        filtration: Filtration,
        own: ComponentOptions,
        *,
        dtype: np.dtype[Any] | None = None,
        masked: bool = False,
        workers: int | None = 1,
    ) -> SizePieces:
        assert dtype is not None
        has_ends = own.inlet is not None and own.outlet is not None
        return SizePieces(
            thresholds=at, filtration=filtration, dtype=dtype, masked=masked, has_ends=has_ends
        )

    def own_of(self, arguments: Namespace, spacing: Any) -> ComponentOptions:
        return ComponentOptions()

    def columns_among(self, columns: Set[str]) -> tuple[str, ...]:
        own = super().columns_among(columns)
        # A complete table has the points, those of the largest component, and at least one axis.
        return own if len(own) > 2 else ()

    def ndim_of(self, columns: Sequence[str]) -> int:
        return len(columns) - 2


COMPONENTS = Components()
