"""Blocks of images: read, smoothed and masked, as computations take them."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.description import Description
from ecc_core._io.formats import Opened, Request
from ecc_core._io.lazy import Array, Box
from ecc_core._io.stored import StoredImage, View, grown_chunks
from ecc_core._optional import import_optional
from ecc_core._partition import whole_box
from ecc_core._request.filtration import Direction
from ecc_core.errors import InputFileError

BYTES_AT_ONCE = 1 << 24
"""The bytes of a mask that are searched for labels at once."""
TRUNCATE = 4.0
"""The standard deviations at which scipy.ndimage.gaussian_filter truncates its kernel."""


class Fitted(NamedTuple):
    """The labels or the mask of an image."""

    view: View
    axes: tuple[int, ...]  # The axes of the image that it has, which include all spatial ones.

    def box(self, box: Box) -> Box:
        """Return the box along its own axes."""
        return tuple(box[axis] for axis in self.axes)

    def read(self, box: Box) -> Array:
        """Return the values of a box. Those that the file declares missing are 0."""
        values = self.view.read(self.box(box))
        if self.view.missing is not None:
            values = np.where(self.view.missing.where(values), values.dtype.type(0), values)
        index: list[slice | None] = [None] * len(box)
        for axis in self.axes:
            index[axis] = slice(None)
        shape = [part.stop - part.start for part in box]
        return np.broadcast_to(values[tuple(index)], shape)

    def has_one_of(self, labels: Sequence[int]) -> bool:
        """Whether any point has one of these labels. Blocks are read until one is found."""
        view = self.view
        source = view.source
        sizes = grown_chunks(
            source.parts,
            source.shape,
            grow=view.order,
            itemsize=source.dtype.itemsize,
            limit=BYTES_AT_ONCE,
        )
        for box in view.boxes(sizes):
            is_sought = np.isin(view.read(box), labels)
            if is_sought.any():
                return True
        return False


def smooth_gaussian(values: Array, sigma: Sequence[float], *, purpose: str) -> None:
    """Smooth floats in place by a Gaussian filter along their last axes.

    `sigma` are standard deviations in points. `purpose` is the name of the option, for the error
    if SciPy is not installed.
    """
    ndimage = import_optional("scipy.ndimage", extra="io", purpose=purpose)
    if not np.isfinite(values).all():
        raise ValueError("`smooth` needs an image without NaN and infinity, which would spread")
    spatial = range(values.ndim - len(sigma), values.ndim)
    ndimage.gaussian_filter(
        values, sigma, output=values, mode="reflect", truncate=TRUNCATE, axes=spatial
    )


class Smoothing(NamedTuple):
    """A Gaussian filter along the spatial axes.

    Blocks have the same values as if the whole image had been smoothed, bit for bit: a block is
    smoothed together with all points that the filter reaches, and the filter adds them up in an
    order that does not depend on where the block begins.
    """

    sigma: tuple[float, ...]  # Standard deviation along each spatial axis, in points.
    wraps: tuple[bool, ...]
    """Whether each spatial axis is periodic. Along others the image is reflected at the border."""

    @property
    def reach(self) -> tuple[int, ...]:
        """The number of points on either side, along each spatial axis, that affect a point."""
        reaches = [TRUNCATE * sigma + 0.5 for sigma in self.sigma]
        return tuple(map(int, reaches))

    @staticmethod
    def dtype(image: np.dtype[Any]) -> np.dtype[Any]:
        """Return float32 if it represents all values of an image, otherwise float64."""
        return np.dtype(np.float32 if np.can_cast(image, np.float32) else np.float64)

    def read(self, image: View, box: Box) -> Array:
        """Return the smoothed values in a box."""
        spans = self._spans(image, box)
        shape = [stop - start for start, stop in spans]
        values = np.empty(shape, self.dtype(image.dtype))
        for stored, place in self.parts(image, box):
            values[place] = part = image.read(stored)
            if image.missing is not None and image.missing.where(part).any():
                raise ValueError(f"`smooth` needs an image without {image.missing.name}")
        smooth_gaussian(values, self.sigma, purpose="--smooth")
        pairs = zip(box, (start for start, _ in spans), strict=True)
        inner = tuple(slice(part.start - start, part.stop - start) for part, start in pairs)
        return values[inner]

    def _spans(self, image: View, box: Box) -> list[tuple[int, int]]:
        """Return the range of points along each axis that affect a box.

        It extends beyond the border along periodic axes.
        """
        lead = len(box) - len(self.sigma)
        reach = (*(0,) * lead, *self.reach)
        wraps = (*(False,) * lead, *self.wraps)
        spans = []
        for part, r, touch, length in zip(box, reach, wraps, image.shape, strict=True):
            start = part.start - r
            stop = part.stop + r
            spans.append((start, stop) if touch else (max(start, 0), min(stop, length)))
        return spans

    def parts(self, image: View, box: Box) -> Iterator[tuple[Box, Box]]:
        """Yield the boxes of an image that affect a box, and their places in the smoothed array."""
        spans = zip(self._spans(image, box), image.shape, strict=True)
        along_axes = [_inside(*span, n) for span, n in spans]
        for parts in itertools.product(*along_axes):
            stored, place = zip(*parts, strict=True)
            yield stored, place


def _inside(start: int, stop: int, length: int) -> Iterator[tuple[slice, slice]]:
    """Yield the parts of a periodic axis from `start` to `stop`, and their places in the result."""
    at = start
    while at < stop:
        first = at % length
        count = min(length - first, stop - at)
        yield slice(first, first + count), slice(at - start, at - start + count)
        at += count


@dataclass(frozen=True)
class Blocks:
    """Reads blocks of an image, with the labels or the mask of their points if there are any."""

    image: View  # Its batch axes come first.
    labels: Fitted | None = None
    mask: Fitted | None = None  # Points where it is 0 have no label.
    smoothing: Smoothing | None = None  # A filter of the image.
    direction: Direction | None = None  # A term that is added to the filtered image.
    device: str = "cpu"  # The device on which blocks are returned.
    mask_labels: tuple[int, ...] | None = None  # Values of the mask that are used; None: all but 0.
    windows: bool = False
    """Whether the mask and the labels are windows of the image. Points outside a window complete
    its cells, so that missing points are returned by themselves and not as masked ones."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the points of blocks."""
        if self.direction:
            return np.dtype(np.float64)
        stored: np.dtype[Any] = self.image.dtype
        return self.smoothing.dtype(stored) if self.smoothing else stored

    @property
    def views(self) -> list[View]:
        """The views that are read."""
        return [self.image, *(fitted.view for fitted in (self.labels, self.mask) if fitted)]

    @property
    def is_masked(self) -> bool:
        """Whether points are left out by a mask, or because their values are missing."""
        return self.mask is not None or self.image.missing is not None

    @property
    def bytes_a_point(self) -> int:
        """Return the bytes per point in memory, including its label and its mask."""
        total: int = sum(view.dtype.itemsize for view in self.views)
        total += self.image.missing is not None
        total += self.windows  # The coefficient of each point, int8.
        if self.smoothing:
            total += self.smoothing.dtype(self.image.dtype).itemsize
        if self.direction:
            total += self.dtype.itemsize
        return total

    def held(self) -> "Blocks":
        """Return the same blocks of arrays in memory. The files are read now."""
        labels, mask = (
            fitted and fitted._replace(view=_held(fitted.view))
            for fitted in (self.labels, self.mask)
        )
        return replace(self, image=_held(self.image), labels=labels, mask=mask)

    def whole(self) -> tuple[Array, ...]:
        """Return the whole image as a block."""
        return self(whole_box(self.image.shape))

    def __call__(self, box: Box) -> tuple[Array, ...]:
        """Return the image in a box, then its labels or its mask if there are any.

        With `windows`, a mask of the points that are not missing follows if some can be missing.
        """
        smooth = self.smoothing
        image = smooth.read(self.image, box) if smooth else self.image.read(box)
        there = self._there(image)
        inside = None if self.mask is None else self._in_mask(box)
        if there is not None and not self.windows:
            inside = there if inside is None else inside & there
        if self.direction:
            spatial = box[image.ndim - len(self.direction.shape) :]
            image = self.direction.add(image, tuple(part.start for part in spatial))
        arrays = [image]
        if self.labels is not None:
            labels = self.labels.read(box)
            zero = labels.dtype.type(0)
            arrays.append(labels if inside is None else np.where(inside, labels, zero))
        elif inside is not None:
            arrays.append(inside)
        if self.windows and there is not None:
            arrays.append(there)
        if self.device == "cuda":
            cupy = import_optional("cupy", extra="cuda12", purpose="--device cuda")
            arrays = [cupy.asarray(array) for array in arrays]
        return tuple(arrays)

    def _there(self, image: Array) -> NDArray[np.bool_] | None:
        """Return which points of an image are not missing, None if no point can be missing."""
        missing = self.image.missing
        if missing is None or self.smoothing is not None:  # Smoothing refuses missing values.
            return None
        there: NDArray[np.bool_] = ~missing.where(image)
        return there

    def _in_mask(self, box: Box) -> NDArray[np.bool_]:
        assert self.mask is not None
        values = self.mask.read(box)
        if self.mask_labels is not None:
            return np.isin(values, self.mask_labels)
        if values.dtype.kind == "f" and np.isnan(values).any():
            path = self.mask.view.source.path
            raise InputFileError(f"{path}: `mask` must be 0 or not at every point, got NaN")
        inside: NDArray[np.bool_] = values != 0
        return inside

    def stamps(self, box: Box) -> list[Any]:
        """Return stamps that differ if any file with points of a box has changed."""
        boxes = [box]
        if self.smoothing:
            boxes = [stored for stored, _ in self.smoothing.parts(self.image, box)]
        stamps = [stamp for part in boxes for stamp in self.image.stamps(part)]
        for fitted in filter(None, (self.labels, self.mask)):
            stamps += fitted.view.stamps(fitted.box(box))
        return stamps


def _held(view: View) -> View:
    """Return a view of an array in memory with the values of another view."""
    values = view.read_all()
    description = Description.of("?" * values.ndim, missing=view.missing)
    opened = Opened(values, description)
    return View.all_of(StoredImage(view.source.path, Request(), opened, None))
