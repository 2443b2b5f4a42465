"""Betti numbers: components, holes or tunnels, and cavities."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ecc_core._blocks.glued import BoxPieces
from ecc_core._blocks.planes import Array
from ecc_core._request.boundary import COMPLEXES, Domain
from ecc_core._request.filtration import Filtration
from ecc_core.quantities._base import CurveQuantity, Function, Joins, Option
from ecc_core.results import BettiCurves, RegionBettiCurves

if TYPE_CHECKING:
    from ecc_core._backends import protocols


@dataclass(frozen=True)
class BettiPieces(BoxPieces):
    """Betti numbers from the pieces of blocks."""

    @property
    def rows(self) -> int:
        return self.filtration.ndim

    def of_backend(self, backend: protocols.HostBettiNumbers) -> protocols.BettiPieces:
        return backend.betti_pieces


@dataclass(frozen=True)
class LastingPieces(BettiPieces):
    """Numbers of classes whose persistence is at least `least`, of images in 1-D or 2-D."""

    least: float

    def __post_init__(self) -> None:
        if self.filtration.ndim > 2:
            raise ValueError(
                "Betti curves of what lasts are known for whole volumes only: leave out the "
                "persistence, compute the image in memory, or use ecc curve or ecc stack"
            )
        if self.masked and self.dtype.kind in "iu" and self.dtype.itemsize == 8:
            raise ValueError(
                f"classes that last are not counted by blocks for masked {self.dtype}: compute the "
                "image in memory"
            )

    @property
    def options(self) -> dict[str, Any]:
        return {"least": self.least}


class BettiOptions(NamedTuple):
    """The options of Betti numbers."""

    min_persistence: float = 0


class Betti(CurveQuantity[BettiOptions]):
    name = "betti"
    position = 2
    title = "Betti curves"
    about = "components, holes or tunnels, and cavities"
    columns = ("b0", "b1", "b2", "b3")
    boundaries = COMPLEXES
    joins = Joins(
        "glue",
        boundaries=Domain(reason="for Betti numbers of a dask array that is not computed first"),
        regions=False,
    )
    functions = (
        Function("betti_curves", lazy=True),
        Function("betti_numbers", lazy=True),
        Function("region_betti_curves"),
    )
    of_image = "betti_curves"
    result = BettiCurves
    of_regions = "region_betti_curves"
    region_result = RegionBettiCurves
    exact = True
    option = Option("add the Betti numbers: components, holes (2-D) or tunnels (3-D), cavities")
    own_options = ("persistence",)
    no_density = "it divides measures, and Betti numbers are counts"

    def boxes(
        self,
        at: Array,
        filtration: Filtration,
        own: BettiOptions,
        *,
        dtype: np.dtype[Any] | None = None,
        masked: bool = False,
        workers: int | None = 1,
    ) -> BettiPieces:
        assert dtype is not None
        if own.min_persistence:
            return LastingPieces(
                thresholds=at,
                filtration=filtration,
                dtype=dtype,
                masked=masked,
                least=own.min_persistence,
            )
        return BettiPieces(at, filtration, dtype, masked)

    def ndim_of(self, columns: Sequence[str]) -> int:
        return len(columns)

    def own_of(self, arguments: Namespace, spacing: Any) -> BettiOptions:
        return BettiOptions(arguments.persistence or 0)


BETTI = Betti()
