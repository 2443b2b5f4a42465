"""Images in files, which are read when they are indexed, and views of parts of them."""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ecc_core._io.affines import Affine
from ecc_core._io.colours import luminance
from ecc_core._io.description import Missing
from ecc_core._io.files import Stamp
from ecc_core._io.formats import Opened, Request
from ecc_core._io.lazy import Array, Box, rows_of
from ecc_core._io.limits import check_memory
from ecc_core._io.retries import retried
from ecc_core._io.units import Distances
from ecc_core._io.zarr_tasks import finish_zarr_tasks
from ecc_core._partition import Partition, whole_box
from ecc_core.errors import InputFileError

MOST_REQUESTS = 32
"""The most requests at the same time for files at an address."""
LEAST_BYTES_AT_ONCE = 1 << 20
"""Bytes of an image of any size that may be read at once."""
LEAST_PARTS = 128
"""The least number of parts in which a large image is read."""


class StoredImage:
    """An image in a file or folder. Indexing reads only the requested part.

    Attributes
    ----------
    path : pathlib.Path or str
        The file or folder, or the address.
    axes : str
        One letter for each axis: ``Z``, ``Y``, ``X`` are spatial, ``T`` is time, ``C`` are
        channels, ``S`` are the samples of a colour, ``?`` are axes that the file does not describe,
        and other letters are other axes. They are in the order T, others, C, Z, Y, X, S, whatever
        their order in the file.
    shape : tuple of int
    dtype : numpy.dtype
    chunks : tuple of int
        Shape of the parts that are efficient to read.
    spacing : dict of str to float
        Distance between neighbouring points along the axes Z, Y and X, in `unit`, without axes for
        which it is unknown.
    unit : str
        The unit of the spacing, such as ``"millimeter"`` or ``"micrometer"``; empty if unknown.
    affine : Affine or None
        The places of the points in the world, if the file has them.
    channels : tuple of str
        Names of the channels, if the file gives a different one to each; otherwise empty.
    missing : Missing or None
        Values that the file declares as missing. In floating-point images they are read as NaN, and
        `read` masks them.
    notes : tuple of str
        What is easily overlooked: that values are missing, that 0 is white, that channels are
        amounts of ink, or that the image should be rotated for display.
    description : Description
        The whole description of the image by the file: names and units of axes, place, how stored
        values became values, missing values.
    series, levels : int
        Number of images in the file, and number of resolutions of this one.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from ecc_core.io import open_image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/image.npy", np.arange(20).reshape(4, 5))
    ...     image = open_image(f"{folder}/image.npy")
    ...     image.axes, image.dtype.kind, image[1:3, 4].tolist(), image.read().sum()
    ('YX', 'i', [9, 14], np.int64(190))
    """

    def __init__(self, path: Path | str, request: Request, opened: Opened, reopen: Any) -> None:
        self.path = path
        self.request = request
        self._reopen = reopen
        self.array = opened.array
        self.file_of = opened.file_of
        self.stamp = opened.stamp
        self.shape: tuple[int, ...] = tuple(map(int, opened.array.shape))
        self.dtype = np.dtype(opened.array.dtype)
        self.chunks = tuple(map(int, opened.chunks or rows_of(self.array)))
        self.parts = tuple(map(int, opened.parts or self.chunks))
        self._at_once = opened.at_once
        self.series = opened.series
        self.levels = opened.levels
        self.described = opened.described
        description = opened.description
        self.axes = description.letters
        names = description.channels
        count = dict(zip(self.axes, self.shape, strict=True)).get("C")
        are_distinct = "" not in names and len(set(names)) == len(names)
        self.channels = names if are_distinct and len(names) == count else ()
        self.missing = description.missing
        spacing, self.unit = description.distances()
        self.spacing = dict(spacing)
        place = description.place
        self.affine = None if place is None else replace(place, unit=self.unit)
        self.notes = description.notes
        if self.missing is not None:
            self.notes += (f"{self.missing.name} are left out",)
        if self.affine is not None:
            self.notes += self.affine.notes(self.spacing)
        self.description = replace(description, channels=self.channels, place=self.affine)

    @property
    def distances(self) -> Distances:
        """The spacing with its unit."""
        return self.spacing, self.unit

    def __reduce__(self) -> Any:
        """Pickle the request only; another process opens the file again."""
        return self._reopen, (self.path,)

    def __repr__(self) -> str:
        return f"<StoredImage {str(self.path)!r}: {self.axes} {self.shape} {self.dtype}>"

    def __getitem__(self, index: Any) -> Array:
        given = index if isinstance(index, tuple) else (index,)
        given += (slice(None),) * (len(self.shape) - len(given))
        parts = [range(n)[i] for i, n in zip(given, self.shape, strict=True)]
        kept = (0 if isinstance(i, int) else slice(None, None, i.step) for i in parts)
        return self.read_box(tuple(map(_span, parts)))[tuple(kept)]

    def read_box(self, box: Box) -> Array:
        """Read the values in a box.

        Parameters
        ----------
        box : tuple of slice
            For each axis the range of the points, with bounds and without a step.

        Returns
        -------
        numpy.ndarray
            Missing values are as they are stored.

        Raises
        ------
        InputFileError
            If a part of the file is damaged or missing.
        MemoryError
            If the values do not fit in memory.
        """
        if not isinstance(self.array, np.ndarray):
            size = math.prod(part.stop - part.start for part in box)
            check_memory(size * self.dtype.itemsize, self.path)
        try:
            if self.file_of is not None and not self.remote:
                for file in map(self.file_of, self._stored_chunks.that_meet(box)):
                    if Path(file).is_dir():  # Zarr takes a folder for a missing chunk.
                        raise IsADirectoryError(f"{file} is a folder")
            if self.remote:
                return retried(lambda: np.asanyarray(self.array[box]))
            return np.asanyarray(self.array[box])
        except (MemoryError, InputFileError):
            raise
        except Exception as error:  # Codecs raise errors of any type for damaged chunks.
            reason = " ".join(str(error).split()) or type(error).__name__
            damaged = ", ".join(f"{i.start}:{i.stop}" for i in self._damaged(box))
            finish_zarr_tasks()
            message = f"{self.path}: cannot read chunk [{damaged}]: {reason}"
            raise InputFileError(message) from error

    def read(self) -> Array:
        """Read the whole image: a masked array if the file declares missing values.

        Returns
        -------
        numpy.ndarray or numpy.ma.MaskedArray
            The values, in the shape and the dtype of the image.

        Raises
        ------
        InputFileError
            If a part of the file is damaged or missing.
        MemoryError
            If the image does not fit in memory.
        """
        return View.all_of(self).read_masked()

    def reads_at_once(self, box: Box) -> bool:
        """Whether reading a box takes little more memory than its values."""
        if isinstance(self.array, np.ndarray):
            return True
        return self._at_once and box == whole_box(self.shape)

    def _damaged(self, box: Box) -> Box:
        """Return the first stored chunk in a box that cannot be read."""
        part: Box = ()
        for chunk in self._stored_chunks.that_meet(box):
            part = self._stored_chunks.box(chunk)
            try:
                self.array[part]
            except Exception:
                break
        return part

    @cached_property
    def _stored_chunks(self) -> Partition:
        return Partition.of_chunks(self.shape, self.chunks)

    @property
    def remote(self) -> bool:
        """Whether files are remote, so that each access is a request."""
        return isinstance(self.path, str)

    def stamps(self, box: Box) -> list[Stamp]:
        """Return stamps of the files with values of a box, which change when the files do."""
        if self.file_of is None:
            return []
        files = dict.fromkeys(map(self.file_of, self._stored_chunks.that_meet(box)))
        if self.remote and len(files) > MOST_REQUESTS:
            with ThreadPoolExecutor(MOST_REQUESTS) as pool:
                return list(pool.map(self.stamp, files))
        return [self.stamp(file) for file in files]

    def identity(self) -> list[Any]:
        """Return facts that identify the input and how it is read, without its values."""
        return [
            self.path if isinstance(self.path, str) else os.path.realpath(self.path),
            *self.request,
            self.dtype.str,
            self.shape,
            *((file, self.stamp(file)) for file in self.described),
        ]


