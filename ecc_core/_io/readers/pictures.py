"""PNG and JPEG."""

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ecc_core._io.stored import Opened, Request
from ecc_core._optional import import_optional

__all__ = ["SUFFIXES", "open_picture"]

SUFFIXES = (".png", ".jpg", ".jpeg")
SIGNATURE = b"\x89PNG\r\n\x1a\n"
DEEP = (b"\x10\x02", b"\x10\x04", b"\x10\x06")
"""Bit depth 16 with colours or alpha, of which Pillow silently keeps the upper 8 bits."""


def open_picture(path: Path, _: Request) -> Opened:
    """Open and decode a PNG or JPEG file."""
    imageio = import_optional("imageio.v3", extra="io", purpose="reading PNG and JPEG files")
    with path.open("rb") as stream:
        if stream.read(len(SIGNATURE)) == SIGNATURE:
            _check_png(stream)
    try:
        with _any_size(), imageio.imopen(path, "r", plugin="pillow") as file:
            values = file.read(index=0)
            mode = file.metadata(index=0)["mode"]
    except (OSError, SyntaxError) as error:
        raise ValueError(f"not a PNG or JPEG image, or truncated: {error}") from error
    samples = "S" if mode in ("LA", "P", "PA", "RGB", "RGBA") else "C"
    return Opened(values, "YX" if values.ndim == 2 else "YX" + samples)


def _check_png(stream: IO[bytes]) -> None:
    """Check the checksums of a PNG file; Pillow does not check those of the pixels."""
    kind = b""
    while kind != b"IEND":
        head = stream.read(8)
        if len(head) < 8:
            raise ValueError("not a PNG or JPEG image, or truncated")
        length, kind = struct.unpack(">I4s", head)
        content = stream.read(length)
        if stream.read(4) != struct.pack(">I", zlib.crc32(content, zlib.crc32(kind))):
            raise ValueError(f"truncated or damaged in its part {kind!r}")
        if kind == b"IHDR" and content[8:10] in DEEP:
            raise ValueError("16-bit PNG with colours or alpha is not supported, save it as TIFF")
        if kind == b"acTL":
            raise ValueError("animated PNG is not supported")


@contextmanager
def _any_size() -> Iterator[None]:
    """Lift Pillow's limit on the number of pixels, which is meant for files from strangers."""
    from PIL import Image

    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    try:
        yield
    finally:
        Image.MAX_IMAGE_PIXELS = limit
