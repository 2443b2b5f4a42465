"""Parts of `ecc stack` that are killed, of damaged files, and two jobs for one part.

    python -m benchmarks.faults --kills 20 --folder /tmp/scale

The volume of 10^9 points repeats the period of `benchmarks.scale`. Parts are computed in any order,
and killed after random times until there were so many kills; then all are completed. Before, a
shard is damaged, whose part must fail and name it; and a second job for the same part must be
refused. The table must be the truth, and nothing but the parts may be left. Writes
benchmarks/results/faults.md.
"""

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.periodic_volumes import STORAGES, make
from benchmarks.scale import assert_true, known, prepared

PARTS = 4
RESULTS = Path(__file__).parent / "results" / "faults.md"
LONGEST = 4.0
"""The most seconds before a kill."""
SIDE = 125
"""Points along the sides of shards, each of which is a block."""
DAMAGED = (7, 7, 7)
"""The index of the damaged shard."""
SMALL = ["--max-memory", "12M", "--workers", "1"]
"""Options with which a part has several groups of blocks."""


def command(volume: Path, number: int, out: Path) -> list[str]:
    part = ["--part", f"{number}/{PARTS}", "--out", str(out), "--resume", *SMALL]
    return [sys.executable, "-m", "ecc_core.cli", "stack", str(volume), *part]


def kill(volume: Path, kept: Path, kills: int, rng: np.random.Generator) -> list[str]:
    """Start parts and kill them; return a line on what each had written."""
    states = []
    while len(states) < kills:
        number = int(rng.integers(1, PARTS + 1))
        out = kept / f"part-{number}.npz"
        process = subprocess.Popen(command(volume, number, out), stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=float(rng.uniform(0.5, LONGEST)))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            groups = len(list(kept.glob("*.parts/*.npy")))
            states.append(f"part {number}, {groups} groups of blocks kept")
        out.unlink(missing_ok=True)  # A completed part has nothing to be killed.
    return states


def damaged(volume: Path, kept: Path) -> str:
    """Damage a shard, compute its part, and repair the shard; return the message of the command."""
    file = volume.joinpath("c", *map(str, DAMAGED))
    good = file.read_bytes()
    file.unlink()  # The file is a link: other shards must stay as they are.
    file.write_bytes(b"damaged" + good[7:])  # This is the header of a chunk.
    out = kept / f"part-{PARTS}.npz"
    done = subprocess.run(command(volume, PARTS, out), capture_output=True, text=True, check=False)
    file.write_bytes(good)
    assert done.returncode == 2
    assert not out.exists()
    return done.stderr.strip()


def refused(volume: Path, kept: Path) -> str:
    """Start a part twice; return the message of the second job."""
    out = kept / "part-1.npz"
    first = subprocess.Popen(command(volume, 1, out), stderr=subprocess.DEVNULL)
    while not (kept / "part-1.npz.parts").exists() and first.poll() is None:
        time.sleep(0.01)
    second = subprocess.run(command(volume, 1, out), capture_output=True, text=True, check=False)
    first.wait()
    assert (first.returncode, second.returncode) == (0, 2)
    return second.stderr.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=Path("scale"))
    arguments = parser.parse_args()
    _, periods = prepared(arguments.folder, "1e9")
    kept = arguments.folder / "faults"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    period = np.load(arguments.folder / "period.npy")
    volume = make(
        kept / "volume.zarr", period, periods=periods, shard=SIDE, storage=STORAGES["zstd"]
    )
    rng = np.random.default_rng(0)
    said = [refused(volume, kept)]
    (kept / "part-1.npz").unlink()
    said.append(damaged(volume, kept))
    states = kill(volume, kept, arguments.kills, rng)
    for number in range(1, PARTS + 1):
        subprocess.run(command(volume, number, kept / f"part-{number}.npz"), check=True)
    parts = sorted(kept.glob("part-*.npz"))
    merge = ["merge", *map(str, parts), "--out", str(kept / "curve.csv")]
    subprocess.run([sys.executable, "-m", "ecc_core.cli", *merge], check=True)
    assert_true(kept / "curve.csv", known(arguments.folder, "1e9", "closed"))
    left = sorted(path.name for path in kept.iterdir())
    assert left == ["curve.csv", *(path.name for path in parts), "volume.zarr"]
    shutil.rmtree(kept)
    said = [text.replace(str(arguments.folder), "scale") for text in said]
    lines = [
        "# Faults",
        "",
        f"`python -m benchmarks.faults --kills {arguments.kills}`: {PARTS} parts of a volume of",
        "10^9 points. The table is the truth, and nothing but the parts is left.",
        "",
        f"- second job for the same part: `{said[0]}`",
        f"- a damaged shard: `{said[1]}`",
        *(f"- killed: {state}" for state in states),
    ]
    RESULTS.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
