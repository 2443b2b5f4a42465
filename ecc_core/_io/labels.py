"""Label images that are stored as floats, whose values must be whole numbers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.formats import Opened
from ecc_core._io.lazy import Array, Box, Lazy
from ecc_core._io.stored import StoredImage
from ecc_core.errors import InputFileError

LARGEST = 2.0**63
"""The first float that is too large for int64."""


def as_labels(image: StoredImage, on_floats: Callable[[], None] | None = None) -> StoredImage:
    """Return a label image of integers. Only an image of floats is converted.

    Its values are checked when they are read, and must be whole numbers. Missing values get label
    0. `on_floats` is called once, after the first floats have been converted.
    """
    if image.dtype.kind != "f":
        return image
    calls = [] if on_floats is None else [on_floats]
    opened = Opened(
        Lazy(image.shape, np.dtype(np.int64), partial(_read_integers, image, calls)),
        image.description,
        chunks=image.chunks,
        parts=image.parts,
        series=image.series,
        levels=image.levels,
        described=image.described,
        file_of=image.file_of,
        stamp=image.stamp,
    )
    return StoredImage(image.path, image.request, opened, partial(_reopen, image))


def _reopen(image: StoredImage, _: Any) -> StoredImage:
    """Open a label image again, in another process."""
    return as_labels(image)


def _read_integers(image: StoredImage, calls: list[Callable[[], None]], box: Box) -> Array:
    """Read labels, then make the calls that are to follow the first read."""
    values = image.read_box(box)
    if image.missing is not None:
        values = np.where(image.missing.where(values), values.dtype.type(0), values)
    labels = whole_numbers(values, image.path)
    while calls:
        calls.pop()()
    return labels


def whole_numbers(values: Array, path: Any) -> NDArray[np.int64]:
    """Return floats of a file as int64; raise an error unless they are whole numbers."""
    # The limit does not fit in float16.
    magnitudes = np.abs(values.astype(np.float64, copy=False))
    is_label = (magnitudes < LARGEST) & (values == np.trunc(values))
    if not is_label.all():
        wrong = values[~is_label][0]
        raise InputFileError(
            f"{path}: `labels` must be whole numbers, got {wrong} among {values.dtype} values"
        )
    return values.astype(np.int64)
