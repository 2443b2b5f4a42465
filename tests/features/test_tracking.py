"""Regions that are followed from frame to frame, against a search through all pairs of them."""

import itertools
import pickle
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ecc_core.features import track_regions


def linked_pairs(frames, min_overlap):
    """Return ((frame, label), (frame + 1, label)) of all regions that are linked."""
    found = set()
    for number, (first, second) in enumerate(itertools.pairwise(frames)):
        for a in set(first[first > 0].tolist()):
            for b in set(second[second > 0].tolist()):
                shared = np.sum((first == a) & (second == b))
                smaller = min(np.sum(first == a), np.sum(second == b))
                if shared and shared >= min_overlap * smaller:
                    found.add(((number, a), (number + 1, b)))
    return found


def tracks_by_steps(regions, links):
    """Follow each region by the only link that leads on, from those that continue none."""
    after = Counter(a for a, _ in links)
    before = Counter(b for _, b in links)
    on = {a: b for a, b in links if after[a] == 1 and before[b] == 1}
    tracks = {}
    for region in sorted(set(regions) - set(on.values())):
        tracks[region] = len(set(tracks.values())) + 1
        while region in on:
            tracks[on[region]] = tracks[region]
            region = on[region]
    return tracks


@pytest.mark.parametrize("shape", [(7, 9), (4, 5, 6)])
@pytest.mark.parametrize("min_overlap", [0.25, 0.6])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_links_and_tracks(shape, min_overlap, dtype):
    rng = np.random.default_rng(3)
    frames = rng.integers(0, 4, (6, *shape)) * rng.integers(0, 2, (6, *shape))
    frames = (40 * frames).astype(dtype)
    found = track_regions(frames, min_overlap=min_overlap)
    regions = list(zip(found.frames.tolist(), found.labels.tolist(), strict=True))
    labels = [np.unique(frame[frame > 0]) for frame in frames]
    assert regions == [(k, at) for k, of_frame in enumerate(labels) for at in of_frame]
    links = linked_pairs(frames, min_overlap)
    assert {(regions[a], regions[b]) for a, b in found.links.tolist()} == links
    known = tracks_by_steps(regions, links)
    same = {(known[at], track) for at, track in zip(regions, found.tracks.tolist(), strict=True)}
    assert len(same) == len(set(known.values())) == found.tracks.max()
    first_rows = [found.tracks.tolist().index(k) for k in range(1, found.tracks.max() + 1)]
    assert first_rows == sorted(first_rows)
    places = [np.argwhere(frames[frame] == label) for frame, label in regions]
    assert found.points.tolist() == list(map(len, places))
    assert_allclose(found.centroids, [of_region.mean(axis=0) for of_region in places])


def test_events_and_parents():
    """One region splits, two merge, one is lost, one comes, and a split is a merge as well."""
    frames = np.array(
        [
            [1, 1, 1, 1, 0, 2, 0, 3, 0, 0],
            [1, 0, 2, 2, 0, 3, 3, 3, 0, 0],
            [1, 0, 2, 2, 2, 2, 2, 2, 0, 9],
            [1, 0, 0, 0, 0, 0, 0, 0, 0, 9],
        ]
    )
    found = track_regions(frames)
    assert found.tracks.tolist() == [1, 2, 3, 4, 5, 6, 4, 7, 8, 4, 8]
    assert found.parents == {4: (1,), 5: (1,), 6: (2, 3), 7: (5, 6)}
    table = found.events()
    assert table["regions"].tolist() == [3, 3, 3, 2]
    assert table["appear"].tolist() == [0, 0, 1, 0]
    assert table["vanish"].tolist() == [0, 0, 0, 1]
    assert table["split"].tolist() == [0, 1, 0, 0]
    assert table["merge"].tolist() == [0, 1, 1, 0]
    assert found.totals() == {"appear": 1, "vanish": 1, "split": 1, "merge": 2}
    assert repr(found).startswith("RegionTracks(8 tracks in 4 frames: appear=1")
    rows = found.to_pandas()
    assert rows["before"].tolist() == [0, 0, 0, 1, 1, 2, 1, 2, 0, 1, 1]
    assert_array_equal(found.tracks_of(1, frames[1]), [4, 0, 5, 5, 0, 6, 6, 6, 0, 0])
    assert_array_equal(found.tracks_of(2, [[5, 9]]), [[0, 8]])
    assert found == pickle.loads(pickle.dumps(found))
    assert found != track_regions(frames[:3])
    crossing = track_regions([[1, 1, 2, 2], [0, 5, 5, 6]])  # 5 is of both, and 2 becomes both.
    assert crossing.parents == {3: (1, 2), 4: (2,)}
    assert crossing.totals() == {"appear": 0, "vanish": 0, "split": 1, "merge": 1}


