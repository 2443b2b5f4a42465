"""Betti curves and persistence pairs."""
