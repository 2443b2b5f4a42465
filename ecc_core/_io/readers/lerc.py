"""Masks of LERC compression. Imagecodecs decodes the points that they mark as missing to zeros."""

import zlib
from typing import Any

import numpy as np

from ecc_core._optional import import_optional

PURPOSE = {"extra": "io", "purpose": "reading TIFF files compressed by LERC"}
PARAMETERS = 50674
"""The tag with the version of LERC and the codec by which its output is compressed again."""
DEFLATE = 1
ZSTD = 2


def read_lerc_masks(page: Any) -> None:
    """Make a page decode masked points as NaN. It raises an error if its values are integers."""
    codecs = import_optional("imagecodecs", **PURPOSE)
    decode = page.decode
    tag = page.tags.get(PARAMETERS)
    packing = tag.value[1] if tag is not None and len(tag.value) > 1 else 0

    def decode_masked(data: Any, *arguments: Any, **options: Any) -> Any:
        values, index, shape = decode(data, *arguments, **options)
        if data is None:
            return values, index, shape
        content = bytes(data)
        if packing == DEFLATE:
            content = zlib.decompress(content)
        elif packing == ZSTD:
            content = codecs.zstd_decode(content)
        _, valid = codecs.lerc_decode(content, masks=True)
        if valid is None or np.all(valid):
            return values, index, shape
        if values.dtype.kind != "f":
            raise ValueError(
                f"points are missing by a mask of LERC, which {values.dtype} values cannot say"
            )
        values = np.array(values)
        outside = ~np.asarray(valid, np.bool_).reshape(values.shape[1:3])
        values[:, outside] = np.nan
        return values, index, shape

    page.decode = decode_masked
