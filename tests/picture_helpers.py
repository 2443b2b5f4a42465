"""Pictures, compared up to the version of the library that draws them."""

from pathlib import Path

import numpy as np
from PIL import Image


def small_grey(path: Path) -> np.ndarray:
    """Return 64 x 64 gray values of a picture."""
    with Image.open(path) as picture:
        return np.asarray(picture.convert("L").resize((64, 64)), float)
