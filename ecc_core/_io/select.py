"""Read images from files, and parts of them: channels, points in time, regions."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ecc_core._io.colours import luminance
from ecc_core._io.lazy import Array
from ecc_core._io.open import open_image
from ecc_core._io.stored import StoredImage, View
from ecc_core._request.image import check_image_dtype
from ecc_core.errors import InputFileError

Part = int | slice


class ImageFile(NamedTuple):
    """The array of a file, and a letter for each of its axes.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from ecc_core.io import read_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/image.npy", np.zeros((4, 5)))
    ...     file = read_file(f"{folder}/image.npy")
    ...     file.axes, file.values.shape
    ('YX', (4, 5))
    """

    values: Array
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
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    offset: int = 0,
    order: str = "C",
) -> Array:
    """Read an image from a file or folder.

    The pages of a TIFF file, and the files of a folder in the natural order of their names, are
    the first axis of a 3-D image, unless the file says that they are points in time or channels.
    Values and dtype are those that the reference library of the format reads. Axes are in the order
    T, C, Z, Y, X in all formats, so that the axes of a NIfTI image are those of nibabel's in
    reverse. NPY files are mapped into memory. Nothing is ever unpickled, and no file is read that
    was not named.

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
    shape : sequence of int, optional
        Read the file as raw values without a header, of this shape, whatever its suffix.
    dtype : dtype-like, optional
        Their type, such as ``"uint16"``, or ``">i2"`` if the most significant byte is the first.
    offset : int, default 0
        Bytes before them. Nothing may follow them.
    order : {"C", "F"}, default "C"
        Whether the last axis of `shape` is the fastest, or the first one.

    Returns
    -------
    numpy.ndarray
        The image, without axes for channels and time. It may be read-only. It is a masked array if
        the file declares missing values; `ecc_core` leaves out the points that are masked.

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
    image = open_image(
        path,
        series=series,
        level=level,
        axes=axes,
        shape=shape,
        dtype=dtype,
        offset=offset,
        order=order,
    )
    try:
        return choose(image, channel=channel, time=time).read_masked()
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
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    offset: int = 0,
    order: str = "C",
) -> ImageFile:
    """Read the array in a file with all its channels, and the letters of its axes.

    Parameters
    ----------
    path, series, level, axes, shape, dtype, offset, order
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
    image = open_image(
        path,
        series=series,
        level=level,
        axes=axes,
        shape=shape,
        dtype=dtype,
        offset=offset,
        order=order,
    )
    return ImageFile(image.read(), image.axes)


def select_channel(file: ImageFile, channel: int | str | None = None) -> Array:
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
    channels: Array = np.moveaxis(values, channel_axis(axes) or 0, 0)
    return luminance(channels) if which == "gray" else np.asanyarray(channels[which])


def select(
    image: StoredImage,
    *,
    channel: Part | str | None = None,
    time: Part | None = None,
    roi: Sequence[slice] | None = None,
) -> View:
    """Return a part of an image, batch axes first.

    Axes of channels and of time without a given index are batch axes. Of a colour image, `channel`
    is required. Raises TypeError or ValueError if the image has no such part, or values that are
    not real numbers.
    """
    check_image_dtype(image.dtype)
    if "?" in image.axes:
        raise ValueError(
            f"nothing says what the axes of shape {image.shape} are, "
            "give `axes`, such as TZYX or CZYX"
        )
    if not {*image.axes} & {*"ZYX"}:
        raise ValueError(f"none of its axes {image.axes} of shape {image.shape} is Z, Y or X")
    return _cut(image, channel, time, roi, required="S")


def choose(
    image: StoredImage, *, channel: Part | str | None = None, time: Part | None = None
) -> View:
    """Return all of an image in one channel and at one time point, in the order of its axes."""
    view = _cut(image, channel, time, None, required="CS")
    for letter, count in zip(view.axes, view.shape, strict=True):
        if letter == "T":
            raise ValueError(f"has {count} points in time, choose one with `time`")
        if letter not in "ZYX?":
            raise ValueError(
                f"has {count} places on its axis {letter}, and read_file takes them all"
            )
    return view


def with_channels(image: StoredImage) -> View:
    """Return all of an image at its only time point, with its channels, if any, as the last axis.

    Raises ValueError if the image has other axes than Z, Y, X and channels, such as time.
    """
    view = _cut(image, None, None, None, required="")
    for letter, count in view.lengths.items():
        if letter not in "ZYXCS":
            raise ValueError(f"has {count} places on its axis {letter}, of which none is chosen")
    order = sorted(range(len(view.axes)), key=lambda i: view.axes[i] in "CS")
    return view._replace(
        order=tuple(view.order[i] for i in order),
        start=tuple(view.start[i] for i in order),
        shape=tuple(view.shape[i] for i in order),
    )


def _cut(
    image: StoredImage,
    channel: Part | str | None,
    time: Part | None,
    roi: Sequence[slice] | None,
    *,
    required: str,
) -> View:
    """Return a part of an image as a view with the axes in the same order."""
    parts: dict[int, Part] = {axis: slice(0, n) for axis, n in enumerate(image.shape)}
    which = pick_channel(image.axes, image.shape, channel, image.channels, required=required)
    axis = channel_axis(image.axes)
    gray = axis if which == "gray" else None
    if gray is not None:
        luminance(np.ones((3, 0), image.dtype))  # This raises for dtypes without a luminance.
        parts[gray] = 0
    elif axis is not None and which is not None and not isinstance(which, str):
        parts[axis] = which
    if time is not None:
        if "T" not in image.axes:
            raise ValueError(
                f"`time` must be left out, there is no axis T in {image.axes}, got {time}"
            )
        axis = image.axes.index("T")
        parts[axis] = _checked(time, image.shape[axis], "time", "")
    if roi:
        parts |= _regions(image, roi)
    fixed = {axis: part for axis, part in parts.items() if not isinstance(part, slice)}
    kept = {axis: part for axis, part in parts.items() if isinstance(part, slice)}
    starts = [part.start for part in kept.values()]
    lengths = [part.stop - part.start for part in kept.values()]
    return View(
        image,
        order=tuple(kept),
        start=tuple(starts),
        shape=tuple(lengths),
        fixed=fixed,
        gray=gray,
    )


def _regions(image: StoredImage, roi: Sequence[slice]) -> dict[int, Part]:
    spatial = [axis for axis, letter in enumerate(image.axes) if letter in "ZYX"]
    if len(roi) != len(spatial):
        named = "".join(image.axes[axis] for axis in spatial)
        raise ValueError(f"`roi` must have a range for each of the axes {named}, got {len(roi)}")
    found: dict[int, Part] = {}
    for axis, part in zip(spatial, roi, strict=True):
        start, stop, _ = part.indices(image.shape[axis])
        if start >= stop:
            letter = image.axes[axis]
            raise ValueError(f"`roi` leaves nothing of axis {letter}, of {image.shape[axis]}")
        found[axis] = slice(start, stop)
    return found


def _checked(part: Part, count: int, name: str, words: str) -> Part:
    """Return an index or a range, after checking that the axis contains it."""
    if isinstance(part, slice):
        start, stop, _ = part.indices(count)
        if start < stop:
            return slice(start, stop)
    elif 0 <= part < count:
        return part
    raise ValueError(f"`{name}` must be one of 0 to {count - 1}{words}, got {shown(part)}")


def shown(part: Any) -> str:
    if not isinstance(part, slice):
        return repr(part)
    return f"{'' if part.start is None else part.start}:{'' if part.stop is None else part.stop}"


def channel_axis(axes: str) -> int | None:
    """Return the axis of the channels, or None."""
    where = [i for i, letter in enumerate(axes) if letter in "CS"]
    if len(where) > 1:
        raise ValueError(f"must have one axis of channels, got axes {axes}")
    return where[0] if where else None


def pick_channel(
    axes: str,
    shape: Sequence[int],
    channel: Part | str | None,
    names: Sequence[str] = (),
    *,
    required: str = "S",
) -> Part | str | None:
    """Return the index or range of a channel, "gray", or None for all channels.

    `required` are the kinds of axes along which one channel must be selected.
    """
    axis = channel_axis(axes)
    if axis is None:
        if channel is None:
            return None
        raise ValueError(
            f"`channel` must be left out, the axes {axes} have none, got {shown(channel)}"
        )
    count = shape[axis]
    if axes[axis] == "S":
        names = {2: ("gray", "a"), 3: ("r", "g", "b"), 4: ("r", "g", "b", "a")}.get(count, ())
    extra = ("gray",) if "r" in names else ()
    if channel is None and (axes[axis] not in required or (axes[axis] == "S" and count == 1)):
        return None if axes[axis] not in required else 0
    if channel in extra:
        return "gray"
    if channel in names:
        return list(names).index(str(channel))
    words = "".join(f", {name}" for name in (*names, *extra))
    if channel is None:
        raise ValueError(
            f"has {count} channels, axes {axes} of shape {tuple(shape)}; "
            f"choose one with `channel`: 0 to {count - 1}{words}"
        )
    if isinstance(channel, str):
        raise ValueError(f"`channel` must be one of 0 to {count - 1}{words}, got {channel!r}")
    return _checked(channel, count, "channel", words)
