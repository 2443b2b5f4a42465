"""FITS: images in the primary array and in extensions, also compressed."""

import itertools
import math
import re
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.affines import Affine
from ecc_core._io.description import Description, Encoding, Missing, declared_missing, unnamed_axes
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.lazy import Array, Box, Lazy
from ecc_core._io.limits import check_held
from ecc_core._optional import import_optional

SUFFIXES = (".fits", ".fit", ".fts", ".fz")
PACKED_SUFFIXES = (".fits.gz", ".fit.gz", ".fts.gz")
GZIP = b"\x1f\x8b"
FITS = b"SIMPLE"
TIMES = ("TIME", "UTC", "TAI", "TT", "TDB", "TCB", "TCG", "UT1", "GPS", "ET")
SPECTRA = (
    *("FREQ", "ENER", "WAVN", "VRAD", "WAVE", "VOPT", "ZOPT", "AWAV", "VELO", "BETA"),
    *("VELOCITY", "FELO", "LAMBDA"),
)
MATRIX_KEY = re.compile(r"CD\d.*_")
"""An element of the matrix CDi_j."""
CELESTIAL = ("RA", "DEC", "GLON", "GLAT", "ELON", "ELAT", "HPLN", "HPLT", "CRLN", "CRLT")


def open_fits(path: Path, request: Request, inside: str = "") -> Opened:
    """Open one image: the extension of a name or number, the one of `series`, or the only one."""
    astropy_fits = import_optional("astropy.io.fits", extra="fits", purpose="reading FITS files")
    with path.open("rb") as stream:
        start = stream.read(len(FITS))
    packed = start.startswith(GZIP)
    if not packed and start != FITS:  # Astropy would also open other archives.
        raise ValueError("not a FITS file")
    with _without_warnings():
        # Astropy does not scale values that it maps into memory.
        units = astropy_fits.open(path, mode="readonly", memmap=False)
        try:
            images = [i for i, unit in enumerate(units) if unit.is_image and unit.shape]
            unit = units[_pick(units, images, request, inside)]
            _check_size(unit, path, packed=packed)
            header = unit.header.copy()
            shape = tuple(map(int, unit.shape))
            array = _lazy(unit, shape)
        except BaseException:
            units.close()
            raise
    weakref.finalize(array, units.close)
    kinds = [_kind(header, len(shape) - i) for i in range(len(shape))]
    axes, notes = _axes(kinds, shape)
    description = _placed(header, axes, kinds)
    return Opened(
        _without_flat(array, axes),
        replace(
            description,
            encoding=_encoding(unit, array.dtype),
            missing=_missing(unit, array.dtype),
            notes=tuple(notes),
        ),
        series=len(images),
    )


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Ignore astropy's warnings about headers that do not follow the standard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _pick(units: Any, images: list[int], request: Request, inside: str) -> int:
    """Return the number of the extension to open."""
    if not inside:
        number = request.pick_series(_names_of(units, images))
        return images[number]
    named = {str(i): i for i in images}
    for i in reversed(images):  # In reverse, so that the first one of a name is kept.
        name = units[i].name.upper()
        named[name] = i
        named[f"{name},{units[i].ver}"] = i
    found = named.get(inside.upper())
    if found is None:
        there = ", ".join(_names_of(units, images)) or "none"
        raise ValueError(f"has no image {inside}; images: {there}")
    return found


def _check_size(unit: Any, path: Path, *, packed: bool) -> None:
    """Check that the file holds the values that its header describes."""
    place = unit.fileinfo()
    stored = path.stat().st_size
    described = math.prod(unit.shape) * abs(unit._orig_bitpix) // 8
    if packed:
        check_held(described, stored)
        return
    end = place["datLoc"] + place["datSpan"]
    if end > stored:
        raise ValueError(f"truncated: {end - stored} bytes are missing")


def _lazy(unit: Any, shape: tuple[int, ...]) -> Lazy:
    """Return the values of an extension, scaled by BSCALE, BZERO and BLANK as astropy does."""
    section = unit.section
    lock = threading.Lock()
    corner = section[(0,) * (len(shape) - 1)][:1]

    def read(box: Box) -> Array:
        values = np.empty([part.stop - part.start for part in box], corner.dtype)
        *lead, rows, columns = box if len(box) > 1 else (slice(0, 1), *box)
        numbers = [range(part.start, part.stop) for part in lead]
        with lock, _without_warnings():  # Threads share the position in the file.
            for index in itertools.product(*numbers):
                place = tuple(i - part.start for i, part in zip(index, lead, strict=True))
                whole = section[(*index, rows)] if len(box) > 1 else section[columns]
                values[place] = whole[..., columns] if len(box) > 1 else whole
        return values

    return Lazy(shape, corner.dtype, read)


def _names_of(units: Any, images: list[int]) -> list[str]:
    """Return the number and the name of each image extension."""
    return [f"{i} {units[i].name}".strip() for i in images]


def _kind(header: Any, number: int) -> str:
    """Return the physical type of an axis, such as RA, FREQ or STOKES; "" if unknown."""
    described = str(header.get(f"CTYPE{number}", ""))
    kind, _, _ = described.upper().partition("-")
    return kind.strip()


