"""VTK, Amira, raw values, and the files of DIPHA and Perseus."""

import base64
import lzma
import struct
import zlib

import gudhi
import numpy as np
import pytest
from format_writers import vti_text, write_amira, write_vti, write_zlib_vti
from io_helpers import assert_reads, assert_refused, noise, rows_of

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.io import (
    CUBICAL_SUFFIXES,
    open_image,
    read_image,
    read_result,
    write_cubical_complex,
    write_result,
)

IMAGE = noise(3, 4, 5, dtype="i2")
BY_VTK = """<?xml version="1.0"?>
<VTKFile type="ImageData" version="0.1" byte_order="LittleEndian" header_type="UInt32" \
compressor="vtkZLibDataCompressor">
  <ImageData WholeExtent="2 3 1 2 0 2" Origin="1 2 3" Spacing="0.5 0.25 2" \
Direction="0 1 0 1 0 0 0 0 -1">
    <Piece Extent="2 3 1 2 0 2">
      <PointData>
        <DataArray type="UInt16" Name="p" format="appended" offset="0"/>
      </PointData>
      <CellData>
        <DataArray type="Float32" Name="c" format="appended" offset="68"/>
      </CellData>
    </Piece>
  </ImageData>
  <AppendedData encoding="base64">
   _AQAAAACAAAAYAAAAIAAAAA==eJxjYHjBfIF9B/cC/g7hAvEIaQd5DWUB9R9aAFfmBs0=AQAAAACAAAAIAAAAEAAAAA=\
=eJxjYFjgwMDwwAEABwgCAQ==
  </AppendedData>
</VTKFile>
"""
"""Written by VTK 9.7.2: 1000 * arange(12), and the cells 5 and 7."""


class TestVti:
    def test_as_written_by_vtk(self, tmp_path):
        """VTK's place of the first point, whose index is (2, 1, 0), is (1.25, 3, 3)."""
        path = tmp_path / "a.vti"
        path.write_text(BY_VTK)
        assert_refused(path, "PointData/p, CellData/c")
        assert_reads(path / "p", (1000 * np.arange(12, dtype="u2")).reshape(3, 2, 2))
        assert_reads(path / "CellData/c", np.array([5, 7], "f4").reshape(2, 1, 1))
        points = open_image(path / "p")
        cells = open_image(path / "c")
        assert points.spacing == {"Z": 2.0, "Y": 0.25, "X": 0.5}
        np.testing.assert_allclose(points.affine.origin, [1.25, 3, 3])
        np.testing.assert_allclose(points.affine.steps["X"], [0, 0.5, 0])
        np.testing.assert_allclose(cells.affine.origin, [1.375, 3.25, 2])

    @pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "i8", "u8", "f4", "f8"])
    def test_ways_of_writing(self, tmp_path, dtype):
        """Text, base64, raw values and blocks compressed by zlib and LZMA."""
        image = noise(3, 4, 5, dtype=dtype)
        path = tmp_path / "a.vti"
        write_vti(path, image)
        assert_reads(path, image)
        assert isinstance(open_image(path).array, np.memmap)
        write_zlib_vti(path, image)
        assert_reads(path, image)
        values = image.ravel().tolist()
        words = " ".join(map(repr, values))
        path.write_text(vti_text(image, f'format="ascii">{words}', "</VTKFile>"))
        assert_reads(path, image)
        size = np.uint32(image.nbytes).tobytes()
        content = base64.b64encode(size + image.tobytes()).decode()
        path.write_text(vti_text(image, f'format="binary">{content}', "</VTKFile>"))
        assert_reads(path, image)
        packed = lzma.compress(image.tobytes())
        head = np.array([1, image.nbytes, 0, len(packed)], "<u4").tobytes()
        content = (base64.b64encode(head) + base64.b64encode(packed)).decode()
        codec = ' compressor="vtkLZMADataCompressor"'
        path.write_text(vti_text(image, f'format="binary">{content}', "</VTKFile>", codec))
        assert_reads(path, image)

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("<VTKFile", '<!DOCTYPE a [<!ENTITY b "c">]><VTKFile', "DOCTYPE"),
            ('"0 4 0 3 0 2"', '"0 4 0 3 0 999999"', "are described"),
            ('"0 4 0 3 0 2"', '"0 4 0 3 2 0"', "has no points"),
            ('"0 4 0 3 0 2"', '"0 4 0 3 0"', "WholeExtent must be 6 numbers"),
            ('"Int16"', '"Bit"', "values of type Bit"),
            ('"LittleEndian"', '"Middle"', "byte_order Middle"),
            ('offset="0"', 'offset="x"', "the offset of its values is 'x'"),
            ('offset="0"', 'offset="4000"', "bytes are missing"),
            ('header_type="UInt32"', 'compressor="vtkLZ4DataCompressor"', "vtkLZ4DataCompressor"),
            ('"ImageData"', '"ImageData" a="', "not a VTK file in XML, or damaged"),
        ],
    )
    def test_bad_headers(self, tmp_path, old, new, words):
        path = tmp_path / "a.vti"
        write_vti(path, IMAGE)
        content = path.read_bytes()
        assert old.encode() in content
        path.write_bytes(content.replace(old.encode(), new.encode()))
        assert_refused(path, words)

    def test_a_claim_of_size(self, tmp_path):
        """A block of zlib that yields more than it says."""
        path = tmp_path / "a.vti"
        packed = zlib.compress(bytes(1 << 20))
        head = np.array([1, 240, 0, len(packed)], "<u4").tobytes()
        content = (base64.b64encode(head) + base64.b64encode(packed)).decode()
        codec = ' compressor="vtkZLibDataCompressor"'
        image = noise(3, 4, 20)
        path.write_text(vti_text(image, f'format="binary">{content}', "</VTKFile>", codec))
        assert_refused(path, "a block has 241 bytes instead of 240")

    def test_flat_image_and_colours(self, tmp_path):
        path = tmp_path / "a.vti"
        image = noise(4, 5, 3)
        text = vti_text(image[None, ..., 0], 'format="ascii">', "</VTKFile>")
        words = " ".join(map(str, image.ravel().tolist()))
        text = text.replace('"1" format="ascii">', f'"3" format="ascii">{words}')
        path.write_text(text)
        opened = open_image(path)
        assert opened.axes == "YXS"
        np.testing.assert_array_equal(opened.read(), image)


