"""Read images from files; write tables and figures so that no file is ever left half-written."""

from ecc_core._io.read import IMAGE_SUFFIXES, ImageFile, read_file, read_image, select_channel
from ecc_core._io.write import (
    FIGURE_SUFFIXES,
    TABLE_SUFFIXES,
    atomic_file,
    check_output,
    write_csv,
    write_figure,
    write_table,
)

__all__ = [
    "FIGURE_SUFFIXES",
    "IMAGE_SUFFIXES",
    "TABLE_SUFFIXES",
    "ImageFile",
    "atomic_file",
    "check_output",
    "read_file",
    "read_image",
    "select_channel",
    "write_csv",
    "write_figure",
    "write_table",
]
