"""Betti numbers, persistence and components."""

from collections.abc import Sequence
from typing import Any, Protocol

from ecc_core._backends.protocols.arrays import DeviceArray, Levels
from ecc_core._backends.protocols.pieces import (
    BettiPieces,
    FloodBoxes,
    MarkRuns,
    PairPieces,
    SizePieces,
    TunnelPieces,
)
from ecc_core._request.filtration import Filtration


class BettiNumbers(Protocol):
    """Betti curves, persistence pairs, sizes of components and their regions.

    With `least` only classes count that last for at least that much.
    """

    def betti_curves(
        self,
        images: DeviceArray,
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
        least: float = 0,
    ) -> DeviceArray:
        """Return Betti numbers, (images, classes, n) int64."""

    def exact_betti_curves(
        self,
        images: DeviceArray,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
        least: float = 0,
    ) -> tuple[DeviceArray, DeviceArray]:
        """Return the levels at which a number of the only image changes, and the numbers."""

    def region_betti_curves(
        self,
        image: DeviceArray,
        labels: DeviceArray,
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        workers: int | None = None,
        least: float = 0,
    ) -> tuple[DeviceArray, DeviceArray]:
        """Return ids (k,) and Betti numbers (k, classes, n), each region counted alone."""

    def persistence_pairs(
        self,
        images: DeviceArray,
        dimensions: Sequence[int],
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
    ) -> list[tuple[DeviceArray, DeviceArray]]:
        """Return the points of birth and death for each dimension, -1 for classes that last."""

    def component_curves(
        self,
        images: DeviceArray,
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
        ends: tuple[DeviceArray | None, DeviceArray | None] = (None, None),
    ) -> DeviceArray:
        """Return points, those of the largest component, and components that touch both ends.

        They are (images, 2 + pairs, n) int64. `ends` are masks of the inlet and the outlet. None
        stands for the first or the last slice with points along each axis, so that there is a pair
        of ends for each axis.
        """

    def persistent_regions(
        self,
        image: DeviceArray,
        shown: DeviceArray,
        least: float,
        threshold: Any,
        filtration: Filtration,
        /,
        *,
        rel_height: float | None = None,
        workers: int | None = None,
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray]:
        """Return labels of the components that last, and births, deaths and elders of each.

        The image has no batch axis. `rel_height` is the part of the way from birth to death at
        which labels end.
        """


class HostBettiNumbers(BettiNumbers, Protocol):
    """Betti numbers with what only the host computes: results by boxes, and Betti matching."""

    betti_pieces: "BettiPieces"
    """Boxes of an image for Betti numbers, (ndim, n) of a whole image."""
    pair_pieces: "PairPieces"
    """Boxes of an image for pairs of birth and death."""
    tunnel_pieces: "TunnelPieces"
    """Boxes of a volume for the pairs of birth and death of tunnels."""
    flood_boxes: "FloodBoxes"
    """Boxes of an image for regions of components that last."""
    mark_runs: "MarkRuns"
    """Labels of a box in little memory."""
    size_pieces: "SizePieces"
    """Boxes of an image for component curves, (pairs + 2, n) of a whole image."""

    def persistence_pairs(
        self,
        images: DeviceArray,
        dimensions: Sequence[int],
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
        least: float = 0,
    ) -> list[tuple[DeviceArray, DeviceArray]]:
        """Return the points of birth and death for each dimension, -1 for classes that last.

        Only classes that last for at least `least` are returned.
        """

    def betti_matching(
        self,
        predictions: DeviceArray,
        targets: DeviceArray,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
        sets: bool = False,
    ) -> Sequence[Sequence[Any]]:
        """Return for each pair of images and dimension what matches, and all classes of both.

        These are points of birth and death, -1 for classes that never die, of either image, and
        numbers of classes that match, (m, 2). With `sets`, images are booleans, and only points of
        the value that enters first join components.
        """
