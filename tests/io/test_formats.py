"""Formats of medicine and microscopy: values, axes and spacing are those of the file."""

from pathlib import Path
from typing import Any

import io_helpers
import mrcfile
import nibabel
import nrrd
import numpy as np
import pydicom
import pytest
import tifffile
import zarr
from io_helpers import (
    assert_reads,
    assert_refused,
    write_czi,
    write_dicom,
    write_lif,
    write_mrc,
    write_nd2,
    write_nifti,
    write_nrrd,
    write_ome_zarr,
    write_picture,
)

from ecc_core.io import open_image, read_image

SPACING = {"Z": 2.0, "Y": 0.5, "X": 0.25}
TAGS: dict[str, Any] = {"resolution": (4, 2), "metadata": None}
NAMED = {"metadata": {"axes": "ZYX", "spacing": 1.5, "unit": "um"}}
OME = {"axes": "ZYX", "PhysicalSizeX": 250, "PhysicalSizeXUnit": "nm", "PhysicalSizeY": 0.5}


def noise(*shape: int, dtype: str = "i2") -> np.ndarray:
    return io_helpers.noise(*shape, dtype=dtype)


def assert_opens(
    path: Path,
    image: np.ndarray,
    axes: str,
    spacing: dict[str, float],
    unit: str = "",
    **options: Any,
) -> None:
    opened = open_image(path, **options)
    assert (opened.axes, opened.shape, opened.dtype) == (axes, image.shape, image.dtype)
    assert (opened.spacing, opened.unit) == (spacing, unit)
    values = opened.read()
    assert values.dtype == image.dtype
    np.testing.assert_array_equal(values, image)
    part = (slice(1, 3), *(slice(0, n) for n in image.shape[1:]))
    np.testing.assert_array_equal(opened[part], image[part])


def spacing_of_tiff(folder: Path, **options: Any) -> tuple[dict[str, float], str]:
    tifffile.imwrite(folder / "a.tif", noise(4, 6, 5), photometric="minisblack", **options)
    opened = open_image(folder / "a.tif")
    return opened.spacing, opened.unit


class TestNifti:
    @pytest.fixture(params=[".nii", ".nii.gz"])
    def path(self, request: Any, tmp_path: Path) -> Path:
        return tmp_path / f"a{request.param}"

    @pytest.mark.parametrize("kind", [1, 2])
    @pytest.mark.parametrize(
        ("unit", "name"),
        [("unknown", ""), ("meter", "meter"), ("mm", "millimeter"), ("micron", "micrometer")],
    )
    def test_values_and_spacing(self, path, kind, unit, name):
        image = noise(5, 6, 7)
        write_nifti(path, image, (0.5, 0.1, 2), unit, kind)
        assert_opens(path, image, "ZYX", {"Z": 2.0, "Y": 0.1, "X": 0.5}, name)

    def test_components_follow_time(self, path):
        """The fifth axis of the file has the components of vectors."""
        image = noise(6, 2, 3, 4, 5)
        write_nifti(path, image)
        assert_opens(path, image.swapaxes(0, 1), "TCZYX", dict.fromkeys("ZYX", 1.0))
        box = open_image(path)[1, 2:4, 0, 1:3, :]
        np.testing.assert_array_equal(box, image[2:4, 1, 0, 1:3])

    def test_only_what_is_needed_is_read(self, tmp_path):
        """A view of a memory map whose rows are those of the file."""
        write_nifti(tmp_path / "a.nii", noise(3, 4, 5))
        opened = open_image(tmp_path / "a.nii")
        assert isinstance(opened.array, np.memmap)
        assert opened.array.flags.c_contiguous
        assert opened.chunks == (1, 1, 5)

    def test_scaled_values_and_time(self, path):
        image = noise(5, 4, 3, 2, dtype="f4")
        stored = nibabel.Nifti1Image(image, np.eye(4))
        stored.set_data_dtype("i2")
        nibabel.save(stored, path)
        expected = np.asanyarray(nibabel.load(path).dataobj)
        assert expected.dtype == np.float64
        assert_opens(path, expected.T, "TZYX", {"X": 1.0, "Y": 1.0, "Z": 1.0})
        np.testing.assert_array_equal(read_image(path, time=1), expected[..., 1].T)


