"""The calls that `cpu_map.py` and `cpu_gate.py` measure."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

if "--workers" not in sys.argv:  # one thread for the calls without `workers`, too
    os.environ["NUMBA_NUM_THREADS"] = "1"

import numpy as np
from scipy.ndimage import gaussian_filter, label

import ecc_core as ecc

EVEN = np.linspace(0, 1, 256)
TABLE = "three scalar loads and a store for each point"
ROUNDED = "a check of how close each place is to a whole number"


class Case(NamedTuple):
    """A call, the number of points it works on, and what its cost a point is compared with."""

    name: str
    call: Callable[[int], Any]
    points: int
    measure: str
    bar: float | None
    cause: str = ""


class Images:
    """Images of 2 and 3 axes, noise and smooth, of the same number of points."""

    def __init__(self, side: int) -> None:
        self.side = side
        self.shapes = {2: (side, side), 3: (64, side // 8, side // 8)}
        self._made: dict[tuple[int, str], np.ndarray] = {}

    def __call__(self, ndim: int = 2, kind: str = "noise") -> np.ndarray:
        key = ndim, kind
        if key not in self._made:
            image = np.random.default_rng(7).random(self.shapes[ndim], dtype=np.float32)
            if kind == "smooth":
                gaussian_filter(image, 8 if ndim == 2 else 3, output=image, mode="wrap")
                image -= image.min()
                image /= image.max()
            self._made[key] = image
        return self._made[key]


def curve(image: np.ndarray, thresholds: Any = EVEN, **options: Any) -> Callable[[int], Any]:
    return lambda workers: ecc.euler_curve(image, thresholds, workers=workers, **options)


def thresholds(images: Images) -> Iterator[Case]:
    """Thresholds."""
    for ndim in (2, 3):
        for kind in ("noise", "smooth"):
            image = images(ndim, kind)
            key = f"{ndim}-D {kind}"
            points = image.size
            sample = image.reshape(-1)[::97]
            spacings = {
                "range=(0.1, 0.9)": np.linspace(0.1, 0.9, 256),
                "linspace in float32": np.linspace(0, 1, 256, dtype=np.float32),
                "arange(0, 1, 0.01)": np.arange(0, 1, 0.01),
                "midpoints of 256 bins": (EVEN[1:] + EVEN[:-1]) / 2,
            }
            for name, at in spacings.items():
                cause = "257 keys take two bytes" if name.startswith("range") else ROUNDED
                yield Case(
                    name=f"{name}, {key}",
                    call=curve(image, at),
                    points=points,
                    measure=key,
                    bar=1.1,
                    cause=cause,
                )
            for count in (256, 4096):
                at = np.unique(np.quantile(sample, np.linspace(0, 1, count)))
                yield Case(
                    name=f"{count} percentiles, {key}",
                    call=curve(image, at),
                    points=points,
                    measure=key,
                    bar=1.5,
                    cause=TABLE,
                )
            clustered = np.r_[0.5 + np.arange(200) * 1e-6, np.linspace(0.6, 1, 56)]
            name = f"clustered thresholds, {key}"
            yield Case(
                name=name,
                call=curve(image, clustered),
                points=points,
                measure=key,
                bar=1.5,
                cause=TABLE,
            )


def defaults(images: Images) -> Iterator[Case]:
    """Default calls, masks and NaN."""
    for ndim in (2, 3):
        for kind in ("noise", "smooth"):
            image = images(ndim, kind)
            key = f"{ndim}-D {kind}"
            mask = np.random.default_rng(1).random(image.shape) < 0.9
            points = image.size
            cause = "the image is read twice"
            yield Case(
                name=f"no range, {key}",
                call=curve(image, 256),
                points=points,
                measure=key,
                bar=1.4,
                cause=cause,
            )
            cause = "a random mask makes ten times as many critical points in a smooth image"
            yield Case(
                name=f"mask, {key}",
                call=curve(image, mask=mask),
                points=points,
                measure=key,
                bar=1.2,
                cause=cause,
            )
            holes = np.where(mask, image, np.float32(np.nan))
            omit = curve(holes, 256, nan="omit")
            yield Case(
                name=f'nan="omit", no range, {key}',
                call=omit,
                points=points,
                measure=key,
                bar=1.6,
                cause=cause,
            )


def dtypes(images: Images) -> Iterator[Case]:
    """Types and directions."""
    for ndim in (2, 3):
        image = images(ndim)
        key = f"{ndim}-D noise"
        points = image.size
        yield Case(
            name=f"float64, {key}",
            call=curve(image.astype(np.float64)),
            points=points,
            measure=key,
            bar=2.0,
        )
        cause = "a table of 16-bit keys for all values"
        yield Case(
            name=f"float16, {key}",
            call=curve(image.astype(np.float16)),
            points=points,
            measure=key,
            bar=1.2,
            cause=cause,
        )
        along = curve(image, np.linspace(-1, 2, 256), direction=[1.0] * ndim, direction_scale=1e-3)
        cause = "values of 8 bytes, written once more"
        yield Case(
            name=f"direction, {key}", call=along, points=points, measure=key, bar=3.0, cause=cause
        )


def layouts(images: Images) -> Iterator[Case]:
    """Memory layouts."""
    image = images()
    key = "2-D noise"
    wide = np.repeat(image, 2, axis=1)
    tall = np.repeat(image, 2, axis=0)
    copied = "boxes are copied, point by point"
    yield Case(
        name="every second column",
        call=curve(wide[:, ::2]),
        points=image.size,
        measure=key,
        bar=1.8,
        cause=copied,
    )
    yield Case(
        name="every second row", call=curve(tall[::2]), points=image.size, measure=key, bar=1.8
    )
    volume = images(3)
    key3 = "3-D noise"
    turned = curve(np.asfortranarray(volume))
    yield Case(
        name="Fortran order, 3-D",
        call=turned,
        points=volume.size,
        measure=key3,
        bar=1.4,
        cause=copied,
    )
    sliced = curve(volume, axis=(0, 1))
    yield Case(
        name="slices of a volume, axis=(0, 1)",
        call=sliced,
        points=volume.size,
        measure=key,
        bar=2.5,
        cause=copied,
    )
    rgb = (np.random.default_rng(2).random((images.side, images.side, 3)) * 255).astype(np.uint8)
    at = np.arange(0, 256)
    yield Case(
        name="RGB uint8, axis=(0, 1)",
        call=curve(rgb, at, axis=(0, 1)),
        points=rgb.size,
        measure="uint8 planes",
        bar=2.0,
        cause=copied,
    )
    yield from _thin_layouts(images)


def _thin_layouts(images: Images) -> Iterator[Case]:
    """Images with short axes."""
    key = "2-D noise"
    noise = np.random.default_rng(3).random
    n = images.side**2
    for shape in ((n // 9, 3, 3), (n // 2, 2), (images.side, images.side, 3)):
        thin = noise(shape, dtype=np.float32)
        measure = f"{thin.ndim}-D noise"
        cause = "boxes are copied, and short axes leave most of a block to its border"
        name = "x".join(map(str, shape))
        yield Case(
            name=f"{name} as one image",
            call=curve(thin),
            points=thin.size,
            measure=measure,
            bar=3.0,
            cause=cause,
        )
    line = noise(4 * n, dtype=np.float32)
    cause = "one row of eight in each word"
    yield Case(name="1-D", call=curve(line), points=line.size, measure=key, bar=1.6, cause=cause)
    rows = noise((n // 64, 64), dtype=np.float32)
    at = np.linspace(0, 1, 16)
    cause = "a scan and a curve for each row"
    yield Case(
        name="rows of 64 points, axis=1",
        call=curve(rows, at, axis=1),
        points=rows.size,
        measure=key,
        bar=5.0,
        cause=cause,
    )


def small(images: Images) -> Iterator[Case]:
    """Small images, in microseconds."""
    for side in (64, 128):
        image = images()[:side, :side].copy()
        cause = "Python: checks, results, and the launch of three kernels"
        yield Case(
            name=f"one call on {side}x{side}",
            call=curve(image),
            points=0,
            measure="",
            bar=30.0,
            cause=cause,
        )
    values = (images()[:64, :64] * 60_000).astype(np.uint16)
    yield Case(
        name='"exact" on 64x64 uint16', call=curve(values, "exact"), points=0, measure="", bar=200.0
    )
    image = images()[:128, :128].copy()
    at = np.sort(np.random.default_rng(4).random(65_536))
    cause = "four times as many thresholds as points are compared and summed"
    yield Case(
        name="65,536 uneven thresholds on 128x128",
        call=curve(image, at),
        points=0,
        measure="",
        bar=120.0,
        cause=cause,
    )


def other_calls(images: Images) -> Iterator[Case]:
    """Other calls."""
    yield from _exact_calls(images)
    yield from _region_calls(images)
    yield from _calls_of_masks(images)


def _exact_calls(images: Images) -> Iterator[Case]:
    """Every value as a threshold."""
    for kind, bar in (("smooth", 6.0), ("noise", 30.0)):
        image = images(2, kind)
        key = f"2-D {kind}"
        cause = "sorting more than half of the points"
        yield Case(
            name=f'"exact" float32, {key}',
            call=curve(image, "exact"),
            points=image.size,
            measure=key,
            bar=bar,
            cause=cause,
        )
    image = images()
    key = "2-D noise"
    integers = (image * 1e6).astype(np.int32)
    cause = "sorting more than half of the points"
    yield Case(
        name='"exact" int32',
        call=curve(integers, "exact"),
        points=image.size,
        measure=key,
        bar=15.0,
        cause=cause,
    )


def _region_calls(images: Images) -> Iterator[Case]:
    """Curves of labelled regions."""
    image = images()
    key = "2-D noise"
    smooth = images(2, "smooth")
    regions = label(smooth > 0.5)[0].astype(np.int32)
    tiles = np.indices(image.shape) // 32
    tiles = (tiles[0] * (image.shape[1] // 32) + tiles[1] + 1).astype(np.int64)
    many = np.indices(image.shape) // 12
    many = (many[0] * (image.shape[1] // 12 + 1) + many[1] + 1).astype(np.int32)
    arrangements = {
        "29,241 regions": (many, 12.0, 256),
        "components": (regions, 5.0, 256),
        "tiles": (tiles, 5.0, 256),
        "sparse ids": (tiles * 10**12, 7.0, 256),
        "Fortran order": (np.asfortranarray(tiles), 6.0, 256),
    }
    for name, (labels, bar, count) in arrangements.items():
        given = np.asfortranarray(image) if name == "Fortran order" else image
        call = _regions(given, labels, np.linspace(0, 1, count))
        cause = "8 neighbours are compared, as labels break the recursion"
        yield Case(
            name=f"region_curves, {name}",
            call=call,
            points=image.size,
            measure=key,
            bar=bar,
            cause=cause,
        )


def _calls_of_masks(images: Images) -> Iterator[Case]:
    """Numbers and transforms of masks, and maps of coefficients."""
    image = images()
    key = "2-D noise"
    smooth = images(2, "smooth")
    mask = image > 0.5
    number = _ignoring_workers(lambda: ecc.euler_number(mask))
    cause = "reading the image"
    yield Case(
        name="euler_number of a mask",
        call=number,
        points=image.size,
        measure=key,
        bar=0.5,
        cause=cause,
    )
    for kind in ("noise", "smooth"):
        given = images(2, kind)
        call = _ignoring_workers(lambda given=given: ecc.euler_coefficients(given))
        cause = "keys of 4 bytes, and a byte a point to write, on smooth images as on noise"
        yield Case(
            name=f"euler_coefficients, {kind}",
            call=call,
            points=given.size,
            measure=f"2-D {kind}",
            bar=1.3,
            cause=cause,
        )
    blobs = smooth > 0.5
    for name, given in (("C", blobs), ("Fortran", np.asfortranarray(blobs))):
        call = _ignoring_workers(lambda given=given: ecc.euler_transform(given, 32, 64))
        measure = "transform of a mask"
        yield Case(
            name=f"euler_transform, {name} order",
            call=call,
            points=blobs.size,
            measure=measure,
            bar=2.0,
        )


def _regions(image: np.ndarray, labels: np.ndarray, at: np.ndarray) -> Callable[[int], Any]:
    return lambda workers: ecc.region_curves(image, labels, at, workers=workers)


def _ignoring_workers(call: Callable[[], Any]) -> Callable[[int], Any]:
    return lambda _: call()


GROUPS = {
    function.__name__: function
    for function in (thresholds, defaults, dtypes, layouts, small, other_calls)
}


def measures(images: Images) -> dict[str, tuple[Callable[[int], Any], int]]:
    """The calls that others are compared with, and their points."""
    calls = {}
    for ndim in (2, 3):
        for kind in ("noise", "smooth"):
            image = images(ndim, kind)
            calls[f"{ndim}-D {kind}"] = curve(image), image.size
    planes = (np.random.default_rng(2).random((3, images.side, images.side)) * 255).astype(np.uint8)
    calls["uint8 planes"] = curve(planes, np.arange(256), axis=(1, 2)), planes.size
    blobs = images(2, "smooth") > 0.5
    calls["transform of a mask"] = (
        _ignoring_workers(lambda: ecc.euler_transform(blobs, 32, 64)),
        blobs.size,
    )
    return calls
