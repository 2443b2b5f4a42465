"""Sinks, which turn coefficients and values into curves, exact levels and ranges."""
