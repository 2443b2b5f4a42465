"""Images and labels that are written, as the reference library of each format reads them."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import dask.array as da
import nibabel
import numpy as np
import pytest
import SimpleITK
import tifffile
import zarr
from io_helpers import noise, write_nifti, write_ome_zarr

import ecc_core as ecc
from ecc_core.io import open_image, read_image, write_image

STEPS = (2.0, 0.5, 0.25)
ORIGIN = (8.0, -5.0, 2.5)
VOLUME = noise(5, 70, 9, dtype="i4") % 1000
SUFFIXES = (".ome.tif", ".tif", ".zarr", ".nii", ".nii.gz", ".mha")


class Found(NamedTuple):
    """What a library reads, by axes in the order of the array; lengths in micrometers."""

    values: np.ndarray
    spacing: tuple[float, ...]
    origin: tuple[float, ...]


def with_tifffile(path: Path) -> Found:
    with tifffile.TiffFile(path) as file:
        (series,) = file.series
        assert series.kind == "ome"
        values = series.asarray()
        axes = series.axes
        root = ET.fromstring(file.ome_metadata)
    (pixels,) = root.iterfind(".//{*}Pixels")
    planes = list(root.iterfind(".//{*}Plane"))
    assert {pixels.get(f"PhysicalSize{axis}Unit") for axis in axes} == {"µm"}
    assert {plane.get(f"Position{axis}Unit") for plane in planes for axis in axes} == {"µm"}
    steps = [pixels.get(f"PhysicalSize{axis}") for axis in axes]
    spacing = tuple(map(float, steps))
    positions = [[plane.get(f"Position{axis}") for axis in axes] for plane in planes]
    places = np.array(positions, float).tolist()
    np.testing.assert_allclose(np.diff([place[0] for place in places]), STEPS[0])
    return Found(values, spacing, tuple(places[0]))


def with_zarr(path: Path) -> Found:
    """Read an image by the words of the specification of OME-Zarr 0.5."""
    ome = zarr.open_group(path, mode="r", zarr_format=3).attrs["ome"]
    assert ome["version"] == "0.5"
    (image,) = ome["multiscales"]
    assert [axis["type"] for axis in image["axes"]] == ["space"] * len(image["axes"])
    assert {axis["unit"] for axis in image["axes"]} == {"micrometer"}
    (level,) = image["datasets"]
    scale, translation = level["coordinateTransformations"]
    assert (scale["type"], translation["type"]) == ("scale", "translation")
    array = zarr.open_array(path / level["path"], mode="r")
    assert list(array.metadata.dimension_names) == [axis["name"] for axis in image["axes"]]
    assert array.shards is not None
    return Found(array[...], tuple(scale["scale"]), tuple(translation["translation"]))


def with_nibabel(path: Path) -> Found:
    image = nibabel.load(path)
    assert image.header.get_xyzt_units()[0] == "micron"
    np.testing.assert_allclose(image.get_qform(), image.get_sform(), atol=1e-5)
    spacing = np.diag(image.affine)[2::-1]
    origin = image.affine[2::-1, 3]
    return Found(np.asanyarray(image.dataobj).T, tuple(spacing.tolist()), tuple(origin.tolist()))


def with_simpleitk(path: Path) -> Found:
    image = SimpleITK.ReadImage(path)
    identity = np.eye(image.GetDimension())
    assert image.GetDirection() == tuple(identity.ravel())
    place = image.GetSpacing()[::-1], image.GetOrigin()[::-1]
    return Found(SimpleITK.GetArrayFromImage(image), *place)


READERS: dict[str, Callable[[Path], Found]] = {
    ".ome.tif": with_tifffile,
    ".tif": with_tifffile,
    ".zarr": with_zarr,
    ".nii": with_nibabel,
    ".nii.gz": with_nibabel,
    ".mha": with_simpleitk,
}


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", ">i4", "f4", "f8"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_reference_library(tmp_path, suffix, dtype):
    """Values, data type, distances, unit and place of a volume."""
    path = tmp_path / f"a{suffix}"
    values = VOLUME.astype(dtype)
    write_image(path, values, spacing=STEPS, unit="um", origin=ORIGIN)
    found = READERS[suffix](path)
    np.testing.assert_array_equal(found.values, values)
    assert found.values.dtype == values.dtype.newbyteorder("=")
    assert found.spacing == pytest.approx(STEPS, rel=1e-6)
    assert found.origin == pytest.approx(ORIGIN, rel=1e-6)


@pytest.mark.parametrize("shape", [(7, 9), (70, 9, 5)])
@pytest.mark.parametrize("suffix", [*SUFFIXES, ".npy"])
def test_own_reader(tmp_path, suffix, shape):
    values = noise(*shape)
    steps = STEPS[-len(shape) :]
    write_image(tmp_path / f"a{suffix}", values, spacing=steps, unit="um", labels=True)
    image = open_image(tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(image.read(), values)
    assert image.axes == "ZYX"[-len(shape) :]
    if suffix != ".npy":
        assert image.spacing == pytest.approx(dict(zip(image.axes, steps, strict=True)))
        assert image.unit == "micrometer"


@pytest.mark.parametrize(
    ("suffix", "unit", "kept"),
    [
        (".nii", "nm", (0.5, "micrometer")),
        (".nii", "mm", (500, "millimeter")),
        (".mha", "nm", (5e-4, "millimeter")),
        (".mha", "um", (500, "micrometer")),
        (".ome.tif", "angstrom", (500, "angstrom")),
        (".zarr", "angstrom", (500, "angstrom")),
        (".nii", "", (500, "")),
        (".zarr", "", (500, "")),
        (".mha", "", (500, "")),
        (".ome.tif", "", (500, "")),
    ],
)
def test_units_that_a_format_does_not_know(tmp_path, suffix, unit, kept):
    """Lengths are converted; a unit that is unknown stays unknown."""
    write_image(tmp_path / f"a{suffix}", VOLUME, spacing=500, unit=unit)
    image = open_image(tmp_path / f"a{suffix}")
    assert (image.spacing["X"], image.unit) == (pytest.approx(kept[0]), kept[1])


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz", ".mha"])
def test_orientation_of_another_image(tmp_path, suffix):
    """A mirrored and rotated image: nibabel's affine, and ITK's place of every corner."""
    angle = np.cos(0.5), np.sin(0.5)
    affine = np.array([[-angle[0], 2 * angle[1], 0, 9], [angle[1], 2 * angle[0], 0, 8]])
    affine = np.vstack([affine, [[0, 0, 3, -7], [0, 0, 0, 1]]])
    image = write_nifti(tmp_path / "image.nii", VOLUME, affine, "mm")
    write_image(tmp_path / f"c{suffix}", VOLUME, like=open_image(image))
    found = open_image(tmp_path / f"c{suffix}").affine
    expected = open_image(image).affine
    np.testing.assert_allclose(found.origin, expected.origin, atol=1e-5)
    steps = [found.steps[axis] for axis in "XYZ"]
    np.testing.assert_allclose(steps, [expected.steps[axis] for axis in "XYZ"], atol=1e-6)
    ours = SimpleITK.ReadImage(tmp_path / f"c{suffix}")
    places = list(map(ours.TransformIndexToPhysicalPoint, np.ndindex(2, 2, 2)))
    theirs = SimpleITK.ReadImage(image)
    known = list(map(theirs.TransformIndexToPhysicalPoint, np.ndindex(2, 2, 2)))
    np.testing.assert_allclose(places, known, atol=1e-5)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_dask_array(tmp_path, suffix):
    """Coefficients of a volume that is computed in chunks that are no shards."""
    image = noise(70, 40, 300)
    values = ecc.euler_coefficients(da.from_array(image, chunks=(17, 40, 90)))
    write_image(tmp_path / f"c{suffix}", values, spacing=2.0, unit="mm")
    np.testing.assert_array_equal(
        read_image(tmp_path / f"c{suffix}"), ecc.euler_coefficients(image)
    )


def test_shards_are_written_whole(tmp_path, monkeypatch):
    """No shard is read or written twice, whatever the chunks of a dask array."""
    boxes = []
    set_item = zarr.Array.__setitem__

    def recorded(self, box, values):
        boxes.append((box, self.shards, self.shape))
        set_item(self, box, values)

    monkeypatch.setattr(zarr.Array, "__setitem__", recorded)
    write_image(tmp_path / "c.zarr", da.zeros((300, 70, 520), np.uint8, chunks=(100, 70, 77)))
    assert len(boxes) == 2 * 1 * 3
    written = [
        (part.start, part.stop, side, n)
        for box, shards, shape in boxes
        for part, side, n in zip(box, shards, shape, strict=True)
    ]
    assert all(start % side == 0 for start, _, side, _ in written)
    assert all(stop in (start + side, n) for start, stop, side, n in written)


def test_labels_metadata(tmp_path):
    """A group of labels by itself, and in an image: the image lists it."""
    labels = VOLUME % 3
    write_image(tmp_path / "l.zarr", labels, labels=True)
    write_image(tmp_path / "i.zarr", labels)
    groups = [zarr.open_group(tmp_path / f"{name}.zarr", mode="r") for name in "li"]
    assert ["image-label" in group.attrs["ome"] for group in groups] == [True, False]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_flipped_bit_of_a_zarr_image_is_found(tmp_path, zarr_format):
    image = write_ome_zarr(tmp_path / "i.zarr", [VOLUME], "ZYX", [STEPS], zarr_format)
    labels = image / "labels" / "a"
    write_image(labels, VOLUME, labels=True)
    known = zarr.open_array(labels / "0", mode="r")[:]
    chunk = max((file for file in labels.rglob("*") if file.is_file()), key=os.path.getsize)
    stored = chunk.read_bytes()
    for place in range(0, len(stored), max(1, len(stored) // 97)):
        damaged = bytearray(stored)
        damaged[place] ^= 4
        chunk.write_bytes(damaged)
        try:
            found = zarr.open_array(labels / "0", mode="r")[:]
        except (RuntimeError, ValueError):
            continue
        np.testing.assert_array_equal(found, known)  # The bit has no meaning.


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_labels_in_an_image(tmp_path, zarr_format):
    """Labels are written in the version of OME-Zarr that the image has."""
    image = write_ome_zarr(tmp_path / "i.zarr", [VOLUME], "ZYX", [STEPS], zarr_format)
    for name, values in (("a", VOLUME % 3), ("b", VOLUME % 2), ("a", VOLUME % 5)):
        write_image(f"{image}/labels/{name}", values, like=open_image(image), labels=True)
    np.testing.assert_array_equal(read_image(f"{image}/labels/a"), VOLUME % 5)
    np.testing.assert_array_equal(read_image(f"{image}/labels/b"), VOLUME % 2)
    groups = [zarr.open_group(image, path=p, mode="r") for p in ("labels", "labels/a")]
    listed, own = (dict(group.attrs) for group in groups)
    assert {group.metadata.zarr_format for group in groups} == {zarr_format}
    if zarr_format == 3:
        assert {about["ome"]["version"] for about in (listed, own)} == {"0.5"}
        listed = listed["ome"]
        own = own["ome"]
    else:
        assert own["multiscales"][0]["version"] == "0.4"
    assert listed["labels"] == ["a", "b"]
    assert own["image-label"]["source"]["image"] == "../../"
    assert json.dumps(own["multiscales"][0]["axes"]).count("nanometer") == 3


class TestRefusals:
    def test_another_zarr_image_is_not_replaced(self, tmp_path):
        zarr.create_group(tmp_path / "a.zarr")
        with pytest.raises(FileExistsError, match="was not written by this program"):
            write_image(tmp_path / "a.zarr", VOLUME)

    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_nothing_is_left_of_a_failure(self, tmp_path, suffix):
        def fail(_: np.ndarray) -> np.ndarray:
            raise RuntimeError("failure")

        path = tmp_path / f"a{suffix}"
        write_image(path, VOLUME)
        lazy = da.from_array(VOLUME, chunks=(2, 70, 9)).map_blocks(fail, meta=VOLUME[:0])
        with pytest.raises(RuntimeError, match="failure"):
            write_image(path, lazy)
        np.testing.assert_array_equal(read_image(path), VOLUME)
        assert [p.name for p in tmp_path.iterdir()] == [path.name]

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"spacing": (1, 2)}, "spacing"),
            ({"spacing": 0}, "`spacing` must be positive and finite, got 0"),
            ({"origin": (1, np.nan, 2)}, "`origin` must have 3 finite numbers"),
            ({"axes": "XYZ"}, "`axes` must name 3 of Z, Y and X, in this order, got 'XYZ'"),
        ],
    )
    def test_arguments(self, tmp_path, given: dict[str, Any], words):
        with pytest.raises(ValueError, match=words):
            write_image(tmp_path / "a.tif", VOLUME, **given)

    def test_types_and_names(self, tmp_path):
        with pytest.raises(TypeError, match=r"a\.tif: `values` must be one of .*, got int64"):
            write_image(tmp_path / "a.tif", VOLUME.astype(np.int64))
        with pytest.raises(ValueError, match=r"a\.png: type not supported, must be one of"):
            write_image(tmp_path / "a.png", VOLUME)
        np.save(tmp_path / "a.npy", VOLUME[1:])
        with pytest.raises(ValueError, match="`values` must have the shape of `like`"):
            write_image(tmp_path / "a.tif", VOLUME, like=open_image(tmp_path / "a.npy"))
