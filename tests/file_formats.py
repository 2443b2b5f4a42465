"""Functions for each file format that write a file, and that read it without the package."""

import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import imagecodecs
import imageio.v3 as imageio
import mrcfile
import nibabel
import nrrd
import numpy as np
import pydicom
import pytest
import scipy.io
import SimpleITK
import tensorstore
import tifffile
import xarray
import zarr
from astropy.io import fits
from format_writers import (
    write_amira,
    write_bdv,
    write_emd,
    write_imaris,
    write_minc,
    write_n5,
    write_vti,
    write_zlib_vti,
)
from io_helpers import (
    czi_library,
    write_czi,
    write_dicom,
    write_hdf5,
    write_itk,
    write_lif,
    write_mrc,
    write_nd2,
    write_nifti,
    write_nrrd,
    write_pages,
    write_picture,
    write_zarr,
)
from PIL import Image

from ecc_core.io import write_cubical_complex

PLANE = (24, 20)
COLOURS = (24, 20, 3)
VOLUME = (5, 12, 10)

Array = np.ndarray


def read_hdf5(path: Path) -> Array:
    with h5py.File(path) as file:
        return file["raw"][()]


def read_pillow(path: Path) -> Array:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB") if image.mode == "P" else image)


def read_nrrd(path: Path) -> Array:
    return nrrd.read(str(path), index_order="C")[0]


def read_mrc(path: Path) -> Array:
    with mrcfile.open(path) as file:
        return file.data


def read_zarr(path: Path) -> Array:
    return zarr.open(path)[...]


def read_itk(path: Path) -> Array:
    return SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(path)))


def read_czi(path: Path) -> Array:
    with czi_library().open_czi(str(path)) as file:
        planes = range(file.total_bounding_box["Z"][1])
        return np.stack([file.read(plane={"Z": z})[..., 0] for z in planes])


def read_nd2(path: Path) -> Array:
    pytest.importorskip("bioio_nd2")
    return pytest.importorskip("nd2").imread(path)


def liffile(path: Path) -> Array:
    return pytest.importorskip("liffile").imread(path)


def read_imaris(path: Path) -> Array:
    """Return the dataset, as large as its attributes say."""
    with h5py.File(path) as file:
        group = file["DataSet/ResolutionLevel 0/TimePoint 0/Channel 0"]
        sizes = [int(group.attrs[f"ImageSize{axis}"].tobytes()) for axis in "ZYX"]
        return group["Data"][tuple(map(slice, sizes))]


def read_bdv(path: Path) -> Array:
    with h5py.File(path.with_suffix(".h5")) as file:
        return file["t00000/s00/0/cells"][()].view(np.uint16)


def read_emd(path: Path) -> Array:
    with h5py.File(path) as file:
        return file["data/image/data"][()]


def write_netcdf(path: Path, image: Array, engine: str) -> None:
    values = image.astype(np.int16)
    xarray.Dataset({"raw": (("z", "y", "x"), values)}).to_netcdf(path, engine=engine)


def read_netcdf_3(path: Path) -> Array:
    with scipy.io.netcdf_file(path, mmap=False) as file:
        return next(iter(file.variables.values())).data


def read_netcdf_4(path: Path) -> Array:
    with h5py.File(path) as file:
        return file["raw"][()]


def read_fits(path: Path) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fits.getdata(path)


def read_n5(path: Path) -> Array:
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(path)}}
    return tensorstore.open(spec, read=True).result().read().result().T


def read_raw_vti(path: Path) -> Array:
    """Return the values, which follow their size."""
    _, _, content = path.read_bytes().partition(b'"raw">\n_')
    return np.frombuffer(content, np.uint8, 600, 4).reshape(VOLUME)


def read_dipha(path: Path) -> Array:
    lengths = np.fromfile(path, "<i8", 3, offset=32)
    return np.fromfile(path, "<f8", offset=56).reshape(lengths[::-1])


def read_perseus(path: Path) -> Array:
    ndim, *numbers = map(float, path.read_text().split())
    lengths = [abs(int(n)) for n in numbers[: int(ndim)]]
    return np.reshape(numbers[int(ndim) :], lengths[::-1])


def read_amira(path: Path) -> Array:
    """Return the bytes behind @1, as many as the lattice has points."""
    content = path.read_bytes()
    lengths = re.search(rb"Lattice (\d+) (\d+) (\d+)", content).groups()
    shape = [int(n) for n in lengths][::-1]
    start = content.index(b"\n@1\n") + 4
    return np.frombuffer(content, np.uint8, int(np.prod(shape)), start).reshape(shape)


def write_detached_nrrd(path: Path, image: Array) -> None:
    nrrd.write(str(path), image, {"encoding": "raw"}, detached_header=True, index_order="C")


def write_pair(path: Path, image: Array) -> None:
    nibabel.save(nibabel.Nifti1Pair(image.T, np.eye(4)), path)


def read_pair(path: Path) -> Array:
    return np.asanyarray(nibabel.load(path).dataobj).T


def read_minc(path: Path) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(nibabel.load(path).dataobj)


def write_fits(path: Path, image: Array) -> None:
    fits.PrimaryHDU(image).writeto(path)


def write_tiles(path: Path, image: Array) -> None:
    fits.HDUList([fits.PrimaryHDU(), fits.CompImageHDU(image)]).writeto(path)


