"""A damaged file gives the right numbers, or one line and an exit code: nothing else.

Of formats without checksums a flipped bit may change a pixel, or the description of the pixels.
Then the numbers must be those of the array that the library of the format reads.
"""

import csv
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import imageio.v3 as imageio
import mrcfile
import nibabel
import nrrd
import numpy as np
import pydicom
import pytest
import tifffile
import zarr
from io_helpers import (
    LEVELS,
    curve_at_levels,
    write_czi,
    write_dicom,
    write_hdf5,
    write_lif,
    write_mrc,
    write_nd2,
    write_nifti,
    write_nrrd,
    write_pages,
    write_zarr,
)
from PIL import Image
from pylibCZIrw import czi

from ecc_core.cli import main

CUTS, FLIPS = 50, 50
COMMANDS = ("curve", "stack", "batch")

Array = np.ndarray
Curve = list[list[int]]


def read_hdf5(path: Path) -> Array:
    with h5py.File(path) as file:
        return file["raw"][()]


def read_pillow(path: Path) -> Array:
    with Image.open(path) as image:
        return np.asarray(image)


def read_nifti(path: Path) -> Array:
    return np.asanyarray(nibabel.load(path).dataobj)


def read_nrrd(path: Path) -> Array:
    return nrrd.read(str(path), index_order="C")[0]


def read_mrc(path: Path) -> Array:
    with mrcfile.open(path) as file:
        return file.data


def read_dicom(path: Path) -> Array:
    return pydicom.dcmread(path).pixel_array


def read_czi(path: Path) -> Array:
    with czi.open_czi(str(path)) as file:
        planes = range(file.total_bounding_box["Z"][1])
        return np.stack([file.read(plane={"Z": z})[..., 0] for z in planes])


def read_lif(path: Path) -> Array:
    return pytest.importorskip("liffile").imread(path)


def read_nd2(path: Path) -> Array:
    pytest.importorskip("bioio_nd2")
    return pytest.importorskip("nd2").imread(path)


class Format(NamedTuple):
    ndim: int
    write: Callable[[Path, Array], None]
    read: Callable[[Path], Array] | None = None
    """The library of the format; None where checksums cover all that matters."""


def tiff(ndim: int = 2, **options: Any) -> Format:
    return Format(ndim, lambda p, i: tifffile.imwrite(p, i, **options), tifffile.imread)


GZIP = {"chunks": (4, 4, 4), "compression": "gzip", "fletcher32": True}
FORMATS = {
    "a.png": Format(2, imageio.imwrite),
    "a.jpg": Format(2, lambda p, i: Image.fromarray(i).save(p), read_pillow),
    "raw.tif": tiff(),
    "zlib.tif": tiff(compression="zlib", rowsperstrip=8),
    "lzw.tif": tiff(compression="lzw", rowsperstrip=8),
    "tiles.tif": tiff(tile=(16, 16)),
    "imagej.tif": tiff(3, imagej=True, metadata={"axes": "ZYX"}),
    "pages.tif": Format(3, write_pages, tifffile.imread),
    "a.ome.tif": tiff(3, metadata={"axes": "ZYX"}, compression="zlib"),
    "a.npy": Format(3, np.save, np.load),
    "a.npz": Format(3, np.savez),
    "compressed.npz": Format(3, np.savez_compressed),
    "a.h5": Format(3, write_hdf5, read_hdf5),
    "gzip.h5": Format(3, lambda p, i: write_hdf5(p, i, **GZIP), read_hdf5),
    "a.nii": Format(3, write_nifti, read_nifti),
    "a.nii.gz": Format(3, write_nifti),
    "a.nrrd": Format(3, write_nrrd, read_nrrd),
    "a.mrc": Format(3, write_mrc, read_mrc),
    "a.dcm": Format(3, write_dicom, read_dicom),
    "a.czi": Format(3, write_czi, read_czi),
    "a.lif": Format(3, lambda p, i: write_lif(p, [i], "ZYX", {}), read_lif),
    "a.nd2": Format(3, lambda p, i: write_nd2(p, i[:, None]), read_nd2),
    "a.zarr.zip": Format(3, write_zarr),
    "2.zarr": Format(3, lambda p, i: write_zarr(p, i, zarr_format=2), lambda p: zarr.open(p)[...]),
    "3.zarr": Format(3, lambda p, i: write_zarr(p, i, zarr_format=3), lambda p: zarr.open(p)[...]),
}


class Disk:
    """The files of an image, whose bytes can be changed and brought back."""

    def __init__(self, path: Path) -> None:
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        self.files = {file: file.read_bytes() for file in found if file.is_file()}
        self.size = sum(map(len, self.files.values()))

    def _at(self, position: int) -> tuple[Path, int]:
        for file, content in self.files.items():
            if position < len(content):
                return file, position
            position -= len(content)
        raise IndexError

    def damages(self) -> Iterator[str]:
        """Damage the files in one way after the other; yields what was done."""
        rng = np.random.default_rng(0)
        for position in np.linspace(0, self.size - 1, CUTS).astype(int).tolist():
            file, at = self._at(position)
            yield from self._changed(file, self.files[file][:at], f"cut {file.name} at {at}")
        for bit in rng.integers(0, 8 * self.size, FLIPS).tolist():
            file, at = self._at(bit // 8)
            content = bytearray(self.files[file])
            content[at] ^= 1 << bit % 8
            yield from self._changed(file, bytes(content), f"bit {bit % 8} of {file.name}[{at}]")

    def _changed(self, file: Path, content: bytes, name: str) -> Iterator[str]:
        file.unlink()  # a mapped file must not shrink
        file.write_bytes(content)
        yield name
        file.unlink()
        file.write_bytes(self.files[file])


def outcome(command: str, path: Path, out: Path, capsys: Any) -> Curve | str:
    """The curves that a command writes, or its line."""
    thresholds = ",".join(map(str, LEVELS))
    code = main([command, str(path), "--out", str(out), "--thresholds", thresholds])
    _, line = capsys.readouterr()
    if code:
        assert code == (1 if command == "batch" else 2), line
        assert not out.exists()
        assert line.count("\n") == 1, line
        return str(line)
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    out.unlink()
    if command == "batch":
        return [[int(row[str(level)]) for level in LEVELS] for row in rows]
    flat = [int(row["euler_number"]) for row in rows]
    return [flat[i : i + len(LEVELS)] for i in range(0, len(flat), len(LEVELS))]


@pytest.mark.parametrize("name", FORMATS)
def test_damage(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    given, path, out = FORMATS[name], tmp_path / name, tmp_path / "out.csv"
    shape = (24, 20) if given.ndim == 2 else (5, 12, 10)
    image = np.random.default_rng(0).integers(0, 200, shape, dtype=np.uint8)
    given.write(path, image)
    expected = [curve_at_levels(image if given.read is None else given.read(path))]
    assert outcome("curve", path, out, capsys) == expected
    refused = 0
    disk = Disk(path)
    for number, damage in enumerate(disk.damages()):
        found = outcome(COMMANDS[number % 3], path, out, capsys)
        if isinstance(found, str):
            refused += 1
        elif found != expected:
            assert given.read is not None, damage
            assert number >= CUTS, damage
            assert found == [curve_at_levels(given.read(path))], damage
    assert refused > CUTS // 2
