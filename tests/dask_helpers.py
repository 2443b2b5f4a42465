"""Images, and clusters of dask workers on this machine."""

from typing import Any

import numpy as np
from distributed import LocalCluster


def noise(*shape: int, levels: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, levels, shape, dtype=np.uint8)


def local_cluster(n_workers: int = 2, **options: Any) -> LocalCluster:
    """Return a cluster whose dashboard takes a free port, because tests run in parallel."""
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", **options
    )
