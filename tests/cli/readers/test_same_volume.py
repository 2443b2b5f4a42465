"""One volume in every format that has a writer: all options mean the same in each."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import io_helpers
import nrrd
import numpy as np
import pytest
import tifffile
from io_helpers import curves_in, noise, rows_of
from skimage.measure import euler_number

from ecc_core.cli import main
from ecc_core.io import read_result

STEPS = (2.0, 0.5, 0.25)
"""Millimeters along Z, Y and X."""
GIVEN = ("--spacing", "2,.5,.25")
TIFF = {"photometric": "minisblack", "resolution": (4, 2)}
LEVELS = (60, 120, 180)
PART = (slice(1, 4), slice(2, 7), slice(0, 6))


def write_tiff(path: Path, volume: np.ndarray, *, imagej: bool = False) -> None:
    channels = volume.ndim > 3
    stored = np.moveaxis(volume, 0, 1) if channels else volume  # ImageJ keeps ZCYX.
    metadata = {"axes": "ZCYX" if channels else "ZYX", "spacing": 2.0, "unit": "mm"}
    tifffile.imwrite(path, stored, imagej=imagej, metadata=metadata, **TIFF)


def write_ome_tiff(path: Path, volume: np.ndarray) -> None:
    sizes: dict[str, Any] = {"axes": "CZYX"[-volume.ndim :]}
    for axis, step in zip("ZYX", STEPS, strict=True):
        sizes |= {f"PhysicalSize{axis}": step, f"PhysicalSize{axis}Unit": "mm"}
    tifffile.imwrite(path, volume, metadata=sizes, photometric="minisblack")


def write_nifti(path: Path, volume: np.ndarray) -> None:
    """Write a volume with components along the fifth axis."""
    components = volume.ndim > 3
    io_helpers.write_nifti(path, volume[:, None] if components else volume, STEPS[::-1], "mm")


def write_nrrd(path: Path, volume: np.ndarray) -> None:
    vectors = np.vstack([np.diag(STEPS[::-1]), np.full((volume.ndim - 3, 3), np.nan)])
    header = {
        "kinds": ["domain"] * 3 + ["list"] * (volume.ndim - 3),
        "space": "left-posterior-superior",
        "space directions": vectors,
        "space units": ["mm"] * 3,
    }
    nrrd.write(str(path), volume, header, index_order="C")


def write_metaimage(path: Path, volume: np.ndarray) -> None:
    """Write a volume with channels beside each other."""
    components = volume.ndim > 3
    values = np.moveaxis(volume, 0, -1) if components else volume
    io_helpers.write_itk(path, values, np.diag([*STEPS[::-1], 1]), isVector=components)


def write_labelled_hdf5(path: Path, volume: np.ndarray) -> None:
    """Write a volume with axes and spacing as ilastik does."""
    io_helpers.write_hdf5(path, volume, "czyx"[-volume.ndim :])
    with h5py.File(path, "r+") as file:
        file["raw"].attrs["element_size_um"] = [1e3 * step for step in STEPS]


def write_ome_zarr(path: Path, volume: np.ndarray) -> None:
    axes = "CZYX"[-volume.ndim :]
    steps = [1.0] * (volume.ndim - 3) + [*STEPS]
    io_helpers.write_ome_zarr(path, [volume], axes, [steps], unit="millimeter")


def write_series(path: Path, volume: np.ndarray) -> None:
    path.mkdir()
    for place, plane in enumerate(volume):
        io_helpers.write_dicom(path / f"{place}.dcm", plane, z=STEPS[0] * place)


def write_folder(path: Path, volume: np.ndarray) -> None:
    path.mkdir()
    for place, plane in enumerate(volume):
        tifffile.imwrite(path / f"slice{place}.tif", plane)


class Format(NamedTuple):
    write: Callable[[Path, np.ndarray], None]
    options: tuple[str, ...] = ()
    """Those that are needed because the file does not say it."""
    channels: tuple[str, ...] | None = None
    """Options for an image with channels; None where there are none."""


IN_ANGSTROM = tuple(1e7 * step for step in STEPS[::-1])
write_mrc = partial(io_helpers.write_mrc, voxel=IN_ANGSTROM)
FORMATS = {
    "a.npy": Format(np.save, GIVEN, ("--axes", "CZYX")),
    "a.npz": Format(np.savez, GIVEN, ("--axes", "CZYX")),
    "a.tif": Format(write_tiff),
    "imagej.tif": Format(partial(write_tiff, imagej=True), (), ()),
    "a.ome.tif": Format(write_ome_tiff, (), ()),
    "a.nii": Format(write_nifti, (), ("--time", "0")),
    "a.nii.gz": Format(write_nifti, (), ("--time", "0")),
    "a.nrrd": Format(write_nrrd, (), ()),
    "a.mha": Format(write_metaimage, (), ()),
    "a.mrc": Format(write_mrc),
    "a.h5": Format(write_labelled_hdf5, (), ()),
    "plain.zarr": Format(io_helpers.write_zarr, GIVEN, ("--axes", "CZYX")),
    "a.zarr": Format(write_ome_zarr, (), ()),
    "series": Format(write_series),
    "folder": Format(write_folder, GIVEN),
}


VOLUME = (noise(5, 8, 7) // 2 + 20 * np.arange(5, dtype=np.uint8)[:, None, None]).astype(np.uint8)
SHAPE = (VOLUME > 90).astype(np.uint8)
CHANNELS = np.stack([noise(5, 8, 7, seed=1), VOLUME])


def faces(inside: np.ndarray) -> list[int]:
    """Count the faces between a set and what is around it, along each axis."""
    changes = [np.diff(inside, axis=axis) for axis in range(inside.ndim)]
    return list(map(np.count_nonzero, changes))


FROM_THE_MIDDLE = [np.arange(n) - (n - 1) / 2 for n in VOLUME.shape]
PLACES = np.stack(np.meshgrid(*FROM_THE_MIDDLE, indexing="ij"))
PLACES *= np.array(STEPS)[:, None, None, None]


def numbers_of(values: np.ndarray) -> list[int]:
    return [euler_number(values <= level, connectivity=3) for level in LEVELS]


@pytest.fixture(params=FORMATS)
def stored(request: Any, tmp_path: Path) -> tuple[Path, Format]:
    """The volume in a file."""
    found = FORMATS[request.param]
    found.write(tmp_path / request.param, VOLUME)
    return tmp_path / request.param, found


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Run a command that writes a table."""

    def rows(command: str, path: Path, *options: str) -> list[dict[str, str]]:
        levels = ",".join(map(str, LEVELS))
        out = tmp_path / "out.csv"
        assert main([command, str(path), "--thresholds", levels, "--out", str(out), *options]) == 0
        return rows_of(out)

    return rows


