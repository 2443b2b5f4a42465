"""Curves under dask's distributed scheduler, whose workers may die in mid-run."""

import os
import signal
import time

import dask.array as da
import numpy as np
import pytest
from dask_helpers import local_cluster
from distributed import Client
from io_helpers import rows_of, write_zarr

import ecc_core as ecc
from ecc_core._blocks import window
from ecc_core._io.parts import Parts
from ecc_core.cli import main

SECONDS = 60
SHAPE = (16, 16, 128)
CHUNK = 8


@pytest.fixture
def client():
    with local_cluster() as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def image() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 99, SHAPE, dtype=np.uint8)


def curve(image):
    return ecc.euler_curve(image, 99, range=(0, 98)).values


def functionals_of_regions(image):
    """Return functionals of regions that extend over most blocks."""
    labels = image // 25
    return ecc.region_minkowski(image, labels, 20, range=(0, 98)).values


def births_of_components(image):
    return ecc.persistence_pairs(image, 0).birth_points


def deaths_of_tunnels(image):
    return ecc.persistence_pairs(image, 1).death_points


COMPUTATIONS = [curve, functionals_of_regions, births_of_components, deaths_of_tunnels]


@pytest.mark.slow  # `make test` kills a worker of `ecc batch`, in tests/cli/stack/test_plates.py.
@pytest.mark.parametrize("compute", COMPUTATIONS)
def test_a_killed_worker(client, image, tmp_path, compute):
    folder = tmp_path / "read"
    killed = tmp_path / "killed"
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
    expected = compute(image)
    victim = next(iter(client.run(os.getpid).values()))
    future = client.compute(compute(blocks))
    deadline = time.monotonic() + SECONDS
    while len(tuple(folder.iterdir())) < third:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(victim, signal.SIGKILL)
    killed.touch()
    np.testing.assert_array_equal(future.result(timeout=SECONDS), expected)
    # What the worker held was read again.
    assert len(tuple(folder.iterdir())) > blocks.npartitions
    assert victim not in client.run(os.getpid).values()


@pytest.mark.slow  # Half a minute is spent waiting for another worker.
def test_a_worker_killed_while_a_stack_is_computed(client, image, tmp_path, monkeypatch):
    """The blocks that it held are read again."""
    monkeypatch.setattr(window, "AHEAD_A_THREAD_OF_CLUSTER", 2)
    monkeypatch.setattr(window, "MOST_SHARES_A_THREAD_OF_CLUSTER", 2)
    keep = Parts.keep
    killed = []

    def keep_and_kill(self, *part):
        keep(self, *part)
        if not killed:
            killed.extend(client.run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(Parts, "keep", keep_and_kill)
    path = write_zarr(tmp_path / "a.zarr", image, chunks=(CHUNK,) * 3)
    out = tmp_path / "curve.csv"
    arguments = ["--thresholds", "99", "--range", "0,98", "--max-memory", "6K"]
    arguments += ["--out", str(out), "--scheduler", client.scheduler.address]
    assert main(["stack", str(path), *arguments]) == 0
    assert killed[0] not in client.run(os.getpid).values()
    values = [int(row["euler_number"]) for row in rows_of(out)]
    assert values == ecc.euler_curve(image, 99, range=(0, 98)).values.tolist()


def test_regions_of_chunks_that_workers_hold(client):
    """One task asks the workers for chunks of an image that is persisted, and of its mask."""
    rng = np.random.default_rng(1)
    values = rng.integers(0, 250, (12, 15), np.uint8)
    shown = rng.random(values.shape) < 0.9
    held, mask = client.persist([da.from_array(array, chunks=5) for array in (values, shown)])
    regions = ecc.persistent_regions(held, 40, mask=mask).to_numpy()
    known = ecc.persistent_regions(values, 40, mask=shown)
    assert regions == known
    assert regions.labels.max() > 1