class TestAmira:
    @pytest.mark.parametrize("codec", ["", "HxByteRLE", "HxZip"])
    def test_values_spacing_and_place(self, tmp_path, codec):
        """The bounding box is that of the middles of the first and the last points."""
        path = tmp_path / "a.am"
        image = noise(3, 4, 5)
        write_amira(path, image, codec)
        assert_reads(path, image)
        opened = open_image(path)
        assert (opened.axes, opened.unit) == ("ZYX", "millimeter")
        assert opened.spacing == {"Z": 1.0, "Y": 1.0, "X": 0.5}
        np.testing.assert_array_equal(opened.affine.origin, [0, 10, -1])

    def test_runs(self, tmp_path):
        """Runs of equal bytes, and bytes as they are behind 128 and their number."""
        path = tmp_path / "a.am"
        image = np.array([[[7] * 5, [1, 2, 3, 9, 9]]], "u1")
        packed = bytes([5, 7, 128 + 3, 1, 2, 3, 2, 9])
        text = "# AmiraMesh BINARY-LITTLE-ENDIAN 2.1\ndefine Lattice 5 2 1\n"
        text += f"Lattice {{ byte Labels }} @1(HxByteRLE,{len(packed)})\n@1\n"
        path.write_bytes(text.encode() + packed)
        assert_reads(path, image[0])

    def test_several_arrays_and_types(self, tmp_path):
        """Arrays follow each other; BINARY without a word on its order is big-endian."""
        path = tmp_path / "a.am"
        vectors = noise(3, 4, 5, 3, dtype="f4")
        text = "# AmiraMesh BINARY 2.1\ndefine Lattice 5 4 3\n"
        text += "Lattice { short A } @1\nLattice { float[3] B } @2\n@1\n"
        content = IMAGE.astype(">i2").tobytes() + b"\n@2\n" + vectors.astype(">f4").tobytes()
        path.write_bytes(text.encode() + content)
        np.testing.assert_array_equal(read_image(path / "A"), IMAGE)
        found = open_image(path / "B")
        assert found.axes == "CZYX"
        np.testing.assert_array_equal(found.read(), np.moveaxis(vectors, -1, 0))
        assert_refused(path, "arrays: A, B")

    def test_text(self, tmp_path):
        path = tmp_path / "a.am"
        words = "\n".join(map(str, IMAGE.ravel()))
        text = "# AmiraMesh 3D ASCII 2.0\ndefine Lattice 5 4 3\nLattice { short A } @1\n@1\n"
        path.write_text(text + words)
        assert_reads(path, IMAGE)
        path.write_text(text + words.replace(words.split()[9], "70000"))
        assert_refused(path, "damaged")

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("# AmiraMesh", "# HyperSurface", "not a file of Amira"),
            ('"uniform"', '"stacked"', "its coordinates are stacked"),
            ("5 4 3", "5 4 300000000", "cannot hold"),
            ("byte", "complex", "values of type complex"),
            ("\n@1\n", "\n@2\n", "@1 is not where it should be"),
        ],
    )
    def test_bad_headers(self, tmp_path, old, new, words):
        path = tmp_path / "a.am"
        write_amira(path, noise(3, 4, 5))
        path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))
        assert_refused(path, words)


