"""Persistence pairs of all dimensions, beside GUDHI and CubicalRipser.

Run with ``python -m benchmarks.persistence_pairs [SIDE ...]`` for volumes, and with ``--planar``
for images in 2-D, for which GUDHI has a way of its own. Times are processor seconds of one thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import cripser
import gudhi
import numpy as np
from gudhi.sklearn.cubical_persistence import CubicalPersistence
from scipy import ndimage

import ecc_core as ecc


def seconds(call: Callable[..., Any], *args: Any, **options: Any) -> float:
    start = time.process_time()
    call(*args, **options)
    return time.process_time() - start


def diagrams(image: Any, connectivity: int) -> None:
    name = "vertices" if connectivity == 1 else "top_dimensional_cells"
    cubical = gudhi.CubicalComplex(**{name: image})
    cubical.compute_persistence(homology_coeff_field=2)


def compare(image: Any, connectivity: int) -> str:
    options = {"connectivity": connectivity, "workers": 1}
    tunnels, every = (
        min(seconds(ecc.persistence_pairs, image, k, **options) for _ in range(2))
        for k in (1, None)
    )
    wide = image.astype(np.float64)
    ripser = cripser.computePH if connectivity == 1 else cripser.computePH_T
    peers = seconds(diagrams, wide, connectivity), seconds(ripser, wide, maxdim=2)
    times = ", ".join(
        f"{name} {peer / every:.1f} times"
        for name, peer in zip(("GUDHI", "cripser"), peers, strict=True)
    )
    return f"tunnels {tunnels:.3f} s, all {every:.3f} s, {times}"


def compare_planar(image: Any) -> str:
    """Pairs and filtered Betti curves; GUDHI's diagrams are those of connectivity 2."""
    wide = image.astype(np.float64)
    least = float(np.ptp(wide)) / 10
    peer = CubicalPersistence([0, 1], input_type="top_dimensional_cells")
    calls: list[Callable[[], Any]] = [
        lambda: ecc.persistence_pairs(image, workers=1),
        lambda: peer.fit_transform([wide]),
        lambda: ecc.betti_curves(image, workers=1),
        lambda: ecc.betti_curves(image, workers=1, min_persistence=least),
    ]
    pairs, gudhi_pairs, plain, filtered = (
        min(times)
        for times in zip(*([seconds(call) for call in calls] for _ in range(5)), strict=True)
    )
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


def main() -> None:
    if sys.argv[1:] == ["--planar"]:
        main_planar()
        return
    ecc.persistence_pairs(np.zeros((4, 4, 4), np.float32), workers=1)
    for side in map(int, sys.argv[1:] or (32, 64, 128)):
        noise = np.random.default_rng(1).random((side, side, side)).astype(np.float32)
        for sigma in (0, 2):
            image = ndimage.gaussian_filter(noise, sigma) if sigma else noise
            for connectivity in (1, 3):
                found = compare(image, connectivity)
                print(f"{side}^3 sigma {sigma} connectivity {connectivity}: {found}", flush=True)


if __name__ == "__main__":
    main()
