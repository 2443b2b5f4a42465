"""Devices of which the array library computes curves have no kernels."""

import pytest

from ecc_core._backends import fallback, registry
from ecc_core._backends.plain.namespaces import Standard


class Array:
    """An array of a library that the tests do not know."""


@pytest.fixture
def backends(monkeypatch):
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(fallback, "_without_kernels", set())
    monkeypatch.setattr(fallback, "make_known", lambda *_: None)
    yield
    registry.is_usable.cache_clear()


def test_no_kernels_where_the_library_computes(backends):
    assert not fallback.has_kernels("elsewhere")
    with pytest.warns(UserWarning, match="there are no kernels for a library elsewhere"):
        fallback.fall_back("elsewhere:0", Array, Standard(None), "a library elsewhere")
    assert registry.supports("elsewhere:0")
    assert not fallback.has_kernels("elsewhere:0")


def test_kernels_of_a_backend_that_is_registered_later(backends):
    assert not fallback.has_kernels("elsewhere")
    registry.register("elsewhere", "ecc_core._backends.cpu.launch")
    assert fallback.has_kernels("elsewhere")
