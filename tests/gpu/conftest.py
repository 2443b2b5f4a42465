"""Tests of the CUDA backend. They need a device and CuPy, and say so where they are skipped."""

from collections.abc import Callable

import numpy as np
import pytest

collect_ignore = ["sanitize.py", "spills.py"]  # These are scripts, which need CuPy.


def _reason() -> str | None:
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed"
    try:
        return None if cupy.cuda.runtime.getDeviceCount() else "no CUDA device"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no CUDA device: {error}"


REASON = _reason()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "gpu" in item.path.parts:
            item.add_marker(pytest.mark.gpu)
            if REASON:
                item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture
def draw() -> Callable[..., np.ndarray]:
    """Random values of a dtype: any, or a few that repeat."""

    def values(rng, shape, dtype, few=False):
        dtype = np.dtype(dtype)
        if dtype.kind == "f":
            normal = rng.normal(size=shape).astype(dtype)
            return np.round(normal).astype(dtype) if few else normal
        if dtype.kind == "b":
            return rng.random(shape) < 0.6
        info = np.iinfo(dtype)
        whole = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        return whole // (info.max // 4) if few else whole

    return values
