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
settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes more than a few seconds")


class Backend(NamedTuple):
    """An array library that the public functions accept."""

    name: str
    asarray: Callable[[np.ndarray], Any]
    dtypes: frozenset[str]

    def supports(self, dtype: Any) -> bool:
        """Tell whether the library has this dtype, byte order included."""
        return np.dtype(dtype).str in self.dtypes


def _dtype_strings(*names: str) -> frozenset[str]:
    return frozenset(np.dtype(name).str for name in names)


BACKENDS = {
    "numpy": Backend(
        "numpy",
        np.asarray,
        _dtype_strings(
            *("bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"),
            *(">u2", ">i2", ">u4", ">i4", ">u8", ">i8", ">f2", ">f4", ">f8"),
        ),
    ),
}


@pytest.fixture(scope="session", params=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Backend:
    return BACKENDS[request.param]
