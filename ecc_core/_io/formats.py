"""File formats: what is requested of a reader, and what it returns."""

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
    # of raw values
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    offset: int = 0
    order: str = "C"  # or F

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
    """What a reader returns: the array, what it means, and how it is stored."""

    array: Any  # of decoded values; has `shape` and `dtype`, and is indexed with slices
    description: Description  # filled as its module says
    chunks: tuple[int, ...] | None = None  # parts that are efficient to read; a row by default
    parts: tuple[int, ...] | None = None  # smaller parts that can be read; the chunks by default
    at_once: bool = False  # whether reading the whole takes little more memory than the result
    series: int = 1
    levels: int = 1
    described: Sequence[str] = ()  # files with the metadata; by default the file itself
    file_of: Callable[[tuple[int, ...]], str] | None = None  # if each chunk has a file of its own
    stamp: Callable[[str], Stamp] = stamp_of_file


@dataclass(frozen=True)
class Format:
    """A file format, and what its reader reads."""

    name: str
    suffixes: tuple[str, ...]
    open: Callable[..., Opened]
    """Takes the path and the request, and the name of an array if the file can hold several."""
    fields: frozenset[str]
    """The members of `FIELDS` that the reader looks for."""
    reference: str
    """The library whose values, axes and spacing the tests compare; empty if there is none."""
    extra: str = ""
    """The optional dependencies that are needed."""
    is_container: bool = False
    """Whether arrays in it are named like files in a folder."""
    is_slice: bool = True
    """Whether a folder of such files is a volume, rather than that they lie beside its slices."""
