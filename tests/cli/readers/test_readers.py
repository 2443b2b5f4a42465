"""Every command reads a file or a folder of slices in the same way, or says the same of it."""

import json
import shutil
from pathlib import Path

import h5py
import imageio.v3 as imageio
import numcodecs
import numpy as np
import pytest
import tifffile
import zarr
from io_helpers import curve_at_levels, curves_in, noise, rows_of, write_hdf5, write_zarr
from skimage.color import rgb2gray


class TestFormats:
    def test_signal(self, curves, tmp_path):
        np.save(tmp_path / "a.npy", noise(50))
        assert curves(tmp_path / "a.npy") == [curve_at_levels(noise(50))]

    @pytest.mark.parametrize("pack", [False, True])
    def test_zarr_in_an_archive(self, curves, tmp_path, pack):
        """The array is at the root of the archive, or in a folder there, as `zip -r` makes it."""
        image = noise(9, 20, 17)
        write_zarr(tmp_path / "made" / "a.zarr", image)
        root = tmp_path / "made" if pack else tmp_path / "made" / "a.zarr"
        shutil.make_archive(str(tmp_path / "a.zarr"), "zip", root)
        assert curves(tmp_path / "a.zarr.zip") == [curve_at_levels(image)]

    def test_a_part(self, curves, tmp_path):
        image = noise(3, 2, 9, 8)
        tifffile.imwrite(tmp_path / "a.tif", image, imagej=True, metadata={"axes": "TCYX"})
        path = tmp_path / "a.tif"
        assert curves(path, "--time", "1", "--channel", "0") == [curve_at_levels(image[1, 0])]
        assert curves(path, "--time", "1:3", "--channel", "1", "--roi", "2:,:5") == [
            curve_at_levels(plane[2:, :5]) for plane in image[1:, 1]
        ]

    @pytest.mark.parametrize("command", ["curve", "stack"])
    def test_gray(self, run, tmp_path, command):
        colours = noise(20, 17, 3)
        imageio.imwrite(tmp_path / "a.png", colours)
        gray = rgb2gray(colours)
        _, text = run(command, tmp_path / "a.png", "--channel", "gray")
        assert curves_in(rows_of(text)) == [curve_at_levels(gray)]

    def test_channel_of_a_picture(self, curves, tmp_path):
        colours = noise(20, 17, 3)
        imageio.imwrite(tmp_path / "a.png", colours)
        assert curves(tmp_path / "a.png", "--channel", "g") == [curve_at_levels(colours[..., 1])]

    def test_pyramids_and_series(self, curves, refused, tmp_path):
        big = noise(32, 32)
        small = noise(16, 16, seed=1)
        other = noise(5, 6, seed=2)
        with tifffile.TiffWriter(tmp_path / "a.svs") as file:
            file.write(big, subifds=1, tile=(16, 16))
            file.write(small, subfiletype=1, tile=(16, 16))
            file.write(other)
        path = tmp_path / "a.svs"
        assert curves(path, "--series", "0") == [curve_at_levels(big)]
        assert curves(path, "--series", "0", "--level", "1") == [curve_at_levels(small)]
        assert curves(path, "--series", "1") == [curve_at_levels(other)]
        assert "holds 2 images, choose one with --series" in refused(path)
        assert "has levels 0 to 1, got level 2" in refused(path, "--series", "0", "--level", "2")


class TestNoImages:
    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("text.png", "not a PNG image"),
            ("a.tif", "a.tif"),
            ("folder.png", "neither a Zarr image nor image files"),
            ("pickled.npy", "Python objects"),
            ("group.zarr", "is no OME-Zarr image; arrays in this group: x"),
        ],
    )
    def test_files_and_folders(self, refused, tmp_path, name, words):
        (tmp_path / "text.png").write_text("no image")
        (tmp_path / "a.tif").write_bytes(b"II*\0 nothing")
        (tmp_path / "folder.png").mkdir()
        np.save(tmp_path / "pickled.npy", np.array([{}], dtype=object), allow_pickle=True)
        zarr.create_group(tmp_path / "group.zarr").create_array("x", shape=(2, 2), dtype="u1")
        assert words in refused(tmp_path / name)

    def test_other_types(self, refused):
        assert "type not supported, got .py; ecc info --help lists" in refused(__file__)


