"""BigDataViewer: an XML file of views and their places, and an HDF5 file of their values."""

import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.affines import Affine
from ecc_core._io.description import Description, Encoding
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.hdf5_links import dataset_at, hdf5_library, names_in, node_at
from ecc_core._io.same_folder import file_in_same_folder
from ecc_core._io.volumes import joined_volumes
from ecc_core._io.xml import local_name, numbers_of, parse_xml, text_of

SUFFIXES = (".xml",)
KIND = "a BigDataViewer file"
AXES = "ZYX"
MOST_TIMES = 1 << 20
MOST_DIFFERENCE = 0.01
"""The largest relative difference of a step's length and the voxel size without a note."""


@dataclass(frozen=True)
class Setup:
    """A view of the sample: an image at every time point."""

    number: int
    name: str
    voxel: dict[str, float]  # The size of a voxel by axis; empty if unknown.
    unit: str


@dataclass(frozen=True)
class Views:
    """The content of the XML file."""

    file: str
    """The file with the values, relative to the XML file."""
    setups: tuple[Setup, ...]
    times: tuple[int, ...]
    missing: frozenset[tuple[int, int]]
    """The time point and the setup of each view that was not taken."""
    places: dict[tuple[int, int], NDArray[np.float64]]
    """The (3, 4) affine of each view, from indices along X, Y and Z to the world."""


def open_bigdataviewer(path: Path, request: Request) -> Opened:
    """Open a view setup, which `series` selects, at all of its time points."""
    described = parse_description(path.read_bytes())
    names = [setup.name or f"setup {setup.number}" for setup in described.setups]
    setup = described.setups[request.pick_series(names)]
    file = file_in_same_folder(path, described.file)
    times = [t for t in described.times if (t, setup.number) not in described.missing]
    if not times:
        raise ValueError(f"{setup.name or setup.number} is missing at every time point")
    h5py = hdf5_library("BigDataViewer")
    with ExitStack() as failing:
        opened = failing.enter_context(h5py.File(file, "r"))
        factors = _factors(h5py, opened, setup.number)
        level = request.pick_level(len(factors))
        place = f"s{setup.number:02}/{level}/cells"
        volumes = [dataset_at(h5py, opened, f"t{t:05}/{place}") for t in times]
        failing.pop_all()  # The file stays open, because values are read later.
    first = volumes[0]
    for t, volume in zip(times, volumes, strict=True):
        if volume.ndim != len(AXES) or (volume.shape, volume.dtype) != (first.shape, first.dtype):
            raise ValueError(
                f"t{t:05}/{place} has {volume.shape} {volume.dtype}, "
                f"t{times[0]:05}/{place} {first.shape} {first.dtype}"
            )
    factor = dict(zip("XYZ", factors[level], strict=True))
    affine = _affine(described.places.get((times[0], setup.number)), factor)
    steps = {axis: size * factor[axis] for axis, size in setup.voxel.items()}
    is_series = len(described.times) > 1
    counts = (len(times),) if is_series else ()

    def volume_at(index: tuple[int, ...]) -> Any:
        return volumes[index[0]] if is_series else first

    description = Description.of(
        f"T{AXES}" if is_series else AXES,
        steps=steps,
        units=setup.unit,
        place=affine,
        encoding=_encoding(first.dtype),
        notes=_notes(described, times, steps, affine),
    )
    return Opened(
        joined_volumes(counts, first.shape, values_type(first.dtype), volume_at),
        description,
        (1,) * len(counts) + tuple(first.chunks or first.shape),
        series=len(described.setups),
        levels=len(factors),
        described=(str(path), str(file)),
    )


