"""PNG, JPEG, JPEG 2000, GIF, BMP and WebP."""

import math
import struct
from pathlib import Path
from typing import Any

from ecc_core._io.colours import CMYK, orientation_notes
from ecc_core._io.description import Description
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.limits import check_held, check_memory
from ecc_core._optional import import_optional

JPEG_2000 = (".jp2", ".j2k", ".jpx")
SIGNATURE = b"\x89PNG\r\n\x1a\n"
END = b"IEND\xaeB`\x82"
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Samples of a pixel by the colour type of PNG."""
COPIES = 3
"""The number of copies of a picture in memory: Pillow decodes it as a whole, and copies it twice.
"""
ORIENTATION = 0x112
EXTRA = {"extra": "io", "purpose": "reading PNG, JPEG and similar files"}


def open_picture(path: Path, _: Request) -> Opened:
    """Open and decode a picture."""
    if path.suffix.lower() in JPEG_2000:
        return _open_jpeg_2000(path)
    imageio = import_optional("imageio.v3", **EXTRA)
    from PIL import Image

    # Pillow's limit on the number of pixels is replaced by a check of the available memory.
    limit = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = None
    try:
        deep = _check_png(path)
        with Image.open(path) as image:
            if getattr(image, "n_frames", 1) > 1:
                raise ValueError(f"animated {image.format} is not supported")
            check_memory(COPIES * math.prod(image.size) * len(image.getbands()), path)
            mode = image.mode
            notes = [CMYK] if mode == "CMYK" else []
            notes += orientation_notes(image.getexif().get(ORIENTATION, 1))
        if deep:  # Pillow silently drops the lower 8 bits of such pictures.
            codecs = import_optional("imagecodecs", **EXTRA)
            return Opened(codecs.png_decode(path.read_bytes()), Description.of("YXS", notes=notes))
        values = imageio.imread(path, plugin="pillow", index=0)
    except (OSError, SyntaxError) as error:
        kind = path.suffix[1:].upper()
        raise ValueError(f"not a {kind} image, or truncated: {error}") from error
    finally:
        Image.MAX_IMAGE_PIXELS = limit
    samples = "S" if mode in ("LA", "P", "PA", "RGB", "RGBA") else "C"
    axes = "YX" if values.ndim == 2 else "YX" + samples
    return Opened(values, Description.of(axes, notes=notes))


def _open_jpeg_2000(path: Path) -> Opened:
    codecs = import_optional("imagecodecs", **EXTRA)
    content = path.read_bytes()
    # The codestream begins with this marker, and the size follows.
    start = content.find(b"\xff\x4f\xff\x51")
    if start < 0 or len(content) < start + 42:
        raise ValueError("not a JPEG 2000 image, or truncated")
    right, low, left, top, *_, samples = struct.unpack(">8IH", content[start + 8 : start + 42])
    decoded_bytes = 4 * (right - left) * (low - top) * samples  # Values are decoded as int32.
    check_memory(decoded_bytes, path)
    values: Any = codecs.jpeg2k_decode(content)
    return Opened(values, Description.of(_axes_of_picture(values)))


def _axes_of_picture(values: Any) -> str:
    """Return the axes of decoded JPEG 2000: up to four components are the samples of a colour."""
    if values.ndim == 2:
        return "YX"
    is_colour = values.shape[-1] < 5
    return "YXS" if is_colour else "YXC"


def _check_png(path: Path) -> bool:
    """Verify the checksums of a PNG file, which decoding does not, and the size of its pixels.

    Returns whether it is a PNG picture with 16 bits a sample and with colours or alpha.
    """
    from PIL import Image

    content = path.read_bytes()
    if not content.startswith(SIGNATURE):
        return False
    if END not in content:
        raise ValueError("not a PNG image, or truncated")
    with Image.open(path) as image:
        image.verify()
    columns, rows, bits, colour = struct.unpack(">2I2B", content[16:26])
    check_held(rows * columns * bits * SAMPLES.get(colour, 1) // 8, len(content))
    return bool(bits == 16 and colour != 0)


READ = frozenset({"axes"})
FORMATS = (
    *(
        Format(
            name=name,
            suffixes=suffixes,
            open=open_picture,
            fields=READ,
            reference="pillow",
            extra="io",
        )
        for name, suffixes in {
            "PNG": (".png",),
            "JPEG": (".jpg", ".jpeg"),
            "GIF": (".gif",),
            "BMP": (".bmp",),
            "WebP": (".webp",),
        }.items()
    ),
    Format(
        name="JPEG 2000",
        suffixes=JPEG_2000,
        open=open_picture,
        fields=READ,
        reference="imagecodecs",
        extra="io",
    ),
)
