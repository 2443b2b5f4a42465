"""Headers whose values are in another file, and MINC and N5: as their libraries read them."""

import warnings
from pathlib import Path

import nibabel
import nrrd
import numpy as np
import pytest
from format_writers import write_minc, write_n5
from io_helpers import assert_reads, assert_refused, noise

from ecc_core.cli import main
from ecc_core.io import open_image

IMAGE = noise(3, 4, 5, dtype="i2")
AFFINE = np.array([[0, -3, 0, 1], [2, 0, 0, 2], [0, 0, 4, 3], [0, 0, 0, 1.0]])
MINC = sorted((Path(nibabel.__file__).parent / "tests" / "data").glob("*.mnc"))


class TestPairs:
    @pytest.mark.parametrize(
        ("kind", "scaled"),
        [
            ("Nifti1Pair", False),
            ("Nifti1Pair", True),
            ("Nifti2Pair", False),
            ("AnalyzeImage", False),
            ("Spm2AnalyzeImage", False),
            ("Spm2AnalyzeImage", True),
        ],
    )
    @pytest.mark.parametrize("suffix", [".hdr", ".img"])
    def test_as_nibabel_loads_them(self, tmp_path, kind, scaled, suffix):
        """Either file of a pair may be named."""
        image = (IMAGE * 0.37).astype("f4") if scaled else IMAGE
        pair = getattr(nibabel, kind)(image.T, AFFINE)
        if scaled:
            pair.set_data_dtype("i2")
        nibabel.save(pair, tmp_path / "a.img")
        expected = np.asarray(nibabel.load(tmp_path / "a.img").dataobj).T
        opened = open_image(tmp_path / f"a{suffix}")
        assert opened.dtype == expected.dtype
        np.testing.assert_array_equal(opened.read(), expected)
        assert opened.spacing == {"Z": 4.0, "Y": 3.0, "X": 2.0}
        if kind.startswith("Nifti"):
            np.testing.assert_array_equal(opened.affine.steps["X"], AFFINE[:3, 0])
            np.testing.assert_array_equal(opened.affine.origin, AFFINE[:3, 3])
        else:
            assert opened.affine is None
            assert any("which side is left" in note for note in opened.notes)

    def test_bad_pairs(self, tmp_path):
        nibabel.save(nibabel.Nifti1Pair(IMAGE.T, AFFINE), tmp_path / "a.img")
        content = (tmp_path / "a.img").read_bytes()
        (tmp_path / "a.img").write_bytes(content[:-2])
        assert_refused(tmp_path / "a.hdr", "cannot hold")
        (tmp_path / "a.img").unlink()
        assert_refused(tmp_path / "a.hdr", "a.img is missing")
        (tmp_path / "b.hdr").write_text("ENVI\nsamples = 3")
        (tmp_path / "b.img").write_bytes(bytes(9))
        assert_refused(tmp_path / "b.img", "b.hdr is no header of Analyze or NIfTI")


class TestDetachedNrrd:
    @pytest.mark.parametrize("encoding", ["raw", "gzip", "bzip2", "ascii"])
    def test_as_pynrrd_reads_it(self, tmp_path, encoding):
        path = tmp_path / "a.nhdr"
        header = {"encoding": encoding, "space": "LPS", "space origin": [1, 2, 3]}
        header["space directions"] = np.diag([0.5, 0.25, 2])
        nrrd.write(str(path), IMAGE, header, detached_header=True, index_order="C")
        assert_reads(path, nrrd.read(str(path), index_order="C")[0])
        opened = open_image(path)
        assert opened.spacing == {"Z": 2.0, "Y": 0.25, "X": 0.5}
        assert isinstance(opened.array, np.memmap) == (encoding == "raw")
        np.testing.assert_array_equal(opened.affine.origin, [-1, -2, 3])

    @pytest.mark.parametrize("names", ["LIST\ns1.raw\ns2.raw\ns3.raw\n", "s%d.raw 1 3 1\n"])
    @pytest.mark.parametrize("skipped", [0, 7, -1])
    def test_a_file_for_each_slice(self, tmp_path, names, skipped):
        """There are bytes before the values; -1 means that the values end with the file."""
        for number, plane in enumerate(IMAGE):
            before = bytes(max(skipped, 0) or (9 if skipped else 0))
            (tmp_path / f"s{number + 1}.raw").write_bytes(before + plane.tobytes())
        path = tmp_path / "a.nhdr"
        path.write_text(
            "NRRD0004\ntype: short\ndimension: 3\nsizes: 5 4 3\nendian: little\nencoding: raw\n"
            f"byte skip: {skipped}\ndata file: {names}"
        )
        assert_reads(path, IMAGE)
        (tmp_path / "s2.raw").unlink()
        assert_refused(path, "its values are in s2.raw, which is missing")

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("a.raw", "../a.raw", "outside of its folder"),
            ("a.raw", "/etc/passwd", "outside of its folder"),
            ("sizes: 5 4 3", "sizes: 5 4 300000000", "cannot hold"),
            ("sizes: 5 4 3", "sizes: 5 4", ""),
            ("type: int16", "type: block", ""),
            ("endian: little\n", "", "endian"),
        ],
    )
    def test_bad_headers(self, tmp_path, old, new, words):
        path = tmp_path / "a.nhdr"
        nrrd.write(str(path), IMAGE, {"encoding": "raw"}, detached_header=True, index_order="C")
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        assert_refused(path, words)


