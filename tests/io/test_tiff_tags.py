"""What tags of TIFF files say of values and lengths, as their makers and tifffile mean it."""

from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
import tifffile
from io_helpers import assert_refused, columns, noise, rows_of

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.io import open_image, read_image

FEI = "[Scan]\r\nPixelWidth=1.25e-08\r\nPixelHeight=2.5e-08\r\n"
ZEISS = "\r\n".join(["0"] * 4 + ["AP_IMAGE_PIXEL_SIZE", "Image Pixel Size = 1.25 nm", ""])
ZEISS_OLD = "\r\n".join(["0"] * 4 + ["AP_PIXEL_SIZE", "Pixel Size = 0.5 \u00b5m", ""])
PRINT: dict[str, Any] = {"resolution": (72, 72), "resolutionunit": "INCH"}
CM: dict[str, Any] = {"resolution": (40000, 40000), "resolutionunit": "CENTIMETER"}
NODATA = 42113


def opened_of(path: Path, image: np.ndarray, **options: Any) -> Any:
    tifffile.imwrite(path, image, **options)
    return open_image(path)


class TestLengths:
    @pytest.mark.parametrize(
        ("options", "described", "spacing"),
        [
            (CM, {"spacing": 0.5, "unit": "um"}, (0.5, 0.25, 0.25)),  # As ImageJ reads it.
            ({"resolution": (1, 1)}, {"spacing": 0.5, "unit": "um"}, (0.5, 1.0, 1.0)),
            ({"resolution": (4, 4)}, {"spacing": -0.5, "unit": "um"}, (0.5, 0.25, 0.25)),
            (PRINT, {"spacing": 0.5, "unit": "inch"}, (0.5, 1 / 72, 1 / 72)),
        ],
    )
    def test_imagej(self, tmp_path, options, described, spacing):
        """ImageJ converts from cm, believes 1 if it has a unit, and takes stacks upwards."""
        opened = opened_of(
            tmp_path / "a.tif",
            noise(3, 8, 8),
            imagej=True,
            metadata={"axes": "ZYX", **described},
            **options,
        )
        assert opened.spacing == pytest.approx(dict(zip("ZYX", spacing, strict=True)))
        assert opened.notes == ()

    @pytest.mark.parametrize(
        ("tag", "text", "spacing", "unit"),
        [
            (34682, FEI, {"Y": 2.5e-8, "X": 1.25e-8}, "meter"),  # FEI and Thermo Fisher write it.
            (34680, FEI, {"Y": 2.5e-8, "X": 1.25e-8}, "meter"),
            (34118, ZEISS, {"Y": 1.25, "X": 1.25}, "nanometer"),
            (34118, ZEISS_OLD, {"Y": 0.5, "X": 0.5}, "micrometer"),
        ],
    )
    def test_electron_microscopes(self, tmp_path, tag, text, spacing, unit):
        """Their own tag holds the pixel size, and the resolution is that of a print."""
        content = text.encode("cp1252")
        tags = [(tag, 2, len(content) + 1, content + b"\0", True)]
        opened = opened_of(tmp_path / "a.tif", noise(8, 8), extratags=tags, **PRINT)
        assert (opened.spacing, opened.unit, opened.notes) == (spacing, unit, ())

    @pytest.mark.parametrize("dpi", [72, 96, 300, 600])
    def test_prints(self, tmp_path, dpi):
        options = {**PRINT, "resolution": (dpi, dpi)}
        opened = opened_of(tmp_path / "a.tif", noise(8, 8), **options)
        assert opened.spacing == {}
        assert opened.notes == (
            f"its resolution of {dpi} dpi is that of a print, and no pixel size",
        )

    def test_a_print_in_centimeters_is_rounded(self, tmp_path):
        """600 points an inch are 236.2205 a centimeter, which are 600.00007 an inch."""
        options = {"resolution": (236.2205, 236.2205), "resolutionunit": "CENTIMETER"}
        opened = opened_of(tmp_path / "a.tif", noise(8, 8), **options)
        assert opened.spacing == {}
        assert opened.notes == ("its resolution of 600 dpi is that of a print, and no pixel size",)

    def test_levels(self, tmp_path):
        """A level of half the points has twice the spacing."""
        with tifffile.TiffWriter(tmp_path / "a.ome.tif", ome=True) as file:
            metadata = {"axes": "YX", "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.25}
            file.write(noise(16, 32), subifds=1, metadata=metadata)
            file.write(noise(8, 16), subfiletype=1)
        assert open_image(tmp_path / "a.ome.tif", level=1).spacing == {"Y": 0.5, "X": 1.0}

    def test_time(self, tmp_path):
        metadata = {"axes": "TYX", "finterval": 2.5}
        opened = opened_of(tmp_path / "a.tif", noise(3, 8, 8), imagej=True, metadata=metadata)
        assert (opened.description.axes[0].step, opened.description.axes[0].unit) == (2.5, "second")


class TestMissing:
    """GDAL nodata, and the masks of LERC: values of tifffile, where they are not missing."""

    @pytest.fixture(params=["f4", "i2"])
    def image(self, request: Any) -> np.ndarray:
        values = (noise(20, 16, dtype="i2") // 64).astype(request.param)
        values[:5, 3:7] = -9999
        return values

    @pytest.fixture
    def path(self, tmp_path: Path, image: np.ndarray) -> Path:
        tags = [(NODATA, "s", 0, "-9999", True)]
        tifffile.imwrite(tmp_path / "a.tif", image, extratags=tags, rowsperstrip=4)
        return tmp_path / "a.tif"

    def test_values(self, path, image):
        read = read_image(path)
        assert read.dtype == tifffile.imread(path).dtype
        np.testing.assert_array_equal(np.ma.getmaskarray(read), image == -9999)
        np.testing.assert_array_equal(read.compressed(), image[image != -9999])
        assert open_image(path).notes == ("missing values (GDAL nodata -9999) are left out",)

    @pytest.mark.parametrize("command", ["curve", "stack", "batch"])
    @pytest.mark.parametrize("more", [[], ["--betti"], ["--minkowski"], ["--components"]])
    def test_commands(self, tmp_path, path, image, command, more, capsys):
        """The same as of the image with NaN, which are omitted."""
        np.save(tmp_path / "nan.npy", np.where(image == -9999, np.nan, image))
        found = []
        for name, nan in ((path, []), (tmp_path / "nan.npy", ["--nan", "omit"])):
            out = tmp_path / "t.csv"
            levels = ["--thresholds", "-400,-100,0,100,400"]
            main([command, str(name), "--out", str(out), *levels, *nan, *more])
            found.append(columns(out))
        assert found[0] == found[1]
        assert capsys.readouterr().err.count("missing values (GDAL nodata -9999)") == 1

    def test_range(self, path, image, capsys):
        main(["info", str(path)])
        kept = image[image != -9999]
        lines = capsys.readouterr().out.splitlines()
        assert f"  range   {kept.min()} to {kept.max()}" in lines
        assert f"  left out {(image == -9999).sum()}" in lines

    def test_objects_and_labels(self, tmp_path, path, image, capsys):
        """Objects do not extend over missing points, and missing labels are no region."""
        main(["objects", str(path), "--persistence", "300"])
        found = rows_of(capsys.readouterr().out)
        masked = np.ma.masked_array(image, image == -9999)
        expected = ecc.persistent_regions(masked, 300)
        _, *sizes = np.bincount(expected.labels.ravel(), minlength=len(expected.births) + 1)
        assert [int(row["points"]) for row in found] == sizes
        np.save(tmp_path / "a.npy", noise(20, 16))
        if image.dtype.kind == "i":
            main(["curve", str(tmp_path / "a.npy"), "--labels", str(path), "--thresholds", "9"])
            labels = {int(row["label"]) for row in rows_of(capsys.readouterr().out)}
            assert labels == {*image.ravel().tolist()} - {-9999, 0}

    def test_smoothing_is_refused(self, path, capsys):
        assert main(["curve", str(path), "--smooth", "1"]) == 2
        assert "--smooth needs an image without missing values" in capsys.readouterr().err

    @pytest.mark.parametrize("nodata", ["-9999", "300", "nan", "1e99"])
    def test_what_the_type_cannot_hold(self, tmp_path, nodata):
        tags = [(NODATA, "s", 0, nodata, True)]
        opened = opened_of(tmp_path / "a.tif", noise(6, 6), extratags=tags)
        assert (opened.missing, opened.notes) == (None, ())

    def test_lerc(self, tmp_path):
        """imagecodecs gives 0 where the mask says that there is nothing."""
        image = noise(20, 16, dtype="f4")
        image[3:9, 2:5] = np.nan
        tifffile.imwrite(tmp_path / "a.tif", image, compression="lerc", tile=(16, 16))
        assert not np.isnan(tifffile.imread(tmp_path / "a.tif")).any()
        opened = open_image(tmp_path / "a.tif")
        np.testing.assert_array_equal(opened.read().filled(np.nan), image)
        np.testing.assert_array_equal(opened[2:6, 1:4], image[2:6, 1:4])

    def test_lerc_of_integers(self, tmp_path):
        image = noise(16, 16)
        valid = np.ones((16, 16), np.bool_)
        tifffile.imwrite(tmp_path / "a.tif", image, compression="lerc")
        np.testing.assert_array_equal(read_image(tmp_path / "a.tif"), image)
        valid[2, 3] = False
        content = imagecodecs.lerc_encode(image, masks=valid)
        with tifffile.TiffWriter(tmp_path / "b.tif") as file:
            file.write(
                iter([content]),
                shape=image.shape,
                dtype=image.dtype,
                compression="lerc",
                rowsperstrip=16,
            )
        assert_refused(tmp_path / "b.tif", "missing by a mask of LERC")


def test_jpeg_colours(tmp_path):
    """tifffile decodes YCbCr in JPEG to RGB."""
    image = noise(32, 32, 3)
    opened = opened_of(tmp_path / "a.tif", image, photometric="rgb", compression="jpeg")
    assert opened.axes == "YXS"
    np.testing.assert_array_equal(opened.read(), tifffile.imread(tmp_path / "a.tif"))
    assert read_image(tmp_path / "a.tif", channel="gray").shape == (32, 32)


class TestSeveralFiles:
    """One OME image whose planes lie in two files."""

    @pytest.fixture
    def image(self, tmp_path: Path) -> np.ndarray:
        ids = [f"urn:uuid:{number:032d}" for number in range(3)]
        planes = noise(2, 6, 5)
        schema = 'xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"'

        def described(prefix: str, own: str) -> str:
            parts = "".join(
                f'<TiffData FirstZ="{i}" PlaneCount="1">'
                f'<UUID FileName="{prefix}{i}.ome.tif">{ids[i]}</UUID></TiffData>'
                for i in range(2)
            )
            return (
                f'<?xml version="1.0"?><OME {schema} UUID="{own}"><Image ID="Image:0">'
                '<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint8" SizeX="5" SizeY="6" '
                'SizeZ="2" SizeC="1" SizeT="1" PhysicalSizeX="0.5"><Channel ID="Channel:0:0" '
                f'SamplesPerPixel="1"/>{parts}</Pixels></Image></OME>'
            )

        for i in range(2):
            own = described("z", ids[i])
            tifffile.imwrite(tmp_path / f"z{i}.ome.tif", planes[i], description=own, metadata=None)
            binary = (
                f'<?xml version="1.0"?><OME {schema} UUID="{ids[i]}">'
                f'<BinaryOnly MetadataFile="x.companion.ome" UUID="{ids[2]}"/></OME>'
            )
            path = tmp_path / f"b{i}.ome.tif"
            tifffile.imwrite(path, planes[i], description=binary, metadata=None)
        (tmp_path / "x.companion.ome").write_text(described("b", ids[2]), "utf-8")
        return planes

    @pytest.mark.parametrize("command", ["curve", "batch"])
    def test_one_image_is_one_row(self, tmp_path, image, command, capsys):
        out = tmp_path / "t.csv"
        pattern = str(tmp_path / "z?.ome.tif")
        main([command, pattern, "--out", str(out), "--thresholds", "100,200"])
        assert {row["input"] for row in rows_of(out)} == {str(tmp_path / "z0.ome.tif")}
        assert "z1.ome.tif: left out, it has a part of the image in" in capsys.readouterr().err

    def test_a_folder_of_parts(self, tmp_path, image):
        for name in ("b0.ome.tif", "b1.ome.tif", "x.companion.ome"):
            (tmp_path / name).unlink()
        np.testing.assert_array_equal(read_image(tmp_path), image)

    @pytest.mark.parametrize("number", [0, 1])
    def test_a_companion(self, tmp_path, image, number):
        opened = open_image(tmp_path / f"b{number}.ome.tif")
        assert (opened.axes, opened.spacing) == ("ZYX", {"X": 0.5})
        np.testing.assert_array_equal(opened.read(), image)

    def test_by_the_companion_itself(self, tmp_path, image):
        """It names the files with the values, and is no slice of a folder of images."""
        opened = open_image(tmp_path / "x.companion.ome")
        assert (opened.axes, opened.spacing) == ("ZYX", {"X": 0.5})
        np.testing.assert_array_equal(opened.read(), image)
        assert str(tmp_path / "x.companion.ome") in opened.described

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("<OME", '<!DOCTYPE a [<!ENTITY b "c">]><OME', "DOCTYPE"),
            ('FileName="b0', 'FileName="../b0', "outside of its folder"),
            ('FileName="b0', 'FileName="c0', "c0.ome.tif, which is missing"),
            ("UUID>", "ID>", "names no file"),
            ("</OME>", "", "not a description of OME-TIFF files, or damaged"),
        ],
    )
    def test_bad_companions(self, tmp_path, image, old, new, words):
        path = tmp_path / "x.companion.ome"
        text = path.read_text("utf-8")
        assert old in text
        text = text.replace("<UUID", "<ID") if old == "UUID>" else text
        path.write_text(text.replace(old, new), "utf-8")
        assert_refused(path, words)

    def test_what_is_missing_is_named(self, tmp_path, image):
        (tmp_path / "z1.ome.tif").unlink()
        assert_refused(tmp_path / "z0.ome.tif", "are missing: z1.ome.tif")
        (tmp_path / "x.companion.ome").unlink()
        assert_refused(tmp_path / "b0.ome.tif", "x.companion.ome, which is missing")
