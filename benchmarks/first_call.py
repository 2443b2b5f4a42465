"""Seconds of the first call of each public function, with an empty cache of compiled kernels.

Run with ``python -m benchmarks.first_call``. Each function is called in a process of its own,
without the time to import ecc_core.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

CALLS = {
    "euler_curve 2-D uint8": "ecc.euler_curve(image)",
    "euler_curve 3-D float32": "ecc.euler_curve(volume)",
    "euler_curve, exact": 'ecc.euler_curve(image, "exact")',
    "euler_number": "ecc.euler_number(image > 9)",
    "euler_coefficients": "ecc.euler_coefficients(image)",
    "region_curves": "ecc.region_curves(image, labels)",
    "betti_curves 2-D": "ecc.betti_curves(image)",
    "betti_curves 3-D": "ecc.betti_curves(volume)",
    "region_betti_curves": "ecc.region_betti_curves(image, labels)",
    "persistence_pairs": "ecc.persistence_pairs(image, 0)",
    "minkowski_curves": "ecc.minkowski_curves(image)",
    "region_minkowski": "ecc.region_minkowski(image, labels)",
    "euler_surface": "ecc.euler_surface(image, image, 8, 8)",
    "euler_transform": "ecc.euler_transform(image > 9)",
    "euler_transform, weighted": "ecc.euler_transform(image, weighted=True)",
    "region_transforms": "ecc.region_transforms(labels)",
}
PROGRAM = """
import sys, time
import numpy as np
import ecc_core as ecc
image = (np.indices((40, 50)).sum(axis=0) % 17).astype(np.uint8)
volume = np.random.default_rng(0).random((12, 14, 16), dtype=np.float32)
labels = (image > 5).astype(np.int32)
start = time.perf_counter()
exec(sys.argv[1])
print(time.perf_counter() - start)
"""


def first_call(call: str, cache: str) -> float:
    """Seconds of a call in a process with this folder as its cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", PROGRAM, call]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--together", action="store_true", help="keep the cache between functions")
    together = parser.parse_args().together
    total = time.perf_counter()
    with tempfile.TemporaryDirectory() as shared:
        for name, call in CALLS.items():
            with tempfile.TemporaryDirectory() as alone:
                seconds = first_call(call, shared if together else alone)
            print(f"{name:28} {seconds:6.2f} s", flush=True)
    print(f"{'all, with imports':28} {time.perf_counter() - total:6.1f} s")


if __name__ == "__main__":
    main()