class TestRaw:
    @pytest.mark.parametrize("dtype", ["u1", ">u2", "<i4", "f4", ">f8"])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_layouts(self, tmp_path, dtype, order):
        image = noise(3, 4, 5, dtype=dtype.strip("<>")).astype(dtype)
        path = tmp_path / "a.anything"
        path.write_bytes(b"header" + image.tobytes(order))
        options = {"shape": (3, 4, 5), "dtype": dtype, "offset": 6, "order": order}
        np.testing.assert_array_equal(read_image(path, **options), image)
        opened = open_image(path, **options)
        assert (opened.axes, opened.dtype) == ("ZYX", np.dtype(dtype))
        assert isinstance(opened.array, np.memmap)

    @pytest.mark.parametrize("flag", ["--mask", "--labels"])
    def test_commands_with_labels_and_mask(self, tmp_path, capsys, flag):
        """Labels and masks have the shape of the image and a type of their own."""
        image = noise(6, 7, dtype="u2").astype(">u2")
        labels = noise(6, 7) // 128
        (tmp_path / "a.raw").write_bytes(image.tobytes())
        (tmp_path / "l.raw").write_bytes(labels.tobytes())
        layout = ["--shape", "6,7", "--dtype", ">u2", "--thresholds", "9000,20000"]
        command = ["curve", str(tmp_path / "a.raw"), *layout]
        region = str(tmp_path / "l.raw")
        expected = ecc.euler_curve(image, [9000, 20000], mask=labels == 1).values.tolist()
        assert main([*command, flag, region, f"{flag}-dtype", "u1"]) == 0
        rows = rows_of(capsys.readouterr().out)
        assert [int(row["euler_number"]) for row in rows] == expected
        out = tmp_path / "o.csv"
        assert main(["stack", *command[1:], "--out", str(out)]) == 0
        whole = ecc.euler_curve(image, [9000, 20000]).values.tolist()
        assert [int(row["euler_number"]) for row in rows_of(out)] == whole

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ([], "--shape and --dtype must say what they are"),
            (["--dtype", "u1"], "--dtype must be given together with --shape"),
            (["--offset", "2"], "--offset must be given together with --shape"),
            (["--shape", "3,4"], "--dtype must be given together with --shape"),
            (["--shape", "3,4", "--dtype", "O"], "must be a type of numbers"),
            (["--shape", "3,4", "--dtype", "u2"], "takes 24 bytes, but 12 follow --offset 0"),
            (["--shape", "3,4", "--dtype", "u1", "--offset", "1"], "but 11 follow --offset 1"),
            (["--shape", "999999999,999999999", "--dtype", "u1"], "but 12 follow"),
            (["--shape", "3,4", "--dtype", "u1", "--mask", "{raw}"], "--mask-dtype must say"),
            (["--shape", "3,4", "--dtype", "u1", "--mask-dtype", "u1"], "together with --mask"),
        ],
    )
    def test_what_is_missing_or_does_not_fit(self, tmp_path, capsys, options, words):
        path = tmp_path / "a.raw"
        path.write_bytes(bytes(12))
        given = [option.format(raw=path) for option in options]
        assert main(["curve", str(path), "--thresholds", "2", *given]) == 2
        _, line = capsys.readouterr()
        assert words in line
        assert line.count("\n") == 1


