"""Objects of a volume on disk by boxes, beside its Euler curve and the objects in memory.

    python -m benchmarks.objects_on_disk --folder /tmp/objects

Volumes repeat a period of 250^3 points of uint8: smoothed noise (sigma 2), and the same with the
noise of a camera. They are sharded Zarr, whose shards are links to one. `ecc stack` and
`ecc objects`, by boxes and in memory, run in processes of their own with one thread, by turns; the
outputs of the latter must be equal. A volume that is four times as large is read by boxes only. The
table is benchmarks/results/objects_on_disk.md.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import ndimage

from benchmarks.periodic_volumes import SHARD, Storage, make
from benchmarks.scale import peak_memory
from ecc_core.cli import main as ecc

RESULTS = Path(__file__).parent / "results" / "objects_on_disk.md"
SIDE = SHARD
SIGMA = 2
PERIODS = (2, 2, 1)
LARGE = (4, 4, 1)
PERSISTENCE = 30
MEMORY = {"stack": "512M", "boxes": "512M", "in memory": "64G"}
LITTLE = "100K"
"""A limit of memory that makes even a small volume be read by boxes."""
NOISE = {"sigma 2": 0, "camera noise": 2}


def period(noise: float, side: int = SIDE, sigma: float = SIGMA) -> np.ndarray:
    rng = np.random.default_rng(0)
    shape = (side,) * 3
    values = ndimage.gaussian_filter(rng.standard_normal(shape, np.float32), sigma, mode="wrap")
    values = 127 + 30 * values / values.std() + noise * rng.standard_normal(shape, np.float32)
    return np.clip(values, 0, 255).astype(np.uint8)


def command(what: str, image: Path, out: Path, memory: str) -> list[str]:
    common = [str(image), "--workers", "1", "--max-memory", memory]
    if what == "stack":
        return ["stack", *common, "--out", f"{out}.csv"]
    files = ["--out", f"{out}.zarr", "--table", f"{out}.csv"]
    return ["objects", *common, "--persistence", str(PERSISTENCE), "--cut", "half", *files]


def measure(what: str, image: Path, out: Path) -> None:
    """Print processor time and the peak of memory of one command."""
    tiny = Storage("auto", 8)
    small = make(
        out.with_name("warm.zarr"),
        np.zeros((16,) * 3, np.uint8),
        periods=(1, 1, 1),
        shard=16,
        storage=tiny,
    )
    for other in ("stack", "boxes"):
        ecc(command(other, small, out.with_name("small"), LITTLE))  # This loads the kernels.
    start = time.process_time()
    assert ecc(command(what, image, out, MEMORY[what])) == 0
    print(json.dumps({"cpu": time.process_time() - start, "memory": peak_memory()}))


def measured(what: str, image: Path, out: Path) -> dict[str, float]:
    line = [sys.executable, "-m", "benchmarks.objects_on_disk", "--measure", what]
    line += ["--image", str(image), "--out", str(out)]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def contents(path: Path) -> Sequence[bytes]:
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    return [file.read_bytes() for file in files if file.name != "zarr.json"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("objects"))
    parser.add_argument("--measure")
    parser.add_argument("--image", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.image, arguments.out)
        return
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Objects of volumes on disk",
        "",
        "Measured by `python -m benchmarks.objects_on_disk`: volumes of uint8, shards of",
        f"{SIDE}^3 points, one thread, files in the page cache, kernels loaded before. Objects",
        f"last for at least {PERSISTENCE} and are cut at half of their height; labels are written",
        "to OME-Zarr. Labels and tables by boxes and in memory are equal.",
        "",
        "| volume | points | command | ns a point | MiB | times the curve |",
        "|---|---|---|---|---|---|",
    ]
    whole = list(MEMORY)
    runs = [(kind, PERIODS, whole) for kind in NOISE]
    runs.append((next(iter(NOISE)), LARGE, [what for what in whole if what != "in memory"]))
    for kind, periods, commands in runs:
        lines += rows(folder, kind, periods, commands)
        RESULTS.write_text("\n".join(lines) + "\n")


def rows(folder: Path, kind: str, periods: Sequence[int], commands: Sequence[str]) -> list[str]:
    """Return the rows of one volume, after comparing the outputs."""
    points = SIDE**3 * int(np.prod(periods))
    name = f"{kind}, {points / 1e6:g}"
    image = make(folder / f"{name}.zarr", period(NOISE[kind]), periods)
    found = {what: measured(what, image, folder / what) for what in commands}
    if "in memory" in commands:
        assert contents(folder / "boxes.zarr") == contents(folder / "in memory.zarr")
        tables = [(folder / f"{what}.csv").read_bytes() for what in ("boxes", "in memory")]
        assert tables[0] == tables[1]
    lines = []
    for what, one in found.items():
        times = one["cpu"] / found["stack"]["cpu"]
        lines.append(
            f"| {kind} | {points / 1e6:g} million | {what}, --max-memory {MEMORY[what]} "
            f"| {1e9 * one['cpu'] / points:.1f} | {one['memory']:.0f} | {times:.1f} |"
        )
        print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    main()
