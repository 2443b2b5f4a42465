"""FITS, as astropy reads it."""

import gzip

import numpy as np
import pytest
from astropy.io import fits
from astropy.wcs import WCS
from astropy.wcs.utils import proj_plane_pixel_scales
from io_helpers import assert_reads, assert_refused, noise

from ecc_core.cli import main
from ecc_core.io import open_image, read_file

IMAGE = noise(3, 4, 5, dtype="i2")


def sky(*kinds: str) -> WCS:
    """Coordinates of a rotated image, whose pixels are 0.01 and 0.02 degrees wide."""
    found = WCS(naxis=len(kinds))
    found.wcs.ctype = kinds
    found.wcs.cdelt = [-0.01, 0.02, 1e6][: len(kinds)]
    found.wcs.crpix = [2, 2, 1][: len(kinds)]
    found.wcs.crval = [10, 20, 1e9][: len(kinds)]
    rotated = np.eye(len(kinds))
    rotated[:2, :2] = [[0.8, -0.6], [0.6, 0.8]]
    found.wcs.pc = rotated
    return found


@pytest.mark.parametrize("suffix", [".fits", ".fit", ".fits.gz"])
@pytest.mark.parametrize(
    ("dtype", "scaling", "blank"),
    [
        ("u1", None, None),
        ("i2", None, None),
        ("u2", None, None),
        ("i4", None, None),
        ("i8", None, None),
        ("f4", None, None),
        ("f8", None, None),
        ("i2", (0.5, 100), None),
        ("i2", (-0.01, 3), 7),
        ("i4", (1, 0), 7),
        ("u1", (2, -128), None),
    ],
)
def test_values_are_those_of_astropy(tmp_path, dtype, scaling, blank, suffix):
    """BSCALE, BZERO and BLANK, and unsigned integers, which are signed ones with BZERO."""
    path = tmp_path / f"a{suffix}"
    stored = fits.PrimaryHDU(noise(3, 4, 5, dtype=dtype))
    if scaling:
        stored.data.flat[4] = 7
        stored = fits.PrimaryHDU(stored.data, do_not_scale_image_data=True)
        stored.header["BSCALE"], stored.header["BZERO"] = scaling
        if blank is not None:
            stored.header["BLANK"] = blank
    stored.writeto(path)
    if scaling:  # astropy divides given values by the scale.
        patched(path, scaling, blank)
    with fits.open(path) as units:
        expected = units[0].data
        found = read_file(path)
        assert found.axes == "ZYX"
        assert found.values.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(found.values), expected)
        box = (slice(1, 3), slice(0, 2), slice(2, 5))
        np.testing.assert_array_equal(open_image(path)[box], expected[box])


def patched(path, scaling, blank):
    """Write the same values with a header of another scaling."""
    cards = {"BSCALE": scaling[0], "BZERO": scaling[1]}
    if blank is not None:
        cards["BLANK"] = blank
    opener = gzip.open if path.suffix == ".gz" else open
    with fits.open(path, do_not_scale_image_data=True) as units:
        header = units[0].header.copy()
        raw = np.array(units[0].data)
    header.update(cards)
    padding = -raw.nbytes % 2880
    content = header.tostring().encode() + raw.tobytes() + bytes(padding)
    with opener(path, "wb") as file:
        file.write(content)


def test_blank_is_missing(tmp_path):
    """It is NaN, and commands leave it out."""
    path = tmp_path / "a.fits"
    fits.PrimaryHDU(IMAGE).writeto(path)
    patched(path, (2, 1), int(IMAGE[1, 2, 3]))
    opened = open_image(path)
    assert np.isnan(opened[1, 2, 3])
    assert any("BLANK" in note for note in opened.notes)
    assert opened.description.encoding.slopes == (2.0,)
    assert main(["curve", str(path), "--thresholds", "2", "--out", str(tmp_path / "o.csv")]) == 0


def test_pixel_scales(tmp_path):
    """It equals `proj_plane_pixel_scales`; a note says that a spectral axis is one of channels."""
    path = tmp_path / "a.fits"
    coordinates = sky("RA---TAN", "DEC--TAN", "FREQ")
    fits.PrimaryHDU(IMAGE, header=coordinates.to_header()).writeto(path)
    opened = open_image(path)
    x, y = proj_plane_pixel_scales(coordinates.celestial)
    assert opened.axes == "CYX"
    assert opened.spacing == pytest.approx({"Y": y, "X": x})
    assert opened.unit == "deg"
    assert any("FREQ" in note for note in opened.notes)
    assert open_image(path, axes="ZYX").axes == "ZYX"


