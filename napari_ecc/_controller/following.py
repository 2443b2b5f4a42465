"""Components of a series that are followed: layers of their tracks, and a table of the events."""

import importlib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ecc_core.features import RegionTracks
from napari_ecc._controller.curves import request_of
from napari_ecc._controller.docks import call
from napari_ecc._controller.frames import Followed, check_followed, follow_frames
from napari_ecc._controller.layers import RESULT_KEY, placement, selection_of
from napari_ecc._controller.overlays import embedded
from napari_ecc._controller.session import remove_added
from napari_ecc._model.levels import formatted
from napari_ecc._model.words import counted
from napari_ecc._workers import Runner, Step

MIN_OVERLAP = 0.25
TAIL = 10
"""Frames of a track that are drawn behind and ahead of the present one."""


class Found(NamedTuple):
    """Components that were followed, and what they are of."""

    followed: Followed
    layer: Any
    options: dict[str, Any]
    """Keyword arguments of `napari_ecc.actions.follow_components`."""


class Follower:
    """Follows the components of the series that a `SeriesController` shows."""

    def __init__(self, controller: Any) -> None:
        self._controller = controller
        self.runner = Runner("Components over time")
        self.found: Found | None = None

    def follow(self) -> None:
        """Follow the components at the threshold, and add layers of what is found."""
        controller = self._controller
        model = controller.model
        layer = controller.layer
        if layer is None or not model.shape or model.place is None:
            model.status = "There is no series to follow."
            return
        if model.axis != 0:
            model.status = "Components are followed along the first axis: choose it in Along."
            return
        parts = [controller.part_at(frame) for frame in model.frames()]
        requests = [request_of(layer, part, **model.options) for part in parts]
        try:
            check_followed(requests, layer.name)
        except ValueError as error:
            model.status = str(error)
            return
        options = {
            "threshold": model.threshold,
            "min_persistence": model.min_persistence,
            "part": parts[0],
            "smoothing": model.sigma,
            **model.sets,
        }
        follow = partial(
            follow_frames,
            requests,
            model.threshold,
            model.min_persistence,
            MIN_OVERLAP,
            **model.sets,
        )

        def job() -> Iterator[Step]:
            # vispy imports it for the first tracks that it draws, while the window waits
            with suppress(ImportError):
                importlib.import_module("matplotlib.cm")
            yield from follow()

        self.runner.submit(job, partial(self._on_step, layer, options))

    def _on_step(self, layer: Any, options: dict[str, Any], step: Step) -> None:
        if step.value is None or layer not in self._controller.viewer.layers:
            return
        before = self.found
        self.found = Found(step.value, layer, options)
        self._add_layers(before)
        self._controller.model.status = self.in_words()

    def _add_layers(self, before: Found | None) -> None:
        """Add the labels and the tracks, which can be undone."""
        found = self.found
        assert found is not None  # The regions have been followed just now.
        viewer = self._controller.viewer
        layer = found.layer
        selected = set(viewer.layers.selection)
        step = viewer.dims.current_step
        where = (slice(None), *found.options["part"][1:])
        place = embedded(found.followed.labels, layer, selection_of(layer, where))
        title = f"{layer.name} {'≥' if found.options['superlevel'] else '≤'} "
        title += formatted(found.options["threshold"])
        made = {RESULT_KEY: {"dock": "Series"}}
        labels = viewer.add_labels(name=f"{title} followed", metadata=made, **place)
        tracks = viewer.add_tracks(
            vertices(found.followed, where),
            graph={child: list(at) for child, at in found.followed.tracks.parents.items()},
            features=track_features(found.followed),
            name=f"{title} tracks",
            tail_length=TAIL,
            **placement(layer),
        )
        viewer.dims.current_step = step

        def undo() -> None:
            self.found = before
            remove_added(viewer, (labels, tracks), selected)

        self._controller.session.history.add("Follow", undo)

    def in_words(self) -> str:
        """Say how many tracks there are, and how often what happens."""
        if self.found is None:
            return ""
        tracks = self.found.followed.tracks
        totals = tracks.totals()
        events = ", ".join(counted(totals[name], name) for name in ("split", "merge"))
        ends = f"{totals['appear']:,} appear, {totals['vanish']:,} vanish"
        return f"{counted(int(tracks.tracks.max(initial=0)), 'track')}: {events}, {ends}"

    def events(self) -> pd.DataFrame:
        """Return a row for each frame with what happens between it and the one before."""
        if self.found is None:
            raise ValueError("Nothing has been followed yet: press Follow.")
        return self.found.followed.tracks.events()

    def statements(self) -> list[str]:
        """Return the code of what was followed; none if nothing was."""
        if self.found is None:
            return []
        return [call("labels, tracks", "follow_components", self.found.layer, **self.found.options)]

    def forget(self) -> None:
        """Stop, and forget what was followed; layers stay."""
        self.runner.cancel()
        self.found = None


def vertices(followed: Followed, where: Any) -> NDArray[np.float64]:
    """Return the rows of a Tracks layer: track, and centroid in the points of the whole image.

    `where` indexes the image, with slices along the axes of the frames and the first one.
    """
    tracks = followed.tracks
    rows = np.zeros((tracks.frames.size, len(where) + 1))
    rows[:, 0] = tracks.tracks
    for axis, at in enumerate(where, 1):
        if not isinstance(at, slice):
            rows[:, axis] = at
    kept = [axis for axis, at in enumerate(where, 1) if isinstance(at, slice)]
    rows[:, kept[0]] = tracks.frames
    rows[:, kept[1:]] = tracks.centroids
    ordered: NDArray[np.float64] = rows[_in_tracks(tracks)]
    return ordered


def track_features(followed: Followed) -> pd.DataFrame:
    """Return what is known of each vertex of a Tracks layer."""
    table = followed.tracks.to_pandas()[["track", "frame", "points", "before", "after"]]
    return table.iloc[_in_tracks(followed.tracks)].reset_index(drop=True)


def _in_tracks(tracks: RegionTracks) -> NDArray[np.intp]:
    """Return the order of the rows in which napari keeps them: by track, then by frame."""
    return np.lexsort((tracks.frames, tracks.tracks))
