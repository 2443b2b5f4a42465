"""Euler curves and transforms on one thread against other libraries, with their fastest paths.

    python benchmarks/libraries.py [--quick] [--only SECTION]

Everything is measured in turns in one process, after checking that the values are equal. Writes
benchmarks/results/libraries.json and .md, with the options of cpu.py. pyECT and eucalc are measured
where they are installed: `pip install pyect`; `python setup.py build_ext --inplace` in a clone of
https://github.com/HugoPasse/Eucalc, which has to be on PYTHONPATH.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from time import process_time
from typing import Any

import numpy as np
from peers import PEERS
from report import Row, Timed, in_turns, row, run
from scipy.ndimage import gaussian_filter
from skimage import data
from transform import DIRECTIONS, HEIGHTS, Call, silhouette

import ecc_core as ecc

TURNS = 3
LEVELS = np.arange(256)
ABOUT = """256 thresholds or heights, one thread; times of the processor, which other work on the
machine changes little. cripser and GUDHI compute whole persistence
diagrams, scikit-image one set after the other, and eucalc an exact function of the height, here
evaluated at the heights; "directions only" leaves out its preparation of the image, which serves
any number of directions. For connectivity 2 GUDHI is called by its fast path,
`gudhi.sklearn.cubical_persistence`. pyECT's transform is in the table of transforms."""


def against(image: np.ndarray, case: str) -> Iterator[Row]:
    """Our curve against those of the peers."""
    for connectivity in (1, image.ndim):
        made = {name: make(image, connectivity) for name, make in PEERS.items()}
        calls: dict[str, Any] = {name: call for name, call in made.items() if call}
        curve(image, connectivity)  # This compiles the kernels.
        ours = {"ours": lambda c=connectivity: curve(image, c)}
        times = in_turns(ours | calls, TURNS, process_time)
        for name in calls:
            np.testing.assert_array_equal(times[name].result, times["ours"].result)
            other = (name, times[name])
            yield row(case, connectivity, 1, times["ours"], other, faster=True)


def curve(image: np.ndarray, connectivity: int) -> np.ndarray:
    return ecc.euler_curve(image, LEVELS, connectivity=connectivity, workers=1).values


def images(quick: bool) -> Iterator[Row]:
    """Curves of a photograph."""
    image = data.camera()[:: 8 if quick else 1, :: 8 if quick else 1].copy()
    yield from against(image, f"camera {image.shape[0]}x{image.shape[1]} uint8")


def volumes(quick: bool) -> Iterator[Row]:
    """Curves of a volume."""
    n = 24 if quick else 48
    smooth = gaussian_filter(np.random.default_rng(0).standard_normal((n, n, n)), 2)
    scaled = (smooth - smooth.min()) / np.ptp(smooth) * 255
    yield from against(scaled.astype(np.uint8), f"{n}^3 uint8 sigma 2")


def by_eucalc(mask: np.ndarray, directions: np.ndarray, heights: np.ndarray) -> dict[str, Call]:
    """Return eucalc's calls; a cell has the largest weight of the squares that contain it.

    eucalc's first axis is the last of the array, and its longest axis has the length 1.
    """
    import eucalc

    scale = max(mask.shape)
    turned = [direction[::-1].tolist() for direction in directions]
    low, high = (heights[[0, -1]] / scale).tolist()

    def prepare() -> Any:
        shape = eucalc.EmbeddedComplex(mask.astype(np.float64))
        shape.impose_upper_star_filtration()
        shape.preproc_ect(1)
        return shape

    def evaluate(shape: Any) -> np.ndarray:
        found = [shape.compute_euler_characteristic_transform(u) for u in turned]
        return np.array([one.vectorize(low, high, heights.size) for one in found])

    def prepare_and_evaluate() -> np.ndarray:
        return evaluate(prepare())

    def evaluate_only() -> np.ndarray:
        return evaluate(ready)

    ready = prepare()
    return {"eucalc": prepare_and_evaluate, "eucalc, directions only": evaluate_only}


def transforms(quick: bool) -> Iterator[Row]:
    """Transforms of a silhouette, 64 directions and 256 heights."""
    if find_spec("eucalc") is None:
        print("eucalc is left out: see the head of this file", file=sys.stderr)
        return
    mask = silhouette(quick)
    directions = ecc.sample_directions(DIRECTIONS, 2)
    heights = ecc.euler_transform(mask, directions, HEIGHTS).heights

    def ours() -> np.ndarray:
        return ecc.euler_transform(mask, directions, heights, workers=1).values

    calls = by_eucalc(mask, directions, heights)
    ours()
    times: dict[str, Timed] = in_turns({"ours": ours} | calls, TURNS, process_time)
    for name in calls:
        # Where a vertex is exactly at a height, rounding decides whether it counts.
        same = np.mean(times[name].result == times["ours"].result)
        assert same > 0.99, (name, same)
        other = (f"{name} ({same:.1%} of values equal)", times[name])
        case = f"camera {mask.shape[0]}x{mask.shape[1]}"
        yield row(case, 2, 1, times["ours"], other, faster=True)


SECTIONS = {"images": images, "volumes": volumes, "transforms": transforms}

if __name__ == "__main__":
    run("libraries", "Other libraries on the CPU", ABOUT, SECTIONS)
