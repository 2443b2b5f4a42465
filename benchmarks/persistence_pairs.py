"""Persistence pairs of all dimensions of volumes, beside GUDHI and CubicalRipser.

Run with ``python -m benchmarks.persistence_pairs [SIDE ...]``. Times are processor seconds of one
thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import cripser
import gudhi
import numpy as np
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


def main() -> None:
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
