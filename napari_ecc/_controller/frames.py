"""Counts of the frames of a series, and components that are followed through them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core.features import RegionTracks, track_regions
from napari_ecc._controller.curves import Request, field_of
from napari_ecc._controller.fields import (
    Objects,
    count_all,
    find_classes,
    find_objects,
    why_unpaired,
)
from napari_ecc._controller.layers import can_be_held, describe
from napari_ecc._model.series import Counted
from napari_ecc._workers import Step, apart

MOST_FOLLOWED = 1 << 27
"""Largest number of points of all frames whose components are followed: 0.5 GB of labels."""


def count_frames(
    wanted: Mapping[Any, Request],
    levels: NDArray[np.float64],
    least: float,
    room: int,
    **sets: Any,
) -> Iterator[Step]:
    """Count what each frame has at some levels, of at least some persistence.

    Each step yields all `Counted` found so far, by the keys of the requests. As many as there is
    `room` for keep their classes.
    """
    found: dict[Any, Counted] = {}
    for key, request in wanted.items():
        field = yield from field_of(request)
        unpaired = why_unpaired(field)
        count = count_all if unpaired else find_classes
        value: Any = None
        for step in count(field, levels, **sets):
            value = step.value
            if value is None:
                yield step
        if unpaired:
            found[key] = Counted(np.asarray(value.values), 0.0, unpaired=unpaired)
        else:
            room -= value.births.size
            counted = Counted.of(value, least)
            found[key] = counted if room >= 0 else counted._replace(classes=None)
        yield Step(dict(found), len(found), len(wanted))


def can_be_counted(request: Request) -> bool:
    """Whether a frame is in memory, or small enough to be loaded."""
    return can_be_held(request.levels[-1])


class Followed(NamedTuple):
    """Components of all frames."""

    tracks: RegionTracks
    labels: NDArray[np.int32]
    """The number of the track that each point of each frame belongs to, or 0."""


def check_followed(frames: Sequence[Request], name: str) -> None:
    """Raise a ValueError that says why the components of frames cannot be followed."""
    if len(frames) < 2:
        raise ValueError(f"“{name}” must have two frames or more, got {len(frames)}.")
    shape = tuple(frames[0].levels[-1].shape)
    if len(frames) * math.prod(shape) > MOST_FOLLOWED:
        raise ValueError(
            f"“{name}” must have at most {MOST_FOLLOWED / 1e6:.0f} million points to be followed, "
            f"got {len(frames)} frames of {describe(shape)}: crop or bin it."
        )


def follow_frames(
    frames: Sequence[Request], threshold: float, least: float, min_overlap: float, **sets: Any
) -> Iterator[Step]:
    """Follow the components of the sets at a threshold that last, from frame to frame.

    All that a component is in other frames is followed, too: see `track_regions`. The value of the
    last step is what is `Followed`; before it is None.
    """
    found: list[NDArray[Any]] = []
    lasting: list[NDArray[Any]] = []
    for done, request in enumerate(frames, 1):
        field = yield from field_of(request)
        objects: Objects | None = None
        for step in find_objects(field, threshold, 0.0, **sets):
            objects = step.value
            if objects is None:
                yield step
        assert objects is not None  # The last step has a value.
        found.append(np.asarray(objects.labels))
        lasting.append(_lasting(objects, least))
        yield Step(None, done, len(frames))
    follow = partial(track_regions, found, min_overlap=min_overlap, lasting=lasting)
    tracks = yield from apart(follow)
    labels = np.empty((len(found), *found[0].shape), np.int32)
    for frame, own in enumerate(found):
        labels[frame] = tracks.tracks_of(frame, own)
    yield Step(Followed(tracks, labels))


def _lasting(objects: Objects, least: float) -> NDArray[Any]:
    """Return the labels of the objects that last; of all where their persistence is not known."""
    if objects.table is None:
        return np.arange(1, int(objects.labels.max(initial=0)) + 1)
    table = objects.table
    found: NDArray[Any] = table["index"][table["persistence"] >= least].to_numpy()
    return found
