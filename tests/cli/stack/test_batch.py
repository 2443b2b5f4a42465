"""`ecc batch`: one row an image; what fails is named and costs nothing else."""

import json
import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from io_helpers import curves_in, rows_of, write_ome_zarr, write_zarr
from stack_helpers import LEVELS, noise

import ecc_core as ecc
from ecc_core._blocks import window
from ecc_core._cli import batch
from ecc_core.cli import main


def run(folder: Path, *inputs: str, out: str = "table.csv", options: tuple[str, ...] = ()) -> int:
    """Run the command on files of a folder."""
    paths = [str(folder / name) for name in inputs]
    return main(["batch", *paths, "--out", str(folder / out), "--thresholds", LEVELS, *options])


def test_small_images_cost_no_files_and_no_threads(tmp_path, monkeypatch):
    """A flush to the disk, or starting a thread, takes longer than such an image."""
    for name in "abc":
        np.save(tmp_path / f"{name}.npy", noise(9, 8))
    assert run(tmp_path, "*.npy") == 0  # which compiles
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    monkeypatch.setattr(window, "ThreadPoolExecutor", None)
    assert run(tmp_path, "*.npy") == 0
    assert len(rows_of(tmp_path / "table.csv")) == 3
    assert len(flushed) == 2  # the table and its folder


def test_labels_of_channels(tmp_path):
    """A column for the channel and one for the label; images without channels have -1."""
    image, labels = noise(2, 5, 6, seed=3), (noise(5, 6, seed=4) > 3).astype(np.uint8)
    np.save(tmp_path / "labels.npy", labels)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["plane"] = image[0]
    write_ome_zarr(tmp_path / "b.zarr", [image], "CYX")
    options = ("--labels", str(tmp_path / "labels.npy"))
    assert run(tmp_path, "*.h5/plane", "b.zarr", options=options) == 0
    rows = rows_of(tmp_path / "table.csv")
    assert [(row["c"], row["label"]) for row in rows] == [("-1", "1"), ("0", "1"), ("1", "1")]
    expected = [ecc.region_curves(plane, labels, np.arange(9)).values[0] for plane in image]
    assert curves_in(rows, LEVELS.split(",")) == [expected[i].tolist() for i in (0, 0, 1)]


def test_failures_are_named_and_the_others_kept(tmp_path, monkeypatch, capsys):
    images = {"a": noise(9, 8, 7), "c": noise(6, 6, 6, seed=2)}
    for name in "abcde":
        write_zarr(tmp_path / f"{name}.zarr", images.get(name, noise(12, 13)))
    (tmp_path / "b.zarr/c/1/2").write_bytes(b"damaged")
    (tmp_path / "d.zarr/zarr.json").write_text('{"zarr_format": 3,')
    (tmp_path / "f.zarr").mkdir()
    compute = batch.curves_of

    def fail(stack: Any, *rest: Any, **named: Any) -> Any:
        if Path(stack.blocks.image.source.path).stem == "e":
            raise ZeroDivisionError("division by zero")
        return compute(stack, *rest, **named)

    monkeypatch.setattr(batch, "curves_of", fail)
    assert run(tmp_path, "*.zarr", out="table.json") == 1
    errors = capsys.readouterr().err.splitlines()
    known = ("b.zarr: cannot read chunk [4:8, 8:12]: ", "d.zarr", "e.zarr: division by zero", "f")
    for line, start in zip(sorted(errors), known, strict=True):
        assert line.startswith(f"ecc: failed: {tmp_path / start}")
    table = json.loads((tmp_path / "table.json").read_text())
    assert [Path(path).stem for path in table["columns"]["input"]] == ["a", "c"]
    expected = np.transpose([ecc.euler_curve(i, np.arange(9)).values for i in images.values()])
    assert [table["columns"][level] for level in LEVELS.split(",")] == expected.tolist()
    assert len(table["metadata"]["failed"]) == 4
    assert table["metadata"]["settings"]["thresholds"] == list(range(9))


def test_all_fail(tmp_path, capsys):
    (tmp_path / "empty.zarr").mkdir()
    assert run(tmp_path, "*.zarr") == 1
    assert not (tmp_path / "table.csv").exists()
    assert capsys.readouterr().err.count("ecc: failed: ") == 1
