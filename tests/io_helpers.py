"""Writers of image files for the tests of readers, and assertions on what is read."""

import csv
import io
import json
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import h5py
import mrcfile
import nibabel
import nrrd
import numpy as np
import pyarrow.parquet as parquet
import pydicom
import pytest
import SimpleITK
import zarr
from PIL import Image
from pyarrow.csv import read_csv

import ecc_core as ecc
from ecc_core.errors import InputFileError
from ecc_core.io import read_image

LEVELS = [0, 64, 128, 255]
FACTS = {"connectivity", "superlevel", "boundary", "direction", "direction_scale", "estimator"}
FACTS |= {"input", "unit"}
LIF_AXES = {"X": 1, "Y": 2, "Z": 3, "T": 4}


def noise(*shape: int, dtype: str = "u1", seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    return generator.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def rows_of(table: Path | str) -> list[dict[str, str]]:
    """Return the rows of a CSV table, of a file or as printed."""
    text = table if isinstance(table, str) else table.read_text()
    return list(csv.DictReader(io.StringIO(text)))


def columns_of(table: Path) -> dict[str, list[Any]]:
    """Return the columns of a table in a file of any type."""
    if table.suffix == ".json":
        return json.loads(table.read_text())["columns"]
    read = parquet.read_table if table.suffix == ".parquet" else read_csv
    return read(table).to_pydict()


def columns(table: Path) -> dict[str, list[float]]:
    """Return the columns of numbers of a CSV table, without names of images and options."""
    rows = rows_of(table)
    names = [name for name in rows[0] if name not in FACTS]
    return {name: [float(row[name]) for row in rows] for name in names}


def curves_in(rows: list[dict[str, str]], at: Sequence[Any] = LEVELS) -> list[list[int]]:
    """Return the curves of a table with a row for each image, or for each threshold."""
    if str(at[0]) in rows[0]:
        names = list(map(str, at))
        return [[int(row[name]) for name in names] for row in rows]
    flat = [int(row["euler_number"]) for row in rows]
    return [flat[i : i + len(at)] for i in range(0, len(flat), len(at))]


def curve_at_levels(image: np.ndarray) -> list[int]:
    """Return the curve at the thresholds at which the tests run commands."""
    return ecc.euler_curve(image, LEVELS).values.tolist()


def assert_reads(path: Path, image: np.ndarray, **options: Any) -> None:
    actual = read_image(path, **options)
    assert actual.dtype == image.dtype
    np.testing.assert_array_equal(actual, image)


def assert_channels(
    path: Path, image: np.ndarray, axis: int, names: Sequence[int | str] = ()
) -> None:
    """Compare each channel, by its number or by one of the names, with a slice of the image."""
    for number, name in enumerate(names or range(image.shape[axis])):
        assert_reads(path, image.take(number, axis), channel=name)


def assert_refused(path: Path, *words: str, **options: Any) -> None:
    """Assert that reading fails with one line that names the file and has these words."""
    with pytest.raises(InputFileError) as caught:
        read_image(path, **options)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    for word in words:
        assert word in message


def write_zarr(path: Any, image: np.ndarray, **options: Any) -> Any:
    """Write an array at a path or an address, which is returned; chunks have sides of 4 points."""
    packed = str(path).endswith(".zip")
    store: Any = zarr.storage.ZipStore(path, mode="w") if packed else path
    options = {"chunks": (4,) * image.ndim, **options}
    array = zarr.create_array(store, shape=image.shape, dtype=image.dtype, **options)
    array[...] = image
    if packed:
        store.close()
    return path


def write_ome_zarr(
    path: Any,
    levels: Sequence[np.ndarray],
    axes: str,
    steps: Sequence[Sequence[float]] = (),
    zarr_format: int = 2,
    chunk: int = 4,
    unit: str = "nanometer",
) -> Any:
    """Write resolutions of an image; steps are those of each resolution, in the unit."""
    group = zarr.create_group(path, zarr_format=zarr_format)
    for number, image in enumerate(levels):
        options = {"shape": image.shape, "dtype": image.dtype, "chunks": (chunk,) * image.ndim}
        group.create_array(str(number), **options)[...] = image
    kinds = {"c": {"type": "channel"}, "t": {"type": "time"}}
    length = {"type": "space", "unit": unit}
    datasets: list[dict[str, Any]] = [{"path": str(number)} for number in range(len(levels))]
    for dataset, step in zip(datasets, steps, strict=False):
        dataset["coordinateTransformations"] = [{"type": "scale", "scale": list(step)}]
    named = [{"name": axis, **kinds.get(axis, length)} for axis in axes.lower()]
    described = {"multiscales": [{"axes": named, "datasets": datasets}]}
    group.attrs.update(described if zarr_format == 2 else {"ome": {"version": "0.5", **described}})
    return path


def command_line(folder: Path, *arguments: Any, chunk: int = 0) -> list[str]:
    """Return arguments of a command; save arrays as NPY, or as Zarr with chunks of this side."""
    line = []
    for number, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray) and chunk:
            sides = (chunk,) * argument.ndim
            argument = write_zarr(folder / f"{number}.zarr", argument, chunks=sides, overwrite=True)
        elif isinstance(argument, np.ndarray):
            np.save(folder / f"{number}.npy", argument)
            argument = folder / f"{number}.npy"
        line.append(str(argument))
    return line


