"""Parts of an image: channels, points in time, regions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.stored import Index, StoredImage
from ecc_core._io.views import View
from ecc_core._request.image import check_image_dtype

__all__ = ["Gray", "channel_axis", "choose", "luminance", "pick_channel", "select", "shown"]

Array = NDArray[Any]
Part = int | slice

LUMINANCE = (0.2125, 0.7154, 0.0721)
"""Weights of red, green and blue, as in `skimage.color.rgb2gray`."""


def select(
    image: StoredImage,
    *,
    channel: Part | str | None = None,
    time: Part | None = None,
    roi: Sequence[slice] | None = None,
) -> tuple[View, str]:
    """Return a part of an image, batch axes first, and a letter for each of its axes.

    Axes of channels and time of which no index is given are batch axes. A colour must be given.

    Raises
    ------
    TypeError, ValueError
        If the image has no such part, or its values are not real numbers.
    """
    check_image_dtype(image.dtype)
    if "?" in image.axes:
        raise ValueError(
            f"nothing says what the axes of shape {image.shape} are, "
            "give `axes`, such as TZYX or CZYX"
        )
    spatial = [i for i, letter in enumerate(image.axes) if letter in "ZYX"]
    if not spatial:
        raise ValueError(f"none of its axes {image.axes} of shape {image.shape} is Z, Y or X")
    source, ends, fixed = _cut(image, channel, time, required="S")
    for axis, part in zip(spatial, _regions(image, spatial, roi), strict=True):
        ends[axis] = part
    batch = [i for i in range(len(image.axes)) if i not in spatial and i not in fixed]
    return _view(image, source, ends, fixed, (*batch, *spatial))


def choose(
    image: StoredImage, *, channel: Part | str | None = None, time: Part | None = None
) -> tuple[View, str]:
    """Return all of an image in one channel and at one time point, in the order of its axes."""
    source, ends, fixed = _cut(image, channel, time, required="CS")
    order = [i for i in range(len(image.axes)) if i not in fixed]
    for i in order:
        if image.axes[i] not in "ZYX?":
            name = {"T": "points in time, choose one with `time`"}.get(
                image.axes[i], f"places on its axis {image.axes[i]}, and read_file takes them all"
            )
            raise ValueError(f"has {image.shape[i]} {name}")
    return _view(image, source, ends, fixed, tuple(order))


def _cut(
    image: StoredImage, channel: Part | str | None, time: Part | None, *, required: str
) -> tuple[Any, list[tuple[int, int]], dict[int, int]]:
    """The box to read: first index and end along each axis, and the fixed axes."""
    source: Any = image
    ends = [(0, n) for n in image.shape]
    fixed: dict[int, int] = {}
    which = pick_channel(image.axes, image.shape, channel, required=required)
    axis = channel_axis(image.axes)
    if which == "gray" and axis is not None:
        source, fixed[axis] = Gray(image, axis), 0
    elif which is not None and axis is not None and not isinstance(which, str):
        _take(which, axis, ends, fixed)
    if time is not None:
        _take(_checked_time(image, time), image.axes.index("T"), ends, fixed)
    return source, ends, fixed


def _view(
    image: StoredImage,
    source: Any,
    ends: list[tuple[int, int]],
    fixed: dict[int, int],
    order: tuple[int, ...],
) -> tuple[View, str]:
    start = tuple(ends[i][0] for i in order)
    lengths = tuple(ends[i][1] - ends[i][0] for i in order)
    return View(source, order, start, lengths, fixed), "".join(image.axes[i] for i in order)


def _take(part: Part, axis: int, ends: list[tuple[int, int]], fixed: dict[int, int]) -> None:
    """Select an index or a range along an axis."""
    if isinstance(part, slice):
        ends[axis] = part.start, part.stop
    else:
        fixed[axis] = part


def _regions(
    image: StoredImage, spatial: list[int], roi: Sequence[slice] | None
) -> list[tuple[int, int]]:
    """Return the first index and the end along each spatial axis."""
    named = "".join(image.axes[i] for i in spatial)
    parts = roi or (slice(None),) * len(spatial)
    if len(parts) != len(spatial):
        raise ValueError(f"`roi` must have a range for each of the axes {named}, got {len(parts)}")
    ends = []
    for letter, axis, part in zip(named, spatial, parts, strict=True):
        start, stop, _ = part.indices(image.shape[axis])
        if roi and start >= stop:
            raise ValueError(f"`roi` leaves nothing of axis {letter}, of {image.shape[axis]}")
        ends.append((start, stop))
    return ends


def _checked_time(image: StoredImage, time: Part) -> Part:
    if "T" not in image.axes:
        raise ValueError(f"`time` must be left out, there is no axis T in {image.axes}, got {time}")
    return _checked(time, image.shape[image.axes.index("T")], "time", "")


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
    axes: str, shape: Sequence[int], channel: Part | str | None, *, required: str = "S"
) -> Part | str | None:
    """Return the index or range of a channel, "gray", or None for all channels.

    Parameters
    ----------
    required : str
        Kinds of axes along which one channel must be selected.
    """
    axis = channel_axis(axes)
    if axis is None:
        if channel is None:
            return None
        raise ValueError(
            f"`channel` must be left out, the axes {axes} have none, got {shown(channel)}"
        )
    count = shape[axis]
    names: tuple[str, ...] = ()
    if axes[axis] == "S":
        names = {2: ("gray", "a"), 3: ("r", "g", "b"), 4: ("r", "g", "b", "a")}.get(count, ())
    extra = ("gray",) if "r" in names else ()
    if channel is None and (axes[axis] not in required or (axes[axis] == "S" and count == 1)):
        return None if axes[axis] not in required else 0
    if channel in extra:
        return "gray"
    if channel in names:
        return names.index(str(channel))
    words = "".join(f", {name}" for name in (*names, *extra))
    if channel is None:
        raise ValueError(
            f"has {count} channels, axes {axes} of shape {tuple(shape)}; "
            f"choose one with `channel`: 0 to {count - 1}{words}"
        )
    if isinstance(channel, str):
        raise ValueError(f"`channel` must be one of 0 to {count - 1}{words}, got {channel!r}")
    return _checked(channel, count, "channel", words)


def luminance(channels: Array) -> Array:
    """Return the luminance, from 0 to 1, of red, green, blue and maybe alpha on the first axis."""
    if channels.dtype.kind not in "uf":
        raise ValueError(f"gray needs colours of type uint or float, got {channels.dtype}")
    opaque = np.iinfo(channels.dtype).max if channels.dtype.kind == "u" else 1
    if len(channels) == 4 and np.any(channels[3] != opaque):
        raise ValueError("gray is not defined where colours are transparent")
    precision = channels.dtype if channels.dtype.kind == "f" else np.dtype(np.float64)
    weights = np.array(LUMINANCE, precision) / precision.type(opaque)
    values = weights[0] * channels[0]
    for weight, channel in zip(weights[1:], channels[1:3], strict=True):
        values += weight * channel  # a matrix product would round by the place in the block
    return np.asarray(values)


class Gray:
    """Return the luminance of a colour image; the colour axis has length 1."""

    def __init__(self, image: StoredImage, axis: int) -> None:
        self.image, self.axis = image, axis
        self.path, self.remote = image.path, image.remote
        self.shape = tuple(1 if i == axis else n for i, n in enumerate(image.shape))
        self.chunks = tuple(1 if i == axis else n for i, n in enumerate(image.chunks))
        self.parts = tuple(1 if i == axis else n for i, n in enumerate(image.parts))
        self.dtype = luminance(np.ones((3, 0), image.dtype)).dtype

    def _colours(self, index: Index) -> Index:
        all_of_them = slice(0, self.image.shape[self.axis])
        return tuple(all_of_them if i == self.axis else part for i, part in enumerate(index))

    def __getitem__(self, index: Index) -> Array:
        values = self.image[self._colours(index)]
        kept = sum(isinstance(part, slice) for part in index[: self.axis])
        return luminance(np.moveaxis(values, kept, 0))

    def reads_at_once(self, _: Index) -> bool:
        return False  # the colours take more memory than their luminance

    def stamps(self, index: Index) -> list[Any]:
        return list(self.image.stamps(self._colours(index)))

    def description(self) -> list[Any]:
        return [*self.image.description(), "gray"]
