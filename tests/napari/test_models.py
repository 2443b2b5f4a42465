"""What docks know of directions and of objects, without a window."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import ecc_core as ecc
from napari_ecc._controller.measuring import merged, placed
from napari_ecc._model.directions import (
    DirectionModel,
    angles,
    circle,
    direction_from_ray,
    unit_vector,
)
from napari_ecc._model.explorer import Counts, Curve
from napari_ecc._model.levels import even_levels, formatted
from napari_ecc._model.regions import (
    Regions,
    feature_columns,
    is_own_column,
    principal_components,
)


def test_counts_in_a_line():
    """A line ends between numbers; marks have the colours of curves, the text has not."""
    counts = Counts((3, 1))
    assert counts.in_html() == "<nobr>3 components</nobr> <nobr>\N{MINUS SIGN} 1 hole</nobr>"
    coloured = counts.in_html(("#e69f00", "#009e73", "#cc79a7"))
    assert (
        re.sub("<[^>]*>", "", coloured)
        == "\N{BULLET} 3 components \N{MINUS SIGN} \N{BULLET} 1 hole"
    )
    assert coloured.count("color:") == 2


@pytest.mark.parametrize("first", [0, 2**46, 2**51, 2**53 - 700, -(2**52)])
def test_thresholds_of_large_integers_are_told_apart(first):
    """There are as many as are asked for, even if steps between them are not whole."""
    for length in range(256, 700, 3):
        levels = even_levels(first, first + length, 255, whole=True)
        assert levels.size == 255
        assert_array_equal(levels, np.round(levels))
        assert_array_equal(levels[[0, -1]], [first, first + length])
        assert np.ptp(np.diff(levels)) <= 1


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1e-321), (-5e-324, 2e-322), (-1e308, 1.7e308), (0.0, 1.0)]
)
def test_thresholds_of_any_range_increase(low, high):
    """Also where steps between them are subnormal, or where their range is no number of float64."""
    levels = even_levels(low, high, 256, whole=False)
    assert_array_equal(levels[[0, -1]], [low, high])
    assert (levels[1:] >= levels[:-1]).all()


@pytest.mark.parametrize("superlevel", [True, False])
@pytest.mark.parametrize("value", [2.0, 2.5])
def test_a_threshold_that_divides(superlevel, value):
    """The values up to 2 from those above."""
    curve = Curve(np.arange(5.0), np.zeros(5, int), superlevel)
    assert curve.dividing(value) == (3 if superlevel else 2)
    assert (curve.dividing(9.0), curve.dividing(-9.0)) == (4, 0)


def test_minus_zero_is_zero():
    assert formatted(-0.0) == "0"


@pytest.mark.parametrize(
    ("azimuth", "vector"), [(0, (1, 0)), (90, (0, 1)), (180, (-1, 0)), (270, (0, -1))]
)
def test_right_angles_are_exact(azimuth, vector):
    assert_array_equal(unit_vector(azimuth), vector)
    assert_array_equal(unit_vector(azimuth, 0, 3), (0, *vector))
    assert_array_equal(unit_vector(azimuth, 90, 3), (1, 0, 0))
    assert angles(vector) == (azimuth, 0)


def test_angles_of_vectors():
    rng = np.random.default_rng(0)
    azimuths = rng.uniform(0, 360, 50)
    elevations = rng.uniform(-90, 90, 50)
    in_plane = [angles(unit_vector(azimuth)) for azimuth in azimuths]
    assert_allclose(in_plane, np.stack([azimuths, np.zeros(50)], axis=1), atol=1e-9)
    given = np.stack([azimuths, elevations], axis=1)
    vectors = np.array([unit_vector(*pair, 3) for pair in given])
    assert_allclose(np.linalg.norm(vectors, axis=1), np.ones(50))
    assert_allclose([angles(7 * vector) for vector in vectors], given, atol=1e-9)
    assert_array_equal(circle(64), ecc.sample_directions(64, 2))
    expected = [unit_vector(30 * k, 30, 3) for k in range(12)]
    assert_allclose(circle(12, 30, 3), expected, atol=1e-12)


def test_mouse_in_space():
    """The near side of the sphere under the mouse, or the sphere's edge beside it."""
    away = (1, 0, 0)
    assert_allclose(direction_from_ray((-110, 3, 0), away, 5), (-0.8, 0.6, 0))
    assert_allclose(direction_from_ray((-110, 0, 0), away, 5), (-1, 0, 0))
    assert_allclose(direction_from_ray((-110, 0, 40), away, 5), (0, 0, 1))


def test_turning():
    model, seen = DirectionModel(ndim=3), []
    model.turned.connect(lambda: seen.append((model.azimuth, model.elevation)))
    model.turn(-90, 120)
    model.turn(270, 90)  # This is no change.
    model.turn(725.5)
    assert seen == [(270, 90), (5.5, 90)]
    model.point((-2, 0, 0))
    assert seen[-1] == (5.5, -90)  # A pole has no azimuth of its own.
    model.point((0, 0, 3))
    assert seen[-1] == (90, 0)
    assert_array_equal(model.direction, (0, 0, 1))


