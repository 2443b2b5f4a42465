"""Persistence pairs of all dimensions, beside GUDHI and CubicalRipser.

Run with ``python -m benchmarks.persistence_pairs [SIDE ...]`` for volumes, with ``--planar`` for
images in 2-D, for which GUDHI has a way of its own, with ``--file PATH`` for a volume that nibabel
reads, beside CubicalRipser only, with ``--large SIDE SIGMA`` for one smooth volume on two
workers, and with ``--memory SIDE SIGMA CONNECTIVITY WORKERS`` for the memory that a call takes
(on Linux). Times are processor seconds of one thread unless said otherwise.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import cripser
import gudhi
import nibabel
import numpy as np
from gudhi.sklearn.cubical_persistence import CubicalPersistence
from scipy import ndimage

import ecc_core as ecc
from benchmarks.memory import forget_peak, in_memory

SLAB = 64
"""Slices of a large volume that are computed at once."""


def seconds(call: Callable[..., Any], *args: Any, **options: Any) -> float:
    start = time.process_time()
    call(*args, **options)
    return time.process_time() - start


def diagrams(image: Any, connectivity: int) -> None:
    name = "vertices" if connectivity == 1 else "top_dimensional_cells"
    cubical = gudhi.CubicalComplex(**{name: image})
    cubical.compute_persistence(homology_coeff_field=2)


def compare(image: Any, connectivity: int, turns: int = 2, *, gudhi: bool = True) -> str:
    """Return a row of times of all dimensions, of tunnels alone, and of the peers, by turns."""
    options = {"connectivity": connectivity, "workers": 1}
    wide = image.astype(np.float64)
    ripser = cripser.computePH if connectivity == 1 else cripser.computePH_T
    calls: dict[str, Callable[[], Any]] = {
        "tunnels": lambda: ecc.persistence_pairs(image, 1, **options),
        "all": lambda: ecc.persistence_pairs(image, **options),
        "cripser": lambda: ripser(wide, maxdim=2),
    }
    if gudhi:
        calls["GUDHI"] = lambda: diagrams(wide, connectivity)
    rounds = [[seconds(call) for call in calls.values()] for _ in range(turns)]
    least = map(min, zip(*rounds, strict=True))
    times = dict(zip(calls, least, strict=True))
    tunnels = times.pop("tunnels")
    every = times.pop("all")
    ratios = ", ".join(f"{name} {peer / every:.1f} times" for name, peer in times.items())
    return f"tunnels {tunnels:.3f} s, all {every:.3f} s, {ratios}"


def main_file(path: str) -> None:
    """Print the row of all dimensions of a volume in a file."""
    image = np.asarray(nibabel.load(path).dataobj)
    ecc.persistence_pairs(image[:4, :4, :4], workers=1)
    for connectivity in (1, 3):
        found = compare(image, connectivity, 1, gudhi=False)
        print(f"{image.shape} {image.dtype} connectivity {connectivity}: {found}", flush=True)


def smooth_volume(side: int, sigma: float) -> Any:
    """Return smoothed Gaussian noise as float32, which is computed slab by slab."""
    margin = int(4 * sigma) + 1
    volume = np.empty((side, side, side), np.float32)
    for first in range(0, side, SLAB):
        planes = range(first - margin, min(first + SLAB, side) + margin)
        generators = [np.random.default_rng(z % side) for z in planes]
        noise = np.stack([rng.random((side, side), np.float32) for rng in generators])
        smooth = ndimage.gaussian_filter(noise, sigma, mode="wrap")
        volume[first : first + SLAB] = smooth[margin : len(planes) - margin]
    return volume


def main_large(side: int, sigma: float) -> None:
    """Measure all dimensions of a large volume on two workers, and check them with Betti curves."""
    volume = smooth_volume(side, sigma)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    processor = time.process_time()
    pairs = ecc.persistence_pairs(volume, workers=2)
    wall = time.perf_counter() - start
    processor = time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    thresholds = np.linspace(volume.min(), volume.max(), 256)
    expected = ecc.betti_curves(volume, thresholds, workers=2).values
    np.testing.assert_array_equal(pairs.betti_curves(thresholds).values, expected)
    euler = ecc.euler_curve(volume, thresholds, workers=2).values
    np.testing.assert_array_equal(expected[0] - expected[1] + expected[2], euler)
    per_voxel = 1e9 / volume.size
    print(
        f"{side}^3 sigma {sigma:g} float32, two workers: {wall:.1f} s, {processor:.1f} s of "
        f"processors ({processor * per_voxel:.0f} ns a voxel), {len(pairs.births)} pairs, peak "
        f"memory {peak / 2**20:.2f} GiB, {before / 2**20:.2f} before; Betti and Euler curves agree"
    )


def main_memory(side: int, sigma: float, connectivity: int, workers: int) -> None:
    """Print the most memory that all dimensions take, beside the image."""
    volume = np.random.default_rng(1).random((side, side, side), np.float32)
    volume = ndimage.gaussian_filter(volume, sigma) if sigma else volume
    options = {"connectivity": connectivity, "workers": workers}
    # The first call loads the kernels.
    ecc.persistence_pairs(volume[:24, :24, :24].copy(), **options)
    before = in_memory("VmRSS")
    forget_peak()
    pairs = ecc.persistence_pairs(volume, **options)
    most = in_memory("VmHWM") - before
    arrays = pairs.births, pairs.deaths, pairs.birth_points, pairs.death_points
    result = sum(array.nbytes for array in arrays)
    print(
        f"{side}^3 sigma {sigma:g} float32 connectivity {connectivity}, {workers} workers: at most "
        f"{most / volume.size:.1f} bytes a voxel beyond the image, {result / volume.size:.1f} of "
        f"them the result"
    )


def compare_planar(image: Any) -> str:
    """Return a row of pairs and filtered Betti curves; GUDHI's diagrams are of connectivity 2."""
    wide = image.astype(np.float64)
    least = float(np.ptp(wide)) / 10
    peer = CubicalPersistence([0, 1], input_type="top_dimensional_cells")
    calls: list[Callable[[], Any]] = [
        lambda: ecc.persistence_pairs(image, workers=1),
        lambda: peer.fit_transform([wide]),
        lambda: ecc.betti_curves(image, workers=1),
        lambda: ecc.betti_curves(image, workers=1, min_persistence=least),
    ]
    turns = [[seconds(call) for call in calls] for _ in range(5)]
    pairs, gudhi_pairs, plain, filtered = map(min, zip(*turns, strict=True))
    return (
        f"pairs {1e3 * pairs:.1f} ms, GUDHI {gudhi_pairs / pairs:.1f} times; Betti curves "
        f"{1e3 * plain:.1f} ms, of what lasts {filtered / plain:.1f} times"
    )


