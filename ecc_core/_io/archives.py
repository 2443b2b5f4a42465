"""ZIP archives: what zipfile does not compare."""

import struct
import zipfile
from pathlib import Path

__all__ = ["names_in_archive"]

END = struct.Struct("<4s4H2LH")
"""The record at the end of an archive, without the comment."""
LOCAL = struct.Struct("<4s5H3L2H")
"""What stands before a file, up to its name."""
UTF8 = 0x800
MANY = 0xFFFF
"""Stands in the record for a number of files that does not fit."""


def names_in_archive(path: Path) -> set[str]:
    """Names of the files in an archive, all of which are there under their names.

    Raises
    ------
    ValueError or zipfile.BadZipFile
        If the archive is damaged, so that a file would count as missing.
    """
    with zipfile.ZipFile(path) as archive, path.open("rb") as stream:
        entries = archive.infolist()
        stream.seek(-END.size - len(archive.comment), 2)
        count = END.unpack(stream.read(END.size))[4]
        if count not in (len(entries), MANY):
            raise ValueError(f"damaged: {len(entries)} of the {count} files in it are found")
        for entry in entries:  # a name stands in two places
            name = entry.orig_filename.encode("utf-8" if entry.flag_bits & UTF8 else "cp437")
            stream.seek(entry.header_offset)
            head = stream.read(LOCAL.size + len(name))
            if not head.startswith(b"PK\x03\x04") or head[LOCAL.size :] != name:
                raise ValueError(f"damaged: {entry.filename} is not where it should be")
        return {entry.filename for entry in entries}
