"""The files of a Zarr image in a folder, in a ZIP archive or at an address."""

import glob
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

from ecc_core._io.retries import retried
from ecc_core._optional import import_optional

Stamp = tuple[Any, ...] | None
"""A value that changes when the file changes; None if there is no file."""

METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
VERSIONS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
"""The names by which file systems of fsspec give the version of a file, the most exact first."""
ARCHIVE_END = 22
"""Bytes of the record at the end of a ZIP archive, without the comment."""
MANY_FILES = 0xFFFF
"""The number of files in that record if the true number does not fit."""


def is_address(path: str | os.PathLike[str]) -> bool:
    """Whether a string is an address such as s3://bucket/image.zarr rather than a path."""
    return "://" in os.fspath(path)


def _filesystem(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in it."""
    core = import_optional("fsspec.core", extra="dask", purpose="reading from an address")
    filesystem, path = core.url_to_fs(address)
    return filesystem, path


def matching_addresses(pattern: str) -> list[str]:
    """Return the addresses that match a pattern, or the pattern if it has no wildcards."""
    if not glob.has_magic(pattern):
        return [pattern]
    filesystem, path = _filesystem(pattern)
    return [filesystem.unstrip_protocol(found) for found in sorted(filesystem.glob(path))]


def names_in_archive(path: Path) -> set[str]:
    """Return the names of the files in a ZIP archive, or raise an error if it is damaged.

    zipfile itself does not compare the number of files with that which the archive records.
    """
    with zipfile.ZipFile(path) as archive, path.open("rb") as stream:
        entries = archive.infolist()
        stream.seek(-ARCHIVE_END - len(archive.comment), 2)
        (count,) = struct.unpack("<10xH", stream.read(12))
        if count not in (len(entries), MANY_FILES):
            raise ValueError(f"damaged: {len(entries)} of the {count} files in it are found")
        # A name is stored in two places, which zipfile compares when it opens the file.
        for entry in entries:
            archive.open(entry).close()
        return {entry.filename for entry in entries}


def stamp_of_file(file: str | os.PathLike[str]) -> Stamp:
    """Return size and modification time of a file."""
    try:
        found = os.stat(file)  # noqa: PTH116
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


class Files:
    """The files of a Zarr image in a folder; subclasses are for other places."""

    chunk_files = True
    """Whether chunks are files with a stamp."""

    def __init__(self, place: Path | str, root: str = "") -> None:
        self.place = place
        self.root = root or str(place)

    def zarr_place(self, inside: str) -> dict[str, Any]:
        """Return the store and the path that zarr opens."""
        return {"store": self.place, "path": inside}

    def file(self, *inside: str) -> str:
        """Return the file at a path inside the image."""
        return "/".join(filter(None, (self.root, *inside)))

    def stamp(self, file: str) -> Stamp:
        """Return a stamp that changes when the file changes."""
        return stamp_of_file(file)

    def read(self, file: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        try:
            return Path(file).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def described(self, inside: str) -> list[str]:
        """Return the metadata files that the image and the array inside it can have."""
        parts = inside.split("/") if inside else []
        groups = [parts[:n] for n in range(len(parts) + 1)]
        return [self.file(*group, name) for group in groups for name in METADATA]


class Archive(Files):
    """A Zarr image in a ZIP archive, at its root or in its only folder."""

    chunk_files = False

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        names = names_in_archive(path)
        tops = {name.partition("/")[0] for name in names}
        nested = not names.intersection(METADATA) and len(tops) == 1
        self.root = tops.pop() if nested else ""

    def zarr_place(self, inside: str) -> dict[str, Any]:
        storage = import_optional("zarr.storage", extra="dask", purpose="reading Zarr images")
        store = storage.ZipStore(self.place, mode="r")
        return {"store": store, "path": self.file(inside)}

    def read(self, file: str) -> bytes | None:
        with zipfile.ZipFile(self.place) as archive:
            return archive.read(file) if file in archive.namelist() else None

    def described(self, inside: str) -> list[str]:
        return [str(self.place)]


class Address(Files):
    """A Zarr image at a remote address, read by fsspec."""

    def __init__(self, address: str) -> None:
        self.filesystem, root = _filesystem(address)
        super().__init__(address, root.rstrip("/"))

    def read(self, file: str) -> bytes | None:
        try:
            content: bytes = retried(lambda: self.filesystem.cat_file(file))
        except FileNotFoundError:
            return None
        return content

    def stamp(self, file: str) -> Stamp:
        """Return size and, if the file system knows it, version or modification time."""
        try:
            found = retried(lambda: self.filesystem.info(file))
        except FileNotFoundError:
            return None
        version = next((found[name] for name in VERSIONS if found.get(name)), None)
        return found.get("size"), str(version)
