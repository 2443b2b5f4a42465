"""Pieces of boxes that are joined: of Betti numbers, pairs and sizes of components."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ecc_core._backends.pairs import PairOptions, Pairs
from ecc_core._backends.protocols.arrays import Counts, DeviceArray, Levels, Side
from ecc_core._request.filtration import Filtration


class BettiPieces(Protocol):
    """Boxes of an image, reduced to what other boxes can change, and how they are joined.

    The image has no batch axis. `open_sides` are those beyond which it goes on. A piece is any
    object. In 1-D and 2-D, `least` is that of `HostBettiNumbers`.
    """

    def piece_of(
        self,
        image: DeviceArray,
        thresholds: Levels,
        filtration: Filtration,
        open_sides: tuple[Side, ...],
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
        least: float = 0,
    ) -> Any:
        """Return the piece of a box."""

    def join_pieces(
        self,
        low: Any,
        high: Any,
        axis: int,
        dtype: np.dtype[Any],
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        masked: bool,
        least: float = 0,
    ) -> Any:
        """Return the piece of two boxes that touch across an axis."""

    def numbers_of(
        self,
        piece: Any,
        dtype: np.dtype[Any],
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        masked: bool,
        least: float = 0,
    ) -> Counts:
        """Return the numbers of a whole image, from its piece."""

    def pack_piece(self, piece: Any, /) -> Counts:
        """Return a piece as one array."""

    def unpack_piece(self, values: Counts, /) -> Any:
        """Return the piece of such an array."""


class PairPieces(Protocol):
    """Boxes of an image, from which its pairs of birth and death follow.

    The image has no batch axis. A piece is any object.
    """

    def piece_of(
        self,
        image: DeviceArray,
        options: PairOptions,
        start: Sequence[int],
        whole: Sequence[int],
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
    ) -> Any:
        """Return the piece of a box that begins at `start`; the image has the shape `whole`."""

    def join_pieces(self, low: Any, high: Any, axis: int, options: PairOptions, /) -> Any:
        """Return the piece of two boxes that touch across an axis."""

    def pairs_of(self, piece: Any, options: PairOptions, /) -> Pairs:
        """Return the pairs of a whole image, by birth, then by the places of birth and death."""


class SizePieces(Protocol):
    """The same for sizes of components, with the `ends` of `component_curves`."""

    def piece_of(
        self,
        image: DeviceArray,
        thresholds: Levels,
        filtration: Filtration,
        open_sides: tuple[Side, ...],
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
        ends: tuple[DeviceArray | None, DeviceArray | None] = (None, None),
    ) -> Any:
        """Return the piece of a box."""

    def join_pieces(
        self,
        low: Any,
        high: Any,
        axis: int,
        dtype: np.dtype[Any],
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        masked: bool,
    ) -> Any:
        """Return the piece of two boxes that touch across an axis."""

    def numbers_of(
        self,
        piece: Any,
        dtype: np.dtype[Any],
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        masked: bool,
    ) -> Counts:
        """Return the numbers of a whole image, from its piece."""

    def pack_piece(self, piece: Any, /) -> Counts:
        """Return a piece as one array."""

    def unpack_piece(self, values: Counts, /) -> Any:
        """Return the piece of such an array."""
