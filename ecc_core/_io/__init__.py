"""How files are read and written; `ecc_core.io` is the public door."""