def writing(encode: Callable[[Array], bytes]) -> Callable[[Path, Array], object]:
    return lambda path, image: path.write_bytes(encode(image))


class Format(NamedTuple):
    """A format: the shape of noise in a file, and functions that write and read it."""

    shape: tuple[int, ...]
    write: Callable[..., None]
    read: Callable[[Path], Array] | None = None
    """Reads by the library or the definition of the format; None if checksums cover the values."""


def tiff(shape: tuple[int, ...] = PLANE, **options: Any) -> Format:
    return Format(shape, partial(tifffile.imwrite, **options), tifffile.imread)


jpeg_2000 = partial(imagecodecs.jpeg2k_encode, reversible=True, level=0)
write_gzip_h5 = partial(write_hdf5, chunks=(4, 4, 4), compression="gzip", fletcher32=True)
FORMATS = {
    "a.png": Format(PLANE, imageio.imwrite),
    "deep.png": Format(COLOURS, writing(lambda i: imagecodecs.png_encode(i.astype(np.uint16)))),
    "a.jpg": Format(PLANE, write_picture, read_pillow),
    "a.gif": Format(COLOURS, write_picture, read_pillow),
    "a.bmp": Format(COLOURS, write_picture, read_pillow),
    "a.webp": Format(COLOURS, write_picture, read_pillow),
    "a.jp2": Format(PLANE, writing(jpeg_2000), lambda p: imagecodecs.jpeg2k_decode(p.read_bytes())),
    "raw.tif": tiff(),
    "zlib.tif": tiff(compression="zlib", rowsperstrip=8),
    "lzw.tif": tiff(compression="lzw", rowsperstrip=8),
    "tiles.tif": tiff(tile=(16, 16)),
    "imagej.tif": tiff(VOLUME, imagej=True, metadata={"axes": "ZYX"}),
    "pages.tif": Format(VOLUME, write_pages, tifffile.imread),
    "a.ome.tif": tiff(VOLUME, metadata={"axes": "ZYX"}, compression="zlib"),
    "a.npy": Format(VOLUME, np.save, np.load),
    "a.npz": Format(VOLUME, np.savez),
    "compressed.npz": Format(VOLUME, np.savez_compressed),
    "a.h5": Format(VOLUME, write_hdf5, read_hdf5),
    "gzip.h5": Format(VOLUME, write_gzip_h5, read_hdf5),
    "a.nii": Format(VOLUME, write_nifti, lambda p: np.asanyarray(nibabel.load(p).dataobj).T),
    "a.nii.gz": Format(VOLUME, write_nifti),
    "raw.nrrd": Format(VOLUME, partial(write_nrrd, encoding="raw"), read_nrrd),
    "a.nrrd": Format(VOLUME, write_nrrd, read_nrrd),
    "a.mha": Format(VOLUME, write_itk, read_itk),
    "a.mhd": Format(VOLUME, write_itk, read_itk),
    "zlib.mha": Format(VOLUME, partial(write_itk, compressed=True)),
    "zlib.mhd": Format(VOLUME, partial(write_itk, compressed=True)),
    "a.mrc": Format(VOLUME, write_mrc, read_mrc),
    "a.mrc.gz": Format(VOLUME, partial(write_mrc, compression="gzip"), read_mrc),
    "a.dcm": Format(VOLUME, write_dicom, lambda p: pydicom.dcmread(p).pixel_array),
    "a.czi": Format(VOLUME, write_czi, read_czi),
    "a.lif": Format(VOLUME, lambda p, i: write_lif(p, [i], "ZYX", {}), liffile),
    "a.nd2": Format(VOLUME, lambda p, i: write_nd2(p, i[:, None]), read_nd2),
    "a.ims": Format(VOLUME, write_imaris, read_imaris),
    "a.xml": Format(VOLUME, write_bdv, read_bdv),
    "a.emd": Format(VOLUME, write_emd, read_emd),
    "3.nc": Format(VOLUME, partial(write_netcdf, engine="scipy"), read_netcdf_3),
    "4.nc": Format(VOLUME, partial(write_netcdf, engine="h5netcdf"), read_netcdf_4),
    "a.fits": Format(VOLUME, write_fits, read_fits),
    "tiles.fits.fz": Format(VOLUME, write_tiles, read_fits),
    "a.n5": Format(VOLUME, write_n5, read_n5),
    "a.vti": Format(VOLUME, write_vti, read_raw_vti),
    "zlib.vti": Format(VOLUME, write_zlib_vti),
    "a.am": Format(VOLUME, write_amira, read_amira),
    "a.complex": Format(VOLUME, write_cubical_complex, read_dipha),
    "a.perseus": Format(VOLUME, write_cubical_complex, read_perseus),
    "a.mnc": Format(VOLUME, write_minc, read_minc),
    "a.nhdr": Format(VOLUME, write_detached_nrrd, read_nrrd),
    "a.hdr": Format(VOLUME, write_pair, read_pair),
    "a.zarr.zip": Format(VOLUME, write_zarr),
    "2.zarr": Format(VOLUME, partial(write_zarr, zarr_format=2), read_zarr),
    "3.zarr": Format(VOLUME, partial(write_zarr, zarr_format=3), read_zarr),
}
