"""The ordinary calls that :mod:`benchmarks.cuda_map` measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import cupy
import numpy as np

import ecc_core as ecc

SIZES = ("8192^2", "512^3")
THIN = ("4000x4000x3", "3x4000x4000", "2048x2048x64", "64x2048x2048", "50000000", "1x5x20000000")

Call = Callable[[Any], Any]


def same(image: Any) -> Any:
    return image


class Case(NamedTuple):
    """A call, on an image made from the field.

    Attributes
    ----------
    row, size : str
        Title of the row, and what is measured in it.
    call : function of an image
        Works on NumPy's arrays too.
    image : function of a field in [0, 1]
    others : function of an image
        More arguments of the call, on the image's device.
    extra : float
        Bytes for each sample beside the image's own.
    captured : bool
        Whether the call can be part of a CUDA graph.
    part : slice, optional
        Of each axis, for comparison with the CPU where it takes long.
    """

    row: str
    size: str
    call: Callable[..., Any]
    image: Call = same
    others: Callable[[Any], tuple[Any, ...]] = lambda _: ()
    extra: float = 0
    captured: bool = True
    part: int | None = None


def to_type(dtype: str, top: int | None = None) -> Call:
    """Return a conversion of fields in [0, 1] to a dtype, stretched to its range or to `top`."""

    def convert(image: Any) -> Any:
        if np.dtype(dtype).kind == "f":
            return image.astype(dtype)
        info = np.iinfo(dtype)
        low, high = (info.min, info.max) if top is None else (0, top)
        return (image * (high - low) + low).astype(dtype)

    return convert


def curve(thresholds: Any, **given: Any) -> Call:
    """Return a function of an image, and perhaps a mask, that computes the values of a curve."""

    def call(image: Any, mask: Any = None) -> Any:
        return ecc.euler_curve(image, thresholds, mask=mask, **given).values

    return call


def a_mask(image: Any) -> tuple[Any, ...]:
    """Return a random mask of four points of five."""
    rng = cupy.random.default_rng(3)
    return (rng.random(image.shape, dtype=cupy.float32) < 0.8,)


def some_labels(count: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function of an image that labels squares or cubes, with background between them."""

    def labels(image: Any) -> tuple[Any, ...]:
        a_side = round(count ** (1 / image.ndim))
        found = 0
        inside = True
        for axis, n in enumerate(image.shape):
            along = cupy.arange(n).reshape((-1,) + (1,) * (image.ndim - axis - 1))
            found = found * a_side + along * a_side // n
            inside = inside & (along * a_side % n >= a_side)
        return (((found + 1) * inside).astype(np.int32),)

    return labels


def regions(image: Any, labels: Any) -> Any:
    return ecc.region_curves(image, labels, np.linspace(0, 1, 256)).values


def exact(image: Any) -> Any:
    found = ecc.euler_curve(image, "exact")
    return found.thresholds, found.values


def default(image: Any, mask: Any = None) -> Any:
    return ecc.euler_curve(image, mask=mask).values


def transform(mask: Any) -> Any:
    return ecc.euler_transform(mask, 64, 256).values


def number(mask: Any) -> Any:
    return np.array(ecc.euler_number(mask))


def at_levels(image: Any, levels: Any) -> Any:
    return ecc.euler_curve(image, levels).values


