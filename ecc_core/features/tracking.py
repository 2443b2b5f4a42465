"""Regions that are followed from frame to frame, and the splits and merges among them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._optional import import_optional
from ecc_core._request.persistence import real_number
from ecc_core.features._label_images import frames_of, integers_of, label_images
from ecc_core.features._overlaps import (
    Frame,
    Integers,
    Numbered,
    Overlaps,
    joined,
    measured,
    overlaps_of,
)

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["RegionTracks", "track_regions"]


@dataclass(frozen=True, eq=False, repr=False)
class RegionTracks:
    """Regions of all frames, and how they continue from one frame to the next.

    Regions are rows, in the order of frames and of labels. Two tracks never share a region.

    Attributes
    ----------
    frames, labels : (n,) int64 arrays
        Frame and label of each region.
    tracks : (n,) int64 array
        The track that the region belongs to, from 1 on, in the order in which tracks begin.
    points : (n,) int64 array
        Number of points of the region.
    centroids : (n, d) float64 array
        Mean index of its points.
    links : (m, 2) int64 array
        Rows of a region and of one that it continues as in the next frame, sorted.
    n_frames : int

    Examples
    --------
    >>> from ecc_core.features import track_regions
    >>> tracks = track_regions([[1, 1, 0, 2], [1, 1, 0, 0], [0, 4, 4, 0]])
    >>> tracks.frames.tolist(), tracks.labels.tolist(), tracks.tracks.tolist()
    ([0, 0, 1, 2], [1, 2, 1, 4], [1, 2, 1, 1])
    >>> tracks.links.tolist(), tracks.totals()
    ([[0, 2], [2, 3]], {'appear': 0, 'vanish': 1, 'split': 0, 'merge': 0})
    """

    frames: Integers
    labels: Integers
    tracks: Integers
    points: Integers
    centroids: NDArray[np.float64]
    links: Integers
    n_frames: int

    def __repr__(self) -> str:
        n_tracks = int(self.tracks.max(initial=0))
        counts = [f"{name}={total}" for name, total in self.totals().items()]
        return f"RegionTracks({n_tracks} tracks in {self.n_frames} frames: {', '.join(counts)})"

    def __eq__(self, other: object) -> bool:
        """Whether all regions, tracks and links are the same."""
        if not isinstance(other, RegionTracks):
            return NotImplemented
        if self.n_frames != other.n_frames:
            return False
        for name in ("frames", "labels", "tracks", "points", "centroids", "links"):
            if not np.array_equal(getattr(self, name), getattr(other, name)):
                return False
        return True

    __hash__ = None  # type: ignore[assignment]

    @property
    def parents(self) -> dict[int, tuple[int, ...]]:
        """The tracks that each track comes from, of those that begin with a split or a merge."""
        found: dict[int, list[int]] = {}
        for parent, child in self.tracks[self.links].tolist():
            if parent != child:
                found.setdefault(child, []).append(parent)
        return {child: tuple(found[child]) for child in sorted(found)}

    @property
    def n_before(self) -> Integers:
        """Number of regions of the frame before that each region continues, (n,) int64."""
        return np.bincount(self.links[:, 1], minlength=self.frames.size)

    @property
    def n_after(self) -> Integers:
        """Number of regions of the next frame that each region continues as, (n,) int64."""
        return np.bincount(self.links[:, 0], minlength=self.frames.size)

    def totals(self) -> dict[str, int]:
        """Return how often regions appear, vanish, split and merge in all frames.

        A region that is in the first frame does not appear, and one in the last does not vanish.

        Returns
        -------
        dict of str to int
            With the keys ``appear``, ``vanish``, ``split`` and ``merge``.
        """
        return {name: int(counts.sum()) for name, counts in self._events().items()}

    def events(self) -> DataFrame:
        """Return a table of the events between each frame and the one before it.

        Returns
        -------
        DataFrame
            A row for each frame, with the columns ``frame``; ``regions``, their number; ``appear``,
            regions that continue none; ``vanish``, regions of the frame before that do not
            continue; ``split``, regions of the frame before that continue as several; ``merge``,
            regions that continue several.
        """
        pandas = import_optional("pandas", extra="features", purpose="events()")
        columns = {
            "frame": np.arange(self.n_frames),
            "regions": np.bincount(self.frames, minlength=self.n_frames),
            **self._events(),
        }
        table: DataFrame = pandas.DataFrame(columns)
        return table

    def to_pandas(self) -> DataFrame:
        """Return a table of the regions.

        Returns
        -------
        DataFrame
            A row for each region, with the columns ``frame``, ``label``, ``track``, ``points``,
            ``centroid_0`` and so on, ``before`` and ``after``: how many regions it continues, and
            as how many it continues.
        """
        pandas = import_optional("pandas", extra="features", purpose="to_pandas()")
        axes = {f"centroid_{axis}": values for axis, values in enumerate(self.centroids.T)}
        columns = {
            "frame": self.frames,
            "label": self.labels,
            "track": self.tracks,
            "points": self.points,
            **axes,
            "before": self.n_before,
            "after": self.n_after,
        }
        table: DataFrame = pandas.DataFrame(columns)
        return table

    def tracks_of(self, frame: int, labels: ArrayLike) -> Integers:
        """Return the track of each label of a frame, 0 where there is no region.

        Parameters
        ----------
        frame : int
        labels : array of integers
            Such as the label image of the frame.

        Returns
        -------
        int64 array of the same shape
        """
        wanted = integers_of(labels, "labels", frame)
        own = slice(*np.searchsorted(self.frames, [frame, frame + 1]))
        known = np.append(0, self.labels[own])
        tracks = np.append(0, self.tracks[own])
        place = np.minimum(np.searchsorted(known, wanted), known.size - 1)
        return np.where(known[place] == wanted, tracks[place], 0)

    def _events(self) -> dict[str, Integers]:
        """Return the numbers of the events by name, each (n_frames,) int64."""
        last = self.n_frames - 1
        later = self.frames > 0
        before = self.n_before
        after = self.n_after

        def by_frame(frames: Integers) -> Integers:
            return np.bincount(frames, minlength=self.n_frames)

        return {
            "appear": by_frame(self.frames[later & (before == 0)]),
            "vanish": by_frame(self.frames[(self.frames < last) & (after == 0)] + 1),
            "split": by_frame(self.frames[after > 1] + 1),
            "merge": by_frame(self.frames[before > 1]),
        }


def track_regions(
    labels: Iterable[ArrayLike],
    *,
    min_overlap: float = 0.25,
    lasting: Iterable[ArrayLike] | None = None,
) -> RegionTracks:
    """Follow regions from frame to frame by the points that they share.

    Two regions of consecutive frames are linked if they share at least `min_overlap` of the points
    of the smaller one, and at least one point. A link between a region that has no other link to
    the next frame and a region that has no other link to the frame before continues a track. All
    other links begin tracks: a region with several links to the next frame splits, and one with
    several links to the frame before is a merge. Both may happen to the same regions.

    Parameters
    ----------
    labels : array of integers (n_frames, ...), or iterable of arrays of integers
        Label images of one shape with any number of axes; 0 is no region. Labels of different
        frames need not agree. Two frames are held at a time.
    min_overlap : float, default 0.25
        Share of the smaller region, above 0 and at most 1. A region that moves by more than
        its own size in a frame is lost; a large value loses those that move by less.
    lasting : iterable of arrays of integers, optional
        The labels of each frame that count, such as those of a least persistence. Another region is
        followed only where it is the same as one that counts in an earlier or a later frame: from
        one to the other, each shares at least half of the points of the larger one with the next.
        By default all regions count.

    Returns
    -------
    RegionTracks

    Raises
    ------
    TypeError
        If `labels` or `lasting` is no iterable of arrays of integers, or `min_overlap` is not a
        real number.
    ValueError
        If labels are negative, or 2**63 or more; if frames differ in shape or have no axes, or
        there is no frame; if `min_overlap` is not above 0 and at most 1; if `lasting` has not one
        array for each frame, or labels that the frame does not have.

    Notes
    -----
    The rule looks at two frames at a time. A region that is lost for a frame begins a new track,
    and two regions that touch for a frame merge and split again. Linking by overlap is described in
    [1]_, whose measure is the share of the union; the share of the smaller region, here, is the
    same for a small region that joins a large one as for two of equal size.

    The persistence of a component decreases as another one approaches, because the value at which
    they meet comes closer to the threshold. Without the rule for `lasting`, it would vanish before
    it merges.

    References
    ----------
    .. [1] Ershov et al., "TrackMate 7: integrating state-of-the-art segmentation algorithms into
       tracking pipelines", Nature Methods 19 (2022), 829-832.

    Examples
    --------
    Two regions, which merge in the third frame:

    >>> from ecc_core.features import track_regions
    >>> tracks = track_regions([[1, 1, 0, 2, 2], [3, 3, 0, 4, 4], [1, 1, 1, 1, 1]])
    >>> tracks.tracks.tolist()
    [1, 2, 1, 2, 3]
    >>> tracks.parents
    {3: (1, 2)}
    >>> tracks.totals()
    {'appear': 0, 'vanish': 0, 'split': 0, 'merge': 1}
    """
    least = real_number(min_overlap, "min_overlap")
    if not 0 < least <= 1:
        raise ValueError(f"`min_overlap` must be above 0 and at most 1, got {min_overlap!r}")
    frames: list[Frame] = []
    overlaps: list[Overlaps] = []
    before: Numbered | None = None
    n_regions = 0
    for image in label_images(labels):
        frame, numbered = measured(image)
        if before is not None:
            overlaps.append(
                overlaps_of(before, numbered).moved(n_regions - before.n_regions, n_regions)
            )
        frames.append(frame)
        n_regions += numbered.n_regions
        before = numbered
    if not frames:
        raise ValueError("`labels` must have one frame or more, got none")
    points = np.concatenate([frame.points for frame in frames])
    pairs = joined(overlaps)
    followed = np.ones(n_regions, np.bool_)
    if lasting is not None:
        followed = _followed(_counting(lasting, frames), pairs, points)
    smaller = np.minimum(points[pairs.first], points[pairs.second])
    linked = (pairs.shared >= least * smaller) & followed[pairs.first]
    linked &= followed[pairs.second]
    row = np.cumsum(followed) - 1
    links = np.stack([row[pairs.first[linked]], row[pairs.second[linked]]], axis=1)
    counts = [frame.labels.size for frame in frames]
    frame_of_each = np.repeat(np.arange(len(frames)), counts)
    labels_of_all = np.concatenate([frame.labels for frame in frames])
    centroids = np.concatenate([frame.centroids for frame in frames])
    return RegionTracks(
        frames=frame_of_each[followed],
        labels=labels_of_all[followed],
        tracks=_tracks(links, int(followed.sum())),
        points=points[followed],
        centroids=centroids[followed],
        links=links,
        n_frames=len(frames),
    )


def _counting(lasting: Iterable[ArrayLike], frames: list[Frame]) -> NDArray[np.bool_]:
    """Return which regions are among the labels of their frame that count."""
    arrays = enumerate(frames_of(lasting, "lasting"))
    given = [integers_of(own, "lasting", number) for number, own in arrays]
    if len(given) != len(frames):
        raise ValueError(
            f"`lasting` must have one array of labels for each of {len(frames)} frames, got "
            f"{len(given)}"
        )
    for number, (own, frame) in enumerate(zip(given, frames, strict=True)):
        unknown = own[~np.isin(own, frame.labels)]
        if unknown.size:
            raise ValueError(
                f"`lasting` must have labels of its frame, got {unknown.flat[0]} in frame {number}"
            )
    counting = [np.isin(frame.labels, own) for own, frame in zip(given, frames, strict=True)]
    return np.concatenate(counting)


def _followed(counting: NDArray[np.bool_], pairs: Overlaps, points: Integers) -> NDArray[np.bool_]:
    """Return which regions count, or are the same as one that counts in another frame."""
    larger = np.maximum(points[pairs.first], points[pairs.second])
    same = 2 * pairs.shared >= larger
    first = pairs.first[same]
    second = pairs.second[same]
    found = counting.copy()
    pairs_of_rows = list(zip(first.tolist(), second.tolist(), strict=True))
    for earlier, later in pairs_of_rows:
        found[later] |= found[earlier]
    for earlier, later in reversed(pairs_of_rows):
        found[earlier] |= found[later]
    return found


def _tracks(links: Integers, n_regions: int) -> Integers:
    """Return the track of each region, numbered from 1 in the order in which they begin."""
    n_after = np.bincount(links[:, 0], minlength=n_regions)
    n_before = np.bincount(links[:, 1], minlength=n_regions)
    alone = (n_after[links[:, 0]] == 1) & (n_before[links[:, 1]] == 1)
    continued = np.full(n_regions, -1)
    continued[links[alone, 1]] = links[alone, 0]
    tracks = np.zeros(n_regions, np.int64)
    new = continued < 0
    tracks[new] = np.arange(1, int(new.sum()) + 1)
    # Rows are in the order of frames, so the region that another one continues comes before it.
    for region in np.flatnonzero(~new).tolist():
        tracks[region] = tracks[continued[region]]
    return tracks
