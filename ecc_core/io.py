"""Read images from files; write tables, results and figures, each file whole or not at all."""

from ecc_core._io.read import IMAGE_SUFFIXES, ImageFile, read_file, read_image, select_channel
from ecc_core._io.results import RESULT_SUFFIXES, read_result, write_result
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
    "RESULT_SUFFIXES",
    "TABLE_SUFFIXES",
    "ImageFile",
    "atomic_file",
    "check_output",
    "read_file",
    "read_image",
    "read_result",
    "select_channel",
    "write_csv",
    "write_figure",
    "write_result",
    "write_table",
]
