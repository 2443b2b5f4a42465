"""`ecc batch`: one row an image; what fails is named and costs nothing else."""

import json
import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.parquet as parquet
import pytest
from io_helpers import rows_of, write_ome_zarr, write_zarr
from stack_helpers import LEVELS, noise

import ecc_core as ecc
from ecc_core._blocks import window
from ecc_core.cli import main


@pytest.fixture
def plates(tmp_path: Path) -> dict[str, np.ndarray]:
    """Images of several shapes in a folder."""
    (tmp_path / "plates").mkdir()
    images = {"a": noise(9, 8, 7), "b": noise(12, 13, seed=1), "c": noise(6, 6, 6, seed=2)}
    for name, image in images.items():
        write_zarr(tmp_path / "plates" / f"{name}.zarr", image)
    return images


def curve_in(row: dict[str, Any]) -> list[int]:
    return [int(row[level]) for level in LEVELS.split(",")]


def curve_of(image: np.ndarray, **options: Any) -> list[int]:
    return ecc.euler_curve(image, np.arange(9), **options).values.tolist()


def batch(tmp_path: Path, *arguments: str, out: str = "table.csv") -> int:
    pattern = str(tmp_path / "plates" / "*.zarr")
    flags = ["--out", str(tmp_path / out), "--thresholds", LEVELS]
    return main(["batch", pattern, *flags, *arguments])


def test_one_row_an_image(tmp_path, plates):
    assert batch(tmp_path) == 0
    rows = rows_of(tmp_path / "table.csv")
    assert [Path(row["input"]).stem for row in rows] == ["a", "b", "c"]
    for row, image in zip(rows, plates.values(), strict=True):
        assert curve_in(row) == curve_of(image)


def test_small_images_cost_no_files_and_no_threads(tmp_path, monkeypatch):
    """A flush to the disk, or starting a thread, takes longer than such an image."""
    for name in "abc":
        np.save(tmp_path / f"{name}.npy", noise(9, 8))
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    monkeypatch.setattr(window, "ThreadPoolExecutor", None)
    arguments = ["--out", str(tmp_path / "table.csv"), "--thresholds", LEVELS]
    assert main(["batch", str(tmp_path / "*.npy"), *arguments]) == 0
    assert len(rows_of(tmp_path / "table.csv")) == 3
    assert len(flushed) == 2  # the table and its folder


def test_settings_reach_the_curves_and_the_file(tmp_path, plates):
    out = tmp_path / "table.parquet"
    assert batch(tmp_path, "--connectivity", "1", "--superlevel", out=out.name) == 0
    found = parquet.read_table(out)
    for row, image in zip(found.to_pylist(), plates.values(), strict=True):
        assert curve_in(row) == curve_of(image, connectivity=1, superlevel=True)
    metadata = json.loads(found.schema.metadata[b"ecc"])
    assert metadata["settings"]["connectivity"] == 1
    assert metadata["settings"]["thresholds"] == list(range(9))
    assert metadata["failed"] == []


def test_one_row_a_channel(tmp_path, plates):
    image = noise(2, 5, 6, 7, seed=3)
    path = write_zarr(tmp_path / "d.zarr", image)
    arguments = ["--axes", "CZYX", "--thresholds", LEVELS, "--out", str(tmp_path / "d.csv")]
    assert main(["batch", str(path), *arguments]) == 0
    rows = rows_of(tmp_path / "d.csv")
    assert [row["c"] for row in rows] == ["0", "1"]
    assert [curve_in(row) for row in rows] == [curve_of(channel) for channel in image]


def test_one_row_a_label(tmp_path, plates):
    labels = {name: noise(*image.shape, seed=9) // 2 for name, image in plates.items()}
    for name, image in labels.items():
        np.save(tmp_path / "plates" / f"{name}_cells.npy", image)
    assert batch(tmp_path, "--labels", "{stem}_cells.npy", out="table.parquet") == 0
    rows = parquet.read_table(tmp_path / "table.parquet").to_pylist()
    expected = [
        (name, *row)
        for name, image in plates.items()
        for row in zip(*ecc.region_curves(image, labels[name], np.arange(9))[::2], strict=True)
    ]
    assert len(rows) == len(expected) > 3
    for row, (name, label, values) in zip(rows, expected, strict=True):
        assert Path(row["input"]).stem == name
        assert row["label"] == label
        assert curve_in(row) == values.tolist()


def test_labels_of_channels(tmp_path):
    """A column for the channel and one for the label; images without channels have -1."""
    image, labels = noise(2, 5, 6, seed=3), (noise(5, 6, seed=4) > 3).astype(np.uint8)
    np.save(tmp_path / "labels.npy", labels)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["plane"] = image[0]
    write_ome_zarr(tmp_path / "b.zarr", [image], "CYX")
    inputs = [str(tmp_path / "*.h5/plane"), str(tmp_path / "b.zarr")]
    arguments = ["--labels", str(tmp_path / "labels.npy"), "--thresholds", LEVELS]
    assert main(["batch", *inputs, *arguments, "--out", str(tmp_path / "d.csv")]) == 0
    rows = rows_of(tmp_path / "d.csv")
    assert [(row["c"], row["label"]) for row in rows] == [("-1", "1"), ("0", "1"), ("1", "1")]
    expected = [ecc.region_curves(plane, labels, np.arange(9)).values[0] for plane in image]
    assert [curve_in(row) for row in rows] == [expected[i].tolist() for i in (0, 0, 1)]


def test_failures_are_named_and_the_others_kept(tmp_path, plates, capsys):
    damaged = tmp_path / "plates" / "b.zarr"
    (damaged / "c" / "1" / "2").write_bytes(b"damaged")
    (tmp_path / "plates" / "empty.zarr").mkdir()
    assert batch(tmp_path, out="table.json") == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors[0].startswith(f"ecc: failed: {damaged}: cannot read chunk [4:8, 8:12]: ")
    assert errors[1].startswith(f"ecc: failed: {tmp_path / 'plates' / 'empty.zarr'}: ")
    assert len(errors) == 2
    written = json.loads((tmp_path / "table.json").read_text())
    assert [Path(path).stem for path in written["columns"]["input"]] == ["a", "c"]
    assert written["columns"]["5"] == [curve_of(plates[name])[5] for name in "ac"]
    assert len(written["metadata"]["failed"]) == 2


def test_unreadable_metadata_end_no_batch(tmp_path, plates, capsys):
    damaged = tmp_path / "plates" / "b.zarr"
    (damaged / "zarr.json").write_text('{"zarr_format": 3,')
    assert batch(tmp_path) == 1
    assert capsys.readouterr().err.startswith(f"ecc: failed: {damaged}")
    assert [Path(row["input"]).stem for row in rows_of(tmp_path / "table.csv")] == ["a", "c"]


def test_all_fail(tmp_path, capsys):
    (tmp_path / "plates" / "empty.zarr").mkdir(parents=True)
    assert batch(tmp_path) == 1
    assert not (tmp_path / "table.csv").exists()
    assert capsys.readouterr().err.count("ecc: failed: ") == 1
