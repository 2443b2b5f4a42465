"""Read images from files."""

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._optional import import_optional
from ecc_core.errors import InputFileError

__all__ = ["IMAGE_SUFFIXES", "ImageFile", "read_file", "read_image", "select_channel"]

LUMINANCE = (0.2125, 0.7154, 0.0721)
"""Weights of linear red, green and blue, those of `skimage.color.rgb2gray`."""


class ImageFile(NamedTuple):
    """The array that a file holds, and one letter for each of its axes."""

    values: NDArray[Any]
    """Memory-mapped and read-only for NPY files."""
    axes: str
    """``S`` are the samples of a colour (gray and alpha, RGB or RGBA), ``C`` are other channels,
    any other letter is an axis of the image."""


def read_image(
    path: str | os.PathLike[str], *, channel: int | str | None = None, axes: str | None = None
) -> NDArray[Any]:
    """Read an image from a PNG, JPEG, TIFF, NPY or NPZ file.

    The pages of a TIFF file are the first axis of a 3-D image. Values and dtype are those of the
    file. NPY files are mapped into memory. Nothing is ever unpickled.

    Parameters
    ----------
    path : path-like
        The file; its suffix says its type.
    channel : int or {"r", "g", "b", "a", "gray"}, optional
        Which channel to take, if there are several: its index, a colour or alpha, or the
        luminance of opaque colours, computed like `skimage.color.rgb2gray` (float, 0 to 1).
    axes : str, optional
        One letter for each axis of the file's array, where the file says nothing or something
        wrong: ``S`` for colours, ``C`` for other channels, any other letter for an axis of the
        image. The arrays of NPY and NPZ files have no channels unless this says so.

    Returns
    -------
    numpy.ndarray
        The image, without axes for channels. It may be read-only.

    Raises
    ------
    InputFileError
        If the file is missing, damaged, truncated or of another type, if it holds several arrays
        or pickled objects, or has several channels and `channel` does not name one of them.
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
    file = read_file(path, axes=axes)
    try:
        return select_channel(file, channel)
    except ValueError as error:
        raise InputFileError(f"{path}: {error}") from None


def read_file(path: str | os.PathLike[str], *, axes: str | None = None) -> ImageFile:
    """Read the array that a file holds, with all its channels, and what its axes are.

    Parameters
    ----------
    path, axes
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
    path = Path(path)
    try:
        if not path.exists():
            raise ValueError("no such file")
        if not path.is_file():
            raise ValueError("not a file")
        reader = _READERS.get(path.suffix.lower())
        if reader is None:
            raise ValueError(f"type not supported, must be one of {', '.join(IMAGE_SUFFIXES)}")
        file = reader(path)
        if axes is not None and len(axes) != file.values.ndim:
            shape = file.values.shape
            raise ValueError(f"`axes` must be one letter per axis of shape {shape}, got {axes!r}")
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # decoders raise whatever they like on damaged files
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputFileError(f"{path}: {reason.splitlines()[0]}") from error
    return file if axes is None else ImageFile(file.values, axes.upper())


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
    where = [i for i, letter in enumerate(axes) if letter in "CS"]
    if not where:
        if channel is None:
            return values
        raise ValueError(f"`channel` must be left out, the axes {axes} have none, got {channel!r}")
    if len(where) > 1:
        raise ValueError(f"must have one axis of channels, got axes {axes}")
    channels: NDArray[Any] = np.moveaxis(values, where[0], 0)
    count = len(channels)
    names = {2: ("gray", "a"), 3: ("r", "g", "b"), 4: ("r", "g", "b", "a")}.get(count, ())
    if axes[where[0]] == "C":
        names = ()
    if channel == "gray" and "r" in names:
        return _luminance(channels)
    if channel in names:
        return np.asarray(channels[names.index(str(channel))])
    if isinstance(channel, int) and 0 <= channel < count:
        return np.asarray(channels[channel])
    choices = ", ".join([f"0 to {count - 1}", *names, *(["gray"] if "r" in names else [])])
    if channel is None:
        raise ValueError(
            f"has {count} channels, axes {axes} of shape {values.shape}; "
            f"choose one with `channel`: {choices}"
        )
    raise ValueError(f"`channel` must be one of {choices}, got {channel!r}")


