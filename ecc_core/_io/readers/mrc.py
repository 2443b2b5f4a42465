"""MRC and CCP4 maps."""

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.description import Description, Encoding, unnamed_axes
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.packed import GZIP, gunzipped
from ecc_core._optional import import_optional

SUFFIXES = tuple(
    suffix + packed for packed in ("", ".gz") for suffix in (".mrc", ".map", ".rec", ".st")
)
BYTES = 0
"""The mode of 8-bit values, which are signed since 2014."""
STAMP_OFFSET = 152
"""The offset in the header at which IMOD writes its stamp, followed by flags."""
STAMP = 1146047817
SIGNED = 1
"""The flag of signed bytes."""
NATIVE = "<" if sys.byteorder == "little" else ">"


def open_mrc(path: Path, _request: Request) -> Opened:
    """Open an MRC file as a memory map. A compressed one is read completely."""
    mrcfile = import_optional("mrcfile", extra="mrc", purpose="reading MRC files")
    with path.open("rb") as stream:
        compressed = stream.read(len(GZIP)) == GZIP
    if compressed:
        with gzip.open(path) as stream:
            opened = mrcfile.mrcinterpreter.MrcInterpreter(iostream=stream)
            # The rest of the stream is read, so that its checksum is verified.
            for _ in gunzipped(stream):
                pass
    else:
        opened = mrcfile.mmap(path, mode="r")
    values = opened.data
    encoding = Encoding()
    if _has_unsigned_bytes(opened.header):
        values = values.view(np.uint8)
        encoding = Encoding(signedness="unsigned bytes of IMOD")
    axes = unnamed_axes(values.ndim)
    if opened.is_image_stack():
        axes = "?YX"
    elif len(axes) >= 3:  # The header says along which axes sections, rows and columns lie.
        along = [int(opened.header[name]) for name in ("maps", "mapr", "mapc")]
        if sorted(along) == [1, 2, 3]:
            axes = axes[:-3] + "".join("XYZ"[i - 1] for i in along)
    size = opened.voxel_size
    steps = {axis: size[axis.lower()] for axis in "ZYX"}
    description = Description.of(axes, steps=steps, units="angstrom", encoding=encoding)
    return Opened(values, description)


def _has_unsigned_bytes(header: Any) -> bool:
    """Whether IMOD wrote unsigned bytes, which mrcfile reads as signed ones."""
    if int(header.mode) != BYTES:
        return False
    order = header.mode.dtype.byteorder.replace("=", NATIVE).replace("|", NATIVE)
    stamp, flags = np.frombuffer(header.tobytes(), f"{order}i4", 2, STAMP_OFFSET).tolist()
    return bool(stamp == STAMP and not flags & SIGNED)


READ = frozenset({"axes", "spacing", "encoding"})
FORMATS = (
    Format(
        name="MRC", suffixes=SUFFIXES, open=open_mrc, fields=READ, reference="mrcfile", extra="mrc"
    ),
)
