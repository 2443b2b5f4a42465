"""`ecc stack --resume`: nothing done is lost, also if a cluster is; nothing outdated is used."""

import itertools
import os
import threading
import time
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from dask_helpers import local_cluster
from io_helpers import columns, write_zarr
from stack_helpers import LEVELS, assert_curve, failing_after, kill_after, noise

import ecc_core as ecc
from ecc_core._io.parts import Parts
from ecc_core._io.stored import StoredImage
from ecc_core.cli import main

KILLS = 20
BLOCKS = 192
"""The number of blocks, each a chunk; 16 of them are a group."""


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "curve.csv"


@pytest.fixture
def large(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, np.ndarray]:
    """An image of `BLOCKS` blocks, or more: --max-memory makes them small."""
    image = noise(getattr(request, "param", 24), 128, 32)
    return write_zarr(tmp_path / "large.zarr", image, chunks=(8, 8, 8)), image


@pytest.fixture
def arguments(large: Any, out: Path) -> list[str]:
    small = ["--max-memory", "6K", "--workers", "2", "--thresholds", LEVELS]  # Blocks are chunks.
    return ["stack", str(large[0]), "--out", str(out), "--resume", *small]


def parts_of(out: Path) -> list[Path]:
    """Parts in the order of their numbers."""
    found = out.parent.glob(f"{out.name}.parts/*.npy")
    numbers = {path: path.name.split("-")[1] for path in found}
    return sorted(numbers, key=lambda path: int(numbers[path]))


@pytest.mark.parametrize("large", [96], indirect=True)  # There are more parts than runs complete.
def test_killed_at_any_moment(out, arguments, resume):
    """The last run gives the right numbers, and no run computes a part again that is kept."""
    rng = np.random.default_rng(0)
    done: dict[str, int] = {}
    for _ in range(KILLS):
        wanted = int(rng.integers(0, 2))
        delay = float(rng.uniform(0, 0.02))
        kill_after(arguments, wanted, most=2, preload=["dask.threaded"], delay=delay)
        now = {file.name: file.stat().st_mtime_ns for file in parts_of(out)}
        assert done.items() <= now.items()
        done = now
    assert len(done) >= 5
    resume()
    assert not out.with_name("curve.csv.parts").exists()


@pytest.fixture
def resume(large: Any, arguments: list[str], out: Path) -> Any:
    """Run the command; the table must be that of the image, or of what the image has become."""

    def check(image: np.ndarray = large[1]) -> None:
        assert main(arguments) == 0
        assert_curve(columns(out), image)

    return check


@pytest.fixture
def interrupted(arguments: list[str], out: Path, capsys: Any) -> Any:
    """Leave 7 parts behind, as on a disk that is full."""
    with failing_after(7, OSError(28, os.strerror(28), str(out))):
        assert main(arguments) == 2
    assert len(parts_of(out)) == 7
    return capsys.readouterr().err


def test_a_full_disk(interrupted, out, blocks_read, resume):
    """Parts on disk are not read again, whatever the clock of the machine that wrote them said."""
    assert interrupted == f"ecc: error: {out}: No space left on device\n"
    assert not out.exists()
    for part, years in zip(parts_of(out), itertools.cycle((-20, 20))):
        then = time.time() + years * 365 * 86_400
        os.utime(part, (then, then))
    resume()
    assert len(set(blocks_read)) == BLOCKS - 7 * 16


def test_a_disk_that_is_full_at_the_last_sum(arguments, out, capsys):
    """It is written after the last block has been read, and its error is not lost."""
    groups = BLOCKS // 16
    with failing_after(groups - 1, OSError(28, os.strerror(28), str(out))):
        assert main(arguments) == 2
    assert capsys.readouterr().err == f"ecc: error: {out}: No space left on device\n"
    assert not out.exists()
    assert len(parts_of(out)) == groups - 1


def test_blocks_do_not_wait_for_the_disk(tmp_path, out, monkeypatch):
    """The first sum is not on the disk before the next group of blocks has been read."""
    image = noise(8 * 40, 8, 8)
    path = write_zarr(tmp_path / "row.zarr", image, chunks=(8, 8, 8))
    keep = Parts.keep
    read_box = StoredImage.read_box
    is_read = threading.Event()

    def read_and_tell(self, box):
        if box[0].start == 8 * 28:  # The block is in the second group of 16.
            is_read.set()
        return read_box(self, box)

    def keep_later(self, *part):
        assert is_read.wait(timeout=20)
        keep(self, *part)

    monkeypatch.setattr(StoredImage, "read_box", read_and_tell)
    monkeypatch.setattr(Parts, "keep", keep_later)
    small = ["--max-memory", "4K", "--workers", "1", "--thresholds", LEVELS]
    assert main(["stack", str(path), "--out", str(out), *small]) == 0
    assert_curve(columns(out), image)


def test_damaged_parts_and_files_of_others(interrupted, out, resume):
    first, second, third, *_ = parts_of(out)
    first.write_bytes(first.read_bytes()[:100])
    np.save(second, np.zeros(3))
    content = bytearray(third.read_bytes())
    content[-30] ^= 4  # This changes one of the last numbers.
    third.write_bytes(content)
    folder = out.with_name("curve.csv.parts")
    job = parts_of(out)[0].name.split("-")[0]
    foreign = {f"{job}-x-y.npy", "notes.txt", "1-2-3.npy"}
    for name in foreign:
        (folder / name).write_text("not ours")
    resume()
    assert {path.name for path in folder.iterdir()} == foreign


