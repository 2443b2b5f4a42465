"""Memory of the command `ecc`, for its options.

    python benchmarks/command_memory.py --mib 512

Writes a uint16 volume as a TIFF file of whole pages, with labels and a mask, and runs each command
in a process of its own. Memory is the largest resident size, less that of the same command on a
volume of 8^3 points, which is what Python, the libraries and compiled code take. Rows go to stdout
as Markdown.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tifffile
from scipy import ndimage

SIDE = 720
EVEN = ("--range", "0,6000", "--thresholds", "256")
LIMIT = ("--max-memory", "256M")
RUNS = {
    "curve": [
        (),
        ("--smooth", "1"),
        ("--mask", "mask.tif"),
        ("--labels", "labels.tif"),
        ("--minkowski", "crofton-13"),
        ("--betti",),
        ("--direction", "1,0,0"),
    ],
    "stack": [
        LIMIT,
        (*LIMIT, "--smooth", "1"),
        (*LIMIT, "--mask", "mask.tif"),
        (*LIMIT, "--labels", "labels.tif"),
        (*LIMIT, "--minkowski", "crofton-13"),
        (*LIMIT, "--betti"),
        (*LIMIT, "--betti", "--smooth", "1"),
        (*LIMIT, "--direction", "1,0,0"),
    ],
}
COMMAND = (
    "import sys; from ecc_core.cli import main; code = main(sys.argv[1:]); "
    "print(next(line.split()[1] for line in open('/proc/self/status') if 'VmHWM' in line)); "
    "sys.exit(code)"
)


def make(folder: Path, depth: int, side: int) -> None:
    """Write smoothed noise with that of a camera, half of which is labelled and in the mask."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    smooth = ndimage.gaussian_filter(rng.normal(size=(32, side, side)), 2, mode="wrap")
    smooth = 3000 + 900 * smooth / smooth.std()
    with (
        tifffile.TiffWriter(folder / "image.tif") as image,
        tifffile.TiffWriter(folder / "labels.tif") as labels,
        tifffile.TiffWriter(folder / "mask.tif") as mask,
    ):
        columns = (np.arange(side) // 90 * (np.arange(side) % 90 < 45)).astype(np.uint8)
        for z in range(depth):
            plane = smooth[z % 32] + rng.normal(0, 60, (side, side))
            image.write(plane.clip(0, 6000).astype(np.uint16), contiguous=True)
            labels.write(np.tile(columns, (side, 1)), contiguous=True)
            mask.write(np.tile(columns > 0, (side, 1)).astype(np.uint8), contiguous=True)


def measured(folder: Path, command: str, options: tuple[str, ...]) -> tuple[float, float]:
    """Return MiB and seconds."""
    start = time.perf_counter()
    arguments = [command, "image.tif", "--out", "curve.csv", *EVEN, *options]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout) / 1024, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=512)
    mib = parser.parse_args().mib
    with tempfile.TemporaryDirectory() as temporary:
        small, large = Path(temporary, "small"), Path(temporary, "large")
        make(small, 8, 8)
        make(large, mib * 2**20 // (2 * SIDE**2), SIDE)
        print("| command | memory, MiB | memory / image | wall time, s |\n|---|---|---|---|")
        for command, every in RUNS.items():
            for options in every:
                memory, seconds = measured(large, command, options)
                memory -= measured(small, command, options)[0]
                name = " ".join(("ecc", command, *options))
                row = f"{memory:.0f} | {memory / mib:.2f} | {seconds:.1f}"
                print(f"| `{name}` | {row} |", flush=True)


if __name__ == "__main__":
    main()
