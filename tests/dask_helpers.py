"""Clusters of dask workers on this machine."""

from typing import Any

from distributed import LocalCluster


def local_cluster(n_workers: int = 2, **options: Any) -> LocalCluster:
    """Return a cluster whose dashboard takes a free port: tests run beside each other."""
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", **options
    )
