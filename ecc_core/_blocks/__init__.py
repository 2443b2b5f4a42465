"""Cutting images into blocks and gluing their curves: what a block's task computes.

None of it knows dask: :mod:`ecc_core._dask` hangs these tasks into graphs, ``ecc stack`` and
``ecc batch`` run them in a window over files.
"""
