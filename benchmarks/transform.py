"""Times of the transform on one thread, against NumPy, pyECT, and a curve of the same image.

    python benchmarks/transform.py [--quick] [--only SECTION]

Everything that a ratio compares is measured in one process, in 9 turns, and a time is the least of
all calls, in each turn of those that follow each other for 20 ms; what takes longer than a second
has 3 turns, longer than 4 seconds one. Values are checked to be equal. Writes
benchmarks/results/transform-cpu.json and .md, with the options of cpu.py.
pyECT is measured where it is installed (`pip install pyect`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from report import TURNS, Row, Timed, in_turns, row, run
from scipy.ndimage import gaussian_filter
from skimage import data
from skimage.filters import threshold_otsu

import ecc_core as ecc
from ecc_core._backends.cpu.transforms.regions import find_regions

DIRECTIONS = 64
HEIGHTS = 256
COUNTS = [2**k for k in range(11)]

Call = Callable[[], np.ndarray]


def photograph(quick: bool) -> np.ndarray:
    image = data.camera()
    return image[::4, ::4].copy() if quick else image


def silhouette(quick: bool) -> np.ndarray:
    """Return the dark part of a photograph of 512 x 512 pixels."""
    image = photograph(quick)
    return image < threshold_otsu(image)


def blobs(shape: tuple[int, ...], sigma: float) -> np.ndarray:
    noise = np.random.default_rng(7).standard_normal(shape)
    return gaussian_filter(noise, sigma, mode="wrap") > 0


def masks(quick: bool) -> dict[str, np.ndarray]:
    side, depth = (128, 32) if quick else (512, 128)
    return {
        f"camera {side}x{side}": silhouette(quick),
        f"blobs {side}x{side}": blobs((side, side), 8),
        f"blobs {depth}x{depth}x{depth}": blobs((depth,) * 3, 4),
    }


def by_numpy(mask: np.ndarray, directions: np.ndarray, heights: np.ndarray) -> Call:
    """Return a transform (V) that projects, digitizes and counts every cell."""
    centred = [np.arange(n) - (n - 1) / 2 for n in mask.shape]

    def pairs(cells: np.ndarray, axis: int, join: Any) -> np.ndarray:
        low = (slice(None),) * axis + (slice(-1),)
        high = (slice(None),) * axis + (slice(1, None),)
        return join(cells[low], cells[high])

    def add(present: np.ndarray, height: np.ndarray, axis: int, sign: int, counts: Any) -> None:
        if axis == mask.ndim:
            bins = np.digitize(height[present], heights, right=True)
            counts += sign * np.bincount(bins, minlength=counts.size)
            return
        add(present, height, axis + 1, sign, counts)
        edges = pairs(present, axis, np.logical_and), pairs(height, axis, np.maximum)
        add(*edges, axis + 1, -sign, counts)

    def transform() -> np.ndarray:
        counts = np.zeros((len(directions), heights.size + 1), np.int64)
        for direction, own in zip(directions, counts, strict=True):
            terms = [u * x for u, x in zip(direction, centred, strict=True)]
            height = terms[0]
            for term in terms[1:]:
                height = height[..., None] + term
            add(mask, height, 0, 1, own)
        return np.cumsum(counts[:, :-1], axis=1)

    return transform


def by_pyect(mask: np.ndarray, directions: np.ndarray) -> Call | None:
    """Return the WECT of a complex that is built before, or None without pyECT."""
    if find_spec("pyect") is None or mask.ndim != 2:
        return None
    import pyect
    import torch

    torch.set_num_threads(1)
    complex_ = pyect.weighted_cubical(torch.from_numpy(mask))
    own = np.stack([directions[:, 1], -directions[:, 0]], axis=1)  # (column, minus row)
    module = pyect.WECT(torch.from_numpy(own).float(), HEIGHTS)
    dimensions = list(complex_.dimensions)
    return lambda: module(dimensions).numpy()


def per_orthant(ndim: int) -> np.ndarray:
    """Return one direction in each orthant."""
    signs = np.indices((2,) * ndim).reshape(ndim, -1).T * 2.0 - 1
    return signs * [0.8, 0.6, 0.5][:ndim]


def peers(quick: bool) -> Iterator[Row]:
    """64 directions and 256 heights, against other ways."""
    for case, mask in masks(quick).items():
        directions = ecc.sample_directions(DIRECTIONS, mask.ndim)
        # pyECT's range of heights ends at the largest norm of a vertex of the shape.
        points = np.argwhere(mask) - (np.array(mask.shape) - 1) / 2
        reach = np.linalg.norm(points, axis=1).max()
        heights = np.linspace(-reach, reach, HEIGHTS)
        options: dict[str, Any] = {"connectivity": 1, "workers": 1}
        calls: dict[str, Call] = {
            "ours": lambda mask=mask, a=directions, b=heights, options=options: (
                ecc.euler_transform(mask, a, b, **options).values
            ),
            "numpy": by_numpy(mask, directions, heights),
        }
        if pyect := by_pyect(mask, directions):
            calls["pyECT"] = pyect
        elif mask.ndim == 2:
            print("pyECT is left out: pip install pyect", file=sys.stderr)
        calls["ours"]()
        timed = in_turns(calls, TURNS)
        ours = timed.pop("ours")
        np.testing.assert_array_equal(ours.result, timed["numpy"].result)
        yield row(case, 1, 1, ours, ("numpy", timed["numpy"]), ">= 100", faster=True)
        if "pyECT" in timed:
            # Its heights are float32, so a cell at a height may fall to the other side.
            equal = float((timed["pyECT"].result == ours.result).mean())
            if equal < 0.98:
                raise AssertionError(f"only {equal:.1%} of pyECT's values are ours")
            name = f"pyECT ({equal:.1%} of values equal)"
            yield row(case, 1, 1, ours, (name, timed["pyECT"]), ">= 1000", faster=True)


def parts(quick: bool) -> Iterator[Row]:
    """Finding the critical points, and projecting them."""
    for case, mask in masks(quick).items():
        ndim = mask.ndim
        few = DIRECTIONS
        many = 4 * DIRECTIONS
        for connectivity in (1, ndim):
            options: dict[str, Any] = {"connectivity": connectivity, "workers": 1}

            def transform(
                directions: Any, mask: np.ndarray = mask, options: dict[str, Any] = options
            ) -> Any:
                return ecc.euler_transform(mask, directions, HEIGHTS, **options)

            calls: dict[str, Callable[[], Any]] = {
                "curve": lambda mask=mask, options=options: ecc.euler_curve(mask, **options),
                "orthants": lambda transform=transform, ndim=ndim: transform(per_orthant(ndim)),
                "few": lambda transform=transform, few=few: transform(few),
                "many": lambda transform=transform, many=many: transform(many),
            }
            in_turns(calls, 1)
            timed = in_turns(calls, TURNS)
            curve = ("euler_curve of the mask", timed["curve"])
            found = timed["orthants"]
            points = find_regions(mask.astype(np.int32), np.ones(ndim), connectivity).points
            total = len(points[0])
            name = f"{case}, {total} critical points: all, and one direction an orthant"
            yield row(name, connectivity, 1, found, curve, "<= 4")
            each = total / 2**ndim
            yield nanoseconds(f"{case}: 64 directions", connectivity, timed["few"], each * few)
            more = timed["many"].seconds - timed["few"].seconds
            slope = Timed(more, timed["many"].turns, None)
            bar = "<= 1.5"
            yield nanoseconds(
                f"{case}: more", connectivity, timed=slope, points=each * (many - few), bar=bar
            )


def nanoseconds(case: str, connectivity: int, timed: Timed, points: float, bar: str = "") -> Row:
    name = "ns per critical point and direction"
    value = timed.seconds * 1e9 / max(points, 1)
    spent = timed.seconds * 1e3
    return Row(case, connectivity, 1, spent, name, 0.0, timed.turns, value, bar)


def growth(quick: bool) -> Iterator[Row]:
    """1 to 1024 directions, against one."""
    for case, mask in masks(quick).items():
        calls = {
            f"{count}": lambda mask=mask, count=count: ecc.euler_transform(
                mask, count, HEIGHTS, workers=1
            )
            for count in COUNTS
        }
        in_turns(calls, 1)
        timed = in_turns(calls, TURNS)
        for count in COUNTS:
            name = "one direction", timed["1"]
            yield row(f"{case}, {count} directions", mask.ndim, 1, timed[f"{count}"], name)


def weights(quick: bool) -> Iterator[Row]:
    """Weights, against the mask."""
    image = photograph(quick)
    mask = silhouette(quick)
    side = len(mask)
    smooth = gaussian_filter(np.random.default_rng(7).standard_normal((side, side)), 8, mode="wrap")
    cases = {
        f"camera {side}x{side} uint8": (image, mask),
        f"smooth {side}x{side} float64": (smooth, smooth > 0),
        f"smooth {side}x{side} uint8": (np.uint8(255 * (smooth > 0) * abs(smooth) / 9), smooth > 0),
    }
    for case, (values, shape) in cases.items():
        for connectivity in (1, 2):
            options: dict[str, Any] = {"connectivity": connectivity, "workers": 1}
            calls = {
                "weights": lambda values=values, options=options: ecc.euler_transform(
                    values, DIRECTIONS, HEIGHTS, weighted=True, **options
                ),
                "mask": lambda shape=shape, options=options: ecc.euler_transform(
                    shape, DIRECTIONS, HEIGHTS, **options
                ),
            }
            in_turns(calls, 1)
            timed = in_turns(calls, TURNS)
            yield row(case, connectivity, 1, timed["weights"], ("mask", timed["mask"]), "<= 30")


def ellipses(n: int, count: int) -> np.ndarray:
    """Label image of ellipses of 20 to 42 pixels, one in each cell of a grid."""
    rng = np.random.default_rng(5)
    labels = np.zeros((n, n), np.int32)
    cells = int(np.ceil(np.sqrt(count)))
    side = n // cells
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    for label in range(1, count + 1):
        row_, column = divmod(label - 1, cells)
        turn = rng.uniform(0, np.pi)
        long, short = rng.uniform(side * 0.22, side * 0.47, 2)
        along = x * np.cos(turn) + y * np.sin(turn)
        across = y * np.cos(turn) - x * np.sin(turn)
        inside = (along / long) ** 2 + (across / short) ** 2 < 1
        labels[row_ * side : (row_ + 1) * side, column * side : (column + 1) * side][inside] = label
    return labels


def regions(quick: bool) -> Iterator[Row]:
    """Labelled objects, against one transform of them all as a mask."""
    n, count = (256, 50) if quick else (2048, 2000)
    labels = ellipses(n, count)
    mask = labels > 0
    for heights in (32, 64, 128, 256):
        values = np.empty((count, DIRECTIONS, heights), np.int64)
        calls = {
            "regions": lambda heights=heights: ecc.region_transforms(
                labels, DIRECTIONS, heights, workers=1
            ),
            "mask": lambda heights=heights: ecc.euler_transform(
                mask, DIRECTIONS, heights, workers=1
            ),
            "output": lambda values=values: np.empty_like(values).fill(1),
        }
        in_turns(calls, 1)
        timed = in_turns(calls, TURNS)
        case = f"{count} ellipses in {n}x{n}, {DIRECTIONS} directions, {heights} heights"
        yield row(case, 2, 1, timed["regions"], ("mask", timed["mask"]), "<= 10")
        yield row(f"{case}: np.fill of the output", 2, 1, timed["output"], ("mask", timed["mask"]))


SECTIONS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "peers": peers,
    "parts": parts,
    "growth": growth,
    "weights": weights,
    "regions": regions,
}


ABOUT = """\
All calls of a row are repeated alternately in one process, at least 20 ms each time, and the least
times are compared. `connectivity` 1 is the V-construction, the other value the T-construction.
pyECT is given its complex ready made. Written by `python benchmarks/transform.py`."""

if __name__ == "__main__":
    run("transform-cpu", "Times of the transform on the CPU", ABOUT, SECTIONS)
