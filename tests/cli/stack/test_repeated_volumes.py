"""Volumes that repeat a period, of which measurements of large ones know the truth."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.io import read_image

ROOT = Path(__file__).parents[3]
PERIODS = (2, 3, 2)


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.delitem(sys.modules, "benchmarks", raising=False)
    from benchmarks import scale

    return scale


@pytest.fixture
def volumes(scale: Any) -> Any:
    from benchmarks import periodic_volumes

    return periodic_volumes


@pytest.fixture
def period() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (8, 8, 8), dtype=np.uint8)


def made(volumes: Any, path: Path, period: np.ndarray, codec: str = "zstd") -> Path:
    """A volume of shards of 4^3 points."""
    storage = volumes.STORAGES[codec]._replace(chunk=2)
    return volumes.make(path, period, PERIODS, shard=4, storage=storage)


@pytest.mark.parametrize("codec", ["zstd", "lz4", "none"])
def test_every_reader_decodes_all_of_it(volumes, period, tmp_path, codec):
    path = made(volumes, tmp_path / "a.zarr", period, codec)
    tiled = np.tile(period, PERIODS)
    np.testing.assert_array_equal(zarr.open_array(path, mode="r")[...], tiled)
    np.testing.assert_array_equal(read_image(path), tiled)
    files = [file for file in path.glob("c/*/*/*") if file.is_file()]
    assert len({file.stat().st_ino for file in files}) == 8


@pytest.mark.parametrize("boundary", ["closed", "periodic"])
def test_the_truth_by_parts(scale, volumes, period, tmp_path, boundary):
    path = made(volumes, tmp_path / "a.zarr", period)
    expected = volumes.truth(volumes.curve_of, period, PERIODS, boundary)
    tiled = ecc.euler_curve(np.tile(period, PERIODS), 256, range=(0, 255), boundary=boundary)
    assert expected.tolist() == tiled.values.tolist()
    codes = []
    for number in (1, 2):
        part = ["--part", f"{number}/2", "--out", str(tmp_path / f"p-{number}.npz")]
        codes.append(
            main(["stack", str(path), *part, "--max-memory", "6K", "--boundary", boundary])
        )
    assert codes == [0, 0]
    merged = tmp_path / "curve.csv"
    assert main(["merge", str(tmp_path / "p-*.npz"), "--out", str(merged)]) == 0
    scale.assert_true(merged, expected)


def test_betti_numbers_of_walled_periods(volumes, period):
    walled = volumes.walled(period)
    expected = volumes.truth_of_walled(walled, PERIODS)
    tiled = ecc.betti_curves(np.tile(walled, PERIODS), 256, range=(0, 255)).values
    assert expected.tolist() == tiled.tolist()
