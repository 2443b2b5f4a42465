"""One folder a backend: the kernels, and their launch."""