def its_percentiles(count: int) -> Callable[[Any], tuple[Any, ...]]:
    def levels(image: Any) -> tuple[Any, ...]:
        sample = image.ravel()[:: max(image.size // 100_000, 1)].get()
        return (np.percentile(sample, np.linspace(0, 100, count)),)

    return levels


def even_on_the_device(_: Any) -> tuple[Any, ...]:
    return (cupy.linspace(0, 1, 256),)


def everyday(size: str) -> Iterator[Case]:
    """Yield the cases of a large image or of a volume."""
    even = np.linspace(0, 1, 256)
    rounded = np.linspace(0.03, 0.97, 256, dtype=np.float32)
    flat = size == "8192^2"
    up = (1, 2, 3)[: 2 if flat else 3]
    yield Case("float32, 256 even thresholds", size, curve(even))
    yield Case("float32, 256 even float32 thresholds", size, curve(rounded))
    for count in (200, 1000):
        levels = its_percentiles(count)
        yield Case(
            row=f"float32, {count} percentiles",
            size=size,
            call=at_levels,
            image=same,
            others=levels,
        )
    uneven = np.sort(np.random.default_rng(5).normal(0.5, 0.12, 200))
    yield Case("float32, 200 random thresholds", size, curve(uneven))
    yield Case("float32, 4096 even thresholds", size, curve(np.linspace(0, 1, 4096)))
    for dtype, top, levels in (
        ("float64", None, even),
        ("float16", None, even),
        ("int16", None, np.linspace(-32768, 32767, 4096)),
        ("uint16", 4095, np.linspace(0, 4095, 256)),
        ("int32", 10**9, np.linspace(0, 10**9, 256)),
        ("uint8", None, np.array([3, 9, 20, 77, 130, 200, 250])),
        ("uint8", None, np.arange(256)),
    ):
        title = f"{dtype}{f' up to {top}' if top else ''}, {len(levels)} thresholds"
        yield Case(title, size, curve(levels), to_type(dtype, top))
    yield Case(row="mask", size=size, call=curve(even), image=same, others=a_mask, extra=1)
    yield Case("every second column", size, curve(even), lambda x: x[..., ::2])
    yield Case("every second row", size, curve(even), lambda x: x[..., ::2, :])
    yield Case("transposed", size, curve(even), lambda x: x.T)
    yield Case("`direction=`", size, curve(even, direction=up))
    clocked = partial(Case, size=size, captured=False)
    yield clocked("default call", call=default)
    yield clocked("default call, uint8", call=default, image=to_type("uint8"))
    yield clocked("default call, mask", call=default, others=a_mask, extra=1)
    yield clocked("thresholds on the device", call=at_levels, others=even_on_the_device)
    part = 1500 if flat else 160
    yield clocked("`euler_coefficients`", call=ecc.euler_coefficients, extra=1, part=part)
    yield clocked('"exact"', call=exact, part=1000 if flat else 100)
    yield clocked("`euler_number` of a mask", call=number, image=lambda x: x > 0.5)


def cases() -> Iterator[Case]:
    for size in SIZES:
        yield from everyday(size)
    for size, count in (("2048^2, 2,116 labels", 2116), ("256^3, 32,768 labels", 32768)):
        yield Case(
            row="`region_curves`",
            size=size,
            call=regions,
            image=same,
            others=some_labels(count),
            extra=4,
            captured=False,
        )
    for dtype, levels in (("float32", np.linspace(0, 1, 256)), ("uint8", np.arange(256))):
        for size in THIN:
            yield Case(f"thin, {dtype}", size, curve(levels), to_type(dtype))
    batch = curve(np.linspace(0, 1, 256), axis=(1, 2))
    yield Case("batch", "64x1024x1024", batch)
    colours = curve(np.arange(256), axis=(0, 1))
    yield Case("three channels as a batch, uint8", "4096x4096x3", colours, to_type("uint8"))
    within = curve(256, range=(0, 1), nan="omit")
    yield Case("`range=`", "8192^2", within)
    yield Case("`euler_transform`", "512^3", transform, lambda x: x > 0.5, captured=False, part=64)
    for dtype, levels in (("uint8", np.arange(256)), ("uint16", np.arange(1 << 16))):
        yield Case(f"{dtype}, every value", "1024^3", curve(levels), to_type(dtype))
    for size in ("128^2", "512^2", "1024^2"):
        yield Case("small", size, curve(np.linspace(0, 1, 256)))


def shape_of(case: Case) -> tuple[int, ...]:
    side, _, power = case.size.partition(",")[0].partition("^")
    if power:
        return (int(side),) * int(power)
    return tuple(map(int, side.split("x")))
