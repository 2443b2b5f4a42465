"""Pieces of boxes that are joined: of Betti numbers, pairs and sizes of components."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ecc_core._backends.pair_options import PairOptions, Pairs
from ecc_core._backends.protocols.arrays import Counts, DeviceArray, Levels, Side
from ecc_core._request.filtration import Filtration


class BettiPieces(Protocol):
    """Boxes of an image, reduced to what other boxes can change, and how they are joined.

    The image has no batch axis, and continues beyond the `open_sides` of a box. A piece is any
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

    def take_pairs(self, piece: Any, /) -> tuple[Any, Pairs]:
        """Return a piece without the pairs that it lists, and these."""

    def with_pairs(self, piece: Any, pairs: Pairs, /) -> Any:
        """Return a piece that lists given pairs."""

    def in_order(self, pairs: Pairs, options: PairOptions, /) -> Pairs:
        """Return all pairs of an image by birth, then by the places of birth and death."""

    def pack_piece(self, piece: Any, /) -> Counts:
        """Return a piece as one array."""

    def unpack_piece(self, values: Counts, /) -> Any:
        """Return the piece of such an array."""


class TunnelPieces(Protocol):
    """Boxes of a volume, from which its tunnels follow. A piece is any object."""

    def piece_of(
        self,
        image: DeviceArray,
        options: PairOptions,
        start: Sequence[int],
        stop: Sequence[int],
        whole: Sequence[int],
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
    ) -> Any:
        """Return the piece of a box from `start` to `stop`; the volume has the shape `whole`.

        The image and its mask are those of the box and the points around it.
        """

    def join_pieces(self, low: Any, high: Any, axis: int, options: PairOptions, /) -> Any:
        """Return the piece of two boxes that touch across an axis."""

    def pairs_of(self, piece: Any, options: PairOptions, /) -> Pairs:
        """Return the pairs of a whole volume, by birth, then by the places of birth and death."""


class SizePieces(Protocol):
    """Boxes of an image as for `BettiPieces`, for `component_curves` and with its `ends`."""

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


class FloodBoxes(Protocol):
    """Labels of components that last, which spread within a box of an image and its halo."""

    NEVER: Any
    UNKNOWN: Any
    MARGIN: int
    MOST_LABELS: int
    Links: Any

    def keys_of(self, image: DeviceArray, superlevel: bool, /) -> DeviceArray:
        """Return unsigned integers in the order in which points enter."""

    def entered_values(self, image: DeviceArray, superlevel: bool, /) -> DeviceArray:
        """Return numbers that grow in the order in which points enter."""

    def lowest(self, dtype: np.dtype[Any], count: int, /) -> DeviceArray:
        """Return `count` numbers that precede all values of a dtype in the order of entry."""

    def ends_of(self, image: DeviceArray, shown: DeviceArray | None, superlevel: bool, /) -> Any:
        """Return the least and largest finite value, and the last one, in the order of entry."""

    def order_of(self, keys: DeviceArray, places: DeviceArray | None, /) -> DeviceArray:
        """Return numbers of the points of a window in the order in which they enter."""

    def first_marks(
        self,
        order: DeviceArray,
        keys: DeviceArray,
        marks: DeviceArray,
        filtration: Filtration,
        entries: tuple[DeviceArray, DeviceArray],
        links: Any,
        levels: DeviceArray,
        /,
    ) -> None:
        """Mark the points of a window from which steps lead to entries; other marks are dropped."""

    def spread_marks(
        self,
        order: DeviceArray,
        keys: DeviceArray,
        marks: DeviceArray,
        filtration: Filtration,
        entries: tuple[DeviceArray, DeviceArray],
        links: Any,
        levels: DeviceArray,
        /,
    ) -> None:
        """Spread the marks of entries within a window, to points whose own marks are larger."""

    def lower_labels(
        self,
        keys: DeviceArray,
        places: DeviceArray | None,
        marks: DeviceArray,
        at: DeviceArray,
        filtration: Filtration,
        /,
    ) -> DeviceArray:
        """Return the labels of the neighbours of points that enter before them, or 0."""

    def merged_of(self, rows: DeviceArray, count: int, /) -> DeviceArray:
        """Return the label that each of `count` components joins, or 0."""

    def cut_keys(
        self,
        pairs: Pairs,
        last: DeviceArray,
        rel_height: float,
        finite: tuple[float, float] | None,
        superlevel: bool,
        /,
    ) -> DeviceArray:
        """Return the keys of the last values at which points of a component are in its region."""


class MarkRuns(Protocol):
    """Arrays of int32 as runs of equal values."""

    def runs_of(self, values: DeviceArray, /) -> DeviceArray:
        """Return the runs of an array, which end at the end of its rows."""

    def lengths_of(self, runs: DeviceArray, shape: Sequence[int], /) -> Any:
        """Return the value of each run of an array, and how many points it has."""

    def add_lengths(
        self, labels: DeviceArray, lengths: DeviceArray, points: DeviceArray, /
    ) -> None:
        """Add the lengths of runs to the number of points that their labels have."""

    def read_runs(
        self,
        runs: DeviceArray,
        shape: Sequence[int],
        box: Sequence[slice] | None = None,
        change: Any = None,
    ) -> DeviceArray:
        """Return the array that runs stand for, or a box of it; `change` is applied to values."""
