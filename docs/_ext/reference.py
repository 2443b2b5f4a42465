"""The page of the reference: a template, in which modules stand for the names that they list."""

import importlib
import re
from pathlib import Path


def page(docs: Path) -> str:
    """Return the page, with the functions and then the classes of each module."""
    template = (docs / "_templates" / "reference.md").read_text(encoding="utf-8")
    return re.sub(r"^( +)\{(\w+)\}$", _names, template, flags=re.MULTILINE)


def _names(found: re.Match[str]) -> str:
    """Return a line for each name of the module that a line of the template has in braces."""
    indent, module = found.groups()
    names = importlib.import_module(f"ecc_core.{module}").__all__
    functions_first = sorted(names, key=lambda name: (name[0].isupper(), name))
    return "\n".join(f"{indent}{name}" for name in functions_first)
