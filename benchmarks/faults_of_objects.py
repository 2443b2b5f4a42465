"""`ecc objects` larger than memory: kills, damaged and shortened shards, and a full disk.

    python -m benchmarks.faults_of_objects --kills 20 --folder /tmp/faults

The volume has 8 million points. Its objects are found by boxes and killed after random times, and
`--resume` goes on; after so many kills the run is completed, and its labels and table must be those
of a run that was never killed, byte by byte. Then a shard is damaged, one is cut off, and the
output is on a file system that is too small (to mount it takes the right to do so): each must end
with one line, and once the fault is repaired, the run must go on from the parts that are kept.
Writes benchmarks/results/faults_of_objects.md.
"""

import argparse
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.objects_on_disk import contents, period
from benchmarks.periodic_volumes import Storage, make
from ecc_core.cli import main as ecc

RESULTS = Path(__file__).parent / "results" / "faults_of_objects.md"
SIDE = 128
PERIODS = (2, 2, 1)
CHUNK = 32
DAMAGED = (1, 1, 0)
"""The index of the damaged shard."""
SHORTEST = 0.2
LONGEST = 4.0
"""The most seconds before a kill."""
FULL = "3M"
"""The size of the file system that is too small."""


def command(volume: Path, out: Path) -> list[str]:
    options = ["--persistence", "30", "--cut", "half", "--max-memory", "24M", "--workers", "2"]
    files = ["--out", f"{out}.zarr", "--table", f"{out}.csv", "--resume"]
    return ["objects", str(volume), *options, *files]


def found(volume: Path, out: Path) -> list[bytes]:
    """Compute objects without a fault; return the contents of the files."""
    assert ecc(command(volume, out)) == 0
    return written(out)


def written(out: Path) -> list[bytes]:
    return [*contents(out.with_suffix(".zarr")), out.with_suffix(".csv").read_bytes()]


def kept(out: Path) -> int:
    """Return the number of arrays that are kept beside an output."""
    return sum(1 for _ in out.parent.glob(f"{out.name}.zarr.parts/**/*.npy"))


def kill(volume: Path, out: Path, kills: int, rng: np.random.Generator) -> list[str]:
    """Start the command and kill it; return a line on what was kept at each kill."""
    context = multiprocessing.get_context("fork")
    states: list[str] = []
    while len(states) < kills:
        process = context.Process(target=ecc, args=(command(volume, out),))
        process.start()
        seconds = float(rng.uniform(SHORTEST, LONGEST))
        process.join(timeout=seconds)
        if process.is_alive():
            process.kill()
            states.append(f"after {seconds:.1f} s, {kept(out)} arrays kept")
        else:  # The run was complete before it was killed.
            shutil.rmtree(f"{out}.zarr")
            Path(f"{out}.csv").unlink()
        process.join()
    return states


def refused(volume: Path, out: Path) -> str:
    """Return the one line with which a run fails."""
    line = [sys.executable, "-m", "ecc_core.cli", *command(volume, out)]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode != 0
    lines = [one for one in done.stderr.splitlines() if one.startswith("ecc: error")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return lines[0]


def with_fault(
    volume: Path, out: Path, fault: Callable[[bytes], bytes | None], expected: list[bytes]
) -> str:
    """Change a shard, let the command fail, repair the shard, and go on; return the message."""
    file = volume.joinpath("c", *map(str, DAMAGED))
    good = file.read_bytes()
    file.unlink()  # The file is a link: other shards must stay as they are.
    bad = fault(good)
    if bad is not None:
        file.write_bytes(bad)
    said = refused(volume, out)
    there = kept(out)
    file.write_bytes(good)
    assert found(volume, out) == expected
    return f"{said} ({there} arrays kept)"


def damaged(good: bytes) -> bytes:
    return good[: len(good) // 3] + bytes(len(good) // 3) + good[2 * len(good) // 3 :]


def cut_off(good: bytes) -> bytes:
    return good[: len(good) // 2]


def on_full_disk(volume: Path, out: Path, expected: list[bytes]) -> str:
    """Write to a file system that is too small, make it larger, and go on; return the message."""
    out.parent.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={FULL}", "tmpfs", str(out.parent)]
    subprocess.run(mount, check=True)
    try:
        said = refused(volume, out)
        there = kept(out)
        subprocess.run(["mount", "-o", "remount,size=256M", str(out.parent)], check=True)
        assert found(volume, out) == expected
    finally:
        subprocess.run(["umount", str(out.parent)], check=True)
    return f"{said} ({there} arrays kept)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("faults"))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    volume = make(
        folder / "volume.zarr",
        period(0, SIDE),
        PERIODS,
        shard=SIDE,
        storage=Storage("auto", CHUNK),
    )
    expected = found(volume, folder / "expected")
    rng = np.random.default_rng(arguments.seed)
    states = kill(volume, folder / "killed", arguments.kills, rng)
    assert found(volume, folder / "killed") == expected
    assert kept(folder / "killed") == 0
    said = {
        "a damaged shard": with_fault(volume, folder / "damaged", damaged, expected),
        "a shard that is cut off": with_fault(volume, folder / "cut", cut_off, expected),
        "a full disk": on_full_disk(volume, folder / "full" / "objects", expected),
    }
    shutil.rmtree(folder)
    lines = [
        "# Faults of objects",
        "",
        f"`python -m benchmarks.faults_of_objects --kills {arguments.kills}`: objects of 8 million",
        "points by boxes. Labels and table of each run that went on are those of a run without a",
        "fault, byte by byte, and nothing else is left.",
        "",
        *(f"- {fault}: `{text.replace(str(folder), 'faults')}`" for fault, text in said.items()),
        *(f"- killed {state}" for state in states),
    ]
    RESULTS.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
