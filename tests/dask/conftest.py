"""Settings of tests of dask arrays."""

import dask
import pytest


@pytest.fixture(autouse=True)
def one_thread():
    """Hypothesis runs many small graphs, for which threads take longer than the work."""
    with dask.config.set(scheduler="sync"):
        yield
