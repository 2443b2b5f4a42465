"""Curves of dask arrays: graphs of the tasks of :mod:`ecc_core._blocks`."""