def test_one_run_at_a_time(interrupted, arguments, out, capsys, resume):
    parts = Parts(out.with_name("curve.csv.parts"))
    before = parts_of(out)
    with parts.locked():
        message = "in use by another run for the same output"
        assert main(arguments) == 2
        assert capsys.readouterr().err == f"ecc: error: {parts.folder}: {message}\n"
        assert main([a for a in arguments if a != "--resume"]) == 2
        assert capsys.readouterr().err == f"ecc: error: {parts.folder}: {message}\n"
    assert parts_of(out) == before
    resume()


def test_other_settings(interrupted, arguments, large, out):
    assert main([*arguments, "--superlevel"]) == 0
    assert_curve(columns(out), large[1], superlevel=True)


def test_without_resume(interrupted, arguments, large, out):
    for part in parts_of(out):
        content = np.load(part)
        parts = Parts(part.parent, part.name.split("-")[0])
        parts.keep(*part.stem.split("-")[1:], content + 1)
    assert main([a for a in arguments if a != "--resume"]) == 0
    assert_curve(columns(out), large[1])


@pytest.mark.parametrize("removed", [False, True])
def test_changed_points(interrupted, large, blocks_read, resume, removed):
    """Groups whose files have changed or are gone are computed again, and no others."""
    path, image = large
    image[:8, :8, :8] = 0 if removed else 8 - image[:8, :8, :8]
    changed = write_zarr(path.with_name("changed.zarr"), image, chunks=(8, 8, 8))
    (path / "c/0/0/0").unlink()
    if not removed:
        (changed / "c/0/0/0").rename(path / "c/0/0/0")
    resume(image)
    assert (0, 0, 0) in blocks_read
    assert len(set(blocks_read)) <= BLOCKS - 7 * 16 + 16 + 32  # Blocks beside it are read, too.


def test_a_changed_file(tmp_path, monkeypatch, out):
    """The parts of an image in a single file all depend on it."""
    path = tmp_path / "a.npy"
    image = noise(160, 16, 16)
    np.save(path, image)
    command = ["stack", str(path), "--out", str(out), "--resume", "--thresholds", LEVELS]
    command += ["--max-memory", "6K", "--workers", "2"]
    monkeypatch.setattr(Parts, "clear", lambda _: None)
    assert main(command) == 0
    assert len(parts_of(out)) > 1
    np.save(path, 8 - image)
    assert main(command) == 0
    assert_curve(columns(out), 8 - image)


@pytest.mark.parametrize("large", [48], indirect=True)  # There are groups that it is not part of.
def test_a_corrupt_chunk_spoils_its_groups_only(large, out, arguments, blocks_read, refuse, resume):
    path, image = large
    chunk = path / "c/5/4/3"
    good = chunk.read_bytes()
    chunk.write_bytes(b"damaged")
    start = f"ecc: error: {path}: cannot read chunk [40:48, 32:40, 24:32]: "
    assert refuse(*arguments).startswith(start)
    # Of 24 parts: the chunk and its earlier neighbours are in 4 to 8 groups.
    assert len(parts_of(out)) >= 16
    chunk.write_bytes(good)
    blocks_read.clear()
    resume(image)
    assert len(set(blocks_read)) < 250


def test_regions(tmp_path, out, arguments, large):
    labels = np.indices(large[1].shape).sum(axis=0).astype(np.uint16) // 40
    path = write_zarr(tmp_path / "labels.zarr", labels, chunks=(16, 16, 16))
    command = [*arguments, "--labels", str(path), "--max-memory", "20K"]
    with failing_after(4, OSError(28, os.strerror(28), str(out))):
        assert main(command) == 2
    assert main(command) == 0
    ids, _, values = ecc.region_curves(large[1], labels, np.arange(9))
    table = columns(out)
    assert table["label"] == np.repeat(ids, 9).tolist()
    assert table["euler_number"] == values.ravel().tolist()


def test_no_cluster(tmp_path, image, refuse):
    path = write_zarr(tmp_path / "a.zarr", image)
    command = ["stack", path, "--out", tmp_path / "a.csv", "--scheduler", "tcp://127.0.0.1:1"]
    with dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}):
        assert "127.0.0.1:1" in refuse(*command)


def test_a_lost_cluster(tmp_path, capsys, monkeypatch):
    """Parts that are done stay, and the log of dask is not shown."""
    path = write_zarr(tmp_path / "a.zarr", noise(40, 40, 40), chunks=(8, 8, 8))
    out = tmp_path / "curve.csv"
    cluster = local_cluster(n_workers=1, processes=False)
    keep = Parts.keep

    def lose(self, *arguments):
        keep(self, *arguments)
        monkeypatch.setattr(Parts, "keep", keep)
        dask.config.set({"distributed.comm.timeouts.connect": "0.2s"})
        cluster.close()

    monkeypatch.setattr(Parts, "keep", lose)
    address = cluster.scheduler_address
    command = ["stack", str(path), "--out", str(out), "--max-memory", "6K", "--workers", "2"]
    with dask.config.set({"distributed.comm.timeouts.connect": "60s"}):
        assert main([*command, "--range", "0,8", "--scheduler", address]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"ecc: error: --scheduler {address}: the cluster was lost")
    assert message.count("\n") == 1
    assert not out.exists()
    assert list(tmp_path.glob("curve.csv.parts/*.npy"))
    assert main([*command, "--range", "0,8", "--resume"]) == 0
