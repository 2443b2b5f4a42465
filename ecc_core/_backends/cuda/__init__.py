"""The CUDA backend. Imported by the dispatcher only, with CuPy at hand."""
