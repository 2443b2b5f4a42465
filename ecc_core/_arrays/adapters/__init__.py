"""Adapters convert between the arrays of a library and those of a backend, one file a library."""