def write_hdf5(path: Path, image: np.ndarray, axes: str = "", **options: Any) -> None:
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("raw", data=image, **options)
        for dim, letter in zip(dataset.dims, axes, strict=False):
            dim.label = letter


def write_pages(path: Path, image: np.ndarray) -> None:
    """Write a TIFF file whose number of pages only the chain of its pages tells."""
    first, *others = (Image.fromarray(page) for page in image)
    first.save(path, save_all=True, append_images=others)


def write_picture(path: Path, image: np.ndarray, **options: Any) -> None:
    Image.fromarray(image).save(path, **options)


def write_nifti(
    path: Path, image: np.ndarray, steps: Any = (1, 1, 1), unit: str = "", kind: int = 1
) -> str:
    """Write NIfTI-1 or NIfTI-2; the first axis of the image is the slowest of the file.

    Steps are those along x, y and z, or an affine.
    """
    affine = np.diag([*steps, 1]) if np.ndim(steps) == 1 else steps
    stored = (nibabel.Nifti1Image if kind == 1 else nibabel.Nifti2Image)(image.T, affine)
    if unit:
        stored.header.set_xyzt_units(unit)
    nibabel.save(stored, path)
    return str(path)


def write_nrrd(path: Path, image: np.ndarray, encoding: str = "gzip", **header: Any) -> None:
    named = {name.replace("_", " "): value for name, value in header.items()}
    nrrd.write(str(path), image, {"encoding": encoding, **named}, index_order="C")


def write_mrc(path: Path, image: np.ndarray, voxel: Any = 1, **options: Any) -> None:
    with mrcfile.new(path, **options) as file:
        file.set_data(image.astype(np.int16))
        file.voxel_size = voxel


def write_itk(
    path: Path, image: np.ndarray, affine: Any = None, *, compressed: bool = False, **options: Any
) -> str:
    """Write an image whose position in LPS coordinates is given by an affine matrix."""
    written = SimpleITK.GetImageFromArray(image, **options)
    if affine is not None:
        steps = np.linalg.norm(affine[:3, :3], axis=0)
        written.SetSpacing(steps.tolist())
        written.SetDirection((affine[:3, :3] / steps).ravel().tolist())
        written.SetOrigin(affine[:3, 3].tolist())
    SimpleITK.WriteImage(written, str(path), useCompression=compressed)
    return str(path)


def write_dicom(path: Path, image: np.ndarray, z: float = 0, **tags: Any) -> None:
    """Write one or several frames of 16 bits."""
    dataset = pydicom.Dataset()
    dataset.file_meta = pydicom.dataset.FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    dataset.SOPClassUID = pydicom.uid.CTImageStorage
    dataset.SOPInstanceUID = f"1.2.3.{1 + int(10 * z)}"
    dataset.Rows, dataset.Columns = image.shape[-2:]
    if image.ndim > 2:
        dataset.NumberOfFrames = len(image)
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated = dataset.BitsStored = 16
    dataset.HighBit, dataset.PixelRepresentation = 15, 1
    dataset.SeriesInstanceUID = "1.2.3"
    dataset.PixelSpacing = [0.5, 0.25]
    dataset.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    dataset.ImagePositionPatient = [0, 0, z]
    for name, value in tags.items():
        setattr(dataset, name, value)
    dataset.PixelData = image.astype("<i2").tobytes()
    dataset.save_as(path, enforce_file_format=True)


def czi_library() -> Any:
    """Return the library that writes CZI files, which has no wheels for Python 3.14."""
    return pytest.importorskip("pylibCZIrw.czi")


def write_czi(path: Path, image: np.ndarray, **options: Any) -> None:
    """Write channels and slices; the first axes of the image are C and Z, or Z."""
    planes = image.reshape((-1, *image.shape[-3:]))
    with czi_library().create_czi(str(path), **options) as file:
        for c, z in np.ndindex(planes.shape[:2]):
            file.write(planes[c, z][..., None], plane={"C": c, "Z": z})
        file.write_metadata("a", scale_x=0.25e-6, scale_y=0.5e-6, scale_z=2e-6)


