"""What becomes of coefficients and values: curves, exact levels, ranges."""
