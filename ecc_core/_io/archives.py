"""ZIP archives: what zipfile does not compare."""

import struct
import zipfile
from pathlib import Path

END = 22
"""Bytes of the record at the end of an archive, without the comment."""
MANY = 0xFFFF
"""Value in the record if the number of files does not fit."""


def names_in_archive(path: Path) -> set[str]:
    """Return the names of the files in an archive, after checking that all are present.

    Raises
    ------
    ValueError or zipfile.BadZipFile
        If the archive is damaged, so that a file would appear to be missing.
    """
    with zipfile.ZipFile(path) as archive, path.open("rb") as stream:
        entries = archive.infolist()
        stream.seek(-END - len(archive.comment), 2)
        (count,) = struct.unpack("<10xH", stream.read(12))
        if count not in (len(entries), MANY):
            raise ValueError(f"damaged: {len(entries)} of the {count} files in it are found")
        for entry in entries:  # a name stands in two places, which opening compares
            archive.open(entry).close()
        return {entry.filename for entry in entries}
