"""Which curves of a series are known, without a window."""

import numpy as np
from numpy.testing import assert_array_equal

from napari_ecc._model.series import SeriesModel


def test_frames_and_cursor():
    model = SeriesModel(shape=(4, 3), index=(2, 1), n_thresholds=5, range=(0.0, 8.0))
    assert (model.length, model.cursor) == (4, 2)
    assert list(model.frames()) == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert model.missing() == [(2, 1), (3, 1), (0, 1), (1, 1)]
    assert_array_equal(model.thresholds, [0, 2, 4, 6, 8])
    model.axis = 1
    assert (model.length, model.cursor) == (3, 1)
    assert list(model.frames()) == [(2, 0), (2, 1), (2, 2)]


def test_integers_have_thresholds_that_are_integers():
    model = SeriesModel(shape=(4,), n_thresholds=5, range=(0.0, 9.0), whole=True)
    assert_array_equal(model.thresholds, [0, 2, 4, 7, 9])
    model.range = 0.0, 3.0
    assert_array_equal(model.thresholds, [0, 1, 2, 3])
    assert model.table().shape == (4, 4)


def test_curves_are_kept_for_all_axes_and_settings():
    model = SeriesModel(shape=(4, 3), index=(2, 1), n_thresholds=5)
    seen = []
    model.stored.connect(lambda: seen.append(len(model.rows)))
    model.store((model.key(frame), np.full(5, k)) for k, frame in enumerate(model.frames()))
    assert model.missing() == []
    assert_array_equal(model.table(), np.arange(4)[:, None] * np.ones(5))
    model.axis = 1
    assert model.missing() == [(2, 2), (2, 0)]
    assert_array_equal(model.table()[:, 0], [np.nan, 2, np.nan])
    for field, value in (
        ("superlevel", False),
        ("connectivity", 1),
        ("range", (0.0, 2.0)),
        ("n_thresholds", 6),
        ("scope", "volume"),
    ):
        before = getattr(model, field)
        setattr(model, field, value)
        assert len(model.missing()) == 3
        setattr(model, field, before)
    assert len(model.missing()) == 2
    model.forget()
    assert len(model.missing()) == 3
    assert seen == [4, 0]


def test_nothing_to_show():
    model = SeriesModel()
    assert (model.length, model.cursor, model.missing()) == (0, 0, [])
    assert model.table().shape == (0, 128)
