"""`ecc stack --betti` and `ecc batch --betti`: Betti numbers of images larger than memory."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core._blocks.betti import BettiWork
from ecc_core._io.parts import Parts
from ecc_core.cli import main


def assert_betti(table: dict[str, list[float]], image: np.ndarray, **options: Any) -> None:
    known = ecc.betti_curves(image, np.arange(9), **options)
    assert table["euler_number"] == known.euler.tolist()
    for k in range(image.ndim):
        assert table[f"b{k}"] == known.values[k].tolist()


@pytest.mark.parametrize("options", [{}, {"connectivity": 1, "superlevel": True}])
def test_an_image(stack, tmp_path, noise, write_zarr, levels, options):
    image = noise(19, 20, 17)
    path = write_zarr(tmp_path / "a.zarr", image)
    flags = ["--connectivity", 1, "--superlevel"] if options else []
    table = stack(path, "--thresholds", levels, "--betti", "--max-memory", "20K", *flags)
    assert_betti(table, image, **options)


def test_batch_axes_and_directions(stack, tmp_path, noise, levels, write_ome):
    image = noise(2, 9, 8)
    path = write_ome(tmp_path / "a.zarr", [image], "CYX")
    table = stack(path, "--thresholds", levels, "--betti")
    known = ecc.betti_curves(image, np.arange(9), axis=(1, 2))
    assert table["c"] == np.repeat([0, 1], 9).tolist()
    assert table["b1"] == known.values[:, 1].ravel().tolist()
    assert "b2" not in table
    flags = ["--channel", 1, "--direction", "1,2", "--max-memory", "10K"]
    table = stack(path, "--thresholds", levels, "--betti", *flags)
    curve = ecc.euler_curve(image[1], np.arange(9), direction=(1, 2))
    assert table["euler_number"] == curve.values.tolist()


def test_resume(tmp_path, noise, write_zarr, levels, columns, monkeypatch):
    """Parts that were kept are not computed again, and are joined with the others."""
    image = noise(32, 24, 24)
    path = write_zarr(tmp_path / "a.zarr", image, chunks=(8, 8, 8))
    out = tmp_path / "curve.csv"
    arguments = ["stack", str(path), "--out", str(out), "--thresholds", levels, "--betti"]
    arguments += ["--max-memory", "6K", "--workers", "2", "--resume"]
    kept = []
    keep, emit = Parts.keep, BettiWork.emit

    def failing(self: Parts, *part: Any) -> None:
        if len(kept) == 2:
            raise KeyboardInterrupt
        kept.append(part[0])
        keep(self, *part)

    with monkeypatch.context() as patch:
        patch.setattr(Parts, "keep", failing)
        assert main(arguments) == 130
    read = []

    def counted(self: BettiWork, block: tuple[int, ...]) -> Any:
        read.append(block)
        return emit(self, block)

    monkeypatch.setattr(BettiWork, "emit", counted)
    assert main(arguments) == 0
    assert 0 < len(read) < 36
    assert len(read) == len(set(read))
    assert_betti(columns(out), image)


def test_batch(tmp_path, noise, write_zarr):
    images = {"a": noise(9, 8, 7), "b": noise(12, 13, seed=1)}
    for name, image in images.items():
        write_zarr(tmp_path / f"{name}.zarr", image)
    out = tmp_path / "table.csv"
    arguments = ["--out", str(out), "--thresholds", "2,5", "--betti"]
    assert main(["batch", str(tmp_path / "*.zarr"), *arguments]) == 0
    with Path(out).open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "input",
        *(f"{k}{t}" for k in ("", "b0 ", "b1 ", "b2 ") for t in (2, 5)),
    ]
    for row, image in zip(rows, images.values(), strict=True):
        known = ecc.betti_curves(image, [2, 5])
        assert [int(row["2"]), int(row["5"])] == known.euler.tolist()
        for k in range(3):
            counts = known.values[k].tolist() if k < image.ndim else [0, 0]
            assert [int(row[f"b{k} 2"]), int(row[f"b{k} 5"])] == counts


def test_not_with_labels_or_devices(tmp_path, image, write_zarr, capsys):
    path = str(write_zarr(tmp_path / "a.zarr", image))
    out = str(tmp_path / "a.csv")
    assert main(["stack", path, "--out", out, "--betti", "--labels", path]) == 2
    assert "--betti must not be given together with --labels" in capsys.readouterr().err
    assert main(["stack", path, "--out", out, "--betti", "--device", "cuda"]) == 2
    assert "--betti must be given with --device cpu, got cuda" in capsys.readouterr().err
