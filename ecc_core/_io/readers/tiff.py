"""TIFF and formats based on it: OME-TIFF, ImageJ, LSM, STK, SVS, NDPI, QPTIFF."""

import math
import re
import struct
import weakref
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.colours import CMYK, ZERO_IS_WHITE, orientation_notes
from ecc_core._io.description import Description, Missing, declared_missing
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.lazy import Array, Box, nan_where_missing
from ecc_core._io.readers.lerc import read_lerc_masks
from ecc_core._io.readers.tiff_calibration import calibration_of, scaled
from ecc_core._io.same_folder import check_same_folder, file_in_same_folder
from ecc_core._optional import import_optional
from ecc_core._partition import whole_box

SUFFIXES = (
    *(".tif", ".tiff", ".btf", ".tf2", ".tf8"),
    *(".lsm", ".stk", ".svs", ".ndpi", ".qptiff", ".scn", ".bif"),
)

HEADER_BYTES = 8
MOST_NAMED = 3
GDAL_NODATA = 42113
LERC = 34887
JPEGS = (6, 7, 33007, 34892)
"""Compressions for which tifffile converts YCbCr to RGB."""
NOTES = {
    "MINISWHITE": ZERO_IS_WHITE,
    "PALETTE": "values are indices into a palette of colours",
    "SEPARATED": CMYK,
    "CIELAB": "channels are those of CIE L*a*b*",
    "ICCLAB": "channels are those of CIE L*a*b*",
    "ITULAB": "channels are those of CIE L*a*b*",
    "YCBCR": "channels are luminance and two differences of colours (YCbCr)",
}
"""Notes on images, by their photometric interpretation."""


def open_tiff(path: Path, request: Request) -> Opened:
    """Open one image of a TIFF file."""
    tifffile = import_optional("tifffile", extra="io", purpose="reading TIFF files")
    tiff = _with_companion(tifffile, path, tifffile.TiffFile(path))
    tiff.pages.cache = True  # Pages are parsed once, to be checked and to be read.
    try:
        _check_structure(tiff)
        number = request.pick_series([str(series.shape) for series in tiff.series])
        series = tiff.series[number]
        for kind, name in (("ome", "OME"), ("imagej", "ImageJ")):
            # Tifffile ignores a description that does not fit the pages.
            if getattr(tiff, f"is_{kind}") and series.kind != kind:
                reason = f"its {name} description does not fit its pages"
                raise ValueError(f"truncated or damaged: {reason}")
        level = series.levels[request.pick_level(len(series.levels))]
        _check_segments(tiff, path, level)
        calibration = scaled(calibration_of(tiff, number), _ratios(series, level))
        array = _Series(tiff, level)
        if level.keyframe.compression == LERC:
            for keyframe in {id(page.keyframe): page.keyframe for page in level.pages}.values():
                read_lerc_masks(keyframe)
    except BaseException:
        tiff.close()
        raise
    weakref.finalize(array, tiff.close)
    keyframe = series.keyframe
    photometric = keyframe.photometric.name
    if photometric == "YCBCR" and keyframe.compression in JPEGS:
        photometric = "RGB"
    # The photometric interpretation is only noted; values are as stored.
    notes = [NOTES[photometric]] if photometric in NOTES else []
    samples = "S" if photometric == "RGB" else "C"
    missing = _missing(keyframe, array.dtype)
    members = []  # The files of an image that is stored in several.
    if tiff.is_ome:
        members = sorted({str(page.parent.filehandle.path) for page in level.pages if page})
    orientation = keyframe.tags.get("Orientation")
    notes += orientation_notes(1 if orientation is None else int(orientation.value))
    letters = list(level.axes.replace("S", samples))
    # The last axis of unknown meaning, or of pages, is Z.
    for i in reversed(range(len(letters))):
        if letters[i] in "QI":
            letters[i] = "?" if "Z" in letters else "Z"
    return Opened(
        nan_where_missing(array, missing),
        Description.of(
            "".join(letters),
            steps=calibration.steps,
            units=calibration.units,
            channels=_channels(tiff, number),
            missing=missing,
            notes=(*notes, *calibration.notes),
        ),
        array.chunks,
        at_once=True,
        described=members if len(members) > 1 else (),
        series=len(tiff.series),
        levels=len(series.levels),
    )


def _with_companion(tifffile: Any, path: Path, tiff: Any) -> Any:
    """Return the file, opened again with the description of its companion if it refers to one."""
    found = re.search(r'<(?:\w+:)?BinaryOnly\b[^>]*MetadataFile\s*=\s*"([^"]*)"', _ome_text(tiff))
    if found is None:
        return tiff
    tiff.close()
    name = unescape(found[1])
    companion = file_in_same_folder(path, name, "metadata")
    return tifffile.TiffFile(path, omexml=companion.read_text("utf-8"))


def _ome_text(tiff: Any) -> str:
    """Return the description of the first page, which may be OME-XML."""
    return str(tiff.pages[0].description) if len(tiff.pages) else ""


def _ratios(series: Any, level: Any) -> dict[str, float]:
    """Return how many points of the finest level a point of a level averages, along Z, Y and X."""
    finest = dict(zip(series.axes, series.shape, strict=True))
    lengths = dict(zip(level.axes, level.shape, strict=True))
    both = [axis for axis in "ZYX" if lengths.get(axis) and finest.get(axis)]
    return {axis: finest[axis] / lengths[axis] for axis in both}


