"""Companions of OME-TIFF files (.companion.ome), which describe images in other files."""

from dataclasses import replace
from pathlib import Path

from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.readers import tiff
from ecc_core._io.same_folder import file_in_same_folder
from ecc_core._io.xml import local_name, parse_xml

SUFFIXES = (".ome",)
KIND = "a description of OME-TIFF files"


def open_companion(path: Path, request: Request) -> Opened:
    """Open an image whose values are in the files that the description names."""
    root = parse_xml(path.read_bytes(), KIND)
    if local_name(root) != "OME":
        raise ValueError(f"not {KIND}: its root is {local_name(root)}, not OME")
    named = (found.get("FileName", "") for found in root.iter() if local_name(found) == "UUID")
    members = [name for name in dict.fromkeys(named) if name]
    if not members:
        raise ValueError("names no file with values")
    member = file_in_same_folder(path, members[0])
    opened = tiff.open_tiff(member, request)  # The member refers to the companion, which is read.
    return replace(opened, described=(str(path), *(opened.described or (str(member),))))


FORMATS = (
    Format(
        name="OME-TIFF by its companion",
        suffixes=SUFFIXES,
        open=open_companion,
        fields=tiff.READ,
        reference="tifffile",
        extra="io",
        is_slice=False,
    ),
)