def _axes(kinds: list[str], shape: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """Return a letter for each axis, "" for one to leave out, and notes."""
    letters = ["?"] * len(kinds)
    notes = []
    for i, kind in enumerate(kinds):
        if kind in TIMES:
            letters[i] = "T"
        elif kind == "STOKES" or kind in SPECTRA:
            letters[i] = "C"
        if letters[i] != "?" and shape[i] == 1:
            letters[i] = ""
    channels = [i for i, letter in enumerate(letters) if letter == "C"]
    spectral = [i for i in channels if kinds[i] in SPECTRA]
    # With a Stokes axis as well, each parameter has an image at each wavelength.
    if len(channels) > 1:
        for i in spectral:
            letters[i] = "W"
    for i in spectral:
        words = "channels" if letters[i] == "C" else "wavelengths"
        notes.append(f"its axis {kinds[i]} are {words}, unless axes say that it is spatial")
    spatial = [i for i, letter in enumerate(letters) if letter == "?"]
    for i, letter in zip(spatial, unnamed_axes(len(spatial)), strict=True):
        letters[i] = letter
    return letters, notes


def _without_flat(array: Lazy, axes: list[str]) -> Lazy:
    """Leave out the axes without a letter, which have one point."""
    kept = [i for i, letter in enumerate(axes) if letter]
    if len(kept) == len(axes):
        return array
    left_out = tuple(i for i, letter in enumerate(axes) if not letter)

    def read(box: Box) -> Array:
        whole = [slice(0, 1)] * len(axes)
        for i, part in zip(kept, box, strict=True):
            whole[i] = part
        return array[tuple(whole)].squeeze(left_out)

    shape = tuple(array.shape[i] for i in kept)
    return Lazy(shape, array.dtype, read)


def _encoding(unit: Any, dtype: np.dtype[Any]) -> Encoding:
    slope = float(unit._orig_bscale)
    offset = float(unit._orig_bzero)
    if (slope, offset) == (1.0, 0.0):
        return Encoding(unit=str(unit.header.get("BUNIT", "")))
    if dtype.kind == "u":  # FITS stores unsigned integers as signed ones with an offset.
        return Encoding(signedness=f"BZERO {offset:g} makes integers unsigned")
    return Encoding(
        f"BITPIX {unit._orig_bitpix}", (slope,), (offset,), unit=str(unit.header.get("BUNIT", ""))
    )


def _missing(unit: Any, dtype: np.dtype[Any]) -> Missing | None:
    """Return the missing values that BLANK declares. Astropy replaces them by NaN."""
    blank = unit._orig_blank
    # BLANK is defined for stored integers only.
    if blank is None or dtype.kind != "f" or unit._orig_bitpix < 0:
        return None
    return declared_missing(dtype, [math.nan], f"BLANK {blank}")


def _placed(header: Any, axes: list[str], kinds: list[str]) -> Description:
    """Return the axes with their pixel scales, and the places in the plane of projection.

    The scales are those of `astropy.wcs.utils.proj_plane_pixel_scales`.
    """
    numbers = {axis: len(axes) - i for i, axis in enumerate(axes) if axis and axis in "ZYX"}
    matrix = {}
    for axis, number in numbers.items():
        keys = (f"CDELT{number}", f"CD{number}_{number}", f"CD1_{number}")
        if any(key in header for key in keys):
            matrix[axis] = [_element(header, other, number) for other in numbers.values()]
    units = {}
    for axis, number in numbers.items():
        celestial = kinds[len(axes) - number] in CELESTIAL
        usual = "deg" if celestial else ""
        units[axis] = str(header.get(f"CUNIT{number}", usual)).strip()
    vectors = {axis: np.array(column) for axis, column in matrix.items()}
    lengths = {axis: float(np.linalg.norm(vector)) for axis, vector in vectors.items()}
    names = [kind for axis, kind in zip(axes, kinds, strict=True) if axis]
    description = Description.of("".join(axes), steps=lengths, units=units, names=names)
    if {*vectors} != {*numbers} or len({*units.values()}) != 1 or not _finite(vectors):
        return description
    first = {a: 1 - float(header.get(f"CRPIX{n}", 0)) for a, n in numbers.items()}
    origin = sum((first[axis] * vectors[axis] for axis in numbers), np.zeros(len(numbers)))
    named = [
        f"{header.get(f'CTYPE{n}', '')} {header.get(f'CRVAL{n}', 0)}" for n in numbers.values()
    ]
    celestial = any(kind in CELESTIAL for kind in kinds)
    if not celestial:  # Coordinates are linear: those of any reference point are the same.
        origin += [float(header.get(f"CRVAL{n}", 0)) for n in numbers.values()]
        named = []
    return replace(description, place=Affine(vectors, origin, " ".join(["fits", *named])))


def _element(header: Any, world: int, pixel: int) -> float:
    """Return the change of a world coordinate from one pixel to the next along an axis."""
    if any(MATRIX_KEY.match(key) for key in header):
        return float(header.get(f"CD{world}_{pixel}", 0))
    turned = float(header.get(f"PC{world}_{pixel}", world == pixel))
    return turned * float(header.get(f"CDELT{world}", 1))


def _finite(vectors: dict[str, Any]) -> bool:
    table = np.array(list(vectors.values()))
    are_finite = bool(np.isfinite(table).all())
    return are_finite and bool(table.any(axis=1).all())


READ = frozenset({"axes", "spacing", "place", "encoding", "missing"})
FORMATS = (
    Format(
        name="FITS",
        suffixes=(*SUFFIXES, *PACKED_SUFFIXES),
        open=open_fits,
        fields=READ,
        reference="astropy",
        extra="fits",
        is_container=True,
    ),
)
