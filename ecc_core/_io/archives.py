"""ZIP archives: what zipfile does not compare."""

import struct
import zipfile
from pathlib import Path

__all__ = ["names_in_archive"]

END = struct.Struct("<4s4H2LH")
"""Format of the record at the end of an archive, without the comment."""
LOCAL = struct.Struct("<4s5H3L2H")
"""Format of the header before a file, up to its name."""
UTF8 = 0x800
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
