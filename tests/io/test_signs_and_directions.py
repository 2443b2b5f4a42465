"""Signs of bytes, of directions and of spacings, shear, and the place of OME-Zarr."""

import json
from pathlib import Path
from typing import Any

import mrcfile
import numpy as np
import pytest
import SimpleITK
import zarr
from io_helpers import assert_refused, noise, write_mrc, write_nrrd, write_ome_zarr

from ecc_core.cli import main
from ecc_core.io import open_image, read_image

IMOD = 1146047817


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("flags", "dtype"), [(0, "u1"), (1, "i1"), (4, "u1")])
def test_bytes_of_imod(tmp_path, order, flags, dtype):
    """Bit 0 of imodFlags is set where bytes have a sign; mrcfile always gives them one."""
    path = tmp_path / "a.mrc"
    stored = noise(2, 3, 4).view("i1")
    with mrcfile.new(path) as file:
        file.set_data(stored)
    content = bytearray(path.read_bytes())
    if order == ">":
        header = np.frombuffer(content[:1024], mrcfile.dtypes.HEADER_DTYPE).byteswap()
        content[:1024] = header.tobytes()
        content[212:214] = b"\x11\x11"
    content[152:160] = np.array([IMOD, flags], f"{order}i4").tobytes()
    path.write_bytes(content)
    read = read_image(path)
    assert read.dtype == dtype
    np.testing.assert_array_equal(read, stored.view(dtype))


def test_bytes_of_others_have_a_sign(tmp_path):
    with mrcfile.new(tmp_path / "a.mrc") as file:
        file.set_data(noise(2, 3, 4).view("i1"))
    assert open_image(tmp_path / "a.mrc").dtype == np.int8
    write_mrc(tmp_path / "b.mrc", noise(2, 3, 4))
    assert open_image(tmp_path / "b.mrc").dtype == np.int16


def test_negative_directions(tmp_path):
    """Lengths are positive, and the place keeps the directions."""
    directions = np.diag([-3.0, 2, -1])
    origin = [1.0, 2, 3]
    header = {"space": "left-posterior-superior", "space_directions": directions}
    write_nrrd(tmp_path / "a.nrrd", noise(2, 3, 4), **header, space_origin=origin)
    opened = open_image(tmp_path / "a.nrrd")
    assert (opened.spacing, opened.notes) == ({"Z": 1.0, "Y": 2.0, "X": 3.0}, ())
    assert opened.affine is not None
    # X points to the right of a patient.
    np.testing.assert_array_equal(opened.affine.steps["X"], [3, 0, 0])
    write_nrrd(tmp_path / "b.nrrd", noise(2, 3, 4), spacings=[-3.0, 2, 1])
    assert open_image(tmp_path / "b.nrrd").spacing == {"Z": 1.0, "Y": 2.0, "X": 3.0}


def test_sheared_directions_are_said(tmp_path):
    """The volume of a point is the determinant: here 6, where the spacing gives 6.7."""
    directions = np.array([[3.0, 0, 0], [1, 2, 0], [0, 0, 1]])
    header = {"space": "left-posterior-superior", "space_directions": directions}
    write_nrrd(tmp_path / "a.nrrd", noise(2, 3, 4), **header, space_origin=[0.0, 0, 0])
    opened = open_image(tmp_path / "a.nrrd")
    ratio = abs(np.linalg.det(directions)) / np.prod([*opened.spacing.values()])
    (note,) = opened.notes
    assert note.startswith("its axes are sheared, and lengths take them as perpendicular")
    assert note.endswith(f"a true size is {ratio:.4g} of that by the spacing")


class TestMetaImage:
    HEADER = "ObjectType = Image\nNDims = 3\nDimSize = 4 3 2\nElementType = MET_USHORT\n"

    @pytest.fixture
    def image(self, tmp_path: Path) -> np.ndarray:
        values = noise(2, 3, 4, dtype="u2")
        for number, plane in enumerate(values):
            (tmp_path / f"s{number + 1:02}.raw").write_bytes(plane.astype("<u2").tobytes())
        (tmp_path / "big.raw").write_bytes(values.astype(">u2").tobytes())
        return values

    @pytest.mark.parametrize(
        "lines",
        [
            "ElementDataFile = LIST\ns01.raw\ns02.raw\n",
            "ElementDataFile = LIST 2\ns01.raw\ns02.raw\n",
            "ElementDataFile = s%02d.raw 1 2 1\n",
            "BinaryDataByteOrderMSB = true\nElementDataFile = big.raw\n",
            "ElementByteOrderMSB = T\nElementDataFile = big.raw\n",
            "BinaryData = 1\nElementByteOrderMSB = 1\nElementDataFile = big.raw\n",
            "ElementSize = 0.5 0.25 2\nElementDataFile = LIST\ns01.raw\ns02.raw\n",
        ],
    )
    def test_as_itk_reads_it(self, tmp_path, image, lines):
        path = tmp_path / "a.mhd"
        path.write_text(self.HEADER + lines)
        expected = SimpleITK.ReadImage(str(path))
        opened = open_image(path)
        np.testing.assert_array_equal(opened.read(), SimpleITK.GetArrayFromImage(expected))
        np.testing.assert_array_equal(opened[1:2, 1:3], image[1:2, 1:3])
        steps = opened.spacing or dict.fromkeys("ZYX", 1.0)
        assert tuple(steps[axis] for axis in "XYZ") == expected.GetSpacing()

    @pytest.mark.parametrize(
        ("lines", "words"),
        [
            ("ElementDataFile = LIST\ns01.raw\n", "it names 1 files for 2 slices"),
            ("ElementDataFile = LIST\ns01.raw\n../s02.raw\n", "outside of its folder"),
            ("ElementDataFile = LIST\ns01.raw\ns09.raw\n", "s09.raw, which is missing"),
            ("ElementDataFile = s%s.raw 1 2 1\n", "an unknown pattern"),
            ("ElementDataFile = s%02d.raw 1 2 0\n", "the step 0"),
        ],
    )
    def test_bad_lists(self, tmp_path, image, lines, words):
        (tmp_path / "a.mhd").write_text(self.HEADER + lines)
        assert_refused(tmp_path / "a.mhd", words)


