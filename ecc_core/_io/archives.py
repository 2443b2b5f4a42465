"""ZIP archives: what zipfile does not compare."""

import struct
import zipfile
from pathlib import Path

__all__ = ["names_in_archive"]

END = struct.Struct("<4s4H2LH")
"""The record at the end of an archive, without the comment."""
MANY = 0xFFFF
"""Stands in the record for a number of files that does not fit."""


def names_in_archive(path: Path) -> set[str]:
    """Names of the files in an archive, all of which are there under their names.

    Raises
    ------
    ValueError, zipfile.BadZipFile
        If the archive is damaged, so that a file would count as missing.
    """
    with zipfile.ZipFile(path) as archive, path.open("rb") as stream:
        entries = archive.infolist()
        stream.seek(-END.size - len(archive.comment), 2)
        count = END.unpack(stream.read(END.size))[4]
        if count not in (len(entries), MANY):
            raise ValueError(f"damaged: {len(entries)} of the {count} files in it are found")
        for entry in entries:
            archive.open(entry).close()  # compares the two places that have its name
        return {entry.filename for entry in entries}
