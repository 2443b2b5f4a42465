"""Reading and writing files. The public names are in :mod:`ecc_core.io`."""
