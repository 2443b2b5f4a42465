"""Writers of formats for which no library on PyPI writes what the tests need."""

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import h5py
import npy2bdv
import numpy as np
import tensorstore
from scipy.io import netcdf_file

PAD = 4
"""The points that Imaris adds to an axis to fill up chunks."""


def characters(text: object) -> np.ndarray:
    """Return an attribute as Imaris stores it, an array of single characters."""
    return np.frombuffer(str(text).encode(), "S1")


def write_imaris(
    path: Path,
    image: np.ndarray,
    low: tuple[float, ...] = (0, 0, 0),
    steps: tuple[float, ...] = (1, 1, 1),
    names: tuple[str, ...] = (),
    levels: int = 1,
) -> None:
    """Write a TCZYX or ZYX image; `low` is the position of its low border along X, Y and Z."""
    whole = image.reshape((1,) * (5 - image.ndim) + image.shape)
    with h5py.File(path, "w") as file:
        info = file.create_group("DataSetInfo/Image")
        sizes = dict(zip("ZYX", whole.shape[2:], strict=True))
        info.attrs["Unit"] = characters("um")
        for number, axis in enumerate("XYZ"):
            info.attrs[axis] = characters(sizes[axis])
            info.attrs[f"ExtMin{number}"] = characters(low[number])
            high = low[number] + steps[number] * sizes[axis]
            info.attrs[f"ExtMax{number}"] = characters(high)
        for number, name in enumerate(names):
            file.create_group(f"DataSetInfo/Channel {number}").attrs["Name"] = characters(name)
        for level in range(levels):
            coarse = whole[..., :: 2**level, :: 2**level]
            for t, c in np.ndindex(coarse.shape[:2]):
                place = f"DataSet/ResolutionLevel {level}/TimePoint {t}/Channel {c}"
                group = file.create_group(place)
                points = coarse[t, c]
                filled = np.pad(points, [(0, -n % PAD) for n in points.shape])
                chunks = (PAD,) * 3
                group.create_dataset("Data", data=filled, chunks=chunks, compression="gzip")
                for axis, n in zip("ZYX", points.shape, strict=True):
                    group.attrs[f"ImageSize{axis}"] = characters(n)
                group.attrs["HistogramMin"] = group.attrs["HistogramMax"] = characters(0)


def write_bdv(path: Path, image: np.ndarray, **options: Any) -> None:
    """Write a ZYX image with npy2bdv; the values are in a file beside the XML."""
    writer = npy2bdv.BdvWriter(str(path.with_suffix(".h5")), overwrite=True)
    settings = {"voxel_size_xyz": (0.5, 0.25, 2.0), "voxel_units": "um", **options}
    writer.append_view(image.astype(np.uint16), time=0, channel=0, **settings)
    writer.write_xml()
    writer.close()


def vti_text(image: np.ndarray, array: str, rest: str = "", attributes: str = "") -> str:
    """Return the XML of an image with one array of points."""
    extent = " ".join(f"0 {n - 1}" for n in image.shape[::-1])
    kind = {"u": "UInt", "i": "Int", "f": "Float"}[image.dtype.kind] + str(8 * image.itemsize)
    return (
        '<?xml version="1.0"?>\n<VTKFile type="ImageData" version="1.0" '
        f'byte_order="LittleEndian" header_type="UInt32"{attributes}>\n'
        f'<ImageData WholeExtent="{extent}" Origin="1 2 3" Spacing="0.5 0.25 2">\n'
        f'<Piece Extent="{extent}"><PointData>\n<DataArray type="{kind}" Name="density" '
        f'NumberOfComponents="1" {array}</DataArray>\n</PointData></Piece></ImageData>\n{rest}'
    )


def write_vti(path: Path, image: np.ndarray) -> None:
    """Write raw values behind the XML."""
    text = vti_text(image, 'format="appended" offset="0">', '<AppendedData encoding="raw">\n_')
    content = np.uint32(image.nbytes).tobytes() + image.tobytes()
    path.write_bytes(text.encode() + content + b"\n</AppendedData>\n</VTKFile>\n")


