"""Fixtures of the tests of curves."""

import pytest

from ecc_core._backends.cpu.scans import blocks


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows, so that small images have many of them."""
    monkeypatch.setattr(blocks, "STAGED_BYTES", 1 << 12)
    monkeypatch.setattr(blocks, "MAX_ROWS", 8)
    monkeypatch.setattr(blocks, "MAX_COLUMNS", 128)
    blocks.cut.cache_clear()
    yield
    blocks.cut.cache_clear()
