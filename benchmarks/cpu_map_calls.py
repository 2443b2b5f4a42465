"""Calls other than those of curves of whole images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from cpu_map_images import Case, Images, curve, ignoring_workers
from scipy.ndimage import label

import ecc_core as ecc


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
    number = ignoring_workers(lambda: ecc.euler_number(mask))
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
        call = ignoring_workers(lambda given=given: ecc.euler_coefficients(given))
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
        call = ignoring_workers(lambda given=given: ecc.euler_transform(given, 32, 64))
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
