"""Types of arrays that backends take and return."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

DeviceArray = Any
"""An array that the adapter of a library unwraps, or a NumPy array."""
Levels = NDArray[Any]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Side = tuple[int, int]
"""An axis, and its low (0) or high (1) end."""
