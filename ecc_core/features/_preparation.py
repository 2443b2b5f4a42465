"""The preprocessing of images by transformers: a channel is selected, and smoothed."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ecc_core._io.blocks import Smoothing, smooth_gaussian
from ecc_core._io.colours import opaque_colours
from ecc_core._io.labels import as_labels
from ecc_core._io.lazy import Array
from ecc_core._io.open import open_image
from ecc_core._io.select import ImageFile, choose, select_channel, with_channels
from ecc_core._io.stored import StoredImage
from ecc_core._optional import import_optional
from ecc_core._request.image import check_image_dtype
from ecc_core.errors import InputFileError

STAINS = ("hematoxylin", "eosin", "dab")
"""The channels of `skimage.color.rgb2hed`, in its order."""
Channel: TypeAlias = int | str | Callable[[Any], ArrayLike] | None
ADVICE = "pass the array that `ecc_core.io.read_image` returns"


@dataclass(frozen=True)
class Preparation:
    """Takes a channel of images, which may be files, and smooths it."""

    channel: Channel = None
    channel_axis: int | None = None  # The axis of arrays that has channels; None for the last.
    smooth: float | Sequence[float] | None = None  # Standard deviation in points.

    def __post_init__(self) -> None:
        if self.channel is None and self.channel_axis is not None:
            raise ValueError(
                f"`channel_axis` must be None without `channel`, got {self.channel_axis}"
            )

    def of(self, item: Any) -> Array:
        """Return the preprocessed image of an item, an array or the path of a file."""
        if not is_path(item):
            return self._smoothed(self._from_array(np.asanyarray(item)))
        with file_named(item):
            return self.of_file(open_single(item))

    def of_file(self, image: StoredImage) -> Array:
        """Return the preprocessed image of an open file. The path is not in errors."""
        return self._smoothed(self._from_file(image))

    def _from_array(self, image: Array) -> Array:
        """Return the image in the chosen channel of an array."""
        if self.channel is None:
            return image
        axis = -1 if self.channel_axis is None else operator.index(self.channel_axis)
        if not -image.ndim <= axis < image.ndim:
            raise ValueError(
                f"`channel_axis` must be an axis of images of shape {image.shape}, got {axis}"
            )
        channels_last = np.moveaxis(image, axis, -1)
        if callable(self.channel):
            return self._called(channels_last)
        if image.ndim not in (3, 4):
            raise ValueError(
                "`channel` must be None for images without an axis of channels, "
                f"got {self.channel!r} for shape {image.shape}"
            )
        if isinstance(self.channel, str) and self.channel in STAINS:
            return stain_of(channels_last, self.channel)
        letters = "ZYX"[-(image.ndim - 1) :]
        return select_channel(ImageFile(channels_last, f"{letters}S"), self.channel)

    def _from_file(self, image: StoredImage) -> Array:
        """Return the image in the chosen channel of a file."""
        if self.channel is not None and _says_no_axes(image):
            return self._from_array(image.read())
        if self.channel_axis is not None:
            raise ValueError(
                f"`channel_axis` must be None for a file that names its axes {image.axes}, "
                f"got {self.channel_axis}"
            )
        _check_single_time(image)
        if callable(self.channel):
            return self._called(with_channels(image).read_masked())
        is_stain = isinstance(self.channel, str) and self.channel in STAINS
        if is_stain and self.channel not in image.channels:
            return stain_of(with_channels(image).read_masked(), str(self.channel))
        return choose(image, channel=self.channel).read_masked()

    def _called(self, channels_last: Array) -> Array:
        assert callable(self.channel)
        found = np.asanyarray(self.channel(channels_last))
        if not 1 <= found.ndim <= 3:
            raise ValueError(
                "`channel` must return an image of 1 to 3 axes, "
                f"got shape {found.shape} for {channels_last.shape}"
            )
        check_image_dtype(found.dtype, "channel")
        return found

    def _smoothed(self, image: Array) -> Array:
        if self.smooth is None:
            return image
        sigma = checked_sigma(self.smooth, image.ndim)
        check_image_dtype(image.dtype)
        if np.ma.is_masked(image):
            raise ValueError("`smooth` needs an image without masked or missing values")
        values = np.array(image, Smoothing.dtype(image.dtype))
        smooth_gaussian(values, sigma, purpose="smooth")
        return values


def checked_sigma(smooth: Any, ndim: int) -> list[float]:
    """Return a standard deviation for each axis."""
    try:
        sigma = np.asarray(smooth, np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"`smooth` must be a number, or one for each axis, got {smooth!r}"
        ) from None
    if sigma.shape not in ((), (1,), (ndim,)):
        raise ValueError(f"`smooth` must be one number or {ndim} of them, got {smooth!r}")
    if not np.isfinite(sigma).all() or sigma.min() < 0 or sigma.max() == 0:
        raise ValueError(
            "`smooth` must be a positive number of points, or one for each axis, "
            f"some of which may be 0, got {smooth!r}"
        )
    found: list[float] = np.broadcast_to(sigma, ndim).tolist()
    return found


def stain_of(colours: Array, name: str) -> Array:
    """Return the optical density of a stain in an image whose last axis has colours.

    It is a channel of `skimage.color.rgb2hed`, the colour deconvolution of Ruifrok and Johnston.
    """
    if colours.shape[-1] not in (3, 4):
        raise ValueError(
            f"`channel` must not be {name!r} for images without red, green and blue, "
            f"got {colours.shape[-1]} channels"
        )
    rgb = np.moveaxis(opaque_colours(np.moveaxis(colours, -1, 0), name), 0, -1)
    if rgb.dtype.kind == "f" and rgb.size and not (rgb.min() >= 0 and rgb.max() <= 1):
        raise ValueError(
            f"{name} needs colours from 0 to 1 if they are floats, "
            f"got {rgb.min():.6g} to {rgb.max():.6g}"
        )
    color = import_optional("skimage.color", extra="features", purpose=f'channel="{name}"')
    density: Array = color.rgb2hed(rgb)[..., STAINS.index(name)]
    if np.ma.is_masked(rgb):
        return np.ma.masked_array(density, np.ma.getmaskarray(rgb).any(axis=-1))
    return density


def read_labels(path: Any) -> Array:
    """Read the label image in a file."""
    with file_named(path):
        return labels_of(open_single(path))


def labels_of(image: StoredImage) -> Array:
    """Return the label image in an open file. The path is not in errors.

    Floats in files become integers, as in ``ecc curve --labels``.
    """
    _check_single_time(image)
    for letter, count in zip(image.axes, image.shape, strict=True):
        if letter in "CS" and count > 1:
            raise ValueError(
                "a label image must have one channel, "
                f"got {count}, axes {image.axes} of shape {image.shape}"
            )
    return choose(as_labels(image)).read_all()


def open_single(path: Any) -> StoredImage:
    """Open the image in a file, which must be the only one there."""
    try:
        return open_image(path)
    except InputFileError as error:
        if "`series`" not in str(error):
            raise
        # The message names the argument `series` of `open_image`, which transformers lack.
        raise InputFileError(f"{error}; a transformer takes files of one image: {ADVICE}") from None


def _says_no_axes(image: StoredImage) -> bool:
    """Whether a file does not name the axes of its array, such as an NPY file."""
    parts = Path(str(image.path).lower()).parts
    is_numpy = any(part.endswith((".npy", ".npz")) for part in parts)
    return is_numpy or "?" in image.axes


def _check_single_time(image: StoredImage) -> None:
    for letter, count in zip(image.axes, image.shape, strict=True):
        if letter == "T" and count > 1:
            raise ValueError(
                f"has {count} points in time, and a transformer takes files of one: {ADVICE}"
            )


def is_path(part: Any) -> bool:
    return isinstance(part, str | os.PathLike)


@contextmanager
def file_named(path: Any) -> Iterator[None]:
    """Add the path to errors that the file causes."""
    try:
        yield
    except InputFileError:
        raise
    except (TypeError, ValueError) as error:
        raise InputFileError(f"{path}: {error}") from error