def write_zlib_vti(path: Path, image: np.ndarray) -> None:
    """Write compressed blocks in base64."""
    block = 64
    content = image.tobytes()
    blocks = [content[i : i + block] for i in range(0, len(content), block)]
    packed = [zlib.compress(one) for one in blocks]
    last = len(content) % block
    head = np.array([len(blocks), block, last, *map(len, packed)], "<u4").tobytes()
    values = base64.b64encode(head) + base64.b64encode(b"".join(packed))
    codec = ' compressor="vtkZLibDataCompressor"'
    text = vti_text(image, f'format="binary">{values.decode()}', "</VTKFile>\n", codec)
    path.write_text(text)


def write_amira(
    path: Path, image: np.ndarray, codec: str = "", box: str = "0 2 10 13 -1 1"
) -> None:
    """Write a lattice of bytes, raw or run-length encoded, as one array named Labels."""
    content = image.tobytes()
    if codec == "HxByteRLE":
        content = b"".join(b"\x01" + bytes([value]) for value in content)  # Each run has one value.
    elif codec == "HxZip":
        content = zlib.compress(content)
    how = f"({codec},{len(content)})" if codec else ""
    lengths = " ".join(map(str, image.shape[::-1]))
    text = (
        f"# AmiraMesh BINARY-LITTLE-ENDIAN 2.1\n\ndefine Lattice {lengths}\n\n"
        f'Parameters {{\n    Units {{\n        Coordinates "mm"\n    }}\n'
        f'    BoundingBox 0 2 10 13 -1 1,\n    CoordType "uniform"\n}}\n\n'
        f"Lattice {{ byte Labels }} @1{how}\n\n# Data section follows\n@1\n"
    )
    path.write_bytes(text.encode() + content + b"\n")


def write_emd(path: Path, image: np.ndarray) -> None:
    """Write an image of Berkeley's EMD 0.2."""
    with h5py.File(path, "w") as file:
        group = file.create_group("data/image")
        group.attrs["emd_group_type"] = 1
        group["data"] = image
        for number, (name, n) in enumerate(zip("zyx", image.shape, strict=True)):
            dim = group.create_dataset(f"dim{number + 1}", data=np.arange(n) * (0.5 + number))
            dim.attrs["name"], dim.attrs["units"] = name, "[n_m]"


def write_velox(path: Path, image: np.ndarray) -> None:
    """Write an image of Velox, whose last axis numbers frames."""
    size = {"width": "1e-9", "height": "2e-9"}
    described = {"BinaryResult": {"PixelSize": size, "PixelUnitX": "m", "PixelUnitY": "m"}}
    text = np.frombuffer(json.dumps(described).encode(), np.uint8)
    with h5py.File(path, "w") as file:
        group = file.create_group("Data/Image/0123")
        group["Data"] = np.moveaxis(image, 0, -1)
        metadata = np.zeros((text.size + 8, len(image)), np.uint8)
        metadata[: text.size] = text[:, None]
        group["Metadata"] = metadata


def write_minc(path: Path, image: np.ndarray) -> None:
    """Write a label volume of MINC 1, whose real values are the stored ones."""
    with netcdf_file(path, "w") as file:
        names = ("zspace", "yspace", "xspace")
        for number, (name, n) in enumerate(zip(names, image.shape, strict=True)):
            file.createDimension(name, n)
            axis = file.createVariable(name, "i", ())
            axis.spacing, axis.step, axis.start = "regular__", 1.0 + number, 0.0
        for name, value in (("image-min", 0.0), ("image-max", 255.0)):
            file.createVariable(name, "d", ()).data[...] = value
        values = file.createVariable("image", "b", names)
        values.signtype, values.valid_range = "unsigned", np.array([0.0, 255.0])
        values[:] = image.view(np.int8)


def write_n5(path: Path, image: np.ndarray, **attributes: Any) -> None:
    """Write an array with tensorstore; its axes are in reverse in N5."""
    metadata = {
        "dimensions": image.shape[::-1],
        "blockSize": [4] * image.ndim,
        "dataType": image.dtype.name,
        "compression": {"type": "gzip"},
        **attributes,
    }
    place = {"driver": "file", "path": str(path)}
    spec = {"driver": "n5", "kvstore": place, "metadata": metadata}
    tensorstore.open(spec, create=True).result().write(image.T).result()