def test_old_matrix_and_flat_axes(tmp_path):
    """CD without CDELT; an axis of one Stokes parameter is left out."""
    header = fits.Header()
    header["CTYPE1"], header["CTYPE2"], header["CTYPE4"] = "GLON-CAR", "GLAT-CAR", "STOKES"
    header["CD1_1"], header["CD2_1"], header["CD1_2"], header["CD2_2"] = -0.3, 0.4, 0.4, 0.3
    header["CD3_3"] = header["CD4_4"] = 1
    path = tmp_path / "a.fits"
    fits.PrimaryHDU(IMAGE[None], header=header).writeto(path)
    opened = open_image(path)
    assert (opened.axes, opened.shape) == ("ZYX", IMAGE.shape)
    np.testing.assert_array_equal(opened.read(), IMAGE)
    with fits.open(path) as units:
        x, y = proj_plane_pixel_scales(WCS(units[0].header, fix=False).celestial)
    assert {axis: opened.spacing[axis] for axis in "YX"} == pytest.approx({"Y": y, "X": x})


@pytest.mark.parametrize("compression", ["RICE_1", "GZIP_1", "GZIP_2", "PLIO_1"])
def test_compressed_tiles_and_extensions(tmp_path, compression):
    """An extension is named like a file in a folder, by its name or number."""
    path = tmp_path / "a.fits.fz"
    image = noise(6, 7, dtype="u1").astype("i2")
    table = fits.BinTableHDU.from_columns([fits.Column("a", "J", array=[1])])
    compressed = fits.CompImageHDU(image, name="SCI", compression_type=compression)
    mask = fits.ImageHDU((image > 9).astype("u1"), name="DQ")
    fits.HDUList([fits.PrimaryHDU(), table, compressed, mask]).writeto(path)
    assert_refused(path, "holds 2 images", "2 SCI", "3 DQ")
    assert_reads(path / "SCI", image)
    assert_reads(path / "sci,1", image)
    assert_reads(path / "2", image)
    assert_reads(path / "dq", (image > 9).astype("u1"))
    assert_reads(path, image, series=0)
    assert_refused(path / "ERR", "has no image ERR")


def test_labels_of_another_part_of_the_sky(tmp_path, capsys):
    image = tmp_path / "a.fits"
    labels = tmp_path / "l.fits"
    there = sky("RA---TAN", "DEC--TAN")
    fits.PrimaryHDU(IMAGE[0], header=there.to_header()).writeto(image)
    there.wcs.crpix = [4, 2]
    fits.PrimaryHDU((IMAGE[0] > 0).astype("u1"), header=there.to_header()).writeto(labels)
    assert main(["curve", str(image), "--thresholds", "2", "--mask", str(labels)]) == 2
    assert "shifted by" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"SIMPLE", b"PK\3\4" + bytes(3000), b"BZh9" + bytes(99)])
def test_other_files(tmp_path, content):
    """Astropy would open archives of other kinds, too."""
    path = tmp_path / "a.fits"
    path.write_bytes(content)
    assert_refused(path)


def test_a_claim_of_size(tmp_path):
    path = tmp_path / "a.fits"
    fits.PrimaryHDU(IMAGE).writeto(path)
    content = path.read_bytes()
    card = b"NAXIS3  =                    3"
    assert card in content
    path.write_bytes(content.replace(card, b"NAXIS3  =            300000000"))
    assert_refused(path, "truncated")


def test_scales_without_a_rotation(tmp_path):
    """CDELT alone, of linear axes in a unit of length, whose place is known."""
    path = tmp_path / "a.fits"
    header = fits.Header()
    for number, (step, first) in enumerate([(0.5, 10), (-0.25, 20), (2, 30)], start=1):
        header[f"CDELT{number}"], header[f"CRVAL{number}"] = step, first
        header[f"CRPIX{number}"], header[f"CUNIT{number}"] = 1, "mm"
    fits.PrimaryHDU(IMAGE, header=header).writeto(path)
    opened = open_image(path)
    assert (opened.axes, opened.unit) == ("ZYX", "millimeter")
    assert opened.spacing == {"Z": 2.0, "Y": 0.25, "X": 0.5}
    np.testing.assert_array_equal(opened.affine.origin, [30, 20, 10])
    np.testing.assert_array_equal(opened.affine.steps["Y"], [0, -0.25, 0])
