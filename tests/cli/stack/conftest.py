"""Images on the disk, and the command that takes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from io_helpers import rows_of

import ecc_core as ecc
from ecc_core.cli import main

Columns = dict[str, list[float]]


def _noise(*shape: int, dtype: str = "uint8", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 9, shape).astype(dtype)


FACTS = [
    "connectivity",
    "superlevel",
    "boundary",
    "direction",
    "direction_scale",
    "estimator",
    "unit",
]
"""Columns that say how curves were computed."""


@pytest.fixture
def noise() -> Callable[..., np.ndarray]:
    """Images of nine levels."""
    return _noise


@pytest.fixture
def image() -> np.ndarray:
    return _noise(9, 20, 17)


@pytest.fixture
def levels() -> str:
    """The nine levels, as an argument."""
    return ",".join(map(str, range(9)))


@pytest.fixture
def write_zarr() -> Callable[..., Path]:
    """Write an array in chunks of 4 points along each axis, or others."""

    def write(path: Path, image: np.ndarray, **options: Any) -> Path:
        options = {"chunks": (4,) * image.ndim, **options}
        zarr.create_array(path, shape=image.shape, dtype=image.dtype, **options)[...] = image
        return path

    return write


@pytest.fixture
def write_ome() -> Callable[..., Path]:
    """Write the resolutions of an OME-Zarr image."""

    def write(path: Path, images: list[np.ndarray], axes: str, version: str = "0.5") -> Path:
        group = zarr.create_group(path, zarr_format=2 if version == "0.4" else 3)
        for level, image in enumerate(images):
            array = group.create_array(
                str(level), shape=image.shape, dtype=image.dtype, chunks=(4,) * image.ndim
            )
            array[...] = image
        described = [
            {
                "axes": [{"name": name} for name in axes.lower()],
                "datasets": [{"path": str(level)} for level in range(len(images))],
            }
        ]
        if version == "0.4":
            group.attrs["multiscales"] = described
        else:
            group.attrs["ome"] = {"version": version, "multiscales": described}
        return path

    return write


@pytest.fixture
def columns() -> Callable[[Path], Columns]:
    """Read a table."""

    def read(path: Path) -> Columns:
        rows = rows_of(path)
        numbers = [name for name in rows[0] if name not in FACTS]
        return {name: [float(row[name]) for row in rows] for name in numbers}

    return read


@pytest.fixture
def stack(tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: Any) -> Any:
    """Run `ecc stack` in this process and return the table that it writes."""

    def table(path: Path, *arguments: object) -> Columns:
        out = tmp_path / "curve.csv"
        assert main(["stack", str(path), "--out", str(out), *map(str, arguments)]) == 0
        assert not list(tmp_path.glob("*.parts"))
        capsys.readouterr()
        return columns(out)

    return table


@pytest.fixture
def assert_curve() -> Callable[..., None]:
    """Compare a table with the curve of an image in memory."""

    def compare(table: Columns, image: np.ndarray, **options: Any) -> None:
        at, values = ecc.euler_curve(image, np.arange(9), **options)
        assert table["threshold"] == at.tolist()
        assert table["euler_number"] == values.tolist()

    return compare


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `ecc stack` and return its one-line error."""

    def error(path: Path, *arguments: object) -> str:
        out = tmp_path / "curve.csv"
        assert main(["stack", str(path), "--out", str(out), *map(str, arguments)]) == 2
        assert not out.exists()
        message = capsys.readouterr().err
        assert message.startswith("ecc: error: ")
        assert message.count("\n") == 1
        return message

    return error