class TestTime:
    @pytest.mark.parametrize("kind", ["imagej", "ome"])
    def test_a_movie_is_a_series_of_curves(self, curves, run, tmp_path, kind):
        movie = noise(4, 9, 8)
        path = tmp_path / "a.ome.tif" if kind == "ome" else tmp_path / "a.tif"
        tifffile.imwrite(path, movie, **{kind: True}, metadata={"axes": "TYX"})
        assert curves(path) == [curve_at_levels(frame) for frame in movie]
        _, text = run("curve", path, "--time", "2:")
        assert [row["t"] for row in rows_of(text)] == ["2"] * 4 + ["3"] * 4
        assert "one for each of 4 along T" in run("info", path)[1]
        assert "choose one with --time" in run("transform", path)[1]
        assert run("transform", path, "--time", "1", "--threshold", "100")[0] == 0


class TestTiff:
    def test_a_missing_file_of_an_image_in_several(self, refused, tmp_path):
        path = write_ome_pair(tmp_path)
        (tmp_path / "b.ome.tif").unlink()
        assert "other files, which are missing" in refused(path)

    def test_parts_in_other_folders_are_not_read(self, refused, tmp_path):
        (tmp_path / "x").mkdir()
        path = write_ome_pair(tmp_path / "x", other="../b.ome.tif")
        assert (tmp_path / "b.ome.tif").exists()
        assert "its parts lie outside of its folder, in ../b.ome.tif" in refused(path)

    def test_strips_of_no_rows(self, refused, tmp_path):
        path = tmp_path / "a.tif"
        tifffile.imwrite(path, noise(40, 30), rowsperstrip=8, compression="zlib")
        with tifffile.TiffFile(path, mode="r+") as file:
            file.pages[0].tags["RowsPerStrip"].overwrite(0)
        assert str(path) in refused(path)


def write_ome_pair(folder: Path, other: str = "b.ome.tif") -> Path:
    """Two planes in two files."""
    ids = {"a.ome.tif": "urn:uuid:a", other: "urn:uuid:b"}
    planes = "".join(
        f'<TiffData FirstZ="{z}" IFD="0" PlaneCount="1"><UUID FileName="{name}">{ids[name]}</UUID>'
        "</TiffData>"
        for z, name in enumerate(ids)
    )
    for name, uuid in ids.items():
        xml = (
            '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" '
            f'UUID="{uuid}"><Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYZCT" '
            'Type="uint8" SizeX="8" SizeY="9" SizeZ="2" SizeC="1" SizeT="1">'
            f'<Channel ID="Channel:0:0" SamplesPerPixel="1"/>{planes}</Pixels></Image></OME>'
        )
        tifffile.imwrite(folder / name, noise(9, 8), description=xml, metadata=None)
    return folder / "a.ome.tif"


