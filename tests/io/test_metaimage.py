"""MetaImage files: values and places are those of SimpleITK, which also writes them."""

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import SimpleITK
from io_helpers import assert_reads, assert_refused, noise, write_itk

from ecc_core.io import open_image, read_file

FILES = [("a.mha", False), ("a.mha", True), ("a.mhd", False), ("a.mhd", True)]


@pytest.mark.parametrize(("name", "compressed"), FILES)
class TestFiles:
    @pytest.mark.parametrize("shape", [(20, 17), (5, 6, 7)])
    @pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"])
    def test_values(self, tmp_path, name, compressed, shape, dtype):
        image = noise(*shape, dtype=dtype)
        write_itk(tmp_path / name, image, compressed=compressed)
        assert_reads(tmp_path / name, image)
        assert open_image(tmp_path / name).axes == "ZYX"[3 - len(shape) :]

    def test_spacing_and_places(self, tmp_path, name, compressed):
        affine = np.array([[0, 0.25, 0, 10], [0, 0, 2, -20], [0.5, 0, 0, 30], [0, 0, 0, 1]])
        write_itk(tmp_path / name, noise(5, 6, 7), affine, compressed=compressed)
        image = SimpleITK.ReadImage(str(tmp_path / name))
        opened = open_image(tmp_path / name)
        assert opened.spacing == {"Z": 2.0, "Y": 0.25, "X": 0.5}
        assert opened.unit == "millimeter"
        corners = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (3, 4, 2))
        there = [image.TransformIndexToPhysicalPoint(corner) for corner in corners]
        named = [dict(zip("XYZ", corner, strict=True)) for corner in corners]
        here = list(map(opened.affine.moved, named))
        origins = np.array([moved.origin for moved in here])
        np.testing.assert_allclose(origins, np.array(there) * (-1, -1, 1), rtol=1e-12)

    @pytest.mark.parametrize(("dtype", "axes"), [("u1", "ZYXS"), ("f4", "CZYX")])
    def test_channels(self, tmp_path, name, compressed, dtype, axes):
        image = noise(5, 6, 7, 3, dtype=dtype)
        write_itk(tmp_path / name, image, compressed=compressed, isVector=True)
        assert read_file(tmp_path / name).axes == axes
        assert_reads(tmp_path / name, image[..., 1], channel=1)

    def test_four_axes(self, tmp_path, name, compressed):
        image = noise(2, 5, 6, 7)
        write_itk(tmp_path / name, image, compressed=compressed, isVector=False)
        assert open_image(tmp_path / name).axes == "?ZYX"
        assert_reads(tmp_path / name, image[1], axes="TZYX", time=1)


class TestHeaders:
    def write(self, path: Path, content: bytes, **lines: Any) -> None:
        header = {"ObjectType": "Image", "NDims": 2, "DimSize": "4 3", "ElementType": "MET_USHORT"}
        header |= lines
        header.setdefault("ElementDataFile", "LOCAL")
        text = "".join(f"{name} = {value}\n" for name, value in header.items())
        path.write_bytes(text.encode() + content)

    @pytest.mark.parametrize("name", ["BinaryDataByteOrderMSB", "ElementByteOrderMSB"])
    def test_big_endian(self, tmp_path, name):
        image = noise(3, 4, dtype="u2")
        path = tmp_path / "a.mha"
        self.write(path, image.astype(">u2").tobytes(), **{name: "True"})
        other = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(path)))
        np.testing.assert_array_equal(other, image)
        np.testing.assert_array_equal(read_file(path).values, image)

    @pytest.mark.parametrize("skipped", [9, -1])
    def test_values_after_another_header(self, tmp_path, skipped):
        image = noise(3, 4, dtype="u2")
        (tmp_path / "values.raw").write_bytes(bytes(9) + image.tobytes())
        self.write(tmp_path / "a.mhd", b"", HeaderSize=skipped, ElementDataFile="values.raw")
        other = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(tmp_path / "a.mhd")))
        np.testing.assert_array_equal(other, image)
        assert_reads(tmp_path / "a.mhd", image)

    @pytest.mark.parametrize("name", ["../secret.raw", "{}/secret.raw", "..", "C:\\secret.raw"])
    def test_files_elsewhere(self, tmp_path, name):
        (tmp_path / "inner").mkdir()
        path = tmp_path / "inner" / "a.mhd"
        (tmp_path / "secret.raw").write_bytes(bytes(24))
        self.write(path, b"", ElementDataFile=name.format(tmp_path))
        assert_refused(path, "lie outside of its folder")

    def test_a_missing_file(self, tmp_path):
        path = tmp_path / "a.mhd"
        self.write(path, b"", ElementDataFile="gone.raw")
        assert_refused(path, "gone.raw, which is missing")

    def test_what_does_not_fit(self, tmp_path):
        path = tmp_path / "a.mha"
        self.write(path, bytes(25))
        assert_refused(path, "1 bytes follow the values")
        self.write(path, bytes(24), DimSize="1000000 1000000")
        assert_refused(path, "it describes 2000000000000 bytes")
        packed = zlib.compress(bytes(24))
        self.write(path, packed, DimSize="1000000 1000000", CompressedData="True")
        assert_refused(path, "it describes 2000000000000 bytes")
        self.write(path, packed, DimSize="4 2", CompressedData="True")
        assert_refused(path, "it holds more values than it describes")

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("NDims", 3),
            ("DimSize", "0 3"),
            ("ElementType", "MET_STRING"),
            ("BinaryData", "False"),
        ],
    )
    def test_lines_that_do_not_fit(self, tmp_path, key, value):
        path = tmp_path / "a.mha"
        self.write(path, bytes(24), **{key: value})
        assert_refused(path)
