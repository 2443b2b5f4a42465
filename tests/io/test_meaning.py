"""One small volume in every format: values, axes, lengths and place are the reference reader's.

Each case writes it by the library of the format, with what the format has of signs, slopes, missing
values, anisotropy, place and shear, and reads it back by the reference library. What the format
cannot say is listed as unread.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import mrcfile
import nibabel
import nrrd
import numpy as np
import pydicom
import pytest
import SimpleITK
import tifffile
import xarray
import zarr
from io_helpers import noise, write_czi, write_dicom, write_ome_zarr

from ecc_core._io.open import FORMATS
from ecc_core.io import open_image

SHAPE = (3, 4, 5)
VOLUME = noise(*SHAPE, dtype="i2") // 64
TURNED = np.array([[0.0, 0, 2], [3, 0, 0], [0, 5, 0]])
"""Steps along x, y and z of the file, as columns."""
SHEARED = np.array([[2.0, 1, 0], [0, 3, 0], [0, 0, -5]])
ORIGIN = np.array([7.0, -8, 9])
LPS = np.array([-1.0, -1, 1])
"""Signs of left, posterior and superior in right, anterior and superior."""


class Read(NamedTuple):
    """What a reference library reads."""

    values: Any
    """NaN where they are missing."""
    axes: str
    spacing: Mapping[str, float] = {}
    unit: str = ""
    steps: Any = None
    """Along x, y and z, as columns, from right, anterior and superior; None if no place is said."""
    origin: Any = None


def nifti(folder: Path) -> tuple[Path, Read]:
    image = nibabel.Nifti1Image(VOLUME.astype("f8").T * 0.5 - 3, _homogeneous(SHEARED))
    image.set_data_dtype("i2")
    image.header.set_xyzt_units("mm")
    nibabel.save(image, folder / "a.nii")
    read = nibabel.load(folder / "a.nii")
    spacing = dict(zip("XYZ", map(float, read.header.get_zooms()), strict=True))
    values = np.asanyarray(read.dataobj).T
    return folder / "a.nii", Read(
        values, "ZYX", spacing, "millimeter", read.affine[:3, :3], read.affine[:3, 3]
    )


def nrrd_file(folder: Path) -> tuple[Path, Read]:
    header = {
        "space": "left-posterior-superior",
        "space directions": SHEARED.T,
        "space origin": ORIGIN,
        "space units": ["mm"] * 3,
    }
    nrrd.write(str(folder / "a.nrrd"), VOLUME, header, index_order="C")
    values, found = nrrd.read(str(folder / "a.nrrd"), index_order="C")
    steps = np.array(found["space directions"]).T
    spacing = dict(zip("XYZ", np.linalg.norm(steps, axis=0), strict=True))
    turned = LPS[:, None] * steps
    return folder / "a.nrrd", Read(
        values, "ZYX", spacing, "millimeter", turned, LPS * found["space origin"]
    )


def metaimage(folder: Path) -> tuple[Path, Read]:
    image = SimpleITK.GetImageFromArray(VOLUME)
    lengths = np.linalg.norm(TURNED, axis=0)
    image.SetSpacing(lengths.tolist())
    image.SetDirection((TURNED / lengths).ravel().tolist())
    image.SetOrigin(ORIGIN.tolist())
    SimpleITK.WriteImage(image, str(folder / "a.mha"))
    read = SimpleITK.ReadImage(str(folder / "a.mha"))
    spacing = np.array(read.GetSpacing())
    steps = LPS[:, None] * np.reshape(read.GetDirection(), (3, 3)) * spacing
    return folder / "a.mha", Read(
        SimpleITK.GetArrayFromImage(read),
        "ZYX",
        dict(zip("XYZ", spacing, strict=True)),
        "millimeter",
        steps,
        LPS * read.GetOrigin(),
    )


def dicom(folder: Path) -> tuple[Path, Read]:
    """Axial slices 5 mm apart, whose stored values have a slope."""
    for place in range(3):
        tags = {
            "RescaleSlope": 2,
            "RescaleIntercept": -10,
            "PixelPaddingValue": int(VOLUME[0, 0, 0]),
        }
        write_dicom(folder / f"{2 - place}.dcm", VOLUME[place], 5 * place, **tags)
    slices = sorted(
        (pydicom.dcmread(file) for file in folder.glob("*.dcm")),
        key=lambda one: one.ImagePositionPatient[2],
    )
    stored = np.stack([one.pixel_array for one in slices])
    values = np.stack([pydicom.pixels.apply_rescale(one.pixel_array, one) for one in slices])
    row, column = map(float, slices[0].PixelSpacing)
    return folder, Read(
        np.where(stored == VOLUME[0, 0, 0], np.nan, values),
        "ZYX",
        {"Z": 5.0, "Y": row, "X": column},
        "millimeter",
        np.diag([-column, -row, 5]),
        [0, 0, 0],
    )


def mrc(folder: Path) -> tuple[Path, Read]:
    with mrcfile.new(folder / "a.mrc") as file:
        file.set_data(VOLUME)
        file.voxel_size = (2, 3, 5)
    with mrcfile.open(folder / "a.mrc") as file:
        spacing = {axis: float(file.voxel_size[axis.lower()]) for axis in "ZYX"}
        return folder / "a.mrc", Read(file.data.copy(), "ZYX", spacing, "angstrom")


def ome_tiff(folder: Path) -> tuple[Path, Read]:
    metadata = {
        "axes": "ZYX",
        **{f"PhysicalSize{a}": s for a, s in zip("XYZ", (2, 3, 5), strict=True)},
    }
    tifffile.imwrite(folder / "a.ome.tif", VOLUME, metadata=metadata)
    with tifffile.TiffFile(folder / "a.ome.tif") as file:
        series = file.series[0]
        found = tifffile.xml2dict(file.ome_metadata)["OME"]["Image"]["Pixels"]
        spacing = {axis: float(found[f"PhysicalSize{axis}"]) for axis in "ZYX"}
        return folder / "a.ome.tif", Read(series.asarray(), series.axes, spacing, "micrometer")


def imagej_tiff(folder: Path) -> tuple[Path, Read]:
    metadata = {"axes": "ZYX", "spacing": -5, "unit": "um"}
    options: Any = {"resolution": (0.5, 0.25), "metadata": metadata}
    tifffile.imwrite(folder / "a.tif", VOLUME.astype("u2"), imagej=True, **options)
    with tifffile.TiffFile(folder / "a.tif") as file:
        across, down = file.pages[0].get_resolution(unit=1)
        spacing = {"Z": abs(file.imagej_metadata["spacing"]), "Y": 1 / down, "X": 1 / across}
        return folder / "a.tif", Read(file.asarray(), file.series[0].axes, spacing, "micrometer")


def gdal_tiff(folder: Path) -> tuple[Path, Read]:
    nodata = int(VOLUME[0, 0, 0])
    tags = [(42113, "s", 0, str(nodata), True)]
    tifffile.imwrite(folder / "a.tif", VOLUME[0], extratags=tags, metadata=None)
    with tifffile.TiffFile(folder / "a.tif") as file:
        values = file.asarray()
        assert file.pages[0].tags[42113].value == str(nodata)
        return folder / "a.tif", Read(np.where(values == nodata, np.nan, values), "YX")


def ome_zarr(folder: Path) -> tuple[Path, Read]:
    path = write_ome_zarr(folder / "a.zarr", [VOLUME], "zyx", [(5, 3, 2)], 3, unit="micrometer")
    group = zarr.open_group(path)
    (image,) = group.attrs["ome"]["multiscales"]
    (level,) = image["datasets"]
    level["coordinateTransformations"].append({"type": "translation", "translation": [1, 2, 3]})
    group.attrs["ome"] = {"version": "0.5", "multiscales": [image]}
    scale, shift = level["coordinateTransformations"]
    axes = "".join(axis["name"].upper() for axis in image["axes"])
    spacing = dict(zip(axes, scale["scale"], strict=True))
    # The coordinates x, y and z are those of the image's own axes.
    steps = np.diag(scale["scale"][::-1])
    values = group["0"][...]
    return path, Read(values, axes, spacing, "micrometer", steps, shift["translation"][::-1])


def cf_zarr(folder: Path, version: Any = 3) -> tuple[Path, Read]:
    values = VOLUME.astype("f8")
    values[0, 0, 0] = np.nan
    encoding = {"dtype": "i2", "scale_factor": -0.5, "_FillValue": -32768}
    dataset = xarray.Dataset({"a": (("time", "y", "x"), values)})
    options: Any = {"zarr_format": version, "consolidated": False}
    dataset.to_zarr(folder / "a.zarr", encoding={"a": encoding}, **options)
    with xarray.open_zarr(folder / "a.zarr", consolidated=False) as read:
        return folder / "a.zarr" / "a", Read(read["a"].values, "TYX")


def cf_zarr_2(folder: Path) -> tuple[Path, Read]:
    return cf_zarr(folder, 2)


def cf_hdf5(folder: Path) -> tuple[Path, Read]:
    values = VOLUME.astype("f8")
    values[0, 0, 0] = np.nan
    encoding = {"dtype": "i2", "scale_factor": -0.5, "add_offset": 2.0, "_FillValue": -32768}
    dataset = xarray.Dataset({"a": (("time", "lat", "lon"), values)})
    dataset.to_netcdf(folder / "a.h5", engine="h5netcdf", encoding={"a": encoding})
    with xarray.open_dataset(folder / "a.h5", engine="h5netcdf") as read:
        return folder / "a.h5", Read(read["a"].values, "TYX")


def ilastik_hdf5(folder: Path) -> tuple[Path, Read]:
    with h5py.File(folder / "a.h5", "w") as file:
        file["raw"] = VOLUME
        file["raw"].attrs["element_size_um"] = [5.0, 3.0, 2.0]
    with h5py.File(folder / "a.h5") as file:
        spacing = dict(zip("ZYX", file["raw"].attrs["element_size_um"], strict=True))
        return folder / "a.h5", Read(file["raw"][()], "ZYX", spacing, "micrometer")


def npy(folder: Path) -> tuple[Path, Read]:
    np.save(folder / "a.npy", VOLUME)
    return folder / "a.npy", Read(np.load(folder / "a.npy"), "ZYX")


def czi(folder: Path) -> tuple[Path, Read]:
    write_czi(folder / "a.czi", VOLUME.astype("u2"))
    spacing = {"Z": 2.0, "Y": 0.5, "X": 0.25}
    return folder / "a.czi", Read(VOLUME.astype("u2"), "ZYX", spacing, "micrometer")


CASES: list[Callable[[Path], tuple[Path, Read]]] = [
    *(nifti, nrrd_file, metaimage, dicom, mrc, ome_tiff, imagej_tiff, gdal_tiff, ome_zarr),
    *(cf_zarr, cf_zarr_2, cf_hdf5, ilastik_hdf5, npy, czi),
]


def _homogeneous(steps: np.ndarray) -> np.ndarray:
    affine = np.eye(4)
    affine[:3, :3], affine[:3, 3] = steps, ORIGIN
    return affine


@pytest.mark.parametrize("case", CASES)
def test_what_a_file_means(tmp_path, case):
    path, expected = case(tmp_path)
    opened = open_image(path)
    values = opened.read()
    np.testing.assert_array_equal(_plain(values), _plain(expected.values))
    middle = tuple(slice(1, n) for n in opened.shape)
    np.testing.assert_array_equal(_plain(opened[middle]), _plain(values[middle].data))
    assert opened.axes == expected.axes
    assert opened.spacing == pytest.approx(dict(expected.spacing), rel=1e-6)
    assert opened.unit == expected.unit
    if expected.steps is None:
        assert opened.affine is None
    else:
        steps = np.stack([opened.affine.steps[axis] for axis in "XYZ"], axis=1)
        np.testing.assert_allclose(steps, expected.steps, atol=1e-6)
        np.testing.assert_allclose(opened.affine.origin, expected.origin, atol=1e-6)
    is_sheared = expected.steps is not None and abs(np.linalg.det(expected.steps)) < (
        1 - 1e-3
    ) * np.prod([*expected.spacing.values()])
    assert is_sheared == any("sheared" in note for note in opened.notes)


def _plain(values: Any) -> np.ndarray:
    """Values with NaN where they are missing, whatever their dtype."""
    if isinstance(values, np.ma.MaskedArray):
        return values.astype("f8").filled(np.nan)
    return np.asarray(values, "f8")


@pytest.mark.parametrize("case", CASES)
def test_readers_fill_only_what_they_say(tmp_path, case):
    """A field that the table of formats denies is never there."""
    path, _ = case(tmp_path)
    description = open_image(path).description
    assert description.said() <= description.read
    assert description.read in [found.fields for found in FORMATS]
