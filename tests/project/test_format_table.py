"""The table of formats in the guide is that of the code."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from ecc_core._io.description import FIELDS
from ecc_core._io.open import FORMATS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("table", ROOT / "tools" / "format_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_present_table(tool):
    """`python tools/format_table.py` writes it."""
    page = tool.PAGE.read_text(encoding="utf-8")
    assert tool.table() in page
    assert tool.updated(page) == page


@pytest.mark.parametrize("found", FORMATS, ids=lambda found: found.name)
def test_fields_are_known(found):
    assert found.fields <= FIELDS.keys()
