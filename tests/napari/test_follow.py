"""Numbers over time, and components that are followed through the frames."""

import numpy as np
import pandas as pd
import pytest
from napari.layers import Image
from napari_helpers import run_copied, save_all, settle
from numpy.testing import assert_array_equal
from scipy.ndimage import label

import ecc_core as ecc
from ecc_core.features import track_regions
from napari_ecc import actions
from napari_ecc._controller.frames import count_frames, follow_frames
from napari_ecc._model.series import Counted, SeriesModel
from napari_ecc._workers import result


def approaching(frames=8):
    """Two bright discs with a speck beside them, which touch from the sixth frame on."""
    y, x = np.indices((30, 40))
    movie = np.zeros((frames, 30, 40), np.uint8)
    for frame, image in enumerate(movie):
        for centre in (10 + frame, 29 - frame):
            away = np.hypot(y - 15, x - centre)
            image[:] = np.maximum(image, np.clip(250 - 25 * away, 0, 250))
        image[3, 20] = 120
    return movie


def test_counts_of_frames():
    """Numbers at any least persistence come from classes that are kept."""
    movie = approaching()
    layer = Image(movie, contrast_limits=(0, 255))
    sets = {"superlevel": True, "connectivity": None}
    from napari_ecc._controller.curves import request_of

    wanted = {k: request_of(layer, np.s_[k, :, :], range=(0, 255)) for k in range(3)}
    model = SeriesModel(shape=(3,), index=(1,), range=(0, 255), whole=True, threshold=100.0)
    model.n_thresholds = 1000
    key = model.key((1,))
    levels = model.thresholds
    model.store({key: ecc.euler_curve(movie[1], levels, superlevel=True).values})
    assert len(model.uncounted()) == 3
    classes = result(count_frames({key: wanted[1]}, levels, 0.0, 10**6, **sets))
    model.store_counts(classes)
    assert model.numbers((1,)).numbers == (3, 0)
    assert model.uncounted() == [(2,), (0,)]
    model.min_persistence = 130.0  # Counts for it follow from the classes.
    assert model.numbers((1,)).numbers == (2, 0)
    assert model.curve((1,))[100] == 2
    assert np.isnan(model.table()[[0, 2]]).all()
    # Classes for which there is no room are None.
    model.counts[key] = classes[key]._replace(classes=None)
    assert model.numbers((1,)) is None
    assert len(model.uncounted()) == 3
    model.counts[key] = Counted(classes[key].betti, 0.0, unpaired="too large")
    assert model.numbers((1,)).numbers == (3, 0)
    assert model.curve((1,))[100] == 3


@pytest.mark.parametrize(("least", "room"), [(0.0, 10**6), (130.0, 10**6), (130.0, 0)])
def test_counts_of_frames_are_betti_numbers(least, room):
    """Classes are kept if there is room for them."""
    movie = approaching()
    layer = Image(movie, contrast_limits=(0, 255))
    levels = np.arange(0.0, 256, 2)
    from napari_ecc._controller.curves import request_of

    wanted = {k: request_of(layer, np.s_[k, :, :], range=(0, 255)) for k in range(3)}
    found = result(count_frames(wanted, levels, least, room, superlevel=True, connectivity=None))
    assert list(found) == [0, 1, 2]
    options = {"superlevel": True, "min_persistence": least}
    expected = ecc.betti_curves(movie[:3], levels, axis=(1, 2), **options).values
    assert_array_equal([counted.betti for counted in found.values()], expected)
    assert [counted.classes is None for counted in found.values()] == [room == 0] * 3


@pytest.mark.parametrize("min_persistence", [0.0, 140.0])
def test_followed_components(min_persistence):
    """Those of the library; of at least some persistence as far as they are the same."""
    movie = approaching()
    labels, tracks = actions.follow_components(Image(movie), 100.0, min_persistence=min_persistence)
    found = [label(frame >= 100, np.ones((3, 3)))[0] for frame in movie]
    if min_persistence:
        # The speck never lasts, nor does the second disc shortly before it merges.
        pairs = [ecc.persistence_pairs(frame, superlevel=True) for frame in movie]
        lasts = [np.sum((at.persistence >= 140) & (at.dimensions == 0)) for at in pairs]
        assert lasts[0] == 2
        assert lasts[4] == 1
        found = [np.where(at == at[3, 20], 0, at) for at in found]
    expected = track_regions(found)
    assert expected.totals()["merge"] == tracks.totals()["merge"] == 1
    assert tracks.totals() == expected.totals()
    assert_array_equal(labels > 0, np.array(found) > 0)
    same = set(zip(labels.ravel().tolist(), _tracked(expected, found).tolist(), strict=True))
    assert len(same) == 1 + int(tracks.tracks.max())


