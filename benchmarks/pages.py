"""Tables and paragraphs for pages of results."""

from collections.abc import Iterable


def paragraph_of(document: str | None, number: int) -> str:
    """Return a paragraph of a docstring as one line; the first one has the number 0."""
    paragraphs = (document or "").split("\n\n")
    return " ".join(paragraphs[number].split())


def markdown_table(head: str, rows: Iterable[str]) -> str:
    """Return a table in Markdown: its head, a rule, and its rows."""
    columns = head.count("|") - 1
    return "\n".join([head, rule(columns), *rows])


def rule(columns: int) -> str:
    """Return the line between the head of a table and its rows."""
    return "|---" * columns + "|"


def cuda_device() -> str:
    """Return the name of the current CUDA device."""
    import cupy

    name: bytes = cupy.cuda.runtime.getDeviceProperties(0)["name"]
    return name.decode()