class TestNrrd:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "a.nrrd"

    @pytest.mark.parametrize("encoding", ["raw", "gzip"])
    def test_values_and_spacing(self, path, encoding):
        image = noise(5, 6, 7)
        write_nrrd(path, image, encoding, spacings=[0.1, 0.2, 0.3], units=["mm"] * 3)
        assert_opens(path, image, "ZYX", {"Z": 0.3, "Y": 0.2, "X": 0.1}, "millimeter")

    def test_spacing_without_a_unit(self, path):
        image = noise(2, 3, 4)
        directions = np.diag([3.0, 2, 1])
        write_nrrd(path, image, space="left-posterior-superior", space_directions=directions)
        assert_opens(path, image, "ZYX", {"Z": 1.0, "Y": 2.0, "X": 3.0})

    def test_channels_and_time_come_first(self, path):
        """Fastest in the file are the components, slowest is time."""
        image = noise(2, 5, 6, 7, 3)
        write_nrrd(path, image, kinds=["vector", "space", "space", "space", "time"])
        assert_opens(path, np.moveaxis(image, -1, 1), "TCZYX", {})

    def test_values_in_another_file(self, path):
        """The other file is in the same folder; the header may have any suffix."""
        image = noise(5, 6, 7)
        nrrd.write(str(path.with_suffix(".nhdr")), image, detached_header=True, index_order="C")
        path.with_suffix(".nhdr").rename(path)
        assert_reads(path, image)


class TestMrc:
    @pytest.mark.parametrize(
        ("name", "compression"),
        [("a.mrc", None), ("a.mrc.gz", "gzip"), ("a.map.gz", "gzip"), ("a.mrc", "gzip")],
    )
    def test_values_and_spacing(self, tmp_path, name, compression):
        image = noise(5, 6, 7)
        write_mrc(tmp_path / name, image, 20, compression=compression)
        assert_opens(tmp_path / name, image, "ZYX", dict.fromkeys("ZYX", 20.0), "angstrom")

    def test_axes_of_the_header(self, tmp_path):
        """Maps of proteins may be stored in sections of x, and a stack is no volume."""
        image = noise(5, 6, 7)
        path = tmp_path / "a.mrc"
        write_mrc(path, image)
        with mrcfile.open(path, mode="r+") as file:
            file.header.mapc, file.header.mapr, file.header.maps = 3, 2, 1
            file.header.mx, file.header.my, file.header.mz = 5, 6, 7
            file.voxel_size = (1, 2, 3)
        assert_opens(path, image.T, "ZYX", {"Z": 3.0, "Y": 2.0, "X": 1.0}, "angstrom")
        with mrcfile.open(path, mode="r+") as file:
            file.set_image_stack()
        assert open_image(path).axes == "?YX"