def _tracked(tracks, found):
    of_frames = [tracks.tracks_of(k, at) for k, at in enumerate(found)]
    return np.concatenate(of_frames, axis=None)


def test_what_cannot_be_followed():
    with pytest.raises(ValueError, match="must have two frames or more, got 1"):
        actions.follow_components(Image(np.zeros((1, 4, 4))), 1.0)
    large = Image(np.broadcast_to(np.zeros((), np.uint8), (200, 1000, 1000)))
    with pytest.raises(ValueError, match=r"at most 134 million points .* got 200 frames of 1000"):
        actions.follow_components(large, 1.0)
    frames = iter(())
    with pytest.raises(ValueError, match="one frame or more"):
        result(follow_frames(list(frames), 1.0, 0.0, 0.25, superlevel=True, connectivity=None))


def test_a_series_is_followed(series, qtbot, drag_mouse, tmp_path, messages):
    """Numbers over time, a click into the map, layers of tracks, their table, and Undo."""
    movie = approaching()
    viewer, panel = series(movie, scale=(1, 2, 2), contrast_limits=(0, 255))
    model = panel.model
    viewer.dims.set_current_step(0, 2)
    settle(qtbot, panel)
    assert abs(model.threshold - 127.5) <= 2
    assert panel.readout.text().startswith("<b>χ = 2</b>")
    x, y = (at for at in panel.map.pixels(100.0, 6.0))
    drag_mouse(panel.map, (x, y), (x, y))
    assert viewer.dims.current_step[0] == 6
    assert abs(model.threshold - 100) <= 2
    assert panel.explorer.threshold == model.threshold
    panel.controller.move(100.0)
    counts = [label(frame >= model.threshold, np.ones((3, 3)))[1] for frame in movie]
    by_label = {line.label: line for line in panel.times.lines}
    assert_array_equal(by_label["components"].y, counts)
    assert_array_equal(by_label["χ"].y, counts)
    assert panel.times.threshold == 6
    behind, *counted = panel.times.lines  # Equal curves are both seen.
    assert behind.label == "χ"
    assert all(behind.width > 2 * line.width for line in counted)

    viewer.dims.set_current_step(0, 0)
    panel.levels["min_persistence"].value = 130.0
    settle(qtbot, panel)
    assert panel.explorer.min_persistence == 130
    by_label = {line.label: line for line in panel.times.lines}
    sets = {"superlevel": True, "min_persistence": 130}
    lasting = [ecc.betti_curves(frame, model.thresholds, **sets) for frame in movie]
    assert_array_equal(by_label["components"].y, [at.values[0][model.place] for at in lasting])
    assert_array_equal(model.table(), [at.euler for at in lasting])

    panel.actions["follow"].native.click()
    settle(qtbot, panel)
    labels, tracks = viewer.layers[-2:]
    own = actions.follow_components(viewer.layers[0], model.threshold, min_persistence=130.0)
    assert_array_equal(labels.data, own[0])
    assert {k: tuple(v) for k, v in tracks.graph.items()} == own[1].parents == {3: (1, 2)}
    assert tuple(tracks.scale) == tuple(labels.scale) == (1, 2, 2)
    assert_array_equal(tracks.data[:, 0], np.sort(own[1].tracks))
    first = own[1].centroids[(own[1].tracks == 1) & (own[1].frames == 0)]
    assert_array_equal(tracks.data[0, 1:], [0, *first[0]])
    assert model.status == "3 tracks: 0 splits, 1 merge, 0 appear, 0 vanish"
    assert viewer.dims.current_step[0] == 0
    names = run_copied(viewer, panel)
    assert_array_equal(names["labels"], labels.data)
    assert_array_equal(names["betti"][:, 0], [at.values[0] for at in lasting])
    save_all(panel.save_events, tmp_path / "events.csv", messages=messages)
    table = pd.read_csv(tmp_path / "events.csv", comment="#")
    assert table["merge"].sum() == 1
    assert_array_equal(table["regions"], own[1].events()["regions"])
    panel._undo()
    assert len(viewer.layers) == 1
    assert panel.controller.follower.found is None
