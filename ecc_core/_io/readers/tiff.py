"""TIFF and the formats that are made of it: OME-TIFF, ImageJ, LSM, STK, SVS, NDPI, QPTIFF."""

import math
import re
import struct
import weakref
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.description import Description, Format
from ecc_core._io.lazy import Array, Box
from ecc_core._io.stored import CMYK, ZERO_IS_WHITE, Opened, Request, orientation_notes
from ecc_core._optional import import_optional

SUFFIXES = (
    *(".tif", ".tiff", ".btf", ".tf2", ".tf8"),
    *(".lsm", ".stk", ".svs", ".ndpi", ".qptiff", ".scn", ".bif"),
)

HEADER = 8
Calibration = tuple[Mapping[str, Any], Mapping[str, str] | str]
"""Steps by axis, and the unit of each or of all."""
NOTES = {
    "MINISWHITE": ZERO_IS_WHITE,
    "PALETTE": "values are indices into a palette of colours",
    "SEPARATED": CMYK,
    "CIELAB": "channels are those of CIE L*a*b*",
    "ICCLAB": "channels are those of CIE L*a*b*",
    "ITULAB": "channels are those of CIE L*a*b*",
}
"""What to say of images by their photometric interpretation."""


def open_tiff(path: Path, request: Request) -> Opened:
    """Open one image of a TIFF file."""
    tifffile = import_optional("tifffile", extra="io", purpose="reading TIFF files")
    tiff = tifffile.TiffFile(path)
    tiff.pages.cache = True  # those that are checked are not parsed again to be read
    try:
        _check_structure(tiff)
        number = request.pick_series([str(series.shape) for series in tiff.series])
        series = tiff.series[number]
        for kind, name in (("ome", "OME"), ("imagej", "ImageJ")):
            if getattr(tiff, f"is_{kind}") and series.kind != kind:  # tifffile ignores it then
                reason = f"its {name} description does not fit its pages"
                raise ValueError(f"truncated or damaged: {reason}")
        level = series.levels[request.pick_level(len(series.levels))]
        _check_segments(tiff, level)
        samples = "S" if series.keyframe.photometric == tifffile.PHOTOMETRIC.RGB else "C"
        steps, units = _calibration(tiff, number) if level is series else ({}, "")
        array = _Series(tiff, level)
    except BaseException:
        tiff.close()
        raise
    weakref.finalize(array, tiff.close)
    keyframe = series.keyframe
    # Values are as stored, whatever these say.
    notes = [NOTES[keyframe.photometric.name]] if keyframe.photometric.name in NOTES else []
    orientation = keyframe.tags.get("Orientation")
    notes += orientation_notes(1 if orientation is None else int(orientation.value))
    letters = list(level.axes.replace("S", samples))
    for i in reversed(range(len(letters))):  # the last unnamed axis or axis of pages is Z
        if letters[i] in "QI":
            letters[i] = "?" if "Z" in letters else "Z"
    return Opened(
        array,
        Description.of(
            "".join(letters),
            steps=steps,
            units=units,
            channels=_channels(tiff, number),
            notes=notes,
        ),
        array.chunks,
        at_once=True,
        series=len(tiff.series),
        levels=len(series.levels),
    )


def _channels(tiff: Any, number: int) -> list[str]:
    """Return the names of the channels of an OME image; none if one of them has no name."""
    images = re.split(r"<(?:\w+:)?Pixels\b", tiff.ome_metadata if tiff.is_ome else "")[1:]
    found = re.findall(r"<(?:\w+:)?Channel\b[^>]*>", images[number]) if number < len(images) else []
    names = [re.search(r'\bName\s*=\s*"([^"]*)"', text) for text in found]
    return [unescape(name[1]) for name in names if name]


class _Series:
    """Pages of a TIFF file as one array. Parts of it are read by strips or tiles."""

    def __init__(self, tiff: Any, level: Any) -> None:
        self.tiff, self.level = tiff, level
        self.shape, self.dtype = tuple(level.shape), level.dtype.newbyteorder("=")
        page = level.keyframe
        lead = len(self.shape) - len(page.shape)
        self.chunks: Any = None
        if 0 not in self.shape and lead >= 0 and self.shape[lead:] == page.shape:
            ones = (1,) * (len(self.shape) - len(page.chunks))
            sizes = zip((*ones, *page.chunks), self.shape, strict=True)
            self.chunks = tuple(max(1, min(c, n)) for c, n in sizes)
        self.parts: Any = None

    def __getitem__(self, box: Box) -> Array:
        if box == tuple(slice(0, n) for n in self.shape):
            return np.asarray(self.level.asarray().reshape(self.shape))
        if self.parts is None:
            zarr = import_optional("zarr", extra="dask", purpose="reading parts of TIFF files")
            store = self.level.aszarr(level=0)
            self.parts = zarr.open(store, mode="r")
            weakref.finalize(self.parts, store.close)
        return np.asarray(self.parts[box])


