"""Curves of dask arrays: their arguments, and graphs of the tasks of :mod:`ecc_core._blocks`."""