def test_the_overlap_is_a_share_of_the_smaller_region():
    frames = [[1] * 8 + [0] * 4, [0] * 7 + [1] * 4 + [0]]  # Both regions share 1 of 4 points.
    assert track_regions(frames, min_overlap=0.25).tracks.tolist() == [1, 1]
    assert track_regions(frames, min_overlap=0.26).tracks.tolist() == [1, 2]
    reversed_frames = frames[::-1]
    assert track_regions(iter(reversed_frames)).tracks.tolist() == [1, 1]


def test_regions_that_count_and_what_they_are_in_other_frames():
    """A large region shrinks until it does not count; a speck beside it never does."""
    frames = [
        [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 0, 3, 3, 3],
        [1, 1, 1, 1, 0, 0, 0, 0, 5, 0, 0, 0, 3, 3, 3],
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 4, 0, 0],
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0],
    ]
    every = track_regions(frames)
    assert every.totals() == {"appear": 1, "vanish": 1, "split": 0, "merge": 2}
    found = track_regions(frames, lasting=[[1], [3], [1], [1]])
    regions = list(zip(found.frames.tolist(), found.labels.tolist(), strict=True))
    # 3 is the same in the first frame; 4 has a third of its points.
    assert regions == [(0, 1), (0, 3), (1, 1), (1, 3), (2, 1), (3, 1)]
    assert found.tracks.tolist() == [1, 2, 1, 2, 1, 1]
    assert found.totals() == {"appear": 0, "vanish": 1, "split": 0, "merge": 0}
    assert track_regions(frames, lasting=[[], [], [], []]).tracks.size == 0
    labels = [np.unique(frame)[1:] for frame in frames]
    assert track_regions(frames, lasting=labels) == every


@pytest.mark.parametrize(("length", "followed"), [(3, True), (2, False)])
def test_a_region_is_the_same_if_it_shares_half_of_the_larger_one(length, followed):
    """Half exactly is enough: a region of 6 points, of which the next frame has a part."""
    frames = np.zeros((2, 8), int)
    frames[0, :6] = 1
    frames[1, :length] = 1
    found = track_regions(frames, lasting=[[1], []])
    assert found.tracks.tolist() == ([1, 1] if followed else [1])


def test_frames_without_regions():
    empty = track_regions(np.zeros((3, 4, 5), int))
    assert empty.tracks.size == 0
    assert empty.links.shape == (0, 2)
    assert empty.centroids.shape == (0, 2)
    assert empty.events()["regions"].tolist() == [0, 0, 0]
    assert_array_equal(empty.tracks_of(1, [0, 3]), [0, 0])
    again = track_regions([[1, 1], [0, 0], [1, 1]])
    assert again.tracks.tolist() == [1, 2]
    assert again.totals() == {"appear": 1, "vanish": 1, "split": 0, "merge": 0}


@pytest.mark.parametrize(
    ("labels", "options", "error", "message"),
    [
        ([[1.0, 2.0]], {}, TypeError, "`labels` must be integers, got float64"),
        ([[1, -2]], {}, ValueError, "must not be negative, got -2 in frame 0"),
        ([[1, 2], [1]], {}, ValueError, r"of one shape, got \(2,\) and, in frame 1, \(1,\)"),
        ([], {}, ValueError, "must have one frame or more, got none"),
        ([1, 2], {}, ValueError, "must have an axis of frames and others, got one axis"),
        ([[1]], {"min_overlap": 0}, ValueError, "above 0 and at most 1, got 0"),
        ([[1]], {"min_overlap": 1.5}, ValueError, "above 0 and at most 1, got 1.5"),
        ([[1], [2]], {"lasting": [[1]]}, ValueError, "for each of 2 frames, got 1"),
        (None, {}, TypeError, "`labels` must be an iterable of arrays, got NoneType"),
        ([[[1, 2], [1]]], {}, ValueError, "`labels` must be arrays, got rows of different lengths"),
        (
            [np.array([2**63], np.uint64)],
            {},
            ValueError,
            r"less than 2\*\*63, got 9223372036854775808",
        ),
        (
            [[1]],
            {"min_overlap": "half"},
            TypeError,
            "`min_overlap` must be a real number, got 'half'",
        ),
        ([[1]], {"min_overlap": True}, TypeError, "`min_overlap` must be a real number, got True"),
        ([[1]], {"lasting": 1}, TypeError, "`lasting` must be an iterable of arrays, got int"),
        (
            [[1]],
            {"lasting": [[1.0]]},
            TypeError,
            "`lasting` must be integers, got float64 in frame 0",
        ),
        ([[1], [2]], {"lasting": [[1], [3]]}, ValueError, "of its frame, got 3 in frame 1"),
    ],
)
def test_bad_input(labels, options, error, message):
    with pytest.raises(error, match=message):
        track_regions(labels, **options)