def values_type(stored: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of values: BigDataViewer stores uint16 as int16 of the same bytes."""
    if stored.kind == "i" and stored.itemsize == np.dtype(np.uint16).itemsize:
        return np.dtype(f"{stored.byteorder}u2")
    return stored


def _encoding(stored: np.dtype[Any]) -> Encoding:
    if values_type(stored) == stored:
        return Encoding()
    return Encoding(str(stored), signedness="int16 stands for uint16 in BigDataViewer")


def parse_description(content: bytes) -> Views:
    """Return what an XML file says of the views."""
    root = parse_xml(content, KIND)
    if local_name(root) != "SpimData":
        raise ValueError(f"not {KIND}: its root is {local_name(root)}, not SpimData")
    sequence = root.find("SequenceDescription")
    loader = None if sequence is None else sequence.find("ImageLoader")
    if sequence is None or loader is None:
        raise ValueError("damaged: it has no SequenceDescription with an ImageLoader")
    kind = loader.get("format", "")
    if kind != "bdv.hdf5":
        raise ValueError(f"its values are stored as {kind or 'nothing'}, only bdv.hdf5 is read")
    setups = tuple(map(_setup, sequence.iterfind("ViewSetups/ViewSetup")))
    if not setups:
        raise ValueError("damaged: it has no ViewSetup")
    missing = [_view(view) for view in sequence.iterfind("MissingViews/MissingView")]
    registrations = root.iterfind("ViewRegistrations/ViewRegistration")
    return Views(
        file=text_of(loader, "hdf5"),
        setups=setups,
        times=_times(sequence.find("Timepoints")),
        missing=frozenset(missing),
        places={_view(view): _matrix(view) for view in registrations},
    )


def _setup(element: Element) -> Setup:
    voxel = {}
    unit = ""
    size = element.find("voxelSize")
    if size is not None:
        steps = numbers_of(text_of(size, "size"), "voxelSize", len(AXES))
        voxel = dict(zip("XYZ", steps, strict=True))
        unit = (size.findtext("unit") or "").strip()
    number = _whole(text_of(element, "id"), "id of a ViewSetup")
    return Setup(number, (element.findtext("name") or "").strip(), voxel, unit)


def _times(element: Element | None) -> tuple[int, ...]:
    """Return the numbers of the time points: a range, or a list such as 0-8:2, 12."""
    if element is None:
        raise ValueError("damaged: it has no Timepoints")
    kind = element.get("type", "")
    if kind == "range":
        first, last = (_whole(text_of(element, name), name) for name in ("first", "last"))
        spans = [(first, last, 1)]
    elif kind == "pattern":
        words = re.split(r"[,;]\s*", text_of(element, "integerpattern"))
        spans = [_span(word) for word in words]
    elif kind == "list":
        numbers = [text_of(point, "id") for point in element.iterfind("Timepoint")]
        return tuple(_whole(number, "id of a Timepoint") for number in numbers)
    else:
        raise ValueError(f"damaged: its Timepoints are of the type {kind!r}")
    counts = [max(0, stop - start) // step + 1 for start, stop, step in spans]
    if sum(counts) > MOST_TIMES:
        raise ValueError(f"damaged: it describes more than {MOST_TIMES} time points")
    return tuple(t for start, stop, step in spans for t in range(start, stop + 1, step))


def _span(word: str) -> tuple[int, int, int]:
    found = re.fullmatch(r"\s*(\d+)(?:-(\d+)(?::(\d+))?)?\s*", word)
    if not found or found[3] == "0":
        raise ValueError(f"damaged: its integerpattern has {word!r}")
    return int(found[1]), int(found[2] or found[1]), int(found[3] or 1)


def _view(element: Element) -> tuple[int, int]:
    """Return the time point and the setup that an element is about."""
    time, setup = (_whole(element.get(name, ""), name) for name in ("timepoint", "setup"))
    return time, setup


def _whole(text: str, what: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError(f"damaged: {what} must be a number, got {text!r}")
    return int(text)


def _matrix(view: Element) -> NDArray[np.float64]:
    """Return the product of the transforms of a view. The last one is applied first."""
    whole = np.eye(4)
    for transform in view.iterfind("ViewTransform"):
        numbers = numbers_of(text_of(transform, "affine"), "affine", 12)
        whole = whole @ np.vstack([np.reshape(numbers, (3, 4)), [0, 0, 0, 1]])
    return whole[:3]


def _affine(matrix: NDArray[np.float64] | None, factor: dict[str, float]) -> Affine | None:
    """Return the affine of a resolution level.

    Each of its points lies in the middle of the points of the finest level that it averages.
    `factor` is the number of these along each axis.
    """
    if matrix is None or not np.isfinite(matrix).all():
        return None
    steps = {axis: matrix[:, i] * factor[axis] for i, axis in enumerate("XYZ")}
    middle = [(factor[axis] - 1) / 2 for axis in "XYZ"]
    return Affine(steps, matrix[:, :3] @ middle + matrix[:, 3], "bigdataviewer")


def _notes(
    described: Views,
    times: list[int],
    steps: dict[str, float],
    affine: Affine | None,
) -> list[str]:
    notes = []
    missing = [str(t) for t in described.times if t not in times]
    if missing:
        notes.append(f"the time points {', '.join(missing)} are missing, and are left out")
    if affine is None:
        return notes
    lengths = {axis: float(np.linalg.norm(vector)) for axis, vector in affine.steps.items()}
    differs = [abs(lengths[axis] - step) > MOST_DIFFERENCE * step for axis, step in steps.items()]
    if any(differs):
        there = ", ".join(f"{axis} {lengths[axis]:.6g}" for axis in AXES)
        notes.append(f"its registration has steps of the lengths {there}; spacing is its voxelSize")
    return notes


def _factors(h5py: Any, opened: Any, setup: int) -> list[list[float]]:
    """Return the number of points of the finest level that a point of each level averages.

    There is a number for each of the axes X, Y and Z.
    """
    table = np.asarray(dataset_at(h5py, opened, f"s{setup:02}/resolutions"))
    levels = names_in(node_at(h5py, opened, _first_group(opened, setup)) or (), "")
    whole = table.ndim == 2 and table.shape[1] == len(AXES) and table.dtype.kind in "iuf"
    if not whole or not (np.isfinite(table) & (table > 0)).all() or len(levels) != len(table):
        raise ValueError(
            f"damaged: s{setup:02}/resolutions must have three factors for each of "
            f"{len(levels)} resolutions, got {table.shape}"
        )
    return [[float(factor) for factor in row] for row in table]


def _first_group(opened: Any, setup: int) -> str:
    times = names_in(opened, "t")
    return f"{times[0]}/s{setup:02}" if times else ""


READ = frozenset({"axes", "spacing", "place", "encoding"})
FORMATS = (
    Format(
        name="BigDataViewer",
        suffixes=SUFFIXES,
        open=open_bigdataviewer,
        fields=READ,
        reference="npy2bdv",
        extra="dask",
        is_slice=False,
    ),
)
