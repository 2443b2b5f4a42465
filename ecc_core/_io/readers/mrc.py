"""MRC and CCP4 maps."""

import gzip
from pathlib import Path

from ecc_core._io.description import Description, Format, unnamed_axes
from ecc_core._io.packed import GZIP, gunzipped
from ecc_core._io.stored import Opened, Request
from ecc_core._optional import import_optional

SUFFIXES = tuple(
    suffix + packed for packed in ("", ".gz") for suffix in (".mrc", ".map", ".rec", ".st")
)


def open_mrc(path: Path, _request: Request) -> Opened:
    """Open an MRC file as a memory map. A compressed one is read completely."""
    mrcfile = import_optional("mrcfile", extra="mrc", purpose="reading MRC files")
    with path.open("rb") as stream:
        compressed = stream.read(len(GZIP)) == GZIP
    if compressed:
        with gzip.open(path) as stream:
            opened = mrcfile.mrcinterpreter.MrcInterpreter(iostream=stream)
            for _ in gunzipped(stream):  # to compare the checksum
                pass
    else:
        opened = mrcfile.mmap(path, mode="r")
    axes = unnamed_axes(opened.data.ndim)
    if opened.is_image_stack():
        axes = "?YX"
    elif len(axes) >= 3:  # which axes the sections, rows and columns lie along
        along = [int(opened.header[name]) for name in ("maps", "mapr", "mapc")]
        if sorted(along) == [1, 2, 3]:
            axes = axes[:-3] + "".join("XYZ"[i - 1] for i in along)
    size = opened.voxel_size
    steps = {axis: size[axis.lower()] for axis in "ZYX"}
    return Opened(opened.data, Description.of(axes, steps=steps, units="angstrom"))


READ = frozenset({"axes", "spacing"})
FORMATS = (Format("MRC", SUFFIXES, open_mrc, READ, "mrcfile", extra="mrc"),)
