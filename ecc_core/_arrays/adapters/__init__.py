"""Adapters, a file for each array library, which convert between its arrays and a backend's."""
