"""File formats: the request to a reader, and what it returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ecc_core._io.description import Description
from ecc_core._io.files import Stamp, stamp_of_file


class Request(NamedTuple):
    """The image of a file that was requested."""

    series: int | None = None
    level: int = 0
    axes: str | None = None
    # The layout of raw values.
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    offset: int = 0
    order: str = "C"  # Or "F".

    def pick_series(self, found: Sequence[str], what: str = "images") -> int:
        """Return the index of the requested image among those described."""
        if self.series is None and len(found) == 1:
            return 0
        choices = ", ".join(f"{i} ({text})" for i, text in enumerate(found)) or "none"
        if self.series is None:
            raise ValueError(f"holds {len(found)} {what}, choose one with `series`: {choices}")
        if not 0 <= self.series < len(found):
            raise ValueError(f"`series` must be one of {choices}, got {self.series}")
        return self.series

    def pick_level(self, count: int) -> int:
        if not 0 <= self.level < count:
            raise ValueError(f"has levels 0 to {count - 1}, got level {self.level}")
        return self.level


@dataclass(frozen=True)
class Opened:
    """The result of a reader: an array, its description, and its storage."""

    array: Any
    """Decoded values: an object with `shape` and `dtype` that is indexed with slices."""
    description: Description
    chunks: tuple[int, ...] | None = None
    """The shape of parts that are efficient to read; by default a row."""
    parts: tuple[int, ...] | None = None
    """The shape of the smallest parts that can be read; by default that of chunks."""
    at_once: bool = False
    """Whether reading the whole array takes little more memory than the result."""
    series: int = 1
    """The number of images in the file."""
    levels: int = 1
    """The number of resolution levels."""
    described: Sequence[str] = ()
    """The files with the metadata; by default the file itself."""
    file_of: Callable[[tuple[int, ...]], str] | None = None
    """Returns the file of a chunk, if each chunk has a file of its own."""
    stamp: Callable[[str], Stamp] = stamp_of_file
    """Returns a value that changes when a file changes."""


@dataclass(frozen=True)
class Format:
    """A file format and its reader."""

    name: str
    suffixes: tuple[str, ...]
    open: Callable[..., Opened]
    """The reader: takes the path and the request, and of a container the name of an array."""
    fields: frozenset[str]
    """The members of `FIELDS` that the reader looks for."""
    reference: str
    """The library with which tests compare values, axes and spacing; empty if there is none."""
    extra: str = ""
    """The optional dependencies that are needed."""
    is_container: bool = False
    """Whether a file can hold several arrays, which are named like files in a folder."""
    is_slice: bool = True
    """Whether such files in a folder are slices of a volume. If not, they are ignored there."""
