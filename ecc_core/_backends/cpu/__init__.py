"""The CPU backend: encoders, scans and sinks of numba kernels, and their launch."""
