"""Seconds of the first call of each public function in a process.

    python -m benchmarks.first_call

"Empty" is with an empty cache of compiled kernels, "kept" with that of the call before. Times are
those of the processor, without the time to import ecc_core. Writes
benchmarks/results/first-call.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

OUTPUT = Path(__file__).parent / "results" / "first-call.md"
HEAD = "| call | empty | kept |\n|---|---|---|"
CALLS = {
    "euler_curve 2-D float32": "ecc.euler_curve(volume[0])",
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
start = time.process_time()
exec(sys.argv[1])
print(time.process_time() - start)
"""
KEPT_TURNS = 3


def first_call(call: str, cache: str) -> float:
    """Return the seconds of a call in a process with this folder as its cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", PROGRAM, call]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    lines = []
    for name, call in CALLS.items():
        with tempfile.TemporaryDirectory() as cache:
            empty = first_call(call, cache)
            kept = min(first_call(call, cache) for _ in range(KEPT_TURNS))
        lines.append(f"| {name} | {empty:.1f} | {kept:.2f} |")
        print(lines[-1], flush=True)
    about = "Seconds of the processor; written by `python -m benchmarks.first_call`."
    table = "\n".join([HEAD, *lines])
    OUTPUT.write_text(f"# The first call of a process\n\n{about}\n\n{table}\n")


if __name__ == "__main__":
    main()
