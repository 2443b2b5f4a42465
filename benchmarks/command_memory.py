"""Memory of the command `ecc`, for its options.

    python benchmarks/command_memory.py --mib 512

Writes a uint16 volume as a TIFF file of whole pages, with labels and a mask, and runs each command
in a process of its own. Memory is the largest resident size, less that of the same command on a
volume of 8^3 points, which is what Python, the libraries and compiled code take. Two tables go to
stdout as Markdown: of commands that read blocks, and of those that hold the whole image.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import tifffile
from scipy import ndimage

SIDE = 720
CURVES = ("--out", "curve.csv", "--range", "0,6000", "--thresholds", "256")
LIMIT = ("--max-memory", "320M")
BY_BLOCKS = [
    (),
    ("--smooth", "1"),
    ("--mask", "mask.tif"),
    ("--labels", "labels.tif"),
    ("--boundary", "periodic"),
    ("--direction", "1,0,0"),
    ("--minkowski", "crofton-13"),
    ("--minkowski", "crofton-13", "--density", "--boundary", "half-open"),
    ("--betti",),
    ("--betti", "--smooth", "1"),
    ("--betti", "--minkowski", "crofton-13"),
    ("--components",),
]
"""Options of curves with which the image is read in blocks."""
WHOLE = [
    ("curve", "image.tif", "--out", "curve.csv", "--thresholds", "exact"),
    ("curve", "image.tif", *CURVES, "--betti", "--labels", "labels.tif"),
    ("curve", "image.tif", *CURVES, "--minkowski", "crofton-13", "--labels", "labels.tif"),
    ("curve", "image.tif", *CURVES, "--betti", "--boundary", "periodic"),
    ("curve", "image.tif", *CURVES, "--betti", "--persistence", "300"),
    ("objects", "image.tif", "--table", "objects.csv", "--persistence", "300"),
    ("surface", "image.tif", "image.tif", "--out", "surface.npz"),
    ("transform", "image.tif", "--out", "transform.npz", "--threshold", "3000"),
    ("transform", "labels.tif", "--out", "transform.npz", "--labels"),
]
"""Commands that hold the whole image, or take long."""
COMMAND = (
    "import sys; from ecc_core.cli import main; code = main(sys.argv[1:]); "
    "print(next(line.split()[1] for line in open('/proc/self/status') if 'VmHWM' in line)); "
    "sys.exit(code)"
)


def make(folder: Path, depth: int, side: int) -> None:
    """Write smoothed noise with camera noise, and labels and a mask of half of its points."""
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


def measured(folder: Path, arguments: tuple[str, ...]) -> tuple[float, float]:
    """Return the memory of a command in MiB, and its time in seconds."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout.split()[-1]) / 1024, time.perf_counter() - start


def report(small: Path, large: Path, mib: float, runs: Iterable[tuple[str, ...]]) -> None:
    """Print the table of some commands."""
    print("| command | memory, MiB | memory / image | wall time, s |\n|---|---|---|---|")
    for arguments in runs:
        memory, seconds = measured(large, arguments)
        memory -= measured(small, arguments)[0]
        name = f"ecc {' '.join(arguments).replace(' '.join(CURVES), '')}".replace("  ", " ").strip()
        print(f"| `{name}` | {memory:.0f} | {memory / mib:.2f} | {seconds:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=512, help="of the image that is cut in blocks")
    parser.add_argument("--whole-mib", type=int, default=128, help="of the one that is not")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        small = Path(temporary, "small")
        make(small, 8, 8)
        blocks = [("curve", "image.tif", *CURVES, *options) for options in BY_BLOCKS]
        blocks += [("stack", "image.tif", *CURVES, *LIMIT, *options) for options in BY_BLOCKS]
        blocks += [("batch", "image.tif", *CURVES, *LIMIT, *options) for options in BY_BLOCKS]
        for mib, runs in ((given.mib, blocks), (given.whole_mib, WHOLE)):
            large = Path(temporary, str(mib))
            make(large, mib * 2**20 // (2 * SIDE**2), SIDE)
            print(f"\n{mib} MiB\n")
            report(small, large, mib, runs)


if __name__ == "__main__":
    main()
