"""Values of VTK files in XML: text, base64 or raw bytes, which may be compressed in blocks."""

import base64
import binascii
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from mmap import mmap
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._io.lazy import Array
from ecc_core._io.limits import DEFLATE, check_held

CODECS: dict[str, Callable[[bytes, int], bytes]] = {
    "vtkZLibDataCompressor": lambda block, size: zlib.decompressobj().decompress(block, size),
    "vtkLZMADataCompressor": lambda block, size: lzma.LZMADecompressor().decompress(block, size),
}
RATIOS = {"vtkZLibDataCompressor": DEFLATE}
"""The most bytes that a compressed byte yields, for codecs with a limit."""
LEAST_TEXT = 2
"""The fewest characters of a value in text, with the space behind it."""
LETTERS = 4
"""Letters of base64 that encode three bytes. Its text is padded to a multiple of them."""


@dataclass(frozen=True)
class Storage:
    """The content of a file, and the encoding of its values."""

    content: bytes | mmap
    order: str  # The byte order, < or >.
    header: np.dtype[Any]  # The dtype of the numbers before the values.
    codec: str  # The name of a compressor, or "".
    encoding: str  # That of appended values: raw, base64, or "" if there are none.
    start: int  # The place in the file at which appended values begin.


def values_of(element: Element, storage: Storage, dtype: np.dtype[Any], count: int) -> Array:
    """Return the values of a DataArray. ValueError if their number is not `count`."""
    written = element.get("format", "ascii")
    if written == "ascii":
        return values_in_text(element.text or "", dtype, count)
    if written == "binary":
        text = "".join((element.text or "").split()).encode()
        return _decoded(_Base64(text, 0), storage, dtype, count)
    if written != "appended" or not storage.encoding:
        raise ValueError(f"damaged: the format of its values is {written!r}")
    at = appended_at(element, storage)
    source = _Raw(storage.content, at)
    if storage.encoding == "base64":
        return _decoded(_Base64(storage.content, at), storage, dtype, count)
    return _decoded(source, storage, dtype, count)


def mapped_at(element: Element, storage: Storage, size: int) -> int | None:
    """Return the place in the file of values of `size` bytes, None if they must be decoded."""
    if element.get("format") != "appended" or storage.encoding != "raw" or storage.codec:
        return None
    at = appended_at(element, storage)
    (described,) = _Raw(storage.content, at).numbers(storage.header, 1)
    if described != size:
        raise ValueError(f"damaged: {size} bytes are described, {described} are appended")
    first = at + storage.header.itemsize
    check_held(size, len(storage.content) - first, 1)
    return first


def appended_at(element: Element, storage: Storage) -> int:
    text = element.get("offset", "")
    if not text.isdecimal():
        raise ValueError(f"damaged: the offset of its values is {text!r}")
    return storage.start + int(text)


def values_in_text(text: str, dtype: np.dtype[Any], count: int) -> Array:
    """Return values from text. ValueError if there are not `count` words."""
    check_held(count * LEAST_TEXT, len(text) + 1, 1)
    words = text.split()
    if len(words) != count:
        raise ValueError(f"truncated or damaged: {len(words)} values instead of {count}")
    try:
        if dtype.kind == "f":
            return np.array(words, dtype)
        numbers = [int(word) for word in words]  # NumPy would convert text by float64.
    except ValueError as error:
        raise ValueError(f"damaged: {error}") from None
    limits = np.iinfo(dtype)
    if numbers and not limits.min <= min(numbers) <= max(numbers) <= limits.max:
        raise ValueError(f"damaged: it has a value that {dtype} does not have")
    return np.array(numbers, dtype)


class _Raw:
    """Takes the bytes of a file one after another."""

    def __init__(self, content: Any, at: int) -> None:
        self.content = content
        self.at = at

    @property
    def left(self) -> int:
        return max(0, len(self.content) - self.at)

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise ValueError(f"truncated or damaged: {size - self.left} bytes are missing")
        found = bytes(self.content[self.at : self.at + size])
        self.at += size
        return found

    def numbers(self, dtype: np.dtype[Any], count: int) -> list[int]:
        return [int(n) for n in np.frombuffer(self.take(count * dtype.itemsize), dtype)]

    def ended(self) -> None:
        """End a run of bytes, which is encoded separately from others."""


class _Base64(_Raw):
    """Decodes base64 in which each run of bytes has its own padding."""

    def __init__(self, content: Any, at: int) -> None:
        super().__init__(content, at)
        self.over = b""  # Bytes that are decoded and have not been taken yet.

    def take(self, size: int) -> bytes:
        missing = max(0, size - len(self.over))
        letters = ceil_div(missing, 3) * LETTERS
        try:
            found = self.over + base64.b64decode(super().take(letters), validate=True)
        except binascii.Error as error:
            raise ValueError(f"damaged: {error}") from None
        if len(found) < size:
            raise ValueError(f"truncated or damaged: {size - len(found)} bytes are missing")
        self.over = found[size:]
        return found[:size]

    def ended(self) -> None:
        self.over = b""


def _decoded(source: _Raw, storage: Storage, dtype: np.dtype[Any], count: int) -> Array:
    """Return values that follow a header with their size, or with those of compressed blocks."""
    size = count * dtype.itemsize
    if not storage.codec:
        (described,) = source.numbers(storage.header, 1)
        if described != size:
            raise ValueError(f"damaged: {size} bytes are described, {described} are stored")
        return np.frombuffer(source.take(size), dtype)
    blocks, block, last = source.numbers(storage.header, 3)
    whole = blocks - 1 if last else blocks
    if blocks < 0 or whole * block + last != size:
        raise ValueError(
            f"damaged: {size} bytes are described, {blocks} blocks of {block} and {last} are stored"
        )
    check_held(blocks * storage.header.itemsize, source.left, 1)
    packed = source.numbers(storage.header, blocks)
    source.ended()
    if storage.codec in RATIOS:
        check_held(size, source.left, RATIOS[storage.codec])
    values = np.empty(count, dtype)
    room = values.view(np.uint8)
    at = 0
    for number, length in enumerate(packed):
        wanted = last if last and number == blocks - 1 else block
        part = _unpacked(storage.codec, source.take(length), wanted)
        room[at : at + wanted] = np.frombuffer(part, np.uint8)
        at += wanted
    return values


def _unpacked(codec: str, block: bytes, size: int) -> bytes:
    try:
        # The limit is a byte larger than the block, to detect blocks that hold too much.
        found = CODECS[codec](block, size + 1)
    except (zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"damaged: {error}") from None
    if len(found) != size:
        raise ValueError(f"damaged: a block has {len(found)} bytes instead of {size}")
    return found
