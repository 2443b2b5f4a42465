"""An array library on a device of its own, for which the plain backend is registered.

Importing the package registers both. A `Box` holds an array on a device of its own, "plain:0".
"""

from ecc_core import _arrays, _backends
from ecc_core._backends.plain import curves
from plain.adapter import Adapter, Box

_arrays.register(Adapter())
_backends.register("plain", curves, surfaces=curves)

__all__ = ["Box"]