def main_planar() -> None:
    for side in (512, 1024, 2048):
        noise = np.random.default_rng(1).random((side, side))
        for sigma in (0, 2):
            image = ndimage.gaussian_filter(noise, sigma) if sigma else noise
            bytes_ = np.interp(image, (image.min(), image.max()), (0, 255)).astype(np.uint8)
            for own in (image.astype(np.float32), bytes_):
                found = compare_planar(own)
                print(f"{side}^2 sigma {sigma} {own.dtype}: {found}", flush=True)


def cases(side: int) -> Iterator[tuple[str, Any]]:
    """Give noise and smooth volumes, float32 and uint8, with names."""
    noise = np.random.default_rng(1).random((side, side, side)).astype(np.float32)
    yield f"{side}^3 noise float32", noise
    for sigma in (2, 4):
        image = ndimage.gaussian_filter(noise, sigma)
        yield f"{side}^3 sigma {sigma} float32", image
        bytes_ = np.interp(image, (image.min(), image.max()), (0, 255)).astype(np.uint8)
        yield f"{side}^3 sigma {sigma} uint8", bytes_


def main() -> None:
    if sys.argv[1:] == ["--planar"]:
        main_planar()
        return
    if sys.argv[1:2] == ["--file"]:
        main_file(sys.argv[2])
        return
    if sys.argv[1:2] == ["--large"]:
        main_large(int(sys.argv[2]), float(sys.argv[3]))
        return
    if sys.argv[1:2] == ["--memory"]:
        main_memory(int(sys.argv[2]), float(sys.argv[3]), *map(int, sys.argv[4:6]))
        return
    ecc.persistence_pairs(np.zeros((4, 4, 4), np.float32), workers=1)
    sides = [int(side) for side in sys.argv[1:]] or [32, 64, 128]
    volumes = [case for side in sides for case in cases(side)]
    for name, image in volumes:
        for connectivity in (1, 3):
            found = compare(image, connectivity)
            print(f"{name} connectivity {connectivity}: {found}", flush=True)


if __name__ == "__main__":
    main()
