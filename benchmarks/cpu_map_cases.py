"""The calls that `cpu_map.py` and `cpu_gate.py` measure."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

if "--workers" not in sys.argv:  # Calls without `workers` use one thread, too.
    os.environ["NUMBA_NUM_THREADS"] = "1"

import numpy as np
from cpu_map_calls import other_calls
from cpu_map_images import EVEN, Case, Images, curve, ignoring_workers

import ecc_core as ecc

TABLE = "three scalar loads and a store for each point"
ROUNDED = "a check of how close each place is to a whole number"


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


GROUPS = {
    function.__name__: function
    for function in (thresholds, defaults, dtypes, layouts, small, other_calls)
}


def measures(images: Images) -> dict[str, tuple[Callable[[int], Any], int]]:
    """Return the calls that others are compared with, and their points."""
    calls = {}
    for ndim in (2, 3):
        for kind in ("noise", "smooth"):
            image = images(ndim, kind)
            calls[f"{ndim}-D {kind}"] = curve(image), image.size
    planes = (np.random.default_rng(2).random((3, images.side, images.side)) * 255).astype(np.uint8)
    calls["uint8 planes"] = curve(planes, np.arange(256), axis=(1, 2)), planes.size
    blobs = images(2, "smooth") > 0.5
    calls["transform of a mask"] = (
        ignoring_workers(lambda: ecc.euler_transform(blobs, 32, 64)),
        blobs.size,
    )
    return calls
