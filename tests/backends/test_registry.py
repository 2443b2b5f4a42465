"""Devices of which the array library computes curves have no kernels."""

import pytest

from ecc_core import _backends


class Array:
    """An array of a library that the tests do not know."""


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(_backends, "_registered", dict(_backends._registered))
    monkeypatch.setattr(_backends, "_without_kernels", set())
    monkeypatch.setattr(_backends, "make_known", lambda *_: None)
    yield
    _backends.has_kernels.cache_clear()


def test_no_kernels_where_the_library_computes(registry):
    assert not _backends.has_kernels("elsewhere")
    _backends.fall_back("elsewhere:0", Array, None)
    assert _backends.supports("elsewhere:0")
    assert not _backends.has_kernels("elsewhere:0")


def test_kernels_of_a_backend_that_is_registered_later(registry):
    assert not _backends.has_kernels("elsewhere")
    _backends.register("elsewhere", "ecc_core._backends.cpu.launch")
    assert _backends.has_kernels("elsewhere")
