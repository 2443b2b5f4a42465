"""Images that are periodic along some axes, as functions on a torus.

The kernels take a torus on which the last point along each axis of more than one point touches the
first. An axis that is not periodic becomes one of a torus if a plane of points that never enter
lies between its ends. An axis that is periodic and has a single point is a circle, by which the
rest of the image is multiplied: each class of the rest gives one of the same dimension, and one of
the next dimension (Künneth's formula).

In a volume, components of the complement are classes of dimension 2, except for one. So are classes
of loops that the complement loses, of which a torus has three. Such loops wind around the torus,
and the links of a forest tell which sides they cross.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple, Self

import cupy
import numpy as np

from ecc_core._backends.borders import closed
from ecc_core._backends.components import kind_of
from ecc_core._backends.cuda import launch
from ecc_core._backends.cuda.arrays import adopt, as_cupy, thresholds_on_host
from ecc_core._backends.cuda.bins import Prepared, prepare
from ecc_core._backends.cuda.forests import Forests
from ecc_core._backends.cuda.recode import codes_of
from ecc_core._backends.cuda.samples import Images
from ecc_core._backends.cuda.scan import at_thresholds
from ecc_core._request.boundary import CLOSED, Boundary
from ecc_core._request.filtration import Filtration


class Torus(NamedTuple):
    """Where the points of an image lie on a torus."""

    shape: tuple[int, ...]
    """The shape of the image."""
    wraps: tuple[bool, ...]
    """Along which of its axes opposite sides touch."""

    @classmethod
    def of(cls, image: Any, filtration: Filtration) -> Self:
        return cls(tuple(image.shape), filtration.boundary.wraps)

    def laid_out(self, image: Any, never: Any) -> Any:
        """Return contiguous values of the torus, of which those between ends are `never`."""
        for axis, wraps in enumerate(self.wraps):
            if not wraps:
                shape = list(image.shape)
                shape[axis] = 1
                between = cupy.full(shape, never, image.dtype)
                image = cupy.concatenate([image, between], axis=axis)
        return cupy.ascontiguousarray(image)

    def image_of(self, values: Any) -> Any:
        """Return the values of the image's points among those of the torus."""
        return values[tuple(map(slice, self.shape))]

    def places_of(self, points: Any) -> Any:
        """Return the places in the image, in C order, of points of the torus; -1 for -1."""
        if all(self.wraps):
            return points
        found = cupy.zeros_like(points)
        rest = points
        step = 1
        for length, wraps in zip(reversed(self.shape), reversed(self.wraps), strict=True):
            on_torus = length + (0 if wraps else 1)
            above = rest // on_torus
            found += (rest - above * on_torus) * step
            rest = above
            step *= length
        return cupy.where(points < 0, points, found)


def circles_of(shape: tuple[int, ...], filtration: Filtration) -> int:
    """Return along how many periodic axes an image of a shape has a single point."""
    borders = zip(shape, filtration.boundary.wraps, strict=True)
    return sum(wraps and length == 1 for length, wraps in borders)


def without_circles(image: Any, filtration: Filtration) -> tuple[Any, Filtration]:
    """Return an image, behind its batch axes, without axes that are circles, and its filtration.

    At least one axis is kept; if it is a circle, it becomes closed.
    """
    ndim = filtration.ndim
    batch = image.shape[: image.ndim - ndim]
    shape = image.shape[image.ndim - ndim :]
    kept = [axis for axis in range(ndim) if shape[axis] != 1 or not filtration.boundary.wraps[axis]]
    borders = tuple(filtration.boundary.axes[axis] for axis in kept) or (CLOSED,)
    lengths = [shape[axis] for axis in kept] or [1]
    sets = replace(filtration.in_axes(len(lengths)), boundary=Boundary(borders))
    return image.reshape((*batch, *lengths)), sets


def curves_around(curves: Any, circles: int) -> Any:
    """Return Betti numbers of images times circles from those of the images, along axis 1."""
    images, classes, count = curves.shape
    found = cupy.zeros((images, classes + circles, count), np.int64)
    for shift in range(circles + 1):
        found[:, shift : shift + classes] += math.comb(circles, shift) * curves
    return found


def periodic_curves(image: Any, thresholds: Any, filtration: Filtration, mask: Any) -> Any:
    """Return Betti numbers of periodic images at thresholds, (images, classes, n) int64.

    They have no circles.
    """
    euler = as_cupy(launch.curve(image, thresholds, filtration, mask=mask))  # It raises for NaN.
    with adopt(image) as view:
        shape = view.array.shape[1:]
        result = cupy.zeros((len(euler), filtration.classes, euler.shape[-1]), np.int64)
        if result.size and view.array.size:
            images = Images.of(view, closed(filtration, filtration.ndim), as_cupy(mask))
            host = thresholds_on_host(thresholds)
            prepared = prepare(host, images.variant, view.array.device.id)
            codes, _, memory = codes_of(images, prepared, keep=True)
            inside = tuple(map(slice, shape))
            for i, code in enumerate(codes):
                result[i] = _numbers(code[inside], prepared, filtration, euler[i])
            del memory
        return view.wrap(result)


def _numbers(codes: Any, prepared: Prepared, filtration: Filtration, euler: Any) -> Any:
    """Return the Betti numbers of one image, (classes, n), of which one follows from the others."""
    ndim = filtration.ndim
    superlevel = filtration.superlevel
    levels = prepared.rules.levels
    on_torus = Torus.of(codes, filtration).laid_out(codes, 0 if superlevel else levels)
    kinds = [kind_of(filtration, complement=k > 0) for k in range(1 + (ndim == 3))]
    forests = Forests(on_torus, kinds, levels, reverse=superlevel, torus=True)
    histograms = forests.histograms()
    last = levels - int(codes.min()) if superlevel else int(codes.max())
    complete = [last] if all(filtration.boundary.wraps) else []
    # The complement enters from the last key to the first.
    lost = [levels - key for key in forests.closed_loops(1)] if ndim == 3 else []
    events = cupy.stack([*histograms, _entries(complete, levels), _entries(lost, levels)])
    components, *outside, whole, loops = at_thresholds(events, prepared, superlevel)
    found = {0: components, ndim: whole}
    if ndim == 3:
        found[2] = cupy.maximum(-outside[0], 0) + loops
    if ndim > 1:
        found[1] = sum((-1) ** k * numbers for k, numbers in found.items()) - euler
    return cupy.stack([found[k] for k in range(filtration.classes)])


def _entries(keys: list[int], levels: int) -> Any:
    """Return how many of some keys there are, (levels + 1,) int64."""
    return cupy.asarray(np.bincount(np.array(keys, np.int64), minlength=levels + 1))
