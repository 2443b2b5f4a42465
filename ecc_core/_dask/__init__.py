"""Curves of dask arrays: what a task computes, and how the tasks hang together."""