class TestFolders:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "slices").mkdir()
        return tmp_path / "slices"

    @pytest.mark.parametrize("suffix", [".tif", ".png", ".npy"])
    def test_natural_order(self, curves, folder, suffix):
        image = np.arange(12)[:, None, None] * 20 + noise(12, 5, 6) // 16
        image = image.astype(np.uint8)
        for i, plane in enumerate(image, 1):
            write = np.save if suffix == ".npy" else imageio.imwrite
            write(folder / f"slice{i}{suffix}", plane)
        (folder / "Thumbs.db").write_text("")
        (folder / f"._slice1{suffix}").write_text("")
        assert curves(folder) == [curve_at_levels(image)]
        by_name = sorted(range(12), key=lambda i: str(i + 1))
        assert curve_at_levels(image) != curve_at_levels(image[by_name])

    def test_an_order_that_is_ambiguous(self, refused, folder):
        for name in ("a1.tif", "a01.tif"):
            tifffile.imwrite(folder / name, noise(5, 6))
        assert "the order of" in refused(folder)

    @pytest.mark.parametrize(
        ("other", "words"),
        [
            (noise(32, 128, dtype="u2"), "b2.tif has shape (32, 128), b1.tif (64, 64)"),
            (noise(64, 64, dtype="i2"), "b2.tif has dtype int16, b1.tif uint16"),
            (noise(64, 32, dtype="f4"), "b2.tif has shape (64, 32), b1.tif (64, 64)"),
            (noise(64, 64, 3, dtype="u2"), "b2.tif has shape (64, 64, 3), b1.tif (64, 64)"),
        ],
    )
    def test_a_file_that_differs_is_named(self, refused, folder, other, words):
        for i in range(3):
            tifffile.imwrite(folder / f"b{i + 1}.tif", noise(64, 64, dtype="u2"))
        photometric = "rgb" if other.ndim == 3 else "minisblack"
        tifffile.imwrite(folder / "b2.tif", other, photometric=photometric)
        assert words in refused(folder)

    def test_several_formats(self, refused, folder):
        tifffile.imwrite(folder / "1.tif", noise(5, 6))
        imageio.imwrite(folder / "2.png", noise(5, 6))
        assert "holds files of several formats" in refused(folder)

    def test_a_truncated_slice_is_named(self, refused, folder):
        for i in range(3):
            tifffile.imwrite(folder / f"{i}.tif", noise(40, 50))
        (folder / "1.tif").write_bytes((folder / "1.tif").read_bytes()[:900])
        assert str(folder / "1.tif") in refused(folder)


class TestForeignCode:
    @pytest.mark.parametrize("where", ["filters", "compressor"])
    def test_zarr_arrays_are_not_unpickled(self, refused, tmp_path, where):
        class Trap:
            def __reduce__(self) -> tuple[object, ...]:
                return Path.touch, (tmp_path / "loaded",)

        path = write_zarr(tmp_path / "a.zarr", noise(4, 4), zarr_format=2, compressors=None)
        codec = {"id": "pickle", "protocol": 5}
        described = json.loads((path / ".zarray").read_text())
        described[where] = [codec] if where == "filters" else codec
        (path / ".zarray").write_text(json.dumps(described))
        trap = np.empty(1, object)
        trap[0] = Trap()
        (path / "0.0").write_bytes(numcodecs.Pickle().encode(trap))
        assert "pickled Python objects, which are never loaded" in refused(path)
        assert not (tmp_path / "loaded").exists()

    @pytest.mark.parametrize("name", ["a.h5", "b.h5"])
    def test_hdf5_values_in_other_files(self, refused, tmp_path, name):
        noise(4, 5).tofile(tmp_path / "secret.bin")
        write_hdf5(tmp_path / "secret.h5", noise(4, 5))
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file.create_dataset("raw", (4, 5), "u1", external=str(tmp_path / "secret.bin"))
        layout = h5py.VirtualLayout((4, 5), "u1")
        layout[...] = h5py.VirtualSource(tmp_path / "secret.h5", "raw", (4, 5))
        with h5py.File(tmp_path / "b.h5", "w") as file:
            file.create_virtual_dataset("raw", layout)
        message = refused(tmp_path / name)
        assert "the values of raw lie in other files, which are not read" in message

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_a_folder_in_the_place_of_a_chunk(self, refused, tmp_path, zarr_format):
        write_zarr(tmp_path / "a.zarr", noise(9, 9), zarr_format=zarr_format)
        chunk = tmp_path / "a.zarr" / ("0.0" if zarr_format == 2 else "c/0/0")
        chunk.unlink()
        chunk.mkdir()
        assert f"{chunk} is a folder" in refused(tmp_path / "a.zarr")

    def test_zarr_chunks_of_size_0(self, refused, tmp_path):
        write_zarr(tmp_path / "a.zarr", noise(9, 9))
        file = tmp_path / "a.zarr" / "zarr.json"
        described = json.loads(file.read_text())
        described["chunk_grid"]["configuration"]["chunk_shape"] = [0, 8]
        file.write_text(json.dumps(described))
        assert str(tmp_path / "a.zarr") in refused(tmp_path / "a.zarr")
