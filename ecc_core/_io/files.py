"""Where the files of a Zarr image are: a folder, a ZIP archive or behind an address."""

import glob
import os
import zipfile
from pathlib import Path
from typing import Any, Protocol

from ecc_core._io.archives import names_in_archive
from ecc_core._optional import import_optional

__all__ = [
    "Address",
    "Archive",
    "Files",
    "Folder",
    "Stamp",
    "is_address",
    "matching_addresses",
    "stamp_of_file",
]

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


def _ancestors(inside: str) -> list[str]:
    """The root of an image, a path inside, and the folders between."""
    parts = inside.split("/") if inside else []
    return ["/".join(parts[:n]) for n in range(len(parts) + 1)]


def stamp_of_file(file: str | os.PathLike[str]) -> Stamp:
    """Size and time of change of a file."""
    try:
        found = os.stat(file)  # noqa: PTH116
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


class Files(Protocol):
    """The files of a Zarr image."""

    chunk_files: bool
    """Whether the chunks are files that have a stamp."""

    def zarr_place(self, inside: str) -> dict[str, Any]:
        """Where zarr finds what is inside: a store, and a path there."""

    def file(self, *inside: str) -> str:
        """The file at a path inside the image."""

    def read(self, file: str) -> bytes | None:
        """The content of a file, None if there is none."""

    def stamp(self, file: str) -> Stamp:
        """What tells whether a file has changed."""

    def described(self, inside: str) -> list[str]:
        """Files that describe the image and the array inside it."""


class Folder:
    """A Zarr image in a folder."""

    chunk_files = True
    stamp = staticmethod(stamp_of_file)

    def __init__(self, path: Path) -> None:
        self.path = path

    def zarr_place(self, inside: str) -> dict[str, Any]:
        return {"store": self.path, "path": inside}

    def file(self, *inside: str) -> str:
        return str(self.path.joinpath(*inside))

    def read(self, file: str) -> bytes | None:
        try:
            return Path(file).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def described(self, inside: str) -> list[str]:
        folders = [self.path / at for at in _ancestors(inside)]
        patterns = ("*.json", ".z*")
        return sorted(str(f) for at in folders for pattern in patterns for f in at.glob(pattern))


class Archive:
    """A Zarr image in a ZIP archive, at its root or in the only folder there."""

    chunk_files = False
    stamp = staticmethod(stamp_of_file)

    def __init__(self, path: Path) -> None:
        self.path = path
        names = names_in_archive(path)
        tops = {name.partition("/")[0] for name in names}
        nested = not names.intersection(METADATA) and len(tops) == 1
        self.root = f"{tops.pop()}/" if nested else ""

    def zarr_place(self, inside: str) -> dict[str, Any]:
        storage = import_optional("zarr.storage", extra="dask", purpose="reading Zarr images")
        store = storage.ZipStore(self.path, mode="r")
        return {"store": store, "path": self.file(inside).rstrip("/")}

    def file(self, *inside: str) -> str:
        return self.root + "/".join(filter(None, inside))

    def read(self, file: str) -> bytes | None:
        with zipfile.ZipFile(self.path) as archive:
            return archive.read(file) if file in archive.namelist() else None

    def described(self, inside: str) -> list[str]:
        return [str(self.path)]


class Address:
    """A Zarr image behind an address, read through fsspec."""

    chunk_files = True

    def __init__(self, address: str) -> None:
        self.address = address
        self.filesystem, self.root = _filesystem(address)

    def zarr_place(self, inside: str) -> dict[str, Any]:
        return {"store": self.address, "path": inside}

    def file(self, *inside: str) -> str:
        return "/".join((self.root.rstrip("/"), *filter(None, inside)))

    def read(self, file: str) -> bytes | None:
        try:
            content: bytes = self.filesystem.cat_file(file)
        except FileNotFoundError:
            return None
        return content

    def described(self, inside: str) -> list[str]:
        """Whether they are there or not."""
        return [self.file(at, name) for at in _ancestors(inside) for name in METADATA]

    def stamp(self, file: str) -> Stamp:
        """Size, and version or time of change if the file system knows it."""
        try:
            found = self.filesystem.info(file)
        except FileNotFoundError:
            return None
        changed = next((found[name] for name in CHANGED if found.get(name)), None)
        return found.get("size"), str(changed)
