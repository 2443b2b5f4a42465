"""The files of a Zarr image, in a folder or behind an address, and whether they have changed."""

import glob
import os
from pathlib import Path
from typing import Any

from ecc_core._optional import import_optional

__all__ = ["Address", "Folder", "Stamp", "is_address", "matching_addresses", "stamp_of_file"]

Stamp = tuple[Any, ...] | None
"""Another one if the file has changed; None if there is none."""

METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
# What file systems of fsspec call the version of a file, the best first.
CHANGED = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")


def is_address(path: str | os.PathLike[str]) -> bool:
    """Whether it is an address such as s3://bucket/image.zarr, and no path."""
    return "://" in os.fspath(path)


def _filesystem(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path there."""
    core = import_optional("fsspec.core", extra="dask", purpose="reading from an address")
    filesystem, path = core.url_to_fs(address)
    return filesystem, path


def matching_addresses(pattern: str) -> list[str]:
    """Addresses that match a pattern; itself if it has no * or the like."""
    if not glob.has_magic(pattern):
        return [pattern]
    filesystem, path = _filesystem(pattern)
    return [filesystem.unstrip_protocol(found) for found in sorted(filesystem.glob(path))]


def stamp_of_file(file: str | os.PathLike[str]) -> Stamp:
    """Size and time of change of a file."""
    try:
        found = os.stat(file)  # noqa: PTH116
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


class Folder:
    """A Zarr image in a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    stamp = staticmethod(stamp_of_file)

    def file(self, *inside: str) -> str:
        return str(self.path.joinpath(*inside))

    def metadata(self, inside: str) -> list[str]:
        """Files that describe the image and the array inside it."""
        folders = {self.path, self.path / inside}
        patterns = ("*.json", ".z*")
        return sorted(str(f) for at in folders for pattern in patterns for f in at.glob(pattern))


class Address:
    """A Zarr image behind an address, read through fsspec."""

    def __init__(self, address: str) -> None:
        self.filesystem, self.root = _filesystem(address)

    def file(self, *inside: str) -> str:
        return "/".join((self.root.rstrip("/"), *filter(None, inside)))

    def metadata(self, inside: str) -> list[str]:
        """Files that describe the image and the array inside it, whether they are there or not."""
        return [self.file(at, name) for at in sorted({"", inside}) for name in METADATA]

    def stamp(self, file: str) -> Stamp:
        """Size, and version or time of change if the file system knows it."""
        try:
            found = self.filesystem.info(file)
        except FileNotFoundError:
            return None
        changed = next((found[name] for name in CHANGED if found.get(name)), None)
        return found.get("size"), str(changed)
