"""Simplicial complexes: their simplices in order, and curves of values and heights of points."""
