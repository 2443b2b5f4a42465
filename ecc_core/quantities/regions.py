"""The values of a quantity for each region of an image in memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request
from ecc_core._blocks.boxes import BoxValues
from ecc_core._blocks.planes import Array
from ecc_core._blocks.work import Work, labels_of, values_of
from ecc_core.errors import BackendError
from ecc_core.quantities._base import CurveQuantity, OwnT


def region_result(
    quantity: CurveQuantity[OwnT], request: Request, thresholds: Any, own: OwnT
) -> Any:
    """Return the result of a quantity for the regions of an image in memory."""
    origin = request.origin
    at = request.thresholds()
    filtration = request.filtration
    facts = quantity.facts(filtration, own)
    if filtration.boundary.is_window:
        ids, values, more = quantity.of_windowed_regions(request, at, own)
        facts |= more
    else:
        boxes = quantity.boxes(at, filtration, own, workers=request.workers)
        ids, sums = _values_of_regions(request.images[0], request.labels, boxes)
        values = boxes.curves(sums)
    request.warn_if_missed(at, values)
    at = origin.thresholds(thresholds, at)
    return quantity.region_result(origin.wrap(ids), at, origin.wrap(values), **facts)


def _values_of_regions(
    image: Array, labels: Array, boxes: BoxValues
) -> tuple[Array, NDArray[np.int64]]:
    """Return the increasing ids of the regions of an image, and their values, (ids, size).

    An image whose boundary is not closed is computed as a single block. Its neighbours are the
    blocks of one point that `Work` adds behind the last block.
    """
    boundary = boxes.filtration.boundary
    origin = origin_of(image)
    if boundary.is_closed:
        return boxes.of_regions(image, labels)
    if not origin.on_host:
        raise BackendError(
            f'`boundary` must be "closed" for regions on {origin.device}, got {boundary.name!r}: '
            "copy the arrays to the host"
        )
    chunks = tuple((length,) for length in image.shape)
    work = Work(lambda box: (image[box], labels[box]), chunks, boxes, regions=True)
    dtype = labels.dtype.newbyteorder("=")
    block = (0,) * image.ndim
    if 0 in work.partition.owners:
        return np.empty(0, dtype), np.zeros((0, boxes.size), np.int64)
    table = work.share(block, [work.process(near) for near in work.near(block)])
    return labels_of(table, order=dtype), values_of(table, order=dtype)