def _check_structure(tiff: Any) -> None:
    """Check what tifffile does not: the last link, the number of tags, and names of files."""
    if len(tiff.pages) == 0:
        raise ValueError("truncated or damaged, no page can be read")
    tiff.filehandle.seek(tiff.pages.next_page_offset)
    link = tiff.filehandle.read(tiff.tiff.offsetsize)
    if link != bytes(tiff.tiff.offsetsize):  # tifffile takes a broken link for the end
        raise ValueError(f"truncated or damaged after {len(tiff.pages)} pages")
    page = tiff.pages[0]
    tiff.filehandle.seek(page.offset)
    (count,) = struct.unpack(tiff.tiff.tagnoformat, tiff.filehandle.read(tiff.tiff.tagnosize))
    if count != len(page.tags):  # tifffile ignores tags that it cannot read
        raise ValueError(f"truncated or damaged: {count - len(page.tags)} tags cannot be read")
    for name in re.findall(r'FileName\s*=\s*["\']([^"\']*)', tiff.ome_metadata or ""):
        if re.search(r"[/\\:]", name) or name == "..":
            raise ValueError(f"its parts lie outside of its folder, in {name}")


def _check_segments(tiff: Any, level: Any) -> None:
    """Check that all strips or tiles exist and lie inside the file."""
    if 0 in level.shape:
        return
    if level.dataoffset is not None:
        if level.dataoffset < HEADER:
            raise ValueError("damaged: its values begin before the end of its header")
        end = level.dataoffset + math.prod(level.shape) * level.dtype.itemsize
        if end > tiff.filehandle.size:
            raise ValueError(f"truncated: {end - tiff.filehandle.size} bytes are missing")
        return
    for number, page in enumerate(level.pages):
        if page is None:
            raise ValueError("some of its pages are in other files, which are missing")
        size = page.parent.filehandle.size
        offsets, counts = page.dataoffsets, page.databytecounts
        wanted = math.prod(page.chunked)
        whole = len(offsets) >= wanted and len(counts) >= wanted
        if not whole or any(
            offset + count > size or (offset == 0) != (count == 0)
            for offset, count in zip(offsets, counts, strict=False)
        ):
            raise ValueError(f"truncated or damaged: parts of page {number} are missing")


def _calibration(tiff: Any, number: int) -> Calibration:
    """Return the spacing by axis and its units, as far as the metadata or tags give them."""
    if tiff.is_ome:
        found = re.findall(r"<(?:\w+:)?Pixels\b[^>]*>", tiff.ome_metadata)
        text = found[number] if number < len(found) else ""
        named = dict(re.findall(r'\bPhysicalSize([XYZ](?:Unit)?)\s*=\s*"([^"]*)"', text))
        units = {axis: unescape(named.get(f"{axis}Unit", "µm")) for axis in "ZYX"}
        return {axis: named.get(f"{axis}") for axis in "ZYX"}, units
    if tiff.is_lsm:
        sizes = tiff.lsm_metadata
        return {axis: sizes[f"VoxelSize{axis}"] for axis in "ZYX"}, "m"
    page = tiff.series[number].keyframe
    steps, unit = _resolution(page)
    described: Any = {}
    if tiff.is_imagej:
        described = tiff.imagej_metadata or {}
    elif number < len(tiff.shaped_metadata or ()):
        described = tiff.shaped_metadata[number]
    common = str(described.get("unit", ""))
    if common and (tiff.is_imagej or unit == "inch"):
        unit = common  # as ImageJ does; and tifffile writes inches where it is told nothing
    units = {
        "X": unit or common,
        "Y": str(described.get("yunit", unit or common)),
        "Z": str(described.get("zunit", common)),
    }
    return {**steps, "Z": described.get("spacing", 0)}, units


def _resolution(page: Any) -> tuple[dict[str, float], str]:
    """Return the distances that the tags of a page give, and their unit; {} if they are trivial."""
    steps = {}
    for axis in "YX":
        tag = page.tags.get(f"{axis}Resolution")
        points, lengths = (0, 0) if tag is None else tag.value
        if points:
            steps[axis] = lengths / points
    unit = page.tags.get("ResolutionUnit")
    name = {1: "", 2: "inch", 3: "cm"}.get(2 if unit is None else int(unit.value), "")
    if not name and set(steps.values()) == {1.0}:  # written where nothing is known
        steps = {}
    return steps, name


READ = frozenset({"axes", "spacing", "channels"})
FORMATS = (Format("TIFF", SUFFIXES, open_tiff, READ, "tifffile", extra="io"),)