class TestSameVolume:
    @pytest.mark.parametrize("command", ["curve", "stack", "batch"])
    def test_region_of_interest(self, stored, run, command):
        rows = run(command, stored[0], "--roi", "1:4,2:7,:6")
        assert curves_in(rows, LEVELS) == [numbers_of(VOLUME[PART])]
        assert numbers_of(VOLUME[PART]) != numbers_of(VOLUME.T[PART])

    @pytest.mark.parametrize("direction", [(1, 0, 0), (0, 0, 1), (1, -2, 3)])
    def test_direction(self, stored, run, direction):
        path, known = stored
        unit = np.array(direction) / np.linalg.norm(direction)
        expected = VOLUME + 30.0 * np.tensordot(unit, PLACES, axes=1)
        options = ["--direction", ",".join(map(str, direction)), "--direction-scale", "30"]
        rows = run("stack", path, *options, "--unit", "mm", *known.options)
        assert curves_in(rows, LEVELS) == [numbers_of(expected)]
        assert {row["unit"] for row in rows} == {"millimeter"}

    @pytest.mark.parametrize("command", ["curve", "stack"])
    def test_minkowski(self, stored, run, command):
        """Volumes are counted; surfaces are the faces between points of the set and others."""
        path, known = stored
        rows = run(command, path, "--minkowski", "exact", "--unit", "mm", *known.options)
        assert {row["unit"] for row in rows} == {"millimeter"}
        sets = [np.pad(level >= VOLUME, 1).astype(int) for level in LEVELS]
        areas = np.prod(STEPS) / np.array(STEPS)
        surfaces = [faces(inside) @ areas for inside in sets]
        assert [float(row["surface"]) for row in rows] == pytest.approx(surfaces, rel=1e-12)
        volumes = [inside.sum() * np.prod(STEPS) for inside in sets]
        assert [float(row["volume"]) for row in rows] == pytest.approx(volumes, rel=1e-12)

    @pytest.mark.parametrize("name", FORMATS)
    def test_transform(self, tmp_path, name):
        known = FORMATS[name]
        out = tmp_path / "out.npz"
        known.write(tmp_path / name, SHAPE)
        flags = ["--directions", "6", "--heights", "9", "--connectivity", "1", "--unit", "mm"]
        command = ["transform", str(tmp_path / name), "--out", str(out), *flags, *known.options]
        assert main(command) == 0
        found = read_result(out)
        assert (found.axes, found.units) == ("ZYX", "millimeter")
        expected = []
        for direction in found.directions:
            heights = np.tensordot(direction, PLACES, axes=1)
            below = [(SHAPE != 0) & (heights <= t) for t in found.heights]
            expected.append([euler_number(part, connectivity=1) for part in below])
        assert found.values.tolist() == expected

    @pytest.mark.parametrize("name", [n for n, f in FORMATS.items() if f.channels is not None])
    @pytest.mark.parametrize("command", ["curve", "stack"])
    def test_channels(self, tmp_path, run, name, command):
        known = FORMATS[name]
        known.write(tmp_path / name, CHANNELS)
        options = [*(known.channels or ()), "--roi", "1:4,2:7,:6"]
        rows = run(command, tmp_path / name, *options, "--channel", "1")
        assert curves_in(rows, LEVELS) == [numbers_of(VOLUME[PART])]
        rows = run(command, tmp_path / name, *options)
        assert curves_in(rows, LEVELS) == [numbers_of(channel[PART]) for channel in CHANNELS]
        assert [int(row["c"]) for row in rows] == [0] * 3 + [1] * 3
