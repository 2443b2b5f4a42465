"""Objects of a volume on disk by boxes, beside its Euler curve and the objects in memory.

    python -m benchmarks.objects_on_disk --folder /tmp/objects

Volumes repeat a period of 250^3 points of uint8: smoothed noise (sigma 2), and the same with the
noise of a camera. They are sharded Zarr, whose shards are links to one. `ecc stack` and
`ecc objects`, by boxes and in memory, run in processes of their own with one thread, by turns; the
outputs of the latter must be equal. The table is benchmarks/results/objects_on_disk.md.
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
PERIODS = (2, 2, 1)
PERSISTENCE = 30
MEMORY = {"stack": "512M", "boxes": "512M", "in memory": "64G"}
LITTLE = "100K"
"""Memory in which a small volume does not fit as a whole."""
NOISE = {"sigma 2": 0, "camera noise": 2}


def period(noise: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    shape = (SIDE,) * 3
    values = ndimage.gaussian_filter(rng.standard_normal(shape, np.float32), 2, mode="wrap")
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
    small = make(out.with_name("warm.zarr"), np.zeros((16,) * 3, np.uint8), (1, 1, 1), 16, tiny)
    for other in ("stack", "boxes"):
        ecc(command(other, small, out.with_name("small"), LITTLE))  # kernels are loaded before
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
    points = SIDE**3 * np.prod(PERIODS)
    lines = [
        "# Objects of volumes on disk",
        "",
        f"Measured by `python -m benchmarks.objects_on_disk`: {points / 1e6:g} million points of",
        f"uint8, shards of {SIDE}^3, one thread, files in the page cache, kernels loaded before.",
        f"Objects last for at least {PERSISTENCE} and are cut at half of their height; labels are",
        "written to OME-Zarr. Labels and tables by boxes and in memory are equal.",
        "",
        "| volume | command | ns a point | MiB | times the curve |",
        "|---|---|---|---|---|",
    ]
    for kind, noise in NOISE.items():
        image = make(folder / f"{kind}.zarr", period(noise), PERIODS)
        curve = 0.0
        for what, limit in MEMORY.items():
            found = measured(what, image, folder / what)
            curve = curve or found["cpu"]
            lines.append(
                f"| {kind} | {what}, --max-memory {limit} | {1e9 * found['cpu'] / points:.1f} "
                f"| {found['memory']:.0f} | {found['cpu'] / curve:.1f} |"
            )
            print(lines[-1], flush=True)
        assert contents(folder / "boxes.zarr") == contents(folder / "in memory.zarr")
        tables = [(folder / f"{name}.csv").read_bytes() for name in ("boxes", "in memory")]
        assert tables[0] == tables[1]
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