def test_a_plane_has_no_elevation():
    model = DirectionModel(elevation=30)
    model.point((0, -1))
    assert (model.azimuth, model.elevation) == (270, 30)
    assert_array_equal(model.direction, (0, -1))
    assert model.directions.shape == (64, 2)


def test_components_of_a_plane():
    """Points in a plane of many axes keep their distances; shares are those of the variance."""
    rng = np.random.default_rng(0)
    flat = rng.standard_normal((30, 2)) * [5, 2]
    axes = np.linalg.qr(rng.standard_normal((7, 2)))[0].T
    scores, shares = principal_components(flat @ axes + 3)
    assert_allclose(np.linalg.norm(scores[3] - scores[8]), np.linalg.norm(flat[3] - flat[8]))
    assert_allclose(shares.sum(), 1)
    assert shares[0] > shares[1] > 0
    assert_allclose(scores.mean(axis=0), 0, atol=1e-12)
    again = principal_components(-(flat @ axes))
    assert_allclose(again.scores, -scores, atol=1e-9)  # Signs follow the loadings.


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_objects(rows):
    scores, shares = principal_components(np.arange(12.0).reshape(4, 3)[:rows])
    assert scores.shape == (rows, 2)
    assert_array_equal(np.isfinite(scores), True)
    assert_allclose(shares, [rows == 2, 0], atol=1e-12)


def test_columns_and_rows():
    image, labels = np.arange(9).reshape(3, 3), np.array([[2, 2, 0], [2, 2, 0], [0, 0, 9]])
    curves, betti, minkowski = (
        measure(image, labels, [0.5, 4.0])
        for measure in (ecc.region_curves, ecc.region_betti_curves, ecc.region_minkowski)
    )
    transforms = ecc.region_transforms(labels, 12, [-0.5, 1.0], normalize="radius")
    parts = principal_components(curves.values)
    also = {"betti": betti, "minkowski": minkowski}
    regions = Regions(curves, also, transforms, {"curves": parts, "transforms": parts})
    columns = feature_columns(regions)
    assert [*columns][:6] == ["ecc_pc1", "ecc_pc2", "ect_pc1", "ect_pc2", "ecc_t0.5", "ecc_t4"]
    assert [*columns][6:10] == ["b0_t0.5", "b0_t4", "b1_t0.5", "b1_t4"]
    assert [*columns][10:14] == ["area_t0.5", "area_t4", "perimeter_t0.5", "perimeter_t4"]
    assert [*columns][14:17] == ["ect_d00_h-0.5", "ect_d00_h1", "ect_d01_h-0.5"]
    assert len(columns) == 14 + 24
    assert all(map(is_own_column, columns))
    assert_array_equal(columns["ect_d11_h1"], transforms.values[:, 11, 1])
    assert regions.rows([10, 9, 3, 2, 0]) == [1, 0]
    assert regions.rows([3, 10**30]) == []
    others = "index", "ecc", "area", "ecc_total", "ect_dx", "ecc_pc"
    assert not any(map(is_own_column, others))


def test_features_are_added_to_those_of_others():
    by_position = pd.DataFrame({"area": [0.0, 10, 20], "ecc_t1": [7, 7, 7]})
    table = merged(by_position, [2, 5], {"ecc_t2": [3, 4]})
    assert [*table] == ["index", "area", "ecc_t2"]
    assert_array_equal(table["index"], [0, 1, 2, 5])
    assert_array_equal(table["ecc_t2"], [np.nan, np.nan, 3, 4])
    assert_array_equal(table["area"], [0, 10, 20, np.nan])
    by_label = pd.DataFrame({"name": ["b", "a"], "index": [5, 2]})
    table = merged(by_label, [2, 5], {"ecc_t2": [3, 4]})
    assert table.to_dict("list") == {"index": [2, 5], "name": ["a", "b"], "ecc_t2": [3, 4]}
    table = merged(pd.DataFrame(), [2, 5], {"ecc_t2": [3, 4]})
    assert table.to_dict("list") == {"index": [2, 5], "ecc_t2": [3, 4]}
    assert_array_equal(placed(table)["ecc_t2"], [np.nan, np.nan, 3, np.nan, np.nan, 4])


@pytest.mark.parametrize("rows", [[2000, 12_000], [-1, 2], [0.5, 2]])
def test_rows_that_are_far_apart_or_not_of_labels_stay_where_they_are(rows):
    features = pd.DataFrame({"index": rows, "note": ["mine", "yours"]})
    table = placed(merged(features, rows[1:], {"ecc_t2": [3]}))
    assert_array_equal(table["index"], rows)
    assert list(table["note"]) == ["mine", "yours"]
    assert_array_equal(table["ecc_t2"], [np.nan, 3])