def _luminance(channels: NDArray[Any]) -> NDArray[Any]:
    """Return the luminance, from 0 to 1, of red, green, blue and maybe alpha on the first axis."""
    if channels.dtype.kind not in "uf":
        raise ValueError(f"gray needs colours of type uint or float, got {channels.dtype}")
    opaque = np.iinfo(channels.dtype).max if channels.dtype.kind == "u" else 1
    if len(channels) == 4 and np.any(channels[3] != opaque):
        raise ValueError("gray is not defined where colours are transparent")
    precision = channels.dtype if channels.dtype.kind == "f" else np.dtype(np.float64)
    weights = np.array(LUMINANCE, precision) / precision.type(opaque)
    return np.asarray(np.tensordot(weights, channels[:3].astype(precision), axes=1))


def _read_pillow(path: Path) -> ImageFile:
    imageio = import_optional("imageio.v3", extra="io", purpose="reading PNG and JPEG files")
    with path.open("rb") as stream:
        header = stream.read(26)
    if header.startswith(b"\x89PNG") and header[24:] in (b"\x10\x02", b"\x10\x04", b"\x10\x06"):
        # bit depth 16, colours or alpha: Pillow silently keeps the upper 8 bits
        raise ValueError("16-bit PNG with colours or alpha is not supported, save it as TIFF")
    try:
        with _any_size(), imageio.imopen(path, "r", plugin="pillow") as file:
            values = file.read(index=0)
            mode = file.metadata(index=0)["mode"]
    except OSError as error:
        raise ValueError(f"not a PNG or JPEG image, or truncated: {error}") from error
    samples = "S" if mode in ("LA", "P", "PA", "RGB", "RGBA") else "C"
    return ImageFile(values, "YX" if values.ndim == 2 else "YX" + samples)


@contextmanager
def _any_size() -> Iterator[None]:
    """Lift Pillow's limit on the number of pixels: the user named the file, no stranger sent it."""
    from PIL import Image

    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    try:
        yield
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def _read_tiff(path: Path) -> ImageFile:
    tifffile = import_optional("tifffile", extra="io", purpose="reading TIFF files")
    with tifffile.TiffFile(path) as tiff:
        # Every page points to the next, the last to 0. tifffile takes a broken link for the end.
        if len(tiff.pages) == 0:
            raise ValueError("truncated or damaged, no page can be read")
        tiff.filehandle.seek(tiff.pages.next_page_offset)
        link = tiff.filehandle.read(tiff.tiff.offsetsize)
        if link != bytes(tiff.tiff.offsetsize):
            raise ValueError(f"truncated or damaged after {len(tiff.pages)} pages")
        if len(tiff.series) != 1:
            shapes = ", ".join(str(series.shape) for series in tiff.series)
            raise ValueError(f"must hold one image, got {len(tiff.series)} of shapes {shapes}")
        series = tiff.series[0]
        if any(page is None for page in series.pages):
            raise ValueError("some of its pages are in other files, which are missing")
        axes = series.axes.replace("Q", "Z").replace("I", "Z")  # unnamed axes, unnamed pages
        if series.keyframe.photometric != tifffile.PHOTOMETRIC.RGB:
            axes = axes.replace("S", "C")
        return ImageFile(series.asarray(), axes)


def _read_npy(path: Path) -> ImageFile:
    with path.open("rb") as stream:
        if stream.read(6) != b"\x93NUMPY":  # numpy.load would also try zip and pickle
            raise ValueError("not an NPY file; pickled data is never loaded")
    return _named(np.load(path, mmap_mode="r", allow_pickle=False))


def _read_npz(path: Path) -> ImageFile:
    if not zipfile.is_zipfile(path):
        raise ValueError("not an NPZ file, or truncated")
    with np.load(path, allow_pickle=False) as archive:
        if len(archive.files) != 1:
            names = ", ".join(archive.files)
            raise ValueError(f"must hold one array, got {len(archive.files)}: {names}")
        return _named(archive[archive.files[0]])


def _named(values: NDArray[Any]) -> ImageFile:
    """Return an array of which nothing but the order of its axes is known."""
    return ImageFile(values, "?" * (values.ndim - 3) + "ZYX"[max(0, 3 - values.ndim) :])


_READERS = {
    ".png": _read_pillow,
    ".jpg": _read_pillow,
    ".jpeg": _read_pillow,
    ".tif": _read_tiff,
    ".tiff": _read_tiff,
    ".npy": _read_npy,
    ".npz": _read_npz,
}
IMAGE_SUFFIXES = tuple(_READERS)
"""Suffixes of the files that can be read."""
