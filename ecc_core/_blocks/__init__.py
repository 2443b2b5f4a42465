"""Computations of images that are cut into blocks: the task of each block, and how they combine.

Nothing here depends on dask. :mod:`ecc_core._dask` builds graphs of these tasks; ``ecc stack`` and
``ecc batch`` run them while they read files block by block.
"""
