"""Where the boxes of regions are laid side by side, so that many are counted at once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.int64]


class Sheet(NamedTuple):
    """The shape of a sheet, the regions on it, and where their boxes begin."""

    shape: tuple[int, int, int]
    regions: list[int]
    places: list[tuple[int, int]]


def lay_out(extents: Values, regions: Values, limits: tuple[int, int]) -> list[Sheet]:
    """Lay out boxes in rows on sheets, large ones first.

    `limits` are the most rows and columns of a sheet; a larger box has a sheet of its own.
    """
    sheets: list[Sheet] = []
    order = np.lexsort(extents[regions].T[::-1])[::-1]
    sheet = None
    y = 0
    x = 0
    shelf = 0
    for i in regions[order].tolist():
        depth, height, width = extents[i].tolist()
        if sheet is not None and x + width > limits[1] and x:
            y = y + shelf
            x = 0
            shelf = 0
        if sheet is None or (y + height > limits[0] and y):
            sheet = Sheet((depth, 0, 0), [], [])
            y = 0
            x = 0
            shelf = 0
            sheets.append(sheet)
        sheet.regions.append(i)
        sheet.places.append((y, x))
        x = x + width + 1
        shelf = max(shelf, height + 1)
        _, rows, columns = sheet.shape
        sheet = sheet._replace(shape=(sheet.shape[0], max(rows, y + height), max(columns, x - 1)))
        sheets[-1] = sheet
    return sheets
