"""Curves under dask's distributed scheduler, whose workers may die in mid-run."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import zarr
from dask_helpers import local_cluster
from distributed import Client

import ecc_core as ecc
from ecc_core._blocks import window
from ecc_core._blocks.quantities import Curve
from ecc_core._blocks.window import Work, sums_of_groups
from ecc_core._request.filtration import Filtration
from ecc_core.cli import main

SECONDS = 60
SHAPE, CHUNK = (16, 16, 128), 8


@pytest.fixture
def client():
    with (
        local_cluster() as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def image() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 99, SHAPE, dtype=np.uint8)


def test_a_killed_worker(client, image, tmp_path):
    folder, killed = tmp_path / "read", tmp_path / "killed"
    folder.mkdir()
    third = image.size // CHUNK**3 // 3

    def wait_for_the_kill(block: np.ndarray) -> np.ndarray:
        (folder / os.urandom(8).hex()).touch()
        deadline = time.monotonic() + SECONDS
        while len(tuple(folder.iterdir())) >= third and not killed.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return block

    blocks = da.from_array(image, chunks=CHUNK).map_blocks(wait_for_the_kill, dtype=np.uint8)
    expected = ecc.euler_curve(image, 99, range=(0, 98)).values
    victim = next(iter(client.run(os.getpid).values()))
    future = client.compute(ecc.euler_curve(blocks, 99, range=(0, 98)).values)
    deadline = time.monotonic() + SECONDS
    while len(tuple(folder.iterdir())) < third:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(victim, signal.SIGKILL)
    killed.touch()
    np.testing.assert_array_equal(future.result(timeout=SECONDS), expected)
    # what the worker held was read again
    assert len(tuple(folder.iterdir())) > blocks.npartitions
    assert victim not in client.run(os.getpid).values()


def test_a_worker_killed_between_groups(client, image, tmp_path, monkeypatch):
    """The blocks that it held are read again."""
    monkeypatch.setattr(window, "AHEAD_ON_CLUSTER", 2)
    monkeypatch.setattr(window, "ASKED_ON_CLUSTER", 2)
    folder, killed = str(tmp_path), []

    def read(box: tuple[slice, ...]) -> tuple[np.ndarray]:
        Path(folder, os.urandom(8).hex()).touch()
        return (image[box],)

    def numbers(count: int) -> Iterator[int]:
        for number in range(count):
            if len(tuple(tmp_path.iterdir())) >= 32 and not killed:
                killed.extend(client.run(os.getpid).values())
                os.kill(killed[0], signal.SIGKILL)
            yield number

    at = np.arange(99)
    chunks = tuple((CHUNK,) * (n // CHUNK) for n in (128, 16, 16))
    image = image.transpose(2, 0, 1)
    work = Work(read, chunks, Curve(at, Filtration(3, 3)))
    groups = work.groups(4, side=9)
    address = client.scheduler.address
    sums = dict(sums_of_groups(work, groups, numbers(len(groups)), scheduler=address))
    assert killed
    assert killed[0] not in client.run(os.getpid).values()
    np.testing.assert_array_equal(sum(sums.values()), ecc.euler_curve(image, at).values)


def test_stack_on_a_cluster(client, image, tmp_path):
    path, out = tmp_path / "a.zarr", tmp_path / "curve.csv"
    shape, chunks = image.shape, (CHUNK,) * 3
    zarr.create_array(path, shape=shape, chunks=chunks, dtype=image.dtype)[...] = image
    address = client.scheduler.address
    arguments = ["--thresholds", "99", "--range", "0,98", "--scheduler", address]
    assert main(["stack", str(path), "--out", str(out), "--max-memory", "6K", *arguments]) == 0
    values = [int(line.split(",")[1]) for line in out.read_text().splitlines()[1:]]
    assert values == ecc.euler_curve(image, 99, range=(0, 98)).values.tolist()
