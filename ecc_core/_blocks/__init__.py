"""Cutting images into blocks and gluing their curves: what a block's task computes.

Nothing here depends on dask. :mod:`ecc_core._dask` builds graphs of these tasks; ``ecc stack`` and
``ecc batch`` run them in a window over files.
"""
