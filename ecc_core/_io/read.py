"""Read images from files."""

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.open import open_image
from ecc_core._io.select import channel_axis, choose, pick_channel
from ecc_core._io.views import luminance
from ecc_core.errors import InputFileError


class ImageFile(NamedTuple):
    """The array of a file, and a letter for each of its axes."""

    values: NDArray[Any]
    """Memory-mapped and read-only for NPY files."""
    axes: str
    """``S`` are the samples of a colour (gray and alpha, RGB or RGBA), ``C`` are other channels,
    any other letter is an axis of the image."""


def read_image(
    path: str | os.PathLike[str],
    *,
    channel: int | str | None = None,
    time: int | None = None,
    series: int | None = None,
    level: int = 0,
    axes: str | None = None,
) -> NDArray[Any]:
    """Read an image from a file or folder.

    The pages of a TIFF file, and the files of a folder in the natural order of their names, are
    the first axis of a 3-D image, unless the file says that they are points in time or channels.
    Values and dtype are those of the file. Axes are in the order T, C, Z, Y, X in all formats, so
    that the axes of a NIfTI image are those of nibabel's in reverse. NPY files are mapped into
    memory. Nothing is ever unpickled, and no file is read that was not named.

    Parameters
    ----------
    path : path-like
        A file whose suffix is one of `IMAGE_SUFFIXES`; a Zarr array or OME-Zarr image, also its
        address such as ``s3://bucket/image.zarr``; or a folder of 2-D images of one format, shape
        and dtype. An array in an HDF5, NPZ or zipped Zarr file is named as if the file were a
        folder: ``scan.h5/group/data``.
    channel : int or {"r", "g", "b", "a", "gray"}, optional
        Which channel to take, if there are several: its index, a colour or alpha, or the
        luminance of opaque colours, computed like `skimage.color.rgb2gray` (float, 0 to 1).
    time : int, optional
        Which point in time to take, if the file says that an axis is time.
    series : int, optional
        Which image of a file that holds several.
    level : int, default 0
        Which resolution of a pyramid, 0 the finest.
    axes : str, optional
        One letter for each axis, where the file says nothing or something wrong, in the order of
        the axes of `open_image` without this argument: ``S`` for colours, ``C`` for other
        channels, ``T`` for time, and ``Z``, ``Y`` and ``X`` for those of the image. The arrays of
        NPY and NPZ files have no channels unless this says so.

    Returns
    -------
    numpy.ndarray
        The image, without axes for channels and time. It may be read-only.

    Raises
    ------
    InputFileError
        If the file is missing, damaged, truncated or of another type, if it holds several images
        or pickled objects, or has several channels or points in time and no argument chooses one.
    ImportError
        If the library that reads this type is not installed.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from ecc_core.io import read_image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "image.npz")
    ...     np.savez(path, np.zeros((4, 5, 3), np.uint8))
    ...     read_image(path).shape, read_image(path, axes="YXS", channel="r").shape
    ((4, 5, 3), (4, 5))
    """
    image = open_image(path, series=series, level=level, axes=axes)
    try:
        return choose(image, channel=channel, time=time).read_all()
    except InputFileError:
        raise
    except ValueError as error:
        raise InputFileError(f"{path}: {error}") from None


def read_file(
    path: str | os.PathLike[str],
    *,
    series: int | None = None,
    level: int = 0,
    axes: str | None = None,
) -> ImageFile:
    """Read the array that a file holds, with all its channels, and what its axes are.

    Parameters
    ----------
    path, series, level, axes
        As for `read_image`.

    Returns
    -------
    ImageFile

    Raises
    ------
    InputFileError, ImportError
        As for `read_image`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from ecc_core.io import read_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "image.npz")
    ...     np.savez(path, np.zeros((4, 5), np.uint8))
    ...     read_file(path).axes
    'YX'
    """
    image = open_image(path, series=series, level=level, axes=axes)
    return ImageFile(image.read(), image.axes)


def select_channel(file: ImageFile, channel: int | str | None = None) -> NDArray[Any]:
    """Return the image in one channel of a file's array.

    Parameters
    ----------
    file : ImageFile
        What `read_file` returns.
    channel : int or {"r", "g", "b", "a", "gray"}, optional
        As for `read_image`.

    Returns
    -------
    numpy.ndarray
        The image, without the axis of the channels.

    Raises
    ------
    ValueError
        If `channel` is missing and there are several, or the other way around, or there is none
        of that index or name.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.io import ImageFile, select_channel
    >>> select_channel(ImageFile(np.zeros((4, 5, 3)), "YXS"), "gray").shape
    (4, 5)
    """
    values, axes = file
    which = pick_channel(axes, values.shape, channel, required="CS")
    if which is None:
        return values
    channels: NDArray[Any] = np.moveaxis(values, channel_axis(axes) or 0, 0)
    return luminance(channels) if which == "gray" else np.asarray(channels[which])
