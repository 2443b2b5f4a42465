"""State of the dock Threshold: a curve, and the classes of the sets at all thresholds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psygnal import SignalGroupDescriptor

from ecc_core import BettiCurves, PersistencePairs
from napari_ecc._model.levels import nearest
from napari_ecc._model.words import counted

Floats = NDArray[np.float64]
Scope = Literal["slice", "volume"]
Plotted = Literal["curve", "diagram", "tree"]
Stage = Literal["preview", "partial", "stopped", "complete"]

COMPONENTS = ("component", "components")
TUNNELS = ("tunnel", "tunnels")
HOLES = ("hole", "holes")
CAVITIES = ("cavity", "cavities")
BETTI_NAMES = {2: (COMPONENTS, HOLES), 3: (COMPONENTS, TUNNELS, CAVITIES)}
"""What Betti numbers count, in singular and plural, by the number of axes."""


@dataclass(frozen=True, eq=False)
class Curve:
    """An Euler characteristic curve, which may be incomplete."""

    thresholds: NDArray[np.float64]
    values: NDArray[np.int64]
    superlevel: bool
    """Whether the sets are ``image >= t``."""
    stage: Stage = "complete"
    """What it is found from: a coarse level or some of the points, the blocks read so far, of which
    more will come or not, or all points."""
    done: int = 0
    """The number of blocks that have been read."""
    total: int = 0
    """The number of all blocks."""

    @property
    def complete(self) -> bool:
        """Whether it is the exact curve of the whole image."""
        return self.stage == "complete"

    def in_words(self) -> str:
        """The part of the image that the curve describes; "" for the whole image."""
        if self.complete:
            return ""
        if self.stage == "preview" or not self.done:
            what = "preview at low resolution"
        else:
            what = f"partial, {self.done} of {self.total} blocks"
        return f"cancelled: {what}" if self.stage == "stopped" else what

    def value_at(self, threshold: float) -> int:
        """Return the value of the curve at a threshold, exact if it is one of `thresholds`."""
        side: Any = "left" if self.superlevel else "right"
        index = int(np.searchsorted(self.thresholds, threshold, side=side))
        if not self.superlevel:
            index -= 1  # The last threshold that is not above counts.
        return int(self.values[index]) if 0 <= index < self.values.size else 0

    def dividing(self, value: float) -> float:
        """The threshold whose set separates what is above a value from the rest.

        It is the threshold of the curve next to the value: the first one above it for superlevel
        sets, and the last one that is not above it for sublevel sets.
        """
        place = int(np.searchsorted(self.thresholds, value, side="right"))
        if not self.superlevel:
            place -= 1
        return float(self.thresholds[min(max(place, 0), self.thresholds.size - 1)])

    def index_of(self, threshold: float) -> int:
        """Index of the nearest of the curve's thresholds."""
        return nearest(self.thresholds, threshold)


class Counts(NamedTuple):
    """The Betti numbers of a set."""

    numbers: tuple[int, ...]
    """Betti numbers: components and holes, or components, tunnels and cavities."""

    @property
    def euler(self) -> int:
        """Euler characteristic: the alternating sum."""
        return sum(self.numbers[::2]) - sum(self.numbers[1::2])

    def in_html(self, colours: Sequence[str] = ()) -> str:
        """The sum that makes the Euler characteristic, such as "3 components - 1 hole".

        Lines end between its terms. Marks of these `colours`, as ``#rrggbb``, stand before them, as
        in the legend of a plot: the text itself is readable on any background.
        """
        names = BETTI_NAMES[len(self.numbers)]
        # Larger marks are of another font, whose lines are higher, and would break the sentence.
        marks = [f"<b style='color: {colour}'>\N{BULLET}</b> " for colour in colours]
        marks = marks or [""] * len(names)
        signs = ("", "\N{MINUS SIGN} ", "+ ")
        terms = [
            f"<nobr>{sign}{mark}{counted(number, one, many)}</nobr>"
            for sign, mark, number, (one, many) in zip(
                signs, marks, self.numbers, names, strict=False
            )
        ]
        return " ".join(terms)


