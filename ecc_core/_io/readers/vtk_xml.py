"""VTK files in XML: their elements, and how values are stored in them."""

from mmap import mmap
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from ecc_core._io.readers.vtk_values import CODECS, Storage
from ecc_core._io.xml import local_name, parse_xml

KIND = "a VTK file in XML"
TYPES = {
    **{f"Int{bits}": f"i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": f"u{bits // 8}" for bits in (8, 16, 32, 64)},
    "Float32": "f4",
    "Float64": "f8",
}
ORDERS = {"LittleEndian": "<", "BigEndian": ">"}
APPENDED = b"<AppendedData"
ENCODINGS = {b'"raw"': "raw", b'"base64"': "base64"}


def parse_vtk(content: bytes | mmap) -> tuple[Element, Storage]:
    """Return the XML of a file without appended values, and how values are stored in it."""
    at = content.find(APPENDED)
    start = 0
    encoding = ""
    text = content[: at if at >= 0 else len(content)]
    if at >= 0:
        close = content.find(b">", at)
        encoding = next((ENCODINGS[e] for e in ENCODINGS if e in content[at : close + 1]), "")
        start = content.find(b"_", close) + 1
        if close < 0 or start == 0 or not encoding:
            raise ValueError("truncated or damaged: its AppendedData have no encoding or no begin")
        text += b"</VTKFile>"
    root = parse_xml(text, KIND)
    if local_name(root) != "VTKFile":
        raise ValueError(f"not {KIND}: its root is {local_name(root)}, not VTKFile")
    order = ORDERS.get(root.get("byte_order", ""))
    header = TYPES.get(root.get("header_type", "UInt32"))
    codec = root.get("compressor", "")
    if order is None or header not in ("u4", "u8"):
        found = f"byte_order {root.get('byte_order')}, header_type {root.get('header_type')}"
        raise ValueError(f"damaged: it has {found}")
    if codec and codec not in CODECS:
        raise ValueError(f"values compressed by {codec} are not supported")
    return root, Storage(
        content=content,
        order=order,
        header=np.dtype(order + header),
        codec=codec,
        encoding=encoding,
        start=start,
    )


def dtype_of(array: Element, storage: Storage) -> np.dtype[Any]:
    """Return the dtype of the values of a DataArray."""
    kind = TYPES.get(array.get("type", ""))
    if kind is None:
        name = array.get("Name", "")
        raise ValueError(f"values of type {array.get('type')} are not supported, in {name}")
    return np.dtype(storage.order + kind)


def components_of(array: Element) -> int:
    """Return the number of values of a DataArray for each point or cell."""
    words = array.get("NumberOfComponents", "1")
    if not words.isdecimal() or int(words) < 1:
        raise ValueError(f"damaged: NumberOfComponents of {array.get('Name', '')} is {words!r}")
    return int(words)