class TestOmeZarr:
    def written(self, path: Path, axes: list[dict[str, str]], *steps: dict[str, Any]) -> Path:
        group = zarr.create_group(path, zarr_format=2)
        shape = tuple(range(3, 3 + len(axes)))
        group.create_array("0", shape=shape, dtype="u1")
        datasets = [{"path": "0", "coordinateTransformations": list(steps)}]
        group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": datasets}]
        return path

    @pytest.mark.parametrize(
        ("names", "axes"),
        [
            (["depth", "height", "width"], "ZYX"),
            (["dim_0", "dim_1", "dim_2"], "ZYX"),
            (["axial", "sagittal"], "YX"),
            (["x", "y", "z"], "ZYX"),  # They become our order.
        ],
    )
    def test_axes_by_type(self, tmp_path, names, axes):
        """Names are free words: those of space are Z, Y and X by name, or by their order."""
        described = [{"name": name, "type": "space"} for name in names]
        described = [{"name": "colour", "type": "channel"}, *described]
        opened = open_image(self.written(tmp_path / "a.zarr", described))
        assert opened.axes == "C" + axes
        assert {axis.name for axis in opened.description.axes} == {"colour", *names}

    def test_place(self, tmp_path):
        axes = [{"name": a, "type": "space", "unit": "micrometer"} for a in "yx"]
        scale = {"type": "scale", "scale": [0.5, 2]}
        shift = {"type": "translation", "translation": [10, 20]}
        opened = open_image(self.written(tmp_path / "a.zarr", axes, scale, shift))
        assert opened.spacing == {"Y": 0.5, "X": 2.0}
        assert opened.affine is not None
        np.testing.assert_array_equal(opened.affine.origin, [20, 10, 0])
        np.testing.assert_array_equal(opened.affine.steps["Y"], [0, 0.5, 0])

    def test_place_of_all_levels(self, tmp_path):
        """A transformation of the image comes after those of its resolution."""
        axes = [{"name": a, "type": "space"} for a in "yx"]
        shift = {"type": "translation", "translation": [10, 20]}
        path = self.written(tmp_path / "a.zarr", axes, {"type": "scale", "scale": [1, 2]}, shift)
        group = zarr.open_group(path)
        (image,) = group.attrs["multiscales"]
        image["coordinateTransformations"] = [{"type": "scale", "scale": [3, 0.5]}]
        group.attrs["multiscales"] = [image]
        opened = open_image(path)
        assert opened.spacing == {"Y": 3.0, "X": 1.0}
        assert opened.affine is not None
        np.testing.assert_array_equal(opened.affine.origin, [10, 30, 0])

    def test_coordinate_systems(self, tmp_path):
        """In version 0.6, the first system is that of the image, and a message names the others."""
        group = zarr.create_group(tmp_path / "a.zarr", zarr_format=3)
        group.create_array("0", shape=(4, 5), dtype="u1")
        axes = [{"name": a, "type": "space", "unit": "micrometer"} for a in "yx"]
        scale = {"type": "scale", "scale": [0.5, 2], "input": "0", "output": "own"}
        systems = [{"name": "own", "axes": axes}, {"name": "world", "axes": axes}]
        image = {
            "coordinateSystems": systems,
            "datasets": [{"path": "0", "coordinateTransformations": [scale]}],
        }
        group.attrs["ome"] = {"version": "0.6", "multiscales": [image]}
        opened = open_image(tmp_path / "a.zarr")
        assert (opened.axes, opened.spacing) == ("YX", {"Y": 0.5, "X": 2.0})
        (note,) = opened.notes
        assert note.startswith("only its first coordinate system is read")

    def test_a_rotation_is_said(self, tmp_path):
        axes = [{"name": a, "type": "space"} for a in "yx"]
        turn = {"type": "rotation", "rotation": [[0, 1], [1, 0]]}
        opened = open_image(self.written(tmp_path / "a.zarr", axes, turn))
        assert (opened.spacing, opened.affine) == ({}, None)
        assert opened.notes == ("its coordinate transformation of type rotation is not read",)

    def test_a_plate_with_a_missing_well(self, tmp_path, capsys):
        root = zarr.create_group(tmp_path / "p.zarr", zarr_format=2)
        root.attrs["plate"] = {"wells": [{"path": "A/1"}, {"path": "A/2"}]}
        well = zarr.create_group(tmp_path / "p.zarr" / "A" / "1", zarr_format=2)
        well.attrs["well"] = {"images": [{"path": "0"}]}
        write_ome_zarr(tmp_path / "p.zarr" / "A" / "1" / "0", [noise(5, 6)], "yx")
        path = str(tmp_path / "p.zarr")
        out = tmp_path / "t.json"
        assert main(["batch", path, "--thresholds", "9,99", "--out", str(out)]) == 1
        assert "p.zarr: its well A/2 is missing" in capsys.readouterr().err
        assert json.loads(out.read_text())["columns"]["well"] == ["A1"]
        main(["info", path])
        assert "  missing well A/2" in capsys.readouterr().out
