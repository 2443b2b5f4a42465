"""Cut images into blocks, and combine the curves of the blocks.

Nothing here depends on dask. :mod:`ecc_core._dask` builds graphs of these tasks; ``ecc stack`` and
``ecc batch`` run them in a window over files.
"""
