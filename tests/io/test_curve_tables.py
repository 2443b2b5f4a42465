"""Tables of curves, which commands write and statistics read."""

import numpy as np
import pandas as pd
import pytest
from io_helpers import command_line
from numpy.testing import assert_array_equal
from skimage.measure import euler_number, label

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.features import descriptor_table, distance_matrix, mean_band, permutation_test
from ecc_core.io import (
    TABLE_SUFFIXES,
    curves_of_table,
    read_table,
    write_table,
)

AT = [40, 100.5, 200]


@pytest.fixture
def images(tmp_path, monkeypatch):
    """Images by their paths, one of which a spreadsheet would take for a formula."""
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).integers(0, 256, (3, 12, 9), np.uint8)
    paths = [f"{name}.npy" for name in ("a", "b", "=c")]
    found = dict(zip(paths, images, strict=True))
    for path, image in found.items():
        np.save(path, image)
    return found


def sets(image, superlevel):
    return [image >= t if superlevel else image <= t for t in AT]


def count_components(inside):
    return label(inside, connectivity=1).max()


@pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
@pytest.mark.parametrize("command", ["curve", "batch"])
@pytest.mark.parametrize("superlevel", [False, True])
def test_curves_are_those_of_the_images(images, tmp_path, command, suffix, superlevel):
    path = tmp_path / f"table{suffix}"
    flags = ["--superlevel"] if superlevel else []
    flags += ["--connectivity", "1", "--betti", "--minkowski", "crofton-4"]
    given = [command, *images, "--thresholds", ",".join(map(str, AT)), *flags]
    assert main([*given, "--out", str(path)]) == 0
    tables = {measure: read_table(path, measure) for measure in ("euler", "betti", "minkowski")}
    curves = [table.curves for table in tables.values()]
    assert [sorted(table.metadata["input"]) for table in tables.values()] == [sorted(images)] * 3
    assert_array_equal([of.thresholds for of in curves], [AT] * 3)
    assert [(of.connectivity, of.superlevel) for of in curves] == [(1, superlevel)] * 3
    assert [of.boundary for of in curves] == ["closed"] * 3
    found = [sets(images[name], superlevel) for name in tables["euler"].metadata["input"]]
    euler = [[euler_number(inside, 1) for inside in of_image] for of_image in found]
    components = [list(map(count_components, of_image)) for of_image in found]
    areas = [[inside.sum() for inside in of_image] for of_image in found]
    assert_array_equal(tables["euler"].curves.values, euler)
    assert_array_equal(tables["betti"].curves.values[:, 0], components)
    assert_array_equal(tables["betti"].curves.euler, euler)
    assert_array_equal(tables["minkowski"].curves.area, areas)
    assert_array_equal(tables["minkowski"].curves.euler, euler)
    assert tables["minkowski"].curves.estimator == "crofton-4"
    with pytest.raises(ValueError, match="`measure` must be one of 'euler', 'betti', 'minkowski'"):
        read_table(path)


def test_units_and_estimator(images, tmp_path):
    path = tmp_path / "t.csv"
    flags = ["--minkowski", "exact", "--spacing", "2", "--unit", "mm", "--range", "0,255"]
    assert main(["batch", *images, "--thresholds", "4", *flags, "--out", str(path)]) == 0
    curves = read_table(path).curves
    assert (curves.spacing_units, curves.estimator, curves.ndim) == ("millimeter", "exact", 2)
    image = images[read_table(path).metadata["input"][0]]
    assert curves.area[0, 1] == 4 * np.count_nonzero(image <= 85)


@pytest.mark.parametrize("command", ["curve", "batch", "stack"])
@pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("periodic", "periodic"),
        ("closed,periodic", ("closed", "periodic")),
        ("periodic,periodic", "periodic"),
        ("closed,closed", "closed"),
    ],
)
def test_boundary_of_each_axis(images, tmp_path, command, suffix, given, known):
    """Tables hold the words, one if all axes agree, and the curves are those of the library."""
    path = tmp_path / f"t{suffix}"
    name = next(iter(images))
    flags = ["--boundary", given, "--thresholds", ",".join(map(str, AT)), "--out", str(path)]
    assert main([command, name, *flags]) == 0
    curves = read_table(path).curves
    assert curves.boundary == known
    expected = ecc.euler_curve(images[name], AT, boundary=known)
    assert_array_equal(curves.values[0], expected.values)


@pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
def test_labels_and_indices_are_metadata(tmp_path, suffix):
    stack = np.random.default_rng(1).integers(0, 9, (2, 8, 9), np.uint8)
    regions = np.repeat([3, 0, 7], [4, 1, 3])[:, None] * np.ones(9, np.uint8)
    path = tmp_path / f"t{suffix}"
    labels = regions.astype(np.uint8)
    flags = ["--axes", "TYX", "--time", 1, "--thresholds", "2,5", "--out", path]
    assert main(["curve", *command_line(tmp_path, stack, *flags, "--labels", labels)]) == 0
    table = read_table(path)
    assert_array_equal(table.metadata["label"], [3, 7])
    inside = [[(stack[1] <= t) & (regions == one) for t in (2, 5)] for one in (3, 7)]
    expected = [[euler_number(part, 2) for part in parts] for parts in inside]
    assert_array_equal(table.curves.values, expected)
    chosen = table.select(table.metadata["label"] == 7)
    assert_array_equal(chosen.curves.values, expected[1:])
    assert_array_equal(table.select([1, 0]).curves.values, expected[::-1])


@pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
def test_stack_without_columns_besides_the_curve(tmp_path, suffix):
    volume = np.random.default_rng(2).integers(0, 99, (6, 7, 8), np.uint8)
    path = tmp_path / f"t{suffix}"
    flags = ["--thresholds", "10,50", "--superlevel", "--direction", "1,0,0", "--spacing", "1"]
    given = ["stack", *command_line(tmp_path, volume, *flags, "--out", path)]
    assert main([*given, "--direction-scale", "0"]) == 0
    assert read_table(path).curves.direction_scale == 0
    assert main(given) == 0
    curves = read_table(path).curves
    assert curves.direction_scale == 1
    heights = np.arange(6)[:, None, None] - 2.5
    assert_array_equal(curves.values, [[euler_number(volume + heights >= t, 3) for t in (10, 50)]])
    assert (curves.superlevel, tuple(curves.direction)) == (True, (1, 0, 0))


def test_statistics_take_tables_and_frames():
    rng = np.random.default_rng(3)
    values = rng.integers(0, 9, (6, 4))
    frame = pd.DataFrame(values, columns=["0.5", "1.0", "2.0", "4.0"]).assign(well=list("aabbcc"))
    table = curves_of_table(frame)
    at = np.array([0.5, 1, 2, 4])
    assert_array_equal(table.curves.thresholds, at)
    assert_array_equal(distance_matrix(frame), distance_matrix((at, values)))
    assert_array_equal(mean_band(table, rng=1).mean, values.mean(axis=0))
    first = frame.iloc[:3]
    second = table.select(np.arange(3, 6))
    expected = permutation_test((at, values[:3]), (at, values[3:]))
    assert permutation_test(first, second).pvalue == expected.pvalue
    assert_array_equal(descriptor_table(frame)["maximum"], values.max(axis=1))
    both = pd.DataFrame({"1": [1, 2], "b0 1": [3, 5], "b1 1": [2, 3], "area 1": [1.0, 2.0]})
    both[["2", "b0 2", "b1 2", "area 2"]] = 0
    assert distance_matrix(both, functional="b0", metric="L1")[0, 1] == 2


def test_curves_without_a_name():
    frame = pd.DataFrame({"threshold": [1, 2, 1, 2], "euler_number": [3, 4, 5, 6]})
    assert_array_equal(curves_of_table(frame).curves.values, [[3, 4], [5, 6]])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": [1], "birth": [3.0]}, 'has neither the columns "threshold"'),
        (
            {"input": list("aab"), "threshold": [1, 2, 1], "euler_number": [0, 1, 2]},
            "must have the same thresholds",
        ),
        ({"connectivity": [1, 2], "1.5": [0, 1]}, "must agree in `connectivity`, got 1 and 2"),
        ({"b0 1": [1], "b1 2": [2]}, "different ones"),
    ],
)
def test_bad_tables(columns, message):
    with pytest.raises(ValueError, match=message):
        curves_of_table(pd.DataFrame(columns))


def test_bad_files(tmp_path):
    with pytest.raises(ValueError, match="`second` must be curves or a table of curves: has neith"):
        permutation_test(([0], [[1], [2]]), pd.DataFrame({"label": [1]}))
    (tmp_path / "t.json").write_text("{")
    with pytest.raises(ValueError, match=r"t\.txt: type not supported"):
        read_table(tmp_path / "t.txt")
    with pytest.raises(ValueError, match=r"t\.json: "):
        read_table(tmp_path / "t.json")
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.csv")


@pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
def test_infinite_thresholds(tmp_path, suffix):
    at = [-np.inf, 0.5, np.inf]
    path = tmp_path / f"t{suffix}"
    write_table(path, {"input": ["x"] * 3, "threshold": at, "euler_number": [0, 1, 2]})
    assert_array_equal(read_table(path).curves.thresholds, at)


def test_booleans():
    wide = curves_of_table(pd.DataFrame({"False": [1], "True": [2]}))
    assert_array_equal(wide.curves.thresholds, [False, True])
    assert isinstance(wide.curves, ecc.EulerCurve)


def test_statistics_choose_a_measure_of_a_table_that_pandas_has_read(images, tmp_path):
    """Pandas reads an empty unit as NaN; several measures need a functional, by that name."""
    path = tmp_path / "table.csv"
    options = ["--thresholds", ",".join(map(str, AT)), "--betti", "--minkowski", "exact"]
    assert main(["batch", *images, *options, "--out", str(path)]) == 0
    frame = pd.read_csv(path, comment="#")
    assert frame["unit"].isna().all()
    found = [sets(image, superlevel=False) for image in images.values()]
    areas = [[inside.sum() for inside in own] for own in found]
    area = np.mean(areas, axis=0)
    numbers = [[euler_number(inside, 2) for inside in own] for own in found]
    euler = np.mean(numbers, axis=0)
    assert_array_equal(mean_band(frame, functional="area", rng=0).mean, area)
    assert_array_equal(mean_band(frame, functional="euler", rng=0).mean, euler)
    message = "`functional` must be of one of 'euler', 'betti', 'minkowski', got None"
    with pytest.raises(ValueError, match=message):
        mean_band(frame)
    with pytest.raises(ValueError, match="curves must agree in `unit`, got '' and 'mm'"):
        curves_of_table(frame.assign(unit=[None, "mm", "mm"]), "minkowski")
