"""Imaris, BigDataViewer and EMD: values, axes, spacing, unit and place."""

import h5py
import npy2bdv
import numpy as np
import pytest
from format_writers import write_bdv, write_emd, write_imaris, write_velox
from imaris_ims_file_reader.ims import ims as reference_reader
from io_helpers import assert_reads, assert_refused, noise

from ecc_core.cli import main
from ecc_core.io import open_image, read_image

STEPS = (0.5, 0.25, 2.0)
SPACING = {"Z": 2.0, "Y": 0.25, "X": 0.5}
UNSIGNED = np.arange(6 * 7 * 9, dtype=np.uint16).reshape(6, 7, 9) * 173
"""Values beyond those of int16."""


class TestImaris:
    @pytest.mark.parametrize("level", [0, 1])
    def test_as_the_reference_reader(self, tmp_path, level):
        """Points that fill up the chunks are left out, at each resolution."""
        path = tmp_path / "a.ims"
        image = noise(3, 2, 5, 6, 7, dtype="u2")
        write_imaris(path, image, (10, 20, 30), STEPS, ("DAPI", "GFP"), levels=2)
        reference = reference_reader(str(path), squeeze_output=False)
        reference.change_resolution_lock(level)
        opened = open_image(path, level=level)
        assert opened.shape == reference.shape
        np.testing.assert_array_equal(opened.read(), reference[:])
        named = dict(zip("ZYX", reference.resolution, strict=True))
        assert opened.spacing == pytest.approx(named, abs=1e-3)
        assert (opened.axes, opened.unit) == ("TCZYX", "micrometer")
        assert opened.channels == ("DAPI", "GFP")
        assert opened.levels == 2

    def test_place(self, tmp_path):
        """Extents are those of the borders of points; a place is the middle of the first one."""
        write_imaris(tmp_path / "a.ims", noise(5, 6, 7), (10, 20, 30), STEPS)
        opened = open_image(tmp_path / "a.ims")
        assert opened.axes == "ZYX"
        assert opened.spacing == SPACING
        np.testing.assert_allclose(opened.affine.origin, [10.25, 20.125, 31])

    def test_moved_labels_are_refused(self, tmp_path, capsys):
        """Labels of the same shape that lie elsewhere."""
        image = str(tmp_path / "a.ims")
        labels = str(tmp_path / "l.ims")
        write_imaris(tmp_path / "a.ims", noise(5, 6, 7), steps=STEPS)
        write_imaris(tmp_path / "l.ims", noise(5, 6, 7) // 64, (3, 0, 0), STEPS)
        assert main(["curve", image, "--thresholds", "2", "--labels", image]) == 0
        assert main(["curve", image, "--thresholds", "2", "--labels", labels]) == 2
        assert "shifted by 6 along X" in capsys.readouterr().err

    @pytest.mark.parametrize("kind", ["external", "soft"])
    def test_links_to_other_files_are_not_followed(self, tmp_path, kind):
        """A soft link within the file is."""
        path = tmp_path / "a.ims"
        image = noise(5, 6, 7)
        write_imaris(path, image)
        place = "DataSet/ResolutionLevel 0/TimePoint 0/Channel 0/Data"
        with h5py.File(path, "a") as file:
            file.move(place, "there")
            external = h5py.ExternalLink(str(path), "/there")
            file[place] = external if kind == "external" else h5py.SoftLink("/there")
        if kind == "soft":
            assert_reads(path, image)
        else:
            assert_refused(path, "it has no dataset", place)

    @pytest.mark.parametrize(
        ("name", "text"), [("ImageSizeX", "9"), ("ImageSizeX", "0"), ("ImageSizeZ", "x")]
    )
    def test_sizes_that_lie(self, tmp_path, name, text):
        path = tmp_path / "a.ims"
        write_imaris(path, noise(5, 6, 7))
        with h5py.File(path, "a") as file:
            group = file["DataSet/ResolutionLevel 0/TimePoint 0/Channel 0"]
            group.attrs[name] = np.frombuffer(text.encode(), "S1")
        assert_refused(path, "damaged: ")

    def test_another_hdf5_file(self, tmp_path):
        with h5py.File(tmp_path / "a.ims", "w") as file:
            file["raw"] = [1]
        assert_refused(tmp_path / "a.ims", "not an Imaris file")


class TestBigDataViewer:
    def test_as_written(self, tmp_path):
        """Values are uint16, stored as int16 of the same bytes."""
        path = tmp_path / "a.xml"
        write_bdv(path, UNSIGNED)
        with h5py.File(tmp_path / "a.h5") as file:
            assert file["t00000/s00/0/cells"].dtype == np.int16
        assert_reads(path, UNSIGNED)
        opened = open_image(path)
        assert (opened.axes, opened.spacing, opened.unit) == ("ZYX", SPACING, "micrometer")
        assert "uint16" in opened.description.encoding.words()

    def test_setups_times_and_levels(self, tmp_path):
        """A setup is a series, and each has its own resolutions and places."""
        path = tmp_path / "a.xml"
        writer = npy2bdv.BdvWriter(
            str(tmp_path / "a.h5"), nchannels=2, subsamp=((1, 1, 1), (1, 2, 2)),
            blockdim=((4, 4, 4), (4, 4, 4)), overwrite=True,
        )  # fmt: skip
        moved = np.eye(4)[:3]
        moved[:, 3] = 5, 6, 7
        for time in range(3):
            for channel in range(2):
                image = UNSIGNED[:, :6, :8] + time + 10 * channel
                writer.append_view(
                    image, time=time, channel=channel, voxel_size_xyz=STEPS, voxel_units="um",
                    m_affine=moved, calibration=(1, 1, 1),
                )  # fmt: skip
        writer.write_xml()
        writer.close()
        reference = npy2bdv.BdvEditor(str(tmp_path / "a.h5"))
        opened = open_image(path, series=1)
        assert (opened.axes, opened.series, opened.levels) == ("TZYX", 2, 2)
        expected = [
            reference.read_view(time=time, channel=1).astype(np.uint16) for time in range(3)
        ]
        found = [opened[time : time + 1][0] for time in range(3)]
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(opened.affine.origin, [5, 6, 7])
        coarse = open_image(path, series=1, level=1)
        assert coarse.shape == (3, 6, 3, 4)
        assert coarse.spacing == {"Z": 2.0, "Y": 0.5, "X": 1.0}
        np.testing.assert_array_equal(coarse.affine.origin, [5.5, 6.5, 7])
        np.testing.assert_array_equal(read_image(path, series=0, time=2), UNSIGNED[:, :6, :8] + 2)
        assert_refused(path, "holds 2 images")

    def test_missing_time_points_are_named(self, tmp_path):
        path = tmp_path / "a.xml"
        writer = npy2bdv.BdvWriter(str(tmp_path / "a.h5"), overwrite=True)
        for time in (0, 1, 2):
            writer.append_view(UNSIGNED + time, time=time)
        writer.write_xml()
        writer.close()
        missing = '<MissingViews><MissingView timepoint="1" setup="0"/></MissingViews>'
        text = path.read_text().replace(
            "</SequenceDescription>", missing + "</SequenceDescription>"
        )
        path.write_text(text)
        opened = open_image(path)
        np.testing.assert_array_equal(opened.read(), [UNSIGNED, UNSIGNED + 2])
        assert any("time points 1 are missing" in note for note in opened.notes)

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("<SpimData", '<!DOCTYPE a [<!ENTITY b "c">]><SpimData', "DOCTYPE"),
            ("a.h5</hdf5>", "../a.h5</hdf5>", "outside of its folder"),
            ("a.h5</hdf5>", "b.h5</hdf5>", "b.h5, which is missing"),
            ("bdv.hdf5", "bdv.n5", "only bdv.hdf5 is read"),
            ("<last>0</last>", "<last>9999999</last>", "more than"),
            ("<last>0</last>", "<last>x</last>", "last must be a number"),
            ("</SpimData>", "", "not a BigDataViewer file, or damaged"),
        ],
    )
    def test_bad_descriptions(self, tmp_path, old, new, words):
        path = tmp_path / "a.xml"
        write_bdv(path, UNSIGNED)
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        assert_refused(path, words)


