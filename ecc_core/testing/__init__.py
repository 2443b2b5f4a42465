"""Tools for testing code that computes Euler characteristic curves.

- :func:`known_shapes`: binary shapes with their Euler numbers
- :func:`assert_arrays_equal`, :func:`assert_curves_equal`, :func:`assert_regions_equal`: exact
  comparison of results, with dtype, shape, array library and device
- :func:`in_chunks`: dask arrays of any chunks, empty ones too
- :mod:`ecc_core.testing.strategies`: hypothesis strategies; import it by itself, it needs
  hypothesis, which the rest of the package does not
"""

from ecc_core.testing.arrays import KnownShape, in_chunks, known_shapes
from ecc_core.testing.assertions import (
    assert_arrays_equal,
    assert_curves_equal,
    assert_regions_equal,
    to_numpy,
)

__all__ = [
    "KnownShape",
    "assert_arrays_equal",
    "assert_curves_equal",
    "assert_regions_equal",
    "in_chunks",
    "known_shapes",
    "to_numpy",
]
