"""Results written to files come back with their arrays, dtypes and facts."""

import csv
import dataclasses
import json
import sys

import dask.array as da
import numpy as np
import pyarrow.parquet as parquet
import pytest

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.dask import local_curves
from ecc_core.io import RESULT_SUFFIXES, read_result, write_result, write_table

IMAGE = np.random.default_rng(1).integers(0, 9, (6, 7))
LABELS = np.where(IMAGE > 6, 7, 2).astype(np.uint16)
FLOATS = IMAGE.astype(np.float32) / 10
RESULTS = {
    "curve": ecc.euler_curve(IMAGE, 4, superlevel=True, connectivity=1),
    "float32 thresholds": ecc.euler_curve(FLOATS, "exact"),
    "uint64 thresholds": ecc.euler_curve(IMAGE, np.array([0, 2**64 - 1], np.uint64)),
    "bool thresholds": ecc.euler_curve(IMAGE > 4, "exact"),
    "big-endian thresholds": ecc.euler_curve(IMAGE, np.array([1, 5], ">i2")),
    "repeated thresholds": ecc.euler_curve(IMAGE, [1.0, 1.0, np.inf]),
    "directional": ecc.euler_curve(IMAGE, 4, direction=[1, 2], direction_scale=1 / 3),
    "window": ecc.euler_curve(IMAGE, 4, boundary="half-open"),
    "batch": ecc.euler_curve(np.stack([IMAGE, -IMAGE]), 4, axis=(1, 2)),
    "no thresholds": ecc.euler_curve(IMAGE, []),
    "regions": ecc.region_curves(IMAGE, LABELS, 3),
    "no regions": ecc.region_curves(IMAGE, np.zeros_like(LABELS), [0.5, np.inf]),
    "tiles": local_curves(IMAGE, 3, [0, 5]),
    "transform": ecc.euler_transform(IMAGE > 4, 5, [-np.inf, 0, 3], spacing=(1, 0.1)),
    "smooth": ecc.smooth_transform(ecc.euler_transform(IMAGE > 4, 5, 6)),
    "volume": ecc.euler_transform(np.ones((2, 3, 4), bool), 4, 5),
    "region transforms": ecc.region_transforms(LABELS, 3, 4, normalize="radius"),
    "Betti numbers": ecc.betti_curves(np.stack([IMAGE, -IMAGE]), 4, axis=(1, 2), superlevel=True),
    "Betti numbers of regions": ecc.region_betti_curves(IMAGE, LABELS, 3),
    "components": ecc.component_curves(FLOATS, 4, spacing=(2, 0.1), superlevel=True),
    "components of a batch": ecc.component_curves(np.stack([IMAGE, -IMAGE]), 4, axis=(1, 2)),
    "functionals": ecc.minkowski_curves(IMAGE, 5, spacing=2, boundary="half-open"),
    "functionals of regions": ecc.region_minkowski(IMAGE, LABELS, 5, estimator="crofton-2"),
    "surface": ecc.euler_surface(IMAGE, FLOATS, 4, [0.1, 0.5], superlevel=(False, True)),
    "surfaces": ecc.euler_surface(*np.stack([IMAGE, -IMAGE])[:, None], 3, 2, axis=(1, 2)),
    "pairs": ecc.persistence_pairs(FLOATS, 1, superlevel=True, connectivity=1),
    "pairs that never end": ecc.persistence_pairs(np.array([0, np.inf, -0.1, 3, np.inf]), 0),
    "pairs of booleans": ecc.persistence_pairs(IMAGE > 4, 0),
    "pairs of large integers": ecc.persistence_pairs(IMAGE + (2**53 + 1), 0),
    "pairs of unsigned integers": ecc.persistence_pairs(
        np.array([[0, 2**64 - 1, 2**64 - 2, 0, 2**53 + 1]], np.uint64), 0, superlevel=True
    ),
    "pairs of a volume": ecc.persistence_pairs(np.stack([IMAGE, IMAGE % 3, IMAGE % 4]), 2),
    "pairs of all dimensions": ecc.persistence_pairs(np.stack([IMAGE, IMAGE % 3, IMAGE % 4])),
    "no pairs": ecc.persistence_pairs(np.zeros((3, 4)), 1),
    "units": dataclasses.replace(ecc.euler_curve(IMAGE, 2), units='"µm",\n'),
}


@pytest.mark.parametrize("suffix", RESULT_SUFFIXES)
@pytest.mark.parametrize("name", RESULTS)
def test_round_trip(name, suffix, tmp_path):
    path, result = tmp_path / f"result{suffix}", RESULTS[name]
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
    for i, image in enumerate((da.from_array(IMAGE, chunks=4), torch.from_numpy(IMAGE))):
        path = tmp_path / f"{i}{suffix}"
        write_result(path, ecc.euler_curve(image, [1, 3]))
        assert read_result(path) == ecc.euler_curve(IMAGE, [1, 3])


def test_tables_are_readable_by_others(tmp_path):
    curve = RESULTS["curve"]
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


def test_changed_files_are_refused(tmp_path):
    path = tmp_path / "c.csv"
    write_result(path, RESULTS["curve"])
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    with pytest.raises(ValueError, match="damaged or was changed by hand"):
        read_result(path)


def test_pickles_are_not_loaded(tmp_path):
    path = tmp_path / "c.npz"
    np.savez(path, values=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        read_result(path)


def test_wrong_types(tmp_path):
    with pytest.raises(TypeError, match="`result` must be a result of ecc_core, got a tuple"):
        write_result(tmp_path / "c.csv", ([0], [1]))
    with pytest.raises(ValueError, match=r"must be one of \.csv, \.parquet, \.json, \.npz"):
        write_result(tmp_path / "c.txt", RESULTS["curve"])
    with pytest.raises(ValueError, match=r"must be one of \.csv, \.parquet, \.json, \.npz"):
        read_result(tmp_path / "c.txt")
    with pytest.raises(FileNotFoundError):
        read_result(tmp_path / "c.csv")


def test_without_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"napari-ecc\[parquet\]"):
        write_result(tmp_path / "c.parquet", RESULTS["curve"])
    write_result(tmp_path / "c.csv", RESULTS["curve"])
    assert read_result(tmp_path / "c.csv") == RESULTS["curve"]


REAL = IMAGE.astype(np.float64)
SERIES = np.stack([REAL, REAL + 1, REAL // 2])


@pytest.mark.parametrize("command", ["curve", "stack"])
@pytest.mark.parametrize("suffix", [".parquet", ".json"])
@pytest.mark.parametrize(
    ("image", "flags", "expected"),
    [
        (REAL, "--labels {labels}", ecc.region_curves(REAL, LABELS, 5)),
        (
            SERIES,
            "--axes TYX --superlevel",
            ecc.euler_curve(SERIES, 5, axis=(1, 2), superlevel=True),
        ),
        (
            REAL,
            "--direction 0,1 --spacing 2 --connectivity 1",
            ecc.euler_curve(REAL, 5, direction=(0, 1), spacing=2, connectivity=1),
        ),
    ],
    ids=["labels", "series", "direction"],
)
def test_tables_of_commands(command, suffix, image, flags, expected, tmp_path):
    path, labels, out = (tmp_path / name for name in ("a.npy", "l.npy", f"table{suffix}"))
    np.save(path, image)
    np.save(labels, LABELS)
    options = [*flags.format(labels=labels).split(), "--thresholds", "5", "--out", str(out)]
    assert main([command, str(path), *options]) == 0
    assert read_result(out) == expected


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
