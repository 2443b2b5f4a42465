"""Coefficients of the points of images on the CPU."""

import math
from typing import Any

from numpy.typing import NDArray

from ecc_core._backends import backend
from ecc_core._backends.cpu.soft import coefficients as soft_coefficients
from ecc_core._request.filtration import Filtration
from ecc_core._torch.threads import threads
from ecc_core.errors import NAN_MESSAGE, NAN_SHOWN_MESSAGE

Array = NDArray[Any]


def as_points(values: Array) -> Array:
    """Return the values of images as (batch, points)."""
    return values.reshape(len(values), math.prod(values.shape[1:]))


def coefficients_of_points(values: Array, connectivity: int) -> Array:
    """Return the coefficients (batch, points); those of points at +inf are undefined."""
    spatial = values.shape[1:]
    filtration = Filtration(len(spatial), connectivity)
    try:
        if len(spatial) < 3 and math.prod(spatial) <= soft_coefficients.LARGEST_IMAGE:
            rows = values if len(spatial) == 2 else values[:, None]
            found = soft_coefficients.coefficients(rows, filtration.cubes, threads())
        else:
            found = backend("cpu").coefficients(values, filtration, workers=threads())
    except ValueError as error:
        if str(error) != NAN_MESSAGE:
            raise
        raise ValueError(NAN_SHOWN_MESSAGE) from None
    return as_points(found.reshape(values.shape))
