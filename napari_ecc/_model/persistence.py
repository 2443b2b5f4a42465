"""Classes of the sets at all thresholds, and which of them last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core import BettiCurves, PersistencePairs

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Classes:
    """Births and deaths of components, holes or tunnels, and cavities, the most persistent first.

    A class counts from `persistence` on: the difference of its birth and its death, which is
    infinite for those that never die.
    """

    dimensions: NDArray[np.int64]
    births: Floats
    deaths: Floats
    birth_points: NDArray[np.int64]
    persistence: Floats  # decreasing
    levels: Floats  # the thresholds of the curves
    spans: NDArray[np.int64]  # (2, n), from which to before which level a class is alive
    superlevel: bool
    connectivity: int | None
    ndim: int

    @classmethod
    def of(cls, pairs: PersistencePairs, levels: Floats) -> Classes:
        """Sort the pairs of all dimensions."""
        end = -np.inf if pairs.superlevel else np.inf
        births = pairs.births.astype(np.float64)
        deaths = np.where(pairs.essential, end, pairs.deaths.astype(np.float64))
        persistence = np.abs(deaths - births)
        order = np.argsort(-persistence, kind="stable")
        births, deaths = births[order], deaths[order]
        side: Any = "right" if pairs.superlevel else "left"
        ends = (deaths, births) if pairs.superlevel else (births, deaths)
        return cls(
            dimensions=np.asarray(pairs.dimensions)[order],
            births=births,
            deaths=deaths,
            birth_points=np.asarray(pairs.birth_points)[order],
            persistence=persistence[order],
            levels=levels,
            spans=np.stack([np.searchsorted(levels, at, side=side) for at in ends]),
            superlevel=pairs.superlevel,
            connectivity=pairs.connectivity,
            ndim=int(pairs.birth_points.shape[1]),
        )

    def lasting(self, least: float) -> slice:
        """The classes of at least this persistence."""
        return slice(0, int(np.searchsorted(-self.persistence, -least, side="right")))

    def alive(self, threshold: float, least: float = 0.0) -> NDArray[np.bool_]:
        """Which of the `lasting` classes the set at a threshold has."""
        some = self.lasting(least)
        births, deaths = self.births[some], self.deaths[some]
        if self.superlevel:
            return (births >= threshold) & (threshold > deaths)
        return (births <= threshold) & (threshold < deaths)

    def numbers(self, threshold: float, least: float) -> tuple[int, ...]:
        """The Betti numbers of the set at a threshold, of the classes that last."""
        inside = self.alive(threshold, least)
        dimensions = self.dimensions[self.lasting(least)][inside]
        return tuple(np.bincount(dimensions, minlength=self.ndim).tolist())

    def betti_curves(self, least: float) -> BettiCurves:
        """The Betti curves of the classes that last."""
        some, n = self.lasting(least), self.levels.size + 1
        places = self.spans[:, some] + n * self.dimensions[some]
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
        zero = self.dimensions == 0
        every = int((self.alive(threshold) & zero[self.lasting(0)]).sum())
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


@dataclass(frozen=True, eq=False)
class Tree:
    """The merge tree of objects, each in a row near those that it merges with."""

    births: Floats
    deaths: Floats
    parents: NDArray[np.intp]  # the older object that each merges with, or -1
    rows: NDArray[np.intp]

    @classmethod
    def of(cls, births: Floats, deaths: Floats, merges_with: NDArray[np.integer]) -> Tree:
        """Order objects; `merges_with` are their numbers from 1 on, or 0.

        An object is followed by those that merge with it, and by theirs, those that merge first
        nearest, so that no line to a parent crosses a bar.
        """
        parents = np.asarray(merges_with, np.intp) - 1
        children: list[list[int]] = [[] for _ in range(len(births) + 1)]
        for k in np.argsort(np.where(deaths < births, -deaths, deaths), kind="stable").tolist():
            children[parents[k]].append(k)
        rows, waiting = np.zeros(len(births), np.intp), children[-1][::-1]
        for row in range(len(births)):
            k = waiting.pop()
            rows[k] = row
            waiting += children[k][::-1]
        return cls(births, deaths, parents, rows)