def _missing(page: Any, dtype: np.dtype[Any]) -> Missing | None:
    """Return the values that are missing: by a tag of GDAL, or by masks of LERC."""
    tag = page.tags.get(GDAL_NODATA)
    if tag is not None:
        text = str(tag.value).strip().strip("\0")
        try:
            value = float(text.replace(",", "."))
        except ValueError:
            raise ValueError(f"damaged: its GDAL nodata is {text!r}") from None
        return declared_missing(dtype, [value], f"GDAL nodata {text}")
    if page.compression == LERC and dtype.kind == "f":
        return declared_missing(dtype, [math.nan], "masks of LERC")
    return None


def _channels(tiff: Any, number: int) -> list[str]:
    """Return the names of the channels of an OME image; none if one of them has no name."""
    images = re.split(r"<(?:\w+:)?Pixels\b", tiff.ome_metadata if tiff.is_ome else "")[1:]
    found = re.findall(r"<(?:\w+:)?Channel\b[^>]*>", images[number]) if number < len(images) else []
    names = [re.search(r'\bName\s*=\s*"([^"]*)"', text) for text in found]
    return [unescape(name[1]) for name in names if name]


class _Series:
    """Pages of a TIFF file as one array. Parts of it are read by strips or tiles."""

    def __init__(self, tiff: Any, level: Any) -> None:
        self.tiff = tiff
        self.level = level
        self.shape = tuple(level.shape)
        self.dtype = level.dtype.newbyteorder("=")
        page = level.keyframe
        lead = len(self.shape) - len(page.shape)
        self.chunks: Any = None
        if 0 not in self.shape and lead >= 0 and self.shape[lead:] == page.shape:
            ones = (1,) * (len(self.shape) - len(page.chunks))
            chunks = np.minimum((*ones, *page.chunks), self.shape)
            self.chunks = tuple(np.maximum(chunks, 1).tolist())
        self.parts: Any = None

    def __getitem__(self, box: Box) -> Array:
        if box == whole_box(self.shape):
            return np.asarray(self.level.asarray().reshape(self.shape))
        if self.parts is None:
            zarr = import_optional("zarr", extra="dask", purpose="reading parts of TIFF files")
            store = self.level.aszarr(level=0)
            self.parts = zarr.open(store, mode="r")
            weakref.finalize(self.parts, store.close)
        return np.asarray(self.parts[box])


def _check_structure(tiff: Any) -> None:
    """Check the last link, the number of tags, and names of files, which tifffile does not."""
    if len(tiff.pages) == 0:
        raise ValueError("truncated or damaged, no page can be read")
    tiff.filehandle.seek(tiff.pages.next_page_offset)
    link = tiff.filehandle.read(tiff.tiff.offsetsize)
    if link != bytes(tiff.tiff.offsetsize):  # Tifffile takes a broken link for the end.
        raise ValueError(f"truncated or damaged after {len(tiff.pages)} pages")
    page = tiff.pages[0]
    tiff.filehandle.seek(page.offset)
    (count,) = struct.unpack(tiff.tiff.tagnoformat, tiff.filehandle.read(tiff.tiff.tagnosize))
    if count != len(page.tags):  # Tifffile ignores tags that it cannot read.
        raise ValueError(f"truncated or damaged: {count - len(page.tags)} tags cannot be read")
    for name in re.findall(r'FileName\s*=\s*["\']([^"\']*)', tiff.ome_metadata or ""):
        if name:
            check_same_folder(name, "parts")


def _missing_files(tiff: Any, path: Path) -> str:
    """Return the names of files of an OME image that are not in its folder."""
    named = re.findall(r'FileName\s*=\s*["\']([^"\']*)', tiff.ome_metadata or "")
    missing = []
    for name in dict.fromkeys(named):
        file = path.with_name(unescape(name))
        if not file.is_file():
            missing.append(name)
    return ", ".join(missing[:MOST_NAMED]) or "unknown"


def _lies_inside(offset: int, count: int, size: int) -> bool:
    """Whether a strip or tile lies inside a file. If it is omitted, both numbers are 0."""
    return offset + count <= size and (offset == 0) == (count == 0)


def _check_segments(tiff: Any, path: Path, level: Any) -> None:
    """Check that all strips or tiles exist and lie inside the file."""
    if 0 in level.shape:
        return
    if level.dataoffset is not None:
        if level.dataoffset < HEADER_BYTES:
            raise ValueError("damaged: its values begin before the end of its header")
        end = level.dataoffset + math.prod(level.shape) * level.dtype.itemsize
        if end > tiff.filehandle.size:
            raise ValueError(f"truncated: {end - tiff.filehandle.size} bytes are missing")
        return
    for number, page in enumerate(level.pages):
        if page is None:
            missing = _missing_files(tiff, path)
            raise ValueError(f"some of its pages are in other files, which are missing: {missing}")
        size = page.parent.filehandle.size
        offsets = page.dataoffsets
        counts = page.databytecounts
        wanted = math.prod(page.chunked)
        whole = len(offsets) >= wanted and len(counts) >= wanted
        inside = [_lies_inside(*part, size) for part in zip(offsets, counts, strict=False)]
        if not whole or not all(inside):
            raise ValueError(f"truncated or damaged: parts of page {number} are missing")


READ = frozenset({"axes", "spacing", "time", "missing", "channels"})
FORMATS = (
    Format(
        name="TIFF",
        suffixes=SUFFIXES,
        open=open_tiff,
        fields=READ,
        reference="tifffile",
        extra="io",
    ),
)
