"""Files of images and persistence diagrams for DIPHA, Perseus and GUDHI."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._io.readers.persistence_images import (
    DIAGRAM,
    DIPHA,
    DIPHA_SUFFIXES,
    IMAGE,
    KINDS,
    PERSEUS_SUFFIXES,
)
from ecc_core._io.write import atomic_file, check_output
from ecc_core.results import PersistencePairs

CUBICAL_SUFFIXES = (*DIPHA_SUFFIXES, *PERSEUS_SUFFIXES)
"""Suffixes of the files that `write_cubical_complex` writes."""
DIAGRAM_SUFFIXES = (".diagram",)
"""Suffixes of the persistence diagrams of DIPHA."""
PAIR = np.dtype([("dimension", "<i8"), ("birth", "<f8"), ("death", "<f8")])
UNKNOWN = np.iinfo(np.int64).max
"""The index of a point in a diagram, which does not say where classes are born and die."""
MOST_DIMENSION = 32
VALUES_AT_ONCE = 1 << 16
"""Values that are converted to text at once."""


def write_cubical_complex(path: str | os.PathLike[str], image: ArrayLike) -> None:
    """Write an image for DIPHA, Perseus or GUDHI, completely or not at all.

    `open_image` and `read_image` read these files.

    Parameters
    ----------
    path : path-like
        The file. ``.complex`` and ``.dipha`` are binary files of DIPHA, which CubicalRipser reads,
        too; ``.perseus`` and ``.txt`` are text of Perseus, which GUDHI reads as top-dimensional
        cells (`connectivity` d).
    image : array_like
        Real numbers. Files hold float64: integers of which float64 has not all are an error.

    Raises
    ------
    TypeError, ValueError
        If the suffix is not supported, or the image holds NaN, other values than real numbers, or
        integers that float64 cannot represent.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from ecc_core.io import read_image, write_cubical_complex
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "image.complex")
    ...     write_cubical_complex(path, np.arange(6).reshape(2, 3))
    ...     read_image(path).tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """
    path = check_output(path, CUBICAL_SUFFIXES)
    values = np.asarray(image)
    if values.dtype.kind not in "buif":
        raise TypeError(f"`image` must hold real numbers, got {values.dtype}")
    if values.ndim == 0 or values.size == 0:
        raise ValueError(f"`image` must have points, got shape {values.shape}")
    exact = values.astype(np.float64)
    if np.isnan(exact).any():
        raise ValueError("`image` must not hold NaN, which cubical complexes do not have")
    if values.dtype.kind in "iu" and (exact.astype(values.dtype) != values).any():
        raise ValueError(f"`image` must hold integers that float64 has, got {values.dtype}")
    with atomic_file(path) as file:
        if path.suffix.lower() in PERSEUS_SUFFIXES:
            file.writelines(_perseus(values))
            return
        head = [DIPHA, IMAGE, values.size, values.ndim, *values.shape[::-1]]
        file.write(np.array(head, "<i8").tobytes())
        file.write(exact.astype("<f8").tobytes())


def _perseus(values: NDArray[Any]) -> Iterator[bytes]:
    """Yield the text of an image, whose last axis is the fastest and described first."""
    yield _lines([values.ndim, *values.shape[::-1]])
    flat = values.reshape(-1)
    if flat.dtype.kind == "b":
        flat = flat.astype(np.uint8)
    for start in range(0, flat.size, VALUES_AT_ONCE):
        numbers = flat[start : start + VALUES_AT_ONCE]
        if numbers.dtype.kind == "f":
            numbers = numbers.astype(np.float64)
        # Python writes the shortest text of a number that is read back as the same number.
        yield _lines(numbers.tolist())


def _lines(numbers: Iterable[Any]) -> bytes:
    """Return a line of text for each number."""
    return "".join(f"{number}\n" for number in numbers).encode()


def write_diagram(path: Path, pairs: PersistencePairs[Any]) -> None:
    """Write births and deaths in the format of DIPHA, as in `PersistencePairs.to_gudhi`.

    A class of dimension k that never dies is written with the dimension -k - 1. Its death is
    infinity here; DIPHA writes the largest value of the image, which a result does not have.
    """
    host = pairs.to_numpy()
    diagrams = host.to_gudhi()
    if isinstance(diagrams, np.ndarray):
        diagrams = [diagrams]
    rows = np.zeros(len(host.births), PAIR)
    both = np.concatenate([np.zeros((0, 2)), *diagrams])
    dimensions = np.asarray(host.dimensions)
    rows["dimension"] = np.where(host.essential, -dimensions - 1, dimensions)
    rows["birth"] = both[:, 0]
    rows["death"] = both[:, 1]
    rows.sort(order=["dimension", "birth", "death"])
    with atomic_file(path) as file:
        file.write(np.array([DIPHA, DIAGRAM, len(rows)], "<i8").tobytes())
        file.write(rows.tobytes())


def read_diagram(path: Path) -> PersistencePairs[NDArray[Any]]:
    """Read a diagram of DIPHA, of sublevel sets, which has no points of births and deaths."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = np.frombuffer(stream.read(8 * 3), "<i8").tolist()
        if len(head) < 3 or head[0] != DIPHA:
            raise ValueError(f"{path}: not a file of DIPHA, or truncated")
        _, kind, count = head
        if kind != DIAGRAM:
            held = KINDS.get(kind, f"type {kind}")
            raise ValueError(f"{path}: holds {held} of DIPHA, not a persistence diagram")
        if count < 0 or size != 8 * 3 + count * PAIR.itemsize:
            raise ValueError(f"{path}: truncated or damaged: {size} bytes for {count} classes")
        rows = np.frombuffer(stream.read(), PAIR)
    essential = rows["dimension"] < 0
    dimensions = np.where(essential, -rows["dimension"] - 1, rows["dimension"])
    births = rows["birth"].astype(np.float64)
    deaths = np.where(essential, np.inf, rows["death"])
    if dimensions.max(initial=0) > MOST_DIMENSION:
        raise ValueError(f"{path}: damaged: it has classes of dimension {dimensions.max()}")
    if np.isnan(births).any() or np.isnan(deaths).any():
        raise ValueError(f"{path}: damaged: it has classes that are born or die at NaN")
    order = np.lexsort((deaths, births, dimensions))
    points = np.full((len(rows), 1), UNKNOWN)
    return PersistencePairs(
        births=births[order],
        deaths=deaths[order],
        birth_points=points,
        death_points=np.where(essential[order], -1, UNKNOWN)[:, None],
        dimension=None,
        counts=tuple(np.bincount(dimensions, minlength=1).tolist()),
    )
