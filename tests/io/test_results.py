"""Results written to files come back."""

import csv
import dataclasses
import json
import sys

import dask.array as da
import numpy as np
import pyarrow.parquet as parquet
import pytest
from io_helpers import command_line

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.dask import local_curves
from ecc_core.io import (
    RESULT_SUFFIXES,
    read_result,
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
    path = tmp_path / f"c{suffix}"
    known = ecc.euler_curve(IMAGE, [1, 3])
    write_result(path, ecc.euler_curve(da.from_array(IMAGE, chunks=4), [1, 3]))
    assert read_result(path) == known
    path.unlink()
    write_result(path, ecc.euler_curve(torch.from_numpy(IMAGE), [1, 3]))
    assert read_result(path) == known


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
    matching = ecc.betti_matching(IMAGE > 2, IMAGE > 3)
    with pytest.raises(TypeError, match=r"got a BettiMatching: write its table, `to_pandas\(\)`"):
        write_result(tmp_path / "c.csv", matching)
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
    found = [read_result(out, source=path) for path in paths]
    assert found == [ecc.euler_curve(image, 4, superlevel=True) for image in images]
    with pytest.raises(ValueError, match="`source` must be one of"):
        read_result(out)
