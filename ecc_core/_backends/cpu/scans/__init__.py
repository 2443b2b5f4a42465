"""From keys to coefficients, block by block."""
