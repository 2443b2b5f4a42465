"""Make random calls on a CUDA device and on the host, and compare them bit by bit.

    python tools/device_calls.py [--calls 20000] [--seed 0] [--seconds 600]

Calls are of `persistence_pairs`, `betti_curves`, `region_betti_curves`, `component_curves` and
`persistent_regions`, of small images of all dtypes with ties, masks and NaN, closed and periodic,
of `region_curves`, and of `simplicial_transform` of small complexes.
Prints the number and the arguments of calls that differ, and how many there were of each function.
The exit code is 1 if any differs. Several seeds can run at a time.
"""

from __future__ import annotations

import argparse
import collections
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import cupy
import numpy as np

import ecc_core as ecc
from ecc_core.errors import BackendError

LONGEST = {1: 60, 2: 24, 3: 12}
"""The most points along the axes of images of 1, 2 and 3 axes."""
DTYPES = ("bool", "u1", "i1", "u2", "i2", "i4", "i8", "f2", "f4", "f8")
MOST_SHOWN = 20


class DeviceCall(NamedTuple):
    """A function, and arguments on the host; arrays among them go to the device."""

    function: Callable[..., Any]
    given: tuple[Any, ...]
    options: dict[str, Any]


def call_of(seed: int, number: int) -> DeviceCall:
    """Return one of the calls."""
    rng = np.random.default_rng([seed, number])
    ndim = int(rng.integers(1, 4))
    shape = tuple(_length(rng, ndim) for _ in range(ndim))
    levels = int(rng.choice([1, 2, 3, 9, 120]))
    dtype = np.dtype(rng.choice(DTYPES))
    image = rng.integers(0, levels, shape).astype(dtype)
    words = ["closed", "periodic"]
    options: dict[str, Any] = {
        "connectivity": int(rng.choice([1, ndim])),
        "superlevel": bool(rng.random() < 0.5),
        "boundary": tuple(str(word) for word in rng.choice(words, ndim)),
    }
    at = np.unique(rng.integers(-1, levels + 1, 6)).astype(float)
    least = float(rng.choice([0, 1, 2, levels / 3]))
    names = ["pairs", "betti", "of regions", "components", "regions", "curves", "complex"]
    name = str(rng.choice(names))
    if name == "complex":
        return _of_complex(rng)
    if name == "curves":
        most = int(rng.choice([1, 3, 40, 5000]))
        labels = rng.integers(0, most + 1, shape)
        del options["boundary"]
        return DeviceCall(ecc.region_curves, (image, labels, at), options)
    if name == "of regions":
        labels = rng.integers(0, 4, shape)
        labels[..., : int(rng.integers(0, shape[-1] + 1))] = 9
        options["min_persistence"] = least
        return DeviceCall(ecc.region_betti_curves, (image, labels, at), options)
    if dtype.kind == "f" and rng.random() < 0.4:
        image[rng.random(shape) < 0.1] = np.nan
        options["nan"] = "omit" if rng.random() < 0.9 else "raise"
    if rng.random() < 0.5:
        options["mask"] = rng.random(shape) < rng.choice([0.5, 0.9, 1.0])
    if name == "pairs":
        return DeviceCall(ecc.persistence_pairs, (image,), options | {"min_persistence": least})
    if name == "betti":
        levels_wanted = "exact" if rng.random() < 0.3 else at
        options["min_persistence"] = least
        return DeviceCall(ecc.betti_curves, (image, levels_wanted), options)
    if name == "components":
        if rng.random() < 0.4:
            options["inlet"], options["outlet"] = rng.random((2, *shape)) < 0.2
        return DeviceCall(ecc.component_curves, (image, at), options)
    if rng.random() < 0.4:
        options["rel_height"] = float(rng.random())
    if rng.random() < 0.4:
        options["threshold"] = float(rng.integers(0, levels + 1))
    return DeviceCall(ecc.persistent_regions, (image, least), options)


def _of_complex(rng: np.random.Generator) -> DeviceCall:
    """Return a call for a complex that is listed, which sometimes lacks an edge."""
    count = int(rng.integers(4, 40))
    axes = int(rng.integers(1, 4))
    points = rng.integers(-4, 5, (count, axes)).astype(rng.choice(["f4", "f8"]))
    drawn = [rng.permutation(count)[:3] for _ in range(int(rng.integers(1, 60)))]
    triangles = np.unique(np.sort(drawn, axis=1), axis=0)
    faces = [triangles[:, pair] for pair in ([0, 1], [0, 2], [1, 2])]
    edges = np.unique(np.concatenate(faces), axis=0)
    if rng.random() < 0.1:
        edges = np.delete(edges, int(rng.integers(len(edges))), axis=0)
    directions = rng.normal(size=(int(rng.choice([1, 3, 40, 70])), axes))
    heights = np.unique(rng.integers(-9, 10, 12)) / 2
    given = points, [rng.permutation(edges), triangles], directions, heights
    return DeviceCall(ecc.simplicial_transform, given, {})


def _length(rng: np.random.Generator, ndim: int) -> int:
    """Return the points along an axis; often few, so that neighbours on both sides coincide."""
    if rng.random() < 0.25:
        return int(rng.integers(1, 4))
    return int(rng.integers(1, LONGEST[ndim]))


def there(value: Any) -> Any:
    """Return an argument with its arrays on the device, but for thresholds, which are float64."""
    if isinstance(value, list):
        return [cupy.asarray(part) for part in value]
    is_image = isinstance(value, np.ndarray) and value.dtype != np.float64
    return cupy.asarray(value) if is_image else value


def answer(call: DeviceCall, *, on_device: bool) -> Any:
    """Return the arrays of a result on the host, or the type and message of an error."""
    given = list(call.given)
    options = dict(call.options)
    if on_device:
        given = [cupy.asarray(given[0]), *map(there, given[1:])]
        options = {name: there(value) for name, value in options.items()}
    try:
        found = call.function(*given, **options)
    except (BackendError, TypeError, ValueError) as error:
        return type(error).__name__, str(error)
    return [part.get() if isinstance(part, cupy.ndarray) else np.asarray(part) for part in found]


def are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) or isinstance(other, tuple):
        return bool(one == other)
    pairs = zip(one, other, strict=True)
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20_000, help="how many calls")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to end")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    end = time.monotonic() + arguments.seconds
    counts: collections.Counter[str] = collections.Counter()
    for number in range(arguments.calls):
        if time.monotonic() > end:
            break
        call = call_of(arguments.seed, number)
        known = answer(call, on_device=False)
        counts[call.function.__name__] += 1
        counts["errors"] += isinstance(known, tuple)
        if are_equal(known, answer(call, on_device=True)):
            continue
        counts["different"] += 1
        if counts["different"] <= MOST_SHOWN:
            print(number, call.function.__name__, call.given[0].shape, call.options, flush=True)
    print(dict(counts))
    raise SystemExit(counts["different"] > 0)


if __name__ == "__main__":
    main()
