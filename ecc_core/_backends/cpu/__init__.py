"""The CPU backend: numba kernels (``kernels``, ``loaders``, ``vector``) and their launch."""