class TestDicom:
    @pytest.fixture
    def series(self, tmp_path: Path) -> tuple[Path, np.ndarray]:
        """Slices whose names are in another order than their places; one has no suffix."""
        image = noise(4, 6, 7)
        folder = tmp_path / "series"
        folder.mkdir()
        for place, name in enumerate(("d.dcm", "a.dcm", "c", "b.dcm")):
            write_dicom(folder / name, image[place], 1.5 * place)
        (folder / "notes.txt").write_text("")
        return folder, image

    def test_a_series(self, series):
        folder, image = series
        assert_opens(folder, image, "ZYX", {"Z": 1.5, "Y": 0.5, "X": 0.25}, "millimeter")

    def test_a_missing_slice(self, series):
        (series[0] / "c").unlink()
        assert_refused(series[0], "slices are missing")

    def test_several_series(self, series):
        folder, image = series
        write_dicom(folder / "e.dcm", image[0] // 2, 0, SeriesInstanceUID="1.2.4")
        assert_refused(folder, "holds 2 series, choose one with `series`")
        np.testing.assert_array_equal(read_image(folder, series=0), image)

    def test_slices_that_differ(self, series):
        folder, image = series
        write_dicom(folder / "b.dcm", image[3, :-1], 4.5)
        assert_refused(folder, "has shape (5, 7)")

    def test_units_and_frames(self, tmp_path):
        image = noise(3, 6, 7)
        write_dicom(tmp_path / "a.dcm", image, RescaleSlope=2, RescaleIntercept=-1024)
        expected = image.astype(np.int32) * 2 - 1024
        assert_opens(tmp_path / "a.dcm", expected, "ZYX", {"Y": 0.5, "X": 0.25}, "millimeter")

    @pytest.mark.parametrize(
        ("slopes", "dtype"),
        [
            ((0.5, 1, 0.9), "f8"),  # In PET each slice has its own slope.
            ((2, 0.5, 1.5), "f8"),
            ((2, 1, 3), "i4"),
            ((2, 1, 70_000), "f8"),  # The product is beyond int32.
        ],
    )
    def test_a_slope_for_each_slice(self, tmp_path, slopes, dtype):
        image = noise(3, 6, 7)
        for place, slope in enumerate(slopes):
            tags = {"RescaleSlope": slope, "RescaleIntercept": 0}
            write_dicom(tmp_path / f"{place}.dcm", image[place], place, **tags)
        slices = [pydicom.dcmread(tmp_path / f"{place}.dcm") for place in range(3)]
        expected = [pydicom.pixels.apply_rescale(one.pixel_array, one) for one in slices]
        actual = read_image(tmp_path)
        assert actual.dtype == dtype
        np.testing.assert_array_equal(actual, expected)

    def test_a_slope_for_each_frame(self, tmp_path):
        """Files of several frames keep slopes in groups, one for each frame or one for all."""
        image = noise(3, 6, 7)

        def group(slope: float, intercept: float) -> pydicom.Dataset:
            step = pydicom.Dataset()
            found = pydicom.Dataset()
            step.RescaleSlope, step.RescaleIntercept = slope, intercept
            found.PixelValueTransformationSequence = [step]
            return found

        shared = {"SharedFunctionalGroupsSequence": [group(1, -1024)]}
        write_dicom(tmp_path / "a.dcm", image, **shared)
        np.testing.assert_array_equal(read_image(tmp_path / "a.dcm"), image.astype(np.int32) - 1024)
        each = {"PerFrameFunctionalGroupsSequence": [group(s, 3) for s in (0.5, 1, 4)]}
        write_dicom(tmp_path / "b.dcm", image, **each)
        expected = image * np.reshape([0.5, 1, 4], (3, 1, 1)) + 3
        assert_opens(tmp_path / "b.dcm", expected, "ZYX", {"Y": 0.5, "X": 0.25}, "millimeter")

    def test_0_is_white(self, tmp_path):
        image = noise(6, 7)
        write_dicom(tmp_path / "a.dcm", image, PhotometricInterpretation="MONOCHROME1")
        opened = open_image(tmp_path / "a.dcm")
        np.testing.assert_array_equal(opened.read(), image)
        assert opened.notes == ("0 is white and the largest value black; values are as stored",)


def test_czi(tmp_path):
    image = noise(2, 3, 32, 40, dtype="u2")
    write_czi(tmp_path / "a.czi", image)
    assert_opens(tmp_path / "a.czi", image, "CZYX", SPACING, "micrometer")


class TestLif:
    @pytest.fixture(autouse=True)
    def reader(self) -> None:
        pytest.importorskip("bioio_lif")

    def test_values_and_spacing(self, tmp_path):
        images = noise(2, 3, 12, 10, dtype="u2")
        steps = {"Z": 2e-6, "Y": 0.5e-6, "X": 0.25e-6}
        write_lif(tmp_path / "a.lif", images, "ZYX", steps)
        path = tmp_path / "a.lif"
        assert_refused(path, "holds 2 images, choose one with `series`")
        assert_opens(path, images[0], "ZYX", SPACING, "micrometer", series=0)
        assert_opens(path, images[1], "ZYX", SPACING, "micrometer", series=1)
        channels = noise(2, 3, 12, 10, dtype="u1")
        write_lif(path, [channels], "CZYX", {})
        assert_opens(path, channels, "CZYX", {})

    def test_a_description_of_other_files(self, tmp_path):
        """Leica's XLIF files name the files that have the values; they are not read."""
        (tmp_path / "a.lif").write_text("<LMSDataContainerHeader Version='2'/>")
        assert_refused(tmp_path / "a.lif", "not a LIF file")


class TestNd2:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        pytest.importorskip("bioio_nd2", reason="not among the packages of the tests")
        return tmp_path / "a.nd2"

    def test_values_and_spacing(self, path):
        image = noise(3, 2, 12, 10, dtype="u2")
        write_nd2(path, image)
        spacing = {"Z": 2.0, "Y": 0.25, "X": 0.25}
        assert_opens(path, image.swapaxes(0, 1), "CZYX", spacing, "micrometer")

    @pytest.mark.parametrize("place", [0, 1])
    def test_a_missing_frame_is_not_zero(self, path, place):
        """Its name in the table of contents, or at its place."""
        write_nd2(path, noise(3, 2, 12, 10))
        content = path.read_bytes()
        parts = content.split(b"ImageDataSeq|1!")
        assert len(parts) == 3
        names = [b"ImageDataSeq|1!", b"ImageDataSeq|1!"]
        names[place] = b"ImageDataSeq|7!"
        path.write_bytes(parts[0] + names[0] + parts[1] + names[1] + parts[2])
        assert_refused(path, "damaged")


class TestSpacing:
    """TIFF and OME-Zarr give it by axis, in the unit of the file."""

    @pytest.mark.parametrize(
        ("described", "steps", "unit"),
        [
            ({"spacing": 1.5, "unit": "micron"}, (1.5, 0.5, 0.25), "micrometer"),
            ({"spacing": 1.5, "unit": "\\u00B5m"}, (1.5, 0.5, 0.25), "micrometer"),
            ({"spacing": 1.5, "unit": "mm"}, (1.5, 0.5, 0.25), "millimeter"),
            ({"spacing": 1.5, "unit": ""}, (1.5, 0.5, 0.25), ""),
            (  # Each axis has a unit of its own.
                {"spacing": 1500, "unit": "micron", "yunit": "mm", "zunit": "nm"},
                (1.5, 500.0, 0.25),
                "micrometer",
            ),
        ],
    )
    def test_imagej(self, tmp_path, described, steps, unit):
        options = {"imagej": True, "resolution": (4, 2), "metadata": {"axes": "ZYX", **described}}
        assert spacing_of_tiff(tmp_path, **options) == (dict(zip("ZYX", steps, strict=True)), unit)

    @pytest.mark.parametrize(
        ("options", "spacing", "unit"),
        [
            ({"imagej": True}, {}, ""),
            ({}, {}, ""),
            ({"metadata": None}, {}, ""),
            ({**TAGS, "resolutionunit": "CENTIMETER"}, {"Y": 0.5, "X": 0.25}, "centimeter"),
            ({**TAGS, "resolutionunit": "INCH"}, {"Y": 0.5, "X": 0.25}, "inch"),
            ({**TAGS, "resolutionunit": "NONE"}, {"Y": 0.5, "X": 0.25}, ""),
            # The unit of tifffile's description is also that of the resolution, which says inches.
            ({**TAGS, **NAMED}, {"Z": 1.5, "Y": 0.5, "X": 0.25}, "micrometer"),
            (
                {**TAGS, **NAMED, "resolutionunit": "CENTIMETER"},
                {"Z": 1.5e-4, "Y": 0.5, "X": 0.25},
                "centimeter",
            ),
            ({"ome": True, "metadata": OME}, {"Y": 500.0, "X": 250.0}, "nanometer"),
        ],
    )
    def test_tiff(self, tmp_path, options, spacing, unit):
        assert spacing_of_tiff(tmp_path, **options) == (spacing, unit)

    def test_dots_per_inch(self, tmp_path):
        """Finer than a print is the resolution of a scanner; one of a print is no pixel size."""
        write_picture(tmp_path / "a.tif", noise(4, 5, dtype="u1"), dpi=(2000, 1000))
        opened = open_image(tmp_path / "a.tif")
        assert (opened.spacing, opened.unit) == ({"Y": 0.001, "X": 0.0005}, "inch")
        write_picture(tmp_path / "a.tif", noise(4, 5, dtype="u1"), dpi=(200, 100))
        opened = open_image(tmp_path / "a.tif")
        assert (opened.spacing, opened.unit) == ({}, "")
        assert opened.notes == (
            "its resolution of 200 x 100 dpi is that of a print, and no pixel size",
        )

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_ome_zarr(self, tmp_path, zarr_format):
        levels = [noise(2, 8, 8), noise(2, 4, 4)]
        steps = [(1, 250, 250), (1, 500, 500)]
        write_ome_zarr(tmp_path / "a.zarr", levels, "cyx", steps, zarr_format)
        opened = open_image(tmp_path / "a.zarr", level=1)
        assert (opened.axes, opened.unit, opened.levels) == ("CYX", "nanometer", 2)
        assert opened.spacing == {"Y": 500.0, "X": 500.0}


class TestCollections:
    """OME-Zarr groups of several images."""

    def test_bioformats2raw(self, tmp_path):
        root = zarr.create_group(tmp_path / "a.zarr", zarr_format=2)
        root.attrs["bioformats2raw.layout"] = 3
        images = [noise(5, 6), noise(7, 8)]
        for number, image in enumerate(images):
            write_ome_zarr(tmp_path / "a.zarr" / str(number), [image], "yx")
        assert_refused(tmp_path / "a.zarr", "holds 2 images, choose one with `series`")
        assert_opens(tmp_path / "a.zarr", images[0], "YX", {}, series=0)
        assert_opens(tmp_path / "a.zarr", images[1], "YX", {}, series=1)

    def test_plates_and_wells(self, tmp_path):
        root = zarr.create_group(tmp_path / "p.zarr", zarr_format=2)
        root.attrs["plate"] = {"wells": [{"path": "A/1"}]}
        well = zarr.create_group(tmp_path / "p.zarr" / "A" / "1", zarr_format=2)
        well.attrs["well"] = {"images": [{"path": "0"}, {"path": "1"}]}
        for field in range(2):
            path = tmp_path / "p.zarr" / "A" / "1" / str(field)
            write_ome_zarr(path, [noise(5, 6) + field], "yx")
        assert_refused(tmp_path / "p.zarr", "is a plate of several images")
        found = read_image(tmp_path / "p.zarr" / "A" / "1", series=1)
        np.testing.assert_array_equal(found, noise(5, 6) + 1)
