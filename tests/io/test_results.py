"""Results written to files come back, and so do the curves in tables of the commands."""

import csv
import dataclasses
import json
import sys

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest
from io_helpers import command_line
from numpy.testing import assert_array_equal
from skimage.measure import euler_number, label

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.dask import local_curves
from ecc_core.features import descriptor_table, distance_matrix, mean_band, permutation_test
from ecc_core.io import (
    RESULT_SUFFIXES,
    TABLE_SUFFIXES,
    curves_of_table,
    read_result,
    read_table,
    write_result,
    write_table,
)

IMAGE = np.random.default_rng(1).integers(0, 9, (6, 7))
LABELS = np.where(IMAGE > 6, 7, 2).astype(np.uint16)
FLOATS = IMAGE.astype(np.float32) / 10
BOTH = np.stack([IMAGE, -IMAGE])
VOLUME = np.stack([IMAGE, IMAGE % 3, IMAGE % 4])
RESULTS = {
    "curve": lambda: ecc.euler_curve(IMAGE, 4, superlevel=True, connectivity=1),
    "float32 thresholds": lambda: ecc.euler_curve(FLOATS, "exact"),
    "uint64 thresholds": lambda: ecc.euler_curve(IMAGE, np.array([0, 2**64 - 1], np.uint64)),
    "bool thresholds": lambda: ecc.euler_curve(IMAGE > 4, "exact"),
    "big-endian thresholds": lambda: ecc.euler_curve(IMAGE, np.array([1, 5], ">i2")),
    "repeated thresholds": lambda: ecc.euler_curve(IMAGE, [1.0, 1.0, np.inf]),
    "directional": lambda: ecc.euler_curve(IMAGE, 4, direction=[1, 2], direction_scale=1 / 3),
    "window": lambda: ecc.euler_curve(IMAGE, 4, boundary="half-open"),
    "a cylinder": lambda: ecc.betti_curves(IMAGE, 4, boundary=("closed", "periodic")),
    "pairs on a cylinder": lambda: ecc.persistence_pairs(IMAGE, boundary=("periodic", "closed")),
    "batch": lambda: ecc.euler_curve(BOTH, 4, axis=(1, 2)),
    "no thresholds": lambda: ecc.euler_curve(IMAGE, []),
    "regions": lambda: ecc.region_curves(IMAGE, LABELS, 3),
    "no regions": lambda: ecc.region_curves(IMAGE, np.zeros_like(LABELS), [0.5, np.inf]),
    "tiles": lambda: local_curves(IMAGE, 3, [0, 5]),
    "transform": lambda: ecc.euler_transform(IMAGE > 4, 5, [-np.inf, 0, 3], spacing=(1, 0.1)),
    "smooth": lambda: ecc.smooth_transform(ecc.euler_transform(IMAGE > 4, 5, 6)),
    "volume": lambda: ecc.euler_transform(np.ones((2, 3, 4), bool), 4, 5),
    "region transforms": lambda: ecc.region_transforms(LABELS, 3, 4, normalize="radius"),
    "Betti numbers": lambda: ecc.betti_curves(BOTH, 4, axis=(1, 2), superlevel=True),
    "Betti numbers of regions": lambda: ecc.region_betti_curves(IMAGE, LABELS, 3),
    "components": lambda: ecc.component_curves(FLOATS, 4, spacing=(2, 0.1), superlevel=True),
    "components of a batch": lambda: ecc.component_curves(BOTH, 4, axis=(1, 2)),
    "functionals": lambda: ecc.minkowski_curves(IMAGE, 5, spacing=2, boundary="half-open"),
    "functionals of regions": lambda: ecc.region_minkowski(IMAGE, LABELS, 5, estimator="crofton-2"),
    "surface": lambda: ecc.euler_surface(IMAGE, FLOATS, 4, [0.1, 0.5], superlevel=(False, True)),
    "surfaces": lambda: ecc.euler_surface(*BOTH[:, None], 3, 2, axis=(1, 2)),
    "pairs": lambda: ecc.persistence_pairs(FLOATS, 1, superlevel=True, connectivity=1),
    "pairs that never end": lambda: ecc.persistence_pairs(
        np.array([0, np.inf, -0.1, 3, np.inf]), 0
    ),
    "pairs of booleans": lambda: ecc.persistence_pairs(IMAGE > 4, 0),
    "pairs of large integers": lambda: ecc.persistence_pairs(IMAGE + (2**53 + 1), 0),
    "pairs of unsigned integers": lambda: ecc.persistence_pairs(
        np.array([[0, 2**64 - 1, 2**64 - 2, 0, 2**53 + 1]], np.uint64), 0, superlevel=True
    ),
    "pairs of a volume": lambda: ecc.persistence_pairs(VOLUME, 2),
    "pairs of all dimensions": lambda: ecc.persistence_pairs(VOLUME),
    "no pairs": lambda: ecc.persistence_pairs(np.zeros((3, 4)), 1),
    "units": lambda: dataclasses.replace(ecc.euler_curve(IMAGE, 2), units='"µm",\n'),
}


