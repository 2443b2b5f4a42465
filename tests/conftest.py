"""Fixtures and settings shared by all tests."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite",
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("many", settings.get_profile("suite"), max_examples=11_500)
settings.load_profile("suite")


class Backend(NamedTuple):
    """An array library that the public functions accept."""

    name: str
    asarray: Callable[[np.ndarray], Any]
    dtypes: frozenset[str]
    kernels: bool = False
    """Whether it has kernels of its own. The fixture `backend` provides these libraries only."""

    def supports(self, dtype: Any) -> bool:
        """Tell whether the library has this dtype, byte order included."""
        return np.dtype(dtype).str in self.dtypes


def _dtype_strings(*names: str) -> frozenset[str]:
    return frozenset(np.dtype(name).str for name in names)


NATIVE = ("bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8")
SWAPPED = (">u2", ">i2", ">u4", ">i4", ">u8", ">i8", ">f2", ">f4", ">f8")


def _boxed(array: np.ndarray) -> Any:
    from plain import Box

    return Box(array)


def _tensor(array: np.ndarray) -> Any:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.from_numpy(np.array(array, order="C"))


def _of_jax(array: np.ndarray) -> Any:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    with jax.enable_x64(True):
        return jax.numpy.asarray(array)


def _chunked(array: np.ndarray) -> Any:
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    return da.from_array(array, chunks=4)


# A new library or backend is one row here.
BACKENDS = {
    row.name: row
    for row in (
        Backend("numpy", np.asarray, _dtype_strings(*NATIVE, *SWAPPED), kernels=True),
        Backend("plain", _boxed, _dtype_strings(*NATIVE, *SWAPPED)),
        Backend("torch", _tensor, _dtype_strings(*NATIVE)),
        Backend("jax", _of_jax, _dtype_strings(*NATIVE)),
        Backend("dask", _chunked, _dtype_strings(*NATIVE, *SWAPPED)),
    )
}


@pytest.fixture(scope="session", params=[row.name for row in BACKENDS.values() if row.kernels])
def backend(request: pytest.FixtureRequest) -> Backend:
    """Libraries with kernels of their own: tests of blocks, layouts, types and sizes."""
    return BACKENDS[request.param]


@pytest.fixture(scope="session", params=list(BACKENDS))
def library(request: pytest.FixtureRequest) -> Backend:
    """Every library: tests of what goes in and comes out."""
    found = BACKENDS[request.param]
    found.asarray(np.zeros(1))  # skips where it is missing
    return found
