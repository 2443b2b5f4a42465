"""Times of Betti curves against persistent homology and against labelling the sets.

    python benchmarks/betti.py [--quick] [--only SECTION]

As benchmarks/cpu.py: all in one process, in turns, and checked to be equal. Writes
benchmarks/results/betti.json and betti.md.
"""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from cpu import as_dtype, field, levels
from report import TURNS, Row, in_turns, row, run
from scipy.ndimage import generate_binary_structure, label

import ecc_core as ecc

Call = Callable[[], np.ndarray]


def counted(diagrams: list[np.ndarray], at: np.ndarray) -> np.ndarray:
    """Return Betti numbers at thresholds, from births and deaths."""
    found = []
    for diagram in diagrams:
        births, deaths = np.sort(diagram[:, :2], axis=0).T
        born = np.searchsorted(births, at, "right")
        found.append(born - np.searchsorted(deaths, at, "right"))
    return np.array(found)


def gudhi(image: np.ndarray, connectivity: int, at: np.ndarray) -> Call:
    """Return a call of `CubicalPersistence`, the fastest way of GUDHI for images in 2-D."""
    from gudhi.sklearn.cubical_persistence import CubicalPersistence

    kind = "vertices" if connectivity == 1 else "top_dimensional_cells"
    dimensions = list(range(image.ndim))
    transformer = CubicalPersistence(dimensions, input_type=kind)
    values = [image.astype(np.float64)]

    def curves() -> Any:
        (diagrams,) = transformer.fit_transform(values)
        return counted([np.asarray(diagram) for diagram in diagrams], at)

    return curves


def cripser(image: np.ndarray, connectivity: int, at: np.ndarray) -> Call:
    """Return a call of CubicalRipser."""
    import cripser as library

    values = image.astype(np.float64)
    filtration = "V" if connectivity == 1 else "T"

    def compute() -> np.ndarray:
        found = library.compute_ph(values, filtration=filtration, maxdim=image.ndim - 1)
        dimensions = found[:, 0]
        diagrams = [found[dimensions == k, 1:3] for k in range(image.ndim)]
        return counted(diagrams, at)

    return compute


def labels(image: np.ndarray, connectivity: int, at: np.ndarray) -> Call:
    """Return a call that labels three of the sets with `scipy.ndimage.label`."""
    structure = generate_binary_structure(image.ndim, connectivity)
    sets = [image <= t for t in np.quantile(image, (0.25, 0.5, 0.75))]

    def counts() -> Any:
        found = [label(points, structure) for points in sets]
        return np.array([count for _, count in found])

    return counts


def compared(
    image: np.ndarray,
    case: str,
    at: np.ndarray,
    peers: dict[str, tuple[Callable[..., Call], str]],
    most: str = "",
) -> Iterator[Row]:
    """Yield our times against those of peers, each with its bar, and nanoseconds a point."""
    for connectivity in (1, image.ndim):
        calls: dict[str, Call] = {
            str(workers): lambda workers=workers, connectivity=connectivity: (
                ecc.betti_curves(image, at, connectivity=connectivity, workers=workers).values
            )
            for workers in (1, 2)
        }
        calls |= {name: peer(image, connectivity, at) for name, (peer, _) in peers.items()}
        calls["1"]()
        timed = in_turns(calls, TURNS)
        for name in peers:
            if "label" not in name:
                np.testing.assert_array_equal(timed[name].result, timed["1"].result)
        one = timed["1"]
        for name, (_, bar) in peers.items():
            yield row(case, connectivity, 1, one, (name, timed[name]), bar, faster=True)
        each = one.seconds / image.size * 1e9
        yield Row(
            case, connectivity, 1, one.seconds * 1e3, "ns a point", 0.0, one.turns, each, most
        )
        yield row(case, connectivity, 2, timed["2"], ("one worker", one), ">= 1.7", faster=True)


def images(quick: bool) -> Iterator[Row]:
    """Images against GUDHI."""
    n = 256 if quick else 1024
    for sigma in (0, 2):
        for dtype in ("uint8", "float32"):
            image = as_dtype(field((n, n), sigma), dtype)
            case = f"{n}x{n} {dtype} {f'sigma {sigma}' if sigma else 'noise'}"
            peers = {"gudhi.sklearn": (gudhi, ">= 4")}
            yield from compared(image, case, levels(dtype), peers)


def volumes(quick: bool) -> Iterator[Row]:
    """Volumes against CubicalRipser, and against labelling three sets."""
    n = 48 if quick else 128
    for sigma, faster, most in ((0, ">= 100", "<= 70"), (2, ">= 80", "<= 12")):
        image = as_dtype(field((n, n, n), sigma), "uint8")
        case = f"{n}^3 uint8 {f'sigma {sigma}' if sigma else 'noise'}"
        peers = {"cripser": (cripser, faster), "3 x scipy.ndimage.label": (labels, ">= 1")}
        yield from compared(image, case, at=levels("uint8"), peers=peers, most=most)


def large(quick: bool) -> Iterator[Row]:
    """A large volume."""
    n = 128 if quick else 512
    image = as_dtype(field((n, n, n), 2), "uint8")
    at = levels("uint8")
    calls: dict[str, Any] = {
        str(workers): lambda workers=workers: ecc.betti_curves(image, at, workers=workers)
        for workers in (1, 2)
    }
    in_turns(calls, 1)
    timed = in_turns(calls, 3)
    case = f"{n}^3 uint8 sigma 2"
    seconds = timed["2"].seconds
    yield Row(case, 3, 2, seconds * 1e3, "seconds", 0.0, timed["2"].turns, seconds, "<= 2")
    yield row(case, 3, 2, timed["2"], ("one worker", timed["1"]), ">= 1.7", faster=True)
    call = threading.Thread(target=calls["2"])  # A new thread has no buffers yet.
    tracemalloc.start()
    call.start()
    call.join()
    peak = tracemalloc.get_traced_memory()[1] / image.size
    tracemalloc.stop()
    yield Row(case, 3, 2, None, "extra bytes a point", 0.0, 1, peak, "<= 6")


SECTIONS = {"images": images, "volumes": volumes, "large": large}

ABOUT = """\
All Betti numbers at 256 thresholds. All calls of a row are repeated alternately in one process, at
least 20 ms each time, and the least times are compared. Bars on seconds, nanoseconds and two
workers need an idle machine. Written by `python benchmarks/betti.py`."""

if __name__ == "__main__":
    run("betti", "Betti curves on the CPU", ABOUT, SECTIONS)