class TestEmd:
    def test_berkeley(self, tmp_path):
        image = noise(3, 4, 5, dtype="i2")
        path = tmp_path / "a.emd"
        write_emd(path, image)
        assert_reads(path, image)
        opened = open_image(path)
        assert (opened.axes, opened.unit) == ("ZYX", "nanometer")
        assert opened.spacing == {"Z": 0.5, "Y": 1.5, "X": 2.5}

    def test_velox(self, tmp_path):
        """The last axis numbers frames."""
        image = noise(3, 4, 5, dtype="i2")
        path = tmp_path / "a.emd"
        write_velox(path, image)
        opened = open_image(path)
        assert (opened.axes, opened.unit) == ("TYX", "meter")
        assert opened.spacing == {"Y": 2e-9, "X": 1e-9}
        np.testing.assert_array_equal(opened.read(), image)
        np.testing.assert_array_equal(opened[1:2, 1:3, 2:4], image[1:2, 1:3, 2:4])

    def test_one_of_several(self, tmp_path):
        path = tmp_path / "a.emd"
        image = noise(3, 4, 5)
        write_emd(path, image)
        with h5py.File(path, "a") as file:
            group = file.create_group("data/other")
            group.attrs["emd_group_type"] = "array"
            group["data"] = image[0]
            group["dim0"], group["dim1"] = [0, 0.5], np.array([0, 1, 3, 7, 9.0])
            group["dim0"].attrs["units"] = "nm"
        assert_refused(path, "holds 2 images", "data/other")
        opened = open_image(path / "data/other")
        np.testing.assert_array_equal(opened.read(), image[0])
        assert opened.spacing == {"Y": 0.5}  # The spacing of all points follows from two.
