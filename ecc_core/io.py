"""Read images from files; write tables, results and figures, of which no partial file is left."""

from ecc_core._io.merged_parts import merge_parts
from ecc_core._io.meshes import MESH_SUFFIXES, Mesh, read_mesh, read_point_values
from ecc_core._io.metadata import join_columns
from ecc_core._io.open import IMAGE_SUFFIXES, open_image
from ecc_core._io.persistence_files import CUBICAL_SUFFIXES, write_cubical_complex
from ecc_core._io.results import RESULT_SUFFIXES, read_result, write_result
from ecc_core._io.select import ImageFile, read_file, read_image, select_channel
from ecc_core._io.stack_parts import StackPart, read_part
from ecc_core._io.stored import StoredImage
from ecc_core._io.tables import CurveTable, curves_of_table, read_table
from ecc_core._io.write import (
    FIGURE_SUFFIXES,
    TABLE_SUFFIXES,
    atomic_file,
    check_output,
    write_csv,
    write_figure,
    write_table,
)
from ecc_core._io.write_image import write_image

__all__ = [
    "CUBICAL_SUFFIXES",
    "FIGURE_SUFFIXES",
    "IMAGE_SUFFIXES",
    "MESH_SUFFIXES",
    "RESULT_SUFFIXES",
    "TABLE_SUFFIXES",
    "CurveTable",
    "ImageFile",
    "Mesh",
    "StackPart",
    "StoredImage",
    "atomic_file",
    "check_output",
    "curves_of_table",
    "join_columns",
    "merge_parts",
    "open_image",
    "read_file",
    "read_image",
    "read_mesh",
    "read_part",
    "read_point_values",
    "read_result",
    "read_table",
    "select_channel",
    "write_csv",
    "write_cubical_complex",
    "write_figure",
    "write_image",
    "write_result",
    "write_table",
]
