"""The images of an OME-Zarr plate."""

import os
from pathlib import Path
from typing import NamedTuple

from ecc_core._io.files import Address, Files, is_address
from ecc_core._io.readers.zarr_images import attributes_of, is_zarr


class PlateImage(NamedTuple):
    """A field of a well and its position on the plate."""

    path: str
    plate: str
    well: str
    row: str
    column: str
    field: str


def images_of_plate(path: str) -> list[PlateImage]:
    """Return the fields of all wells of a plate; an empty list if the path is not a plate.

    Raises
    ------
    ValueError, KeyError
        If the description of the plate or of a well is damaged.
    """
    if not is_address(path) and not os.path.isdir(path):  # noqa: PTH112
        return []
    files = Address(path) if is_address(path) else Files(Path(path))
    plate = attributes_of(files).get("plate") if is_zarr(files) else None
    if plate is None:
        return []
    name = str(plate.get("name") or Path(path).name.partition(".")[0])
    images = []
    for described in plate["wells"]:
        inside = str(described["path"])
        row, _, column = inside.partition("/")
        for field in attributes_of(files, inside)["well"]["images"]:
            number = str(field["path"])
            place = "/".join((path.rstrip("/"), inside, number))
            images.append(PlateImage(place, name, row + column, row, column, number))
    return images
