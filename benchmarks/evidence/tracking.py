"""Splits and merges of components that are followed over time.

    python benchmarks/evidence/tracking.py [--quick]

Writes benchmarks/results/evidence/tracking.{json,md}.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from outcome import Outcome, Row, interval, report
from scipy.ndimage import gaussian_filter, label
from skimage.morphology import remove_small_objects

import ecc_core as ecc
from ecc_core.features import RegionTracks, track_regions

QUESTION = """
Are the splits and merges of components found that are known to happen in a movie?
"""
CONCLUSION = """
All of them without noise, unless smoothing joins what is 5 points apart (0.99), and no others. With
noise the components must be clean first: at 0.4 of the contrast, smoothing by a point and a least
persistence find all events and no others, smoothing alone finds 0.6 false beginnings and ends a
frame, a least size misses 2 % of splits and merges, and the bare threshold finds 31 false splits
and merges a frame. At 0.8 nothing is right: smoothing by a point with a least persistence finds
93 % of splits and merges, with 0.2 false ones and 15 false beginnings and ends a frame; smoothing
by two points finds 88 % with 0.1 and 0.8. A least persistence without smoothing is not enough.
"""
TEXT = """
Movies of 30 frames of 25 plots of 36 x 36 points. In each plot, two discs with a radius of 5 points
are absent, one region (their centres 7 points apart) or two (15 points apart); they drift by half a
point a frame, and a plot changes in 15 % of the frames: it appears, vanishes, splits or merges.
Frames are blurred (sigma 1), and white noise is added. The components at half of the contrast are
followed by `ecc_core.features.track_regions` with its defaults; those count that have the least
persistence (0.7 of the contrast, 0.5 after more smoothing) or the least size (20 points).
Smoothing: sigma of 1 and 2 points. An event is found if one of its kind happens in its plot in its
frame; all others are false. Means and 95 % intervals over five movies.
"""
PLOTS = 5
"""Plots along each side of the field; each plot has a blob of its own."""
SIDE = 36
"""Side of a plot, in points."""
RADIUS = 5.0
APART = 15.0
"""Distance of the centres of two discs that are two regions."""
TOGETHER = 7.0
"""Distance of the centres of two discs that are one region."""
DRIFT = 0.5
"""The standard deviation of a step, in points."""
CHANGE = 0.15
"""The probability that a plot changes in a frame."""
NEXT = {0: (1,), 1: (0, 2), 2: (1,)}
"""For each number of regions of a plot, the numbers that may follow."""
EVENTS = {(0, 1): "appear", (1, 0): "vanish", (1, 2): "split", (2, 1): "merge"}
BLUR = 1.0
THRESHOLD = 0.5
SEED = 63
Image = NDArray[np.float64]
Event = tuple[int, str, tuple[int, int]]
"""A frame, what happens in it, and the plot in which it happens."""


class Movie(NamedTuple):
    """Frames without noise, from 0 to 1, and the events in them."""

    frames: Image
    events: Counter[Event]


def movie(n_frames: int, rng: np.random.Generator) -> Movie:
    """Return a field of blobs that drift, appear, vanish, split and merge, each in its own plot."""
    frames = np.zeros((n_frames, PLOTS * SIDE, PLOTS * SIDE))
    events: Counter[Event] = Counter()
    for place in np.ndindex(PLOTS, PLOTS):
        corner = np.multiply(place, SIDE)
        window = tuple(slice(at, at + SIDE) for at in corner)
        angle = rng.uniform(0, np.pi)
        along = np.array([np.cos(angle), np.sin(angle)]) / 2
        middle = np.full(2, (SIDE - 1) / 2)
        count = int(rng.integers(0, 3))
        for frame in range(n_frames):
            middle = np.clip(middle + rng.normal(0, DRIFT, 2), 15, SIDE - 16)
            if frame and rng.random() < CHANGE:
                before = count
                count = int(rng.choice(NEXT[count]))
                events[frame, EVENTS[before, count], place] += 1
            if count:
                distance = APART if count == 2 else TOGETHER
                frames[(frame, *window)] = _discs(middle, distance * along)
    return Movie(gaussian_filter(frames, (0, BLUR, BLUR)), events)


def _discs(middle: Image, away: Image) -> Image:
    """Return two discs at both sides of the middle of a plot."""
    grid = np.moveaxis(np.indices((SIDE, SIDE)), 0, -1)
    distances = [np.linalg.norm(grid - middle + sign * away, axis=-1) for sign in (-1, 1)]
    return (np.minimum(*distances) <= RADIUS).astype(np.float64)


def found_events(tracks: RegionTracks) -> Counter[Event]:
    """Return the events of tracks, with the plot in which each happens."""
    found: Counter[Event] = Counter()
    before = tracks.n_before
    after = tracks.n_after
    places = (tracks.centroids // SIDE).astype(int).tolist()
    for row, (frame, place) in enumerate(zip(tracks.frames.tolist(), places, strict=True)):
        if frame and before[row] != 1:
            found[frame, "merge" if before[row] else "appear", tuple(place)] += 1
        if frame < tracks.n_frames - 1 and after[row] != 1:
            found[frame + 1, "split" if after[row] else "vanish", tuple(place)] += 1
    return found


class Components(NamedTuple):
    """Labels of a frame, and those of them that count."""

    labels: NDArray[np.integer]
    lasting: NDArray[np.integer]


def components(image: Image, sigma: float, least: float, size: int) -> Components:
    """Return the components above 0.5, and those that persist and have at least `size` points."""
    seen = gaussian_filter(image, sigma) if sigma else image
    labels = np.asarray(label(seen >= THRESHOLD, np.ones((3, 3)))[0])
    if size:
        labels = np.asarray(remove_small_objects(labels, max_size=size - 1))
    if not least:
        return Components(labels, np.unique(labels[labels > 0]))
    pairs = ecc.persistence_pairs(seen, superlevel=True, workers=1)
    counts = (pairs.dimensions == 0) & (pairs.persistence >= least) & (pairs.births >= THRESHOLD)
    counts &= pairs.essential | (pairs.deaths < THRESHOLD)
    return Components(labels, np.unique(labels[tuple(pairs.birth_points[counts].T)]))


WAYS = {
    "threshold": (0.0, 0.0, 0),
    "least persistence": (0.0, 0.7, 0),
    "least size": (0.0, 0.0, 20),
    "smoothing": (1.0, 0.0, 0),
    "smoothing, least persistence": (1.0, 0.7, 0),
    "more smoothing": (2.0, 0.0, 0),
    "more smoothing, least persistence": (2.0, 0.5, 0),
}
"""Smoothing in points, least persistence, and least size of a component."""


def judged(noise: float, n_frames: int, n_movies: int) -> list[Row]:
    """Return the share of events that are found, and the false ones a frame, by way."""
    rows: list[Row] = []
    for way, settings in WAYS.items():
        shares: dict[str, list[float]] = {}
        for seed in np.random.SeedSequence(SEED).spawn(n_movies):
            rng = np.random.default_rng(seed)
            clean, known = movie(n_frames, rng)
            noisy = clean + rng.normal(0, noise, clean.shape) if noise else clean
            frames = [components(frame, *settings) for frame in noisy]
            labels, lasting = zip(*frames, strict=True)
            found = found_events(track_regions(labels, lasting=lasting))
            for kinds in (("split", "merge"), ("appear", "vanish")):
                name = " and ".join(kinds)
                own = Counter({at: n for at, n in known.items() if at[1] in kinds})
                seen = Counter({at: n for at, n in found.items() if at[1] in kinds})
                right = (own & seen).total()
                shares.setdefault(f"{name}: found", []).append(right / own.total())
                false = (seen.total() - right) / n_frames
                shares.setdefault(f"{name}: false a frame", []).append(false)
        rows.append({"components": way, **{k: interval(v) for k, v in shares.items()}})
    return rows


def run(quick: bool) -> Outcome:
    n_frames, n_movies = (12, 2) if quick else (30, 5)
    tables = {
        f"Noise of {noise:g} of the contrast": judged(noise, n_frames, n_movies)
        for noise in ((0.0,) if quick else (0.0, 0.2, 0.4, 0.8))
    }
    return Outcome("Components followed over time", TEXT, tables, {}, QUESTION, CONCLUSION)


if __name__ == "__main__":
    report("tracking", run)
