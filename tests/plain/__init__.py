"""A backend of a few lines of NumPy, which shows what a backend is, and an array library for it.

Importing the package registers both. A `Box` holds an array on a device of its own, "plain:0".
"""

from ecc_core import _arrays, _backends
from plain import curves
from plain.adapter import Adapter, Box

_arrays.register(Adapter())
_backends.register("plain", curves, surfaces=curves)

__all__ = ["Box"]
