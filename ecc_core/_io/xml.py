"""Parse XML of unknown origin: entities are not expanded, and no file that it names is read."""

from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

MOST_XML_BYTES = 1 << 28
"""The most bytes of a document that is parsed."""


def parse_xml(content: bytes, kind: str) -> Element:
    """Return the root of a document. Document types, which declare entities, are refused."""
    if len(content) > MOST_XML_BYTES:
        raise ValueError(f"its description has {len(content)} bytes, more than {MOST_XML_BYTES}")
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise ValueError(f"not {kind}, or damaged: {error}") from None
    return builder.close()


def _refuse_doctype(*_: object) -> NoReturn:
    raise ValueError("has a document type (DOCTYPE), whose entities are never expanded")


def text_of(parent: Element, path: str) -> str:
    """Return the text of an element, or raise an error that names it."""
    found = parent.findtext(path)
    if found is None or not found.strip():
        raise ValueError(f"damaged: it has no {path} in {local_name(parent)}")
    return found.strip()


def numbers_of(text: str, what: str, count: int) -> list[float]:
    """Return the numbers in a text. ValueError if there are not `count` of them."""
    try:
        found = [float(word) for word in text.split()]
    except ValueError:
        found = []
    if len(found) != count:
        raise ValueError(f"damaged: its {what} must be {count} numbers, got {text!r}")
    return found


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]