class Classes:
    """Births and deaths of components, holes or tunnels, and cavities, the most persistent first.

    A class counts from `persistence` on, which decreases: the difference of its birth and its
    death, which is infinite for those that never die.
    """

    def __init__(self, pairs: PersistencePairs, levels: Floats) -> None:
        end = -np.inf if pairs.superlevel else np.inf
        births = pairs.births.astype(np.float64)
        deaths = np.where(pairs.essential, end, pairs.deaths.astype(np.float64))
        persistence = pairs.persistence
        order = np.argsort(-persistence, kind="stable")
        self.births: Floats = births[order]
        self.deaths: Floats = deaths[order]
        self.persistence: Floats = persistence[order]
        self.dimensions: NDArray[np.int64] = np.asarray(pairs.dimensions)[order]
        self.birth_points: NDArray[np.int64] = np.asarray(pairs.birth_points)[order]
        self.death_points: NDArray[np.int64] = np.asarray(pairs.death_points)[order]
        """-1 where a class never dies."""
        self.superlevel = pairs.superlevel
        self.connectivity = pairs.connectivity
        self.ndim = int(pairs.birth_points.shape[1])
        self.levels = levels
        """The thresholds of the curves."""
        side: Any = "right" if self.superlevel else "left"
        ends = (self.deaths, self.births) if self.superlevel else (self.births, self.deaths)
        self._inside: tuple[float, list[NDArray[np.intp]]] | None = None
        """A threshold, and the classes of its set by dimension, increasing."""
        self._spans = np.stack([np.searchsorted(levels, at, side=side) for at in ends])
        """The level from which a class is alive, and the one before which it is, (2, n)."""

    def lasting(self, least: float) -> slice:
        """The classes of at least this persistence."""
        return slice(0, int(np.searchsorted(-self.persistence, -least, side="right")))

    def alive(self, threshold: float, least: float = 0.0) -> NDArray[np.bool_]:
        """Which of the `lasting` classes the set at a threshold has."""
        some = self.lasting(least)
        births = self.births[some]
        deaths = self.deaths[some]
        if self.superlevel:
            return (births >= threshold) & (threshold > deaths)
        return (births <= threshold) & (threshold < deaths)

    def numbers(self, threshold: float, least: float) -> tuple[int, ...]:
        """The Betti numbers of the set at a threshold, of the classes that last."""
        if self._inside is None or self._inside[0] != threshold:
            (alive,) = np.nonzero(self.alive(threshold))
            kinds = self.dimensions[alive]
            self._inside = threshold, [alive[kinds == k] for k in range(self.ndim)]
        end = self.lasting(least).stop
        _, of_each_dimension = self._inside
        counts = [np.searchsorted(classes, end) for classes in of_each_dimension]
        return tuple(map(int, counts))

    @cached_property
    def _born(self) -> tuple[tuple[int, ...], NDArray[np.intp], NDArray[np.intp]]:
        """What holds all points, where components are born in it, increasing, and their indices."""
        shape = tuple((self.birth_points.max(axis=0, initial=0) + 1).tolist())
        (components,) = np.nonzero(self.dimensions == 0)
        places = np.ravel_multi_index(tuple(self.birth_points[components].T), shape)
        order = np.argsort(places)
        return shape, places[order], components[order]

    def born_at(self, points: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
        """The components that are born at points, (k, d), at each of which one is."""
        shape, places, components = self._born
        wanted = np.ravel_multi_index(tuple(np.asarray(points).T), shape)
        found: NDArray[np.intp] = components[np.searchsorted(places, wanted)]
        return found

    def betti_curves(self, least: float) -> BettiCurves:
        """The Betti curves of the classes that last."""
        some = self.lasting(least)
        n = self.levels.size + 1
        places = self._spans[:, some] + n * self.dimensions[some]
        begin, end = (np.bincount(at, minlength=self.ndim * n) for at in places)
        return BettiCurves(
            self.levels,
            (begin - end).reshape(self.ndim, n)[:, :-1].cumsum(axis=1),
            connectivity=self.connectivity,
            superlevel=self.superlevel,
            ndim=self.ndim,
        )

    def offer(self) -> float | None:
        """The middle of the widest gap between the persistences of components, None without one.

        Components that never die are left out: their persistence is the range of the values.
        """
        known = self.persistence[(self.dimensions == 0) & np.isfinite(self.persistence)]
        if known.size < 2:
            return None
        gaps = known[:-1] - known[1:]
        place = int(gaps.argmax())
        middle = float(known[place] + known[place + 1]) / 2
        return float(np.ceil(middle)) if (self.births == np.round(self.births)).all() else middle

    def components(self, threshold: float, least: float) -> tuple[int, int]:
        """How many components of the set at a threshold last, and how many do not."""
        every = self.numbers(threshold, 0.0)[0]
        last = self.numbers(threshold, least)[0]
        return last, every - last

    def following(self, kind: str, threshold: float, step: int, least: float) -> float | None:
        """The next "birth" or "merge" of lasting components above a threshold (`step` 1) or below.

        None if there is none.
        """
        some = self.lasting(least)
        places = (self.births if kind == "birth" else self.deaths)[some]
        places = places[(self.dimensions[some] == 0) & np.isfinite(places)]
        beyond = places[places > threshold] if step > 0 else places[places < threshold]
        if not beyond.size:
            return None
        return float(beyond.min() if step > 0 else beyond.max())


class Tree:
    """The merge tree of objects, each in a row near those that it merges with.

    `merges_with` are the numbers of older objects from 1 on, or 0; `parents` are
    their indices, or -1. An object is followed by those that merge with it, and by theirs, those
    that merge first nearest, so that no line to a parent crosses a bar.
    """

    def __init__(
        self, births: Floats, deaths: Floats, merges_with: NDArray[np.integer[Any]]
    ) -> None:
        self.births = births
        self.deaths = deaths
        self.parents = np.asarray(merges_with, np.intp) - 1
        self.rows = np.zeros(len(births), np.intp)
        children: list[list[int]] = [[] for _ in range(len(births) + 1)]
        for k in np.argsort(np.where(deaths < births, -deaths, deaths), kind="stable").tolist():
            children[self.parents[k]].append(k)
        waiting = children[-1][::-1]
        for row in range(len(births)):
            k = waiting.pop()
            self.rows[k] = row
            waiting += children[k][::-1]


@dataclass(frozen=True, eq=False)
class Histogram:
    """Histogram of the values of an image."""

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    otsu: float
    """Otsu's threshold."""


@dataclass
class ExplorerModel:
    """Settings and results of the dock Threshold."""

    image: str = ""
    """The name of the layer, or ""."""
    roi: str = ""
    """The name of the layer of the region, or ""."""
    superlevel: bool = True
    """Sets are ``image >= t`` instead of ``image <= t``."""
    connectivity: int | None = None
    """1: points are connected along sides only; None (that is, d): along diagonals, too."""
    bins: int = 256
    """Number of thresholds. Integer images with fewer levels have a threshold at each of them."""
    sigma: float = 0.0
    """Gaussian smoothing before the curve, in sides of the smallest pixel."""
    scope: Scope = "slice"
    """The displayed plane, or the last three axes."""
    threshold: float = math.nan
    """The threshold in values of the image; NaN before there is a curve."""
    window: float = 2.0
    """Half width of the window of critical points, in % of the curve's range."""
    show_set: bool = True
    """Whether the layer of the set is wanted."""
    contour: bool = True
    """Whether the outline of the set is drawn, not all of it."""
    show_changes: bool = False
    """Whether the layer of its critical points is wanted."""
    show_histogram: bool = False
    """Whether the histogram of the values is wanted behind the curve."""
    histogram_log: bool = False
    """Whether the counts of the histogram are drawn as log10(1 + count), not as they are."""
    show_betti: bool = False
    """Whether the Betti curves are wanted beside the curve."""
    plot: Plotted = "curve"
    """The curve, births and deaths of all classes, or the merge tree of the objects of the set."""
    min_persistence: float = 0.0
    """Classes of less persistence are left out of curves, counts and labels."""
    min_size: int = 0
    """The fewest points of an object that is labelled."""
    half_height: bool = False
    """Whether each object is labelled up to half of its own height, not up to the threshold."""
    curve: Curve | None = None
    betti: BettiCurves | None = None
    """Curves of all classes at the thresholds of the curve; None while they are counted."""
    classes: Classes | None = None
    """Births and deaths; None while they are being found, and where they cannot be found."""
    chosen: tuple[int, ...] = ()
    """Indices of the classes that the user has chosen."""
    unpaired: str = ""
    """Why births and deaths are not found, and what can be done; "" if they are, or will be."""
    histogram: Histogram | None = None
    """The histogram of the values; None unless it is wanted and known."""
    pointed: str = ""
    """What is known of the object under the mouse."""
    changes: tuple[int, int] = (0, 0)
    """How many critical points are shown, and how many there are in the window."""
    status: str = ""
    """One line for the user."""

    events: ClassVar[SignalGroupDescriptor] = SignalGroupDescriptor()

    @property
    def sets(self) -> dict[str, Any]:
        """Arguments that say which sets are meant."""
        return {"superlevel": self.superlevel, "connectivity": self.connectivity}

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `napari_ecc.actions.layer_curve`."""
        return {"thresholds": self.bins, **self.sets, "smoothing": self.sigma}

    @property
    def least(self) -> float:
        """The persistence from which on classes count; 0 where births and deaths are not found."""
        return 0.0 if self.unpaired else self.min_persistence

    @property
    def counts(self) -> Counts | None:
        """The Betti numbers at the threshold; None if unknown."""
        if self.classes is not None:
            return Counts(self.classes.numbers(self.threshold, self.least))
        if self.betti is None or self.least:
            return None
        (known,) = np.nonzero(self.betti.thresholds == self.threshold)
        if not known.size:
            return None
        numbers = self.betti.values[:, known[0]]
        return Counts(tuple(numbers.tolist()))

    @property
    def lasting_betti(self) -> BettiCurves | None:
        """The Betti curves of the classes that last; None if unknown."""
        if not self.least:
            return self.betti
        return None if self.classes is None else self.classes.betti_curves(self.least)