class View(NamedTuple):
    """A part of an array on disk, with its axes in another order."""

    source: StoredImage
    order: tuple[int, ...]  # The axis of the source for each axis of the view.
    start: tuple[int, ...]  # The first point in the source along each axis of the view.
    shape: tuple[int, ...]
    fixed: Mapping[int, int]  # The index along each axis of the source that the view lacks.
    gray: int | None = None  # The axis of colours that is replaced by their luminance, or None.

    @classmethod
    def all_of(cls, source: StoredImage) -> "View":
        """Return the view of a whole array."""
        axes = tuple(range(len(source.shape)))
        return cls(source, axes, (0,) * len(axes), source.shape, {})

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype = self.source.dtype
        return dtype if self.gray is None else luminance(np.ones((3, 0), dtype)).dtype

    @property
    def axes(self) -> str:
        """A letter for each axis."""
        return "".join(self.source.axes[axis] for axis in self.order)

    @property
    def ndim(self) -> int:
        """Number of spatial axes, which are the last ones if batch axes come first."""
        return sum(letter in "ZYX" for letter in self.axes)

    @property
    def lengths(self) -> dict[str, int]:
        return dict(zip(self.axes, self.shape, strict=True))

    @property
    def affine(self) -> Affine | None:
        """The places of the points of the view, None if unknown."""
        start = dict(zip(self.axes, self.start, strict=True))
        return self.source.affine and self.source.affine.moved(start)

    def read(self, box: Box) -> Array:
        values = self.source.read_box(self._stored(box))
        if self.gray is not None:
            colours = np.moveaxis(values, self.gray, 0)
            gray = luminance(colours)
            if self.source.missing is not None:  # The luminance is missing if any colour is.
                gray[self.source.missing.where(colours).any(axis=0)] = np.nan
            values = np.expand_dims(gray, self.gray)
        found: Array = values.transpose((*self.fixed, *self.order))[(0,) * len(self.fixed)]
        return found

    @property
    def missing(self) -> Missing | None:
        """The missing values. Those of a luminance are NaN."""
        found = self.source.missing
        if found is None or self.gray is None:
            return found
        return Missing((), found.source)

    def read_masked(self) -> Array:
        """Return all values, as a masked array if the file declares missing values."""
        values = self.read_all()
        if self.missing is None:
            return values
        return np.ma.masked_array(values, self.missing.where(values))

    def read_all(self) -> Array:
        """Return all values. They are read in parts, to need little more memory than they take."""
        source = self.source
        whole = whole_box(self.shape)
        if self.gray is None and source.reads_at_once(self._stored(whole)):
            return self.read(whole)
        check_memory(math.prod(self.shape) * self.dtype.itemsize, source.path)
        values = np.empty(self.shape, self.dtype)
        least = LEAST_BYTES_AT_ONCE
        if source.remote:
            least = MOST_REQUESTS * math.prod(source.parts) * values.itemsize
        limit = max(least, values.nbytes // LEAST_PARTS)
        sizes = grown_chunks(
            source.parts, source.shape, grow=self.order, itemsize=values.itemsize, limit=limit
        )
        for box in self.boxes(sizes):
            values[box] = self.read(box)
        return values

    def stamps(self, box: Box) -> list[Any]:
        """Return stamps of the files with values of a box, which change when the files do."""
        return self.source.stamps(self._stored(box))

    def _stored(self, box: Box) -> Box:
        """Return a box along the axes of the source."""
        parts = {axis: slice(i, i + 1) for axis, i in self.fixed.items()}
        if self.gray is not None:
            parts[self.gray] = slice(0, self.source.shape[self.gray])
        for axis, start, part in zip(self.order, self.start, box, strict=True):
            parts[axis] = slice(start + part.start, start + part.stop)
        return tuple(parts[axis] for axis in sorted(parts))

    def boxes(self, sizes: Sequence[int], numbers: Iterable[int] | None = None) -> Iterator[Box]:
        """Yield the blocks of the view, aligned with blocks of these sizes in the source.

        `numbers` restricts them to blocks with some numbers in C order.
        """
        blocks = Partition.of_blocks(self.chunks(sizes))
        for number in range(blocks.size) if numbers is None else numbers:
            yield blocks.box(blocks.index(number))

    def chunks(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the lengths of the blocks along each axis, as `boxes` yields them."""
        lengths: list[tuple[int, ...]] = []
        for axis, start, n in zip(self.order, self.start, self.shape, strict=True):
            size = sizes[axis]
            stop = start + n
            if n == 0:
                lengths.append(())
                continue
            second = (start // size + 1) * size
            edges = [start, *range(second, stop, size), stop]
            lengths.append(tuple(np.diff(edges).tolist()))
        return tuple(lengths)


def grown_chunks(
    stored: Sequence[int], shape: Sequence[int], grow: Sequence[int], itemsize: int, limit: int
) -> tuple[int, ...]:
    """Return the shape of blocks: stored chunks, doubled along the shortest axis of `grow`.

    They are doubled until the array ends or they would exceed the limit in bytes.
    """
    block = [max(1, min(c, n)) for c, n in zip(stored, shape, strict=True)]
    while True:
        shorter = [axis for axis in grow if block[axis] < shape[axis]]
        if not shorter or 2 * math.prod(block) * itemsize > limit:
            return tuple(block)
        axis = min(shorter, key=lambda a: (block[a], a))
        block[axis] = min(2 * block[axis], shape[axis])


def _span(indices: int | range) -> slice:
    """Return the slice from the least to the largest index."""
    if isinstance(indices, int):
        return slice(indices, indices + 1)
    ends = sorted((indices[0], indices[-1])) if indices else (0, -1)
    return slice(ends[0], ends[1] + 1)