def write_lif(path: Path, images: Iterable[np.ndarray], axes: str, steps: dict[str, float]) -> None:
    """Write images of unsigned integers: a description in XML, and a block of memory for each."""
    elements = ""
    content = b""
    for number, image in enumerate(images):
        bytes_to_next = dict(zip(axes, image.strides, strict=True))
        lengths = dict(zip(axes, image.shape, strict=True))
        dimensions = "".join(
            f'<DimensionDescription DimID="{LIF_AXES[axis]}" NumberOfElements="{n}" Origin="0" '
            f'Length="{steps.get(axis, 0) * (n - 1)}" Unit="m" BitInc="0" '
            f'BytesInc="{bytes_to_next[axis]}"/>'
            for axis, n in reversed(lengths.items())
            if axis != "C"
        )
        channels = "".join(
            f'<ChannelDescription DataType="0" ChannelTag="0" Resolution="{8 * image.itemsize}" '
            'NameOfMeasuredQuantity="" Min="0" Max="1" Unit="" LUTName="Gray" IsLUTInverted="0" '
            f'BytesInc="{c * bytes_to_next.get("C", 0)}" BitInc="0"/>'
            for c in range(lengths.get("C", 1))
        )
        elements += (
            f'<Element Name="image {number}"><Data><Image><ImageDescription>'
            f"<Channels>{channels}</Channels><Dimensions>{dimensions}</Dimensions>"
            "</ImageDescription></Image></Data>"
            f'<Memory Size="{image.nbytes}" MemoryBlockID="block {number}"/></Element>'
        )
        name = f"block {number}".encode("utf-16-le")
        sizes = (len(name) + 14, 0x2A, image.nbytes, 0x2A, len(name) // 2)
        content += struct.pack("<IIBQBI", 0x70, *sizes) + name + image.tobytes()
    described = (
        '<LMSDataContainerHeader Version="2"><Element Name="root">'
        f"<Children>{elements}</Children></Element></LMSDataContainerHeader>"
    ).encode("utf-16-le")
    header = struct.pack("<IIBI", 0x70, len(described) + 5, 0x2A, len(described) // 2)
    path.write_bytes(header + described + content)


def nd2_xml(name: str, value: Any) -> str:
    """Return the XML of a number, text or mapping in an ND2 file."""
    if isinstance(value, dict):
        inside = "".join(nd2_xml(*item) for item in value.items())
        return f'<{name} runtype="CLxListVariant">{inside}</{name}>'
    kind = {bool: "bool", int: "lx_uint32", float: "double", str: "CLxStringW"}[type(value)]
    return f'<{name} runtype="{kind}" value="{str(value).lower()}"/>'


def nd2_chunk(name: bytes, content: bytes, room: int) -> bytes:
    header = struct.pack("<IIQ", 0x0ABECEDA, room, len(content))
    return header + name.ljust(room, b"\0") + content


def write_nd2(path: Path, image: np.ndarray, z_step: float = 2.0, step: float = 0.25) -> None:
    """Write slices, the first axis of the image, with channels, the second axis."""
    slices, channels, rows, columns = image.shape
    attributes = {
        "uiWidth": columns,
        "uiWidthBytes": columns * channels * image.itemsize,
        "uiHeight": rows,
        "uiComp": channels,
        "uiBpcInMemory": 8 * image.itemsize,
        "uiBpcSignificant": 8 * image.itemsize,
        "uiSequenceCount": slices,
    }
    plane = {"uiCompCount": 1, "pFluorescentProbe": {"m_sName": "none"}}
    planes = {f"a{c}": {**plane, "sDescription": f"channel {c}"} for c in range(channels)}
    picture = {"uiCount": channels, "sPlaneNew": planes}
    metadata = {"bCalibrated": True, "dCalibration": step, "sPicturePlanes": picture}
    loop = {"eType": 4, "uLoopPars": {"uiCount": slices, "dZStep": z_step}}
    described = {
        b"ImageAttributesLV!": {"SLxImageAttributes": attributes},
        b"ImageMetadataSeqLV|0!": {"SLxPictureMetadata": metadata},
        b"ImageMetadataLV!": {"SLxExperiment": loop},
    }
    contents = {name: nd2_xml("variant", tree).encode() for name, tree in described.items()}
    contents[b"CustomData|AcqTimesCache!"] = np.arange(slices, dtype="<f8").tobytes()
    for number, frame in enumerate(image):
        points = np.moveaxis(frame, 0, -1).tobytes()
        contents[f"ImageDataSeq|{number}!".encode()] = bytes(8) + points
    file = nd2_chunk(b"ND2 FILE SIGNATURE CHUNK NAME01!", b"Ver3.0".ljust(64, b"\0"), 32)
    places = b""
    for name, content in contents.items():
        places += name + struct.pack("<QQ", len(file), len(content))
        file += nd2_chunk(name, content, 4072)
    places += b"ND2 CHUNK MAP SIGNATURE 0000001!" + struct.pack("<Q", len(file))
    path.write_bytes(file + nd2_chunk(b"ND2 FILEMAP SIGNATURE NAME 0001!", places, 32))