class TestMinc:
    @pytest.mark.parametrize("path", MINC, ids=[path.name for path in MINC])
    def test_as_nibabel_loads_it(self, path):
        """The files that nibabel is tested with; axes are those of the file, T first."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reference = nibabel.load(path)
        expected = np.asarray(reference.dataobj)
        names = [str(name)[0].upper() for name in reference.dataobj.minc_file._dim_names]
        opened = open_image(path)
        order = [names.index(letter) for letter in opened.axes]
        np.testing.assert_array_equal(opened.read(), expected.transpose(order))
        zooms = dict(zip(names, reference.header.get_zooms(), strict=True))
        assert opened.spacing == pytest.approx({axis: zooms[axis] for axis in "ZYX"})
        assert opened.unit == "millimeter"
        spatial = [letter for letter in names if letter != "T"]
        steps = [opened.affine.steps[axis] for axis in spatial]
        np.testing.assert_array_equal(steps, reference.affine[:3, :3].T)
        np.testing.assert_array_equal(opened.affine.origin, reference.affine[:3, 3])

    def test_labels_stay_integers(self, tmp_path):
        """Where real values are the stored ones; nibabel gives floats of the same values."""
        path = tmp_path / "a.mnc"
        image = noise(3, 4, 5)
        write_minc(path, image)
        assert_reads(path, image)
        np.testing.assert_array_equal(np.asarray(nibabel.load(path).dataobj), image)
        assert open_image(path).spacing == {"Z": 1.0, "Y": 2.0, "X": 3.0}
        out = tmp_path / "o.csv"
        command = [
            "stack",
            str(path),
            "--labels",
            str(path),
            "--thresholds",
            "9,",
            "--out",
            str(out),
        ]
        assert main(command) == 0
        assert len(out.read_text().split()) == 1 + np.unique(image[image > 0]).size

    def test_another_file(self, tmp_path):
        (tmp_path / "a.mnc").write_bytes(bytes(999))
        assert_refused(tmp_path / "a.mnc")


class TestN5:
    @pytest.mark.parametrize("compression", ["raw", "gzip", "bzip2", "xz", "blosc"])
    @pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "u8"])
    def test_codecs(self, tmp_path, compression, dtype):
        """tensorstore writes the axes in reverse."""
        image = noise(6, 7, 9, dtype=dtype)
        options = {}
        if compression == "blosc":
            options = {"cname": "lz4", "clevel": 5, "shuffle": 1}
        write_n5(tmp_path / "a.n5", image, compression={"type": compression, **options})
        assert_reads(tmp_path / "a.n5", image)

    @pytest.mark.parametrize(("place", "level"), [("", 1), ("v", 1), ("v/s1", 0)])
    def test_resolutions_and_their_spacing(self, tmp_path, place, level):
        """Janelia's tools store the steps of the finest resolution, and factors of the others."""
        path = tmp_path / "a.n5"
        steps = {"unit": "nm", "dimensions": [4, 4, 40]}
        write_n5(path / "v" / "s0", IMAGE, pixelResolution=steps)
        coarse = {"pixelResolution": steps, "downsamplingFactors": [2, 2, 1]}
        write_n5(path / "v" / "s1", IMAGE[:, ::2, ::2], **coarse)
        opened = open_image(path / place, level=level)
        assert (opened.axes, opened.unit) == ("ZYX", "nanometer")
        assert opened.spacing == {"Z": 40.0, "Y": 8.0, "X": 8.0}
        np.testing.assert_array_equal(opened.read(), IMAGE[:, ::2, ::2])
        write_n5(path / "w", IMAGE)
        assert_refused(path, "datasets: v, w")

    def test_named_axes(self, tmp_path):
        path = tmp_path / "a.n5"
        image = noise(2, 3, 4, 5)
        named = {"axes": ["x", "y", "z", "c"], "resolution": [1, 2, 3, 1]}
        write_n5(path, image, **named, units=["um", "um", "um", ""])
        opened = open_image(path)
        assert (opened.axes, opened.unit) == ("CZYX", "micrometer")
        assert opened.spacing == {"Z": 3.0, "Y": 2.0, "X": 1.0}
        np.testing.assert_array_equal(opened.read(), image)

    def test_damaged_block_is_named(self, tmp_path):
        path = tmp_path / "a.n5"
        write_n5(path, noise(8, 8))
        (path / "1" / "0").write_bytes(b"\0")
        assert_refused(path, "cannot read chunk [0:4, 4:8]")

    @pytest.mark.parametrize(
        "text",
        [
            "{",
            "[]",
            '{"dimensions": [4], "blockSize": [0], "dataType": "uint8"}',
            '{"dimensions": [4], "blockSize": [4, 4], "dataType": "uint8"}',
            '{"dimensions": [4], "blockSize": [4], "dataType": "object"}',
            '{"dimensions": [1e99], "blockSize": [4], "dataType": "uint8"}',
        ],
    )
    def test_bad_attributes(self, tmp_path, text):
        path = tmp_path / "a.n5"
        path.mkdir()
        (path / "attributes.json").write_text(text)
        assert_refused(path)