class TestPersistenceSoftware:
    @pytest.mark.parametrize("suffix", CUBICAL_SUFFIXES)
    @pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f4", "f8"])
    @pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 4, 5)])
    def test_images_come_back(self, tmp_path, suffix, dtype, shape):
        path = tmp_path / f"a{suffix}"
        image = noise(*shape, dtype="i2").astype(dtype)
        write_cubical_complex(path, image)
        found = open_image(path)
        assert (found.dtype, found.axes) == (np.float64, "ZYX"[-len(shape) :])
        np.testing.assert_array_equal(found.read(), image)

    @pytest.mark.parametrize("shape", [(4, 5), (3, 4, 5)])
    def test_perseus_as_gudhi_reads_it(self, tmp_path, shape):
        """GUDHI's first axis is the fastest, and cells are top-dimensional."""
        path = tmp_path / "a.txt"
        image = noise(*shape, dtype="f8")
        write_cubical_complex(path, image)
        complex = gudhi.CubicalComplex(perseus_file=str(path))
        np.testing.assert_array_equal(np.asarray(complex.top_dimensional_cells()).T, image)
        complex.compute_persistence(min_persistence=0)
        pairs = ecc.persistence_pairs(read_image(path)).to_gudhi()
        intervals = map(complex.persistence_intervals_in_dimension, range(len(pairs)))
        expected = [np.sort(part.reshape(-1, 2), axis=0) for part in intervals]
        np.testing.assert_equal([np.sort(part, axis=0) for part in pairs], expected)

    def test_dipha_as_its_readme_says(self, tmp_path):
        """The number 8067171840, the type 1, the number of values, axes and lengths from X on."""
        path = tmp_path / "a.complex"
        image = noise(2, 3, dtype="f8")
        write_cubical_complex(path, image)
        head = struct.pack("<6q", 8067171840, 1, 6, 2, 3, 2)
        assert path.read_bytes() == head + struct.pack("<6d", *image.ravel())

    def test_periodic_axes_are_said(self, tmp_path):
        """GUDHI marks them by negative lengths."""
        path = tmp_path / "a.perseus"
        path.write_text("2\n-3\n2\n" + "\n".join("123456"))
        assert open_image(path).shape == (2, 3)
        assert open_image(path).notes == (
            "periodic along X, which only --boundary closed,periodic follows",
        )

    @pytest.mark.parametrize("image", [[np.nan, 1.0], [2**53 + 1], np.zeros((0, 3)), 1.0])
    def test_images_that_cannot_be_written(self, tmp_path, image):
        path = tmp_path / "a.complex"
        with pytest.raises(ValueError, match="`image` must"):
            write_cubical_complex(path, image)
        assert not path.exists()

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "not a file of DIPHA"),
            (struct.pack("<4q", 1, 1, 1, 1), "not a file of DIPHA"),
            (struct.pack("<4q", 8067171840, 2, 1, 1), "holds a persistence diagram"),
            (struct.pack("<5q", 8067171840, 1, 1, 99, 1), "it has 99 axes"),
            (struct.pack("<5q", 8067171840, 1, 2, 1, 1), "must have 2 values"),
            (struct.pack("<5q", 8067171840, 1, 1 << 50, 1, 1 << 50), "cannot hold"),
            (struct.pack("<5q2d", 8067171840, 1, 1, 1, 1, 0, 0), "8 bytes follow"),
        ],
    )
    def test_bad_dipha(self, tmp_path, content, words):
        path = tmp_path / "a.complex"
        path.write_bytes(content)
        assert_refused(path, words)

    @pytest.mark.parametrize(
        "text", ["", "readme", "2\n3", "2\n3\n2\n1 2 3", "2\n0\n2\n", "1\n2\n1 x", "99999999999\n1"]
    )
    def test_bad_perseus(self, tmp_path, text):
        path = tmp_path / "a.txt"
        path.write_text(text)
        assert_refused(path)

    @pytest.mark.parametrize("superlevel", [False, True])
    @pytest.mark.parametrize("connectivity", [1, 3])
    def test_diagrams(self, tmp_path, superlevel, connectivity):
        """They have the form of `to_gudhi`; a class that never dies has a negative dimension."""
        image = noise(4, 5, 6, dtype="f8")
        path = tmp_path / "a.diagram"
        pairs = ecc.persistence_pairs(image, connectivity=connectivity, superlevel=superlevel)
        write_result(path, pairs)
        rows = np.frombuffer(path.read_bytes()[24:], "<i8,<f8,<f8")
        assert (rows["f0"] < 0).sum() == np.asarray(pairs.essential).sum() == 1
        found = read_result(path)
        expected = [theirs[np.lexsort(theirs.T[::-1])] for theirs in pairs.to_gudhi()]
        np.testing.assert_equal(list(found.to_gudhi()), expected)
        signed = -image if superlevel else image
        at = [-1.0, 0.0, 0.5]
        expected = ecc.betti_curves(signed, at, connectivity=connectivity).values
        np.testing.assert_array_equal(found.betti_curves(at).values, expected)

    def test_what_a_diagram_cannot_hold(self, tmp_path):
        path = tmp_path / "a.diagram"
        with pytest.raises(ValueError, match="must be PersistencePairs, got EulerCurve"):
            write_result(path, ecc.euler_curve(np.eye(3), 2))
        assert not path.exists()

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            struct.pack("<4q", 8067171840, 1, 1, 1),
            struct.pack("<3q", 8067171840, 2, 1),
            struct.pack("<3q", 8067171840, 2, -1),
            struct.pack("<4q2d", 8067171840, 2, 1, 1 << 60, 0, 1),
            struct.pack("<4q2d", 8067171840, 2, 1, 0, np.nan, 1),
        ],
    )
    def test_bad_diagrams(self, tmp_path, content):
        path = tmp_path / "a.diagram"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.diagram: "):
            read_result(path)
