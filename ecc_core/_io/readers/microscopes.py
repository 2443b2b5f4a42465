"""CZI, ND2 and LIF, through bioio's readers."""

import math
import os
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.description import Description
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.lazy import Array, Box, Lazy
from ecc_core._optional import import_optional

LEAST_PLANE_BYTES = 128
"""The fewest bytes of a plane in a CZI file, without its points."""
ND2_MAGIC = 0x0ABECEDA
ND2_TIME_BYTES = 8
"""The bytes of the time of a frame, before its points."""
LIF = b"\x70\0\0\0"
"""The first bytes of a LIF file."""


def open_microscope(path: Path, request: Request) -> Opened:
    """Open one scene of a file."""
    kind = path.suffix.lower()[1:]
    purpose = f"reading {kind.upper()} files"
    reader = import_optional(f"bioio_{kind}", extra=kind, purpose=purpose).Reader
    {"czi": _check_czi, "lif": _check_lif, "nd2": _check_nd2}[kind](path)
    chunks = {} if kind == "nd2" else {"chunk_dims": ["Y", "X"]}
    bioio = import_optional("bioio", extra=kind, purpose=purpose)
    image = bioio.BioImage(path, reader=reader, **chunks)
    scene = request.pick_series([str(name) for name in image.scenes])
    image.set_scene(scene)
    sizes = image.physical_pixel_sizes
    steps = {axis: getattr(sizes, axis) for axis in "ZYX"}
    lengths = dict(zip(image.dims.order, image.shape, strict=True))
    axes = "".join(a for a, n in lengths.items() if a in "YX" or n > 1)
    planes = image.get_image_dask_data(axes)

    def read(box: Box) -> Array:
        return np.asarray(planes[box].compute(scheduler="synchronous"))

    description = Description.of(axes, steps=steps, units="um", channels=image.channel_names or ())
    first_chunk = [max(1, lengths[0]) for lengths in planes.chunks]
    return Opened(
        Lazy(planes.shape, planes.dtype, read),
        description,
        tuple(first_chunk),
        series=len(image.scenes),
    )


def _check_czi(path: Path) -> None:
    """Check that a file can hold as many planes as it describes, before they are listed."""
    aicspylibczi = import_optional("aicspylibczi", extra="czi", purpose="reading CZI files")
    with path.open("rb") as stream:
        described = aicspylibczi.CziFile(stream).get_dims_shape()
    for lengths in described:
        planes = math.prod(stop - start for a, (start, stop) in lengths.items() if a not in "YXA")
        if planes * LEAST_PLANE_BYTES > path.stat().st_size:
            raise ValueError(f"damaged: it is too small for the {planes} planes that it describes")


def _check_lif(path: Path) -> None:
    """Check that a file holds its own values, and as many as it describes."""
    with path.open("rb") as stream:
        if stream.read(len(LIF)) != LIF:  # The library also reads XML that names other files.
            raise ValueError("not a LIF file")
    liffile = import_optional("liffile", extra="lif", purpose="reading LIF files")
    with liffile.LifFile(path) as file:
        for image in file.images:
            # Lifetime images are compressed, and rows of colours are padded.
            if image.is_flim or "S" in image.sizes:
                continue
            wanted = image.nbytes
            there = image.memory_block.size
            if wanted != there:
                raise ValueError(f"damaged: {image.name} should have {wanted} bytes, got {there}")


def _check_nd2(path: Path) -> None:
    """Check that all frames are where they should be. The library reads others as zeros."""
    nd2 = import_optional("nd2", extra="nd2", purpose="reading ND2 files")
    with nd2.ND2File(path) as file:
        if file.is_legacy:
            return
        count = math.prod(n for axis, n in file.sizes.items() if axis not in "XYCS")
        described = file.attributes
    compressed = described.compressionType is not None
    length = ND2_TIME_BYTES + described.heightPx * described.widthBytes
    with path.open("rb") as stream:
        stream.seek(-8, os.SEEK_END)
        _, size = _nd2_chunk(stream, *struct.unpack("<Q", stream.read(8)))
        places = stream.read(size)
        frames = list(re.finditer(rb"ImageDataSeq\|(\d+)!", places))
        if {int(frame[1]) for frame in frames} != set(range(count)):
            raise ValueError(f"damaged, or aborted: {count} frames are described, not those found")
        for frame in frames:
            name, there = _nd2_chunk(stream, *struct.unpack_from("<Q", places, frame.end()))
            if name != frame[0] or (there != length and not compressed):
                raise ValueError(f"damaged: frame {int(frame[1])} is not where it should be")


def _nd2_chunk(stream: Any, place: int) -> tuple[bytes, int]:
    """Read the name and the length of a chunk, which must lie in the file.

    The stream is left at the content of the chunk.
    """
    stream.seek(place)
    magic, room, length = struct.unpack("<IIQ", stream.read(16))
    name = stream.read(room).rstrip(b"\0")
    if magic != ND2_MAGIC or stream.tell() + length > os.fstat(stream.fileno()).st_size:
        raise ValueError("truncated or damaged")
    return name, length


READ = frozenset({"axes", "spacing", "channels"})
FORMATS = (
    Format(
        name="CZI",
        suffixes=(".czi",),
        open=open_microscope,
        fields=READ,
        reference="pylibCZIrw",
        extra="czi",
    ),
    Format(
        name="ND2",
        suffixes=(".nd2",),
        open=open_microscope,
        fields=READ,
        reference="nd2",
        extra="nd2",
    ),
    Format(
        name="LIF",
        suffixes=(".lif",),
        open=open_microscope,
        fields=READ,
        reference="liffile",
        extra="lif",
    ),
)