@pytest.mark.parametrize("suffix", RESULT_SUFFIXES)
@pytest.mark.parametrize("name", RESULTS)
def test_round_trip(name, suffix, tmp_path):
    path = tmp_path / f"result{suffix}"
    result = RESULTS[name]()
    if suffix == ".csv" and not result.values.size:
        with pytest.raises(ValueError, match="CSV cannot hold a result without values"):
            write_result(path, result)
        assert not path.exists()
        return
    write_result(path, result)
    found = read_result(path)
    assert found == result
    assert type(found) is type(result)
    assert found.facts == result.facts
    assert [array.dtype for array in found] == [array.dtype for array in result]


@pytest.mark.parametrize("suffix", RESULT_SUFFIXES)
def test_lazy_results_and_tensors_are_computed(suffix, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for image in (da.from_array(IMAGE, chunks=4), torch.from_numpy(IMAGE)):
        write_result(tmp_path / f"c{suffix}", ecc.euler_curve(image, [1, 3]))
        assert read_result(tmp_path / f"c{suffix}") == ecc.euler_curve(IMAGE, [1, 3])


@pytest.mark.parametrize("suffix", RESULT_SUFFIXES)
def test_python_objects_are_refused(suffix, tmp_path):
    path = tmp_path / f"objects{suffix}"
    curve = ecc.EulerCurve(np.array([0, 1], object), np.array([1, 2]))
    with pytest.raises(ValueError, match="`thresholds` must hold numbers, got dtype object"):
        write_result(path, curve)
    assert not path.exists()


def test_tables_are_readable_by_others(tmp_path):
    curve = RESULTS["curve"]()
    write_result(tmp_path / "c.csv", curve)
    with (tmp_path / "c.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["threshold", "euler_number", "ecc"]
    assert [int(row["euler_number"]) for row in rows] == curve.values.tolist()
    assert [bool(row["ecc"]) for row in rows] == [True, False, False, False]
    write_result(tmp_path / "c.parquet", curve, metadata={"image": "a.tif"})
    table = parquet.read_table(tmp_path / "c.parquet")
    assert table.column_names == ["threshold", "euler_number"]
    metadata = json.loads(table.schema.metadata[b"ecc"])
    assert metadata["image"] == "a.tif"
    assert metadata["result"]["facts"]["superlevel"] is True
    write_result(tmp_path / "c.npz", curve)
    with np.load(tmp_path / "c.npz", allow_pickle=False) as file:
        assert list(file) == ["thresholds", "values"]


@pytest.mark.parametrize("suffix", RESULT_SUFFIXES)
def test_other_files_are_refused(suffix, tmp_path):
    path = tmp_path / f"other{suffix}"
    if suffix == ".npz":
        np.savez(path, values=np.arange(3))
    else:
        write_table(path, {"threshold": [1.0], "euler_number": [2]})
    with pytest.raises(ValueError, match="does not say that it holds a result"):
        read_result(path)


def test_changed_files_and_pickles_are_refused(tmp_path):
    write_result(tmp_path / "c.csv", RESULTS["curve"]())
    lines = (tmp_path / "c.csv").read_text().splitlines(keepends=True)
    (tmp_path / "c.csv").write_text("".join(lines[:-1]))
    with pytest.raises(ValueError, match="damaged or was changed by hand"):
        read_result(tmp_path / "c.csv")
    np.savez(tmp_path / "c.npz", values=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        read_result(tmp_path / "c.npz")


def test_wrong_types(tmp_path):
    with pytest.raises(TypeError, match="`result` must be a result of ecc_core, got a tuple"):
        write_result(tmp_path / "c.csv", ([0], [1]))
    with pytest.raises(ValueError, match=r"must be one of \.csv, \.parquet, \.json, \.npz"):
        write_result(tmp_path / "c.txt", RESULTS["curve"]())
    with pytest.raises(ValueError, match=r"must be one of \.csv, \.parquet, \.json, \.npz"):
        read_result(tmp_path / "c.txt")
    with pytest.raises(FileNotFoundError):
        read_result(tmp_path / "c.csv")


def test_csv_without_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    write_result(tmp_path / "c.csv", RESULTS["curve"]())
    assert read_result(tmp_path / "c.csv") == RESULTS["curve"]()


REAL = IMAGE.astype(np.float64)
SERIES = np.stack([REAL, REAL + 1, REAL // 2])


@pytest.mark.parametrize("command", ["curve", "stack"])
@pytest.mark.parametrize("suffix", [".parquet", ".json"])
@pytest.mark.parametrize(
    ("image", "flags", "expected"),
    [
        (REAL, ["--labels", LABELS], lambda: ecc.region_curves(REAL, LABELS, 5)),
        (
            SERIES,
            ["--axes", "TYX", "--superlevel"],
            lambda: ecc.euler_curve(SERIES, 5, axis=(1, 2), superlevel=True),
        ),
        (
            REAL,
            ["--direction", "0,1", "--spacing", 2, "--connectivity", 1],
            lambda: ecc.euler_curve(REAL, 5, direction=(0, 1), spacing=2, connectivity=1),
        ),
    ],
    ids=["labels", "series", "direction"],
)
def test_tables_of_commands(command, suffix, image, flags, expected, tmp_path):
    out = tmp_path / f"table{suffix}"
    line = command_line(tmp_path, image, *flags, "--thresholds", 5, "--out", out)
    assert main([command, *line]) == 0
    assert read_result(out) == expected()


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_tables_of_several_images(suffix, tmp_path):
    paths = [str(tmp_path / name) for name in ("a.npy", "b.npy")]
    images = [IMAGE, np.stack([IMAGE] * 3).astype(np.float32)]
    for path, image in zip(paths, images, strict=True):
        np.save(path, image)
    out = tmp_path / f"table{suffix}"
    assert main(["curve", *paths, "--superlevel", "--thresholds", "4", "--out", str(out)]) == 0
    for path, image in zip(paths, images, strict=True):
        assert read_result(out, source=path) == ecc.euler_curve(image, 4, superlevel=True)
    with pytest.raises(ValueError, match="`source` must be one of"):
        read_result(out)


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
    for table in tables.values():
        assert sorted(table.metadata["input"]) == sorted(images)
        assert_array_equal(table.curves.thresholds, AT)
        assert (table.curves.connectivity, table.curves.superlevel) == (1, superlevel)
        assert table.curves.boundary == "closed"
    for i, name in enumerate(tables["euler"].metadata["input"]):
        found = sets(images[name], superlevel)
        euler = [euler_number(inside, 1) for inside in found]
        components = [label(inside, connectivity=1).max() for inside in found]
        assert_array_equal(tables["euler"].curves.values[i], euler)
        assert_array_equal(tables["betti"].curves.values[i, 0], components)
        assert_array_equal(tables["betti"].curves.euler[i], euler)
        assert_array_equal(tables["minkowski"].curves.area[i], [s.sum() for s in found])
        assert_array_equal(tables["minkowski"].curves.euler[i], euler)
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
    for name, message in (("t.txt", r"t\.txt: type not supported"), ("t.json", r"t\.json: ")):
        with pytest.raises(ValueError, match=message):
            read_table(tmp_path / name)
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
    area = np.mean([[inside.sum() for inside in own] for own in found], axis=0)
    euler = np.mean([[euler_number(inside, 2) for inside in own] for own in found], axis=0)
    assert_array_equal(mean_band(frame, functional="area", rng=0).mean, area)
    assert_array_equal(mean_band(frame, functional="euler", rng=0).mean, euler)
    message = "`functional` must be of one of 'euler', 'betti', 'minkowski', got None"
    with pytest.raises(ValueError, match=message):
        mean_band(frame)
    with pytest.raises(ValueError, match="curves must agree in `unit`, got '' and 'mm'"):
        curves_of_table(frame.assign(unit=[None, "mm", "mm"]), "minkowski")
