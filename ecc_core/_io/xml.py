"""XML of unknown origin: nothing is expanded in it, and no file that it names is read."""

from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

MOST_XML = 1 << 28
"""Bytes of a description that are parsed."""


def parse_xml(content: bytes, kind: str) -> Element:
    """Return the root of a document without a document type, where entities would be declared."""
    if len(content) > MOST_XML:
        raise ValueError(f"its description has {len(content)} bytes, more than {MOST_XML}")
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
    """Return as many numbers as there must be."""
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
