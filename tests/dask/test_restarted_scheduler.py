"""`ecc stack` whose scheduler is killed in mid-run, and goes on with one that is started anew."""

import contextlib
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import zarr
from distributed import Client

import ecc_core as ecc

SECONDS = 60
IMAGE = np.random.default_rng(0).integers(0, 99, (48, 48, 64), dtype=np.uint8)


@contextlib.contextmanager
def processes(*commands, **options):
    """Run commands of Python until the end of the block."""
    running = [subprocess.Popen([sys.executable, *command], **options) for command in commands]
    try:
        yield running
    finally:
        for process in running:
            process.kill()
            process.wait()


@contextlib.contextmanager
def cluster(port, folder):
    """A scheduler at a port, and a worker that ends with it."""
    address = f"tcp://127.0.0.1:{port}"
    scheduler = ["-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", str(port)]
    worker = ["-m", "dask", "worker", address, "--nthreads", "2", "--no-nanny"]
    worker += ["--local-directory", str(folder)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler, worker = ([*command, "--no-dashboard"] for command in (scheduler, worker))
    with processes(scheduler, worker, **quiet) as running:
        with Client(address, timeout=SECONDS) as client:
            client.wait_for_workers(1, timeout=SECONDS)
        yield running[0]


def wait_for(condition, process):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


@pytest.mark.slow
def test_restarted_scheduler(tmp_path):
    path = tmp_path / "a.zarr"
    out = tmp_path / "curve.csv"
    parts = tmp_path / "curve.csv.parts"
    zarr.create_array(path, shape=IMAGE.shape, chunks=(8, 8, 8), dtype=np.uint8)[...] = IMAGE
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    command = ["-m", "ecc_core.cli", "stack", str(path), "--out", str(out), "--range", "0,98"]
    command += ["--thresholds", "99", "--max-memory", "6K", "--scheduler", address]

    piped = {"stderr": subprocess.PIPE, "text": True}
    with cluster(port, tmp_path) as scheduler, processes(command, **piped) as (stack,):
        wait_for(lambda: len([*parts.glob("*")]) > 4, stack)
        scheduler.send_signal(signal.SIGKILL)
        errors = stack.communicate(timeout=SECONDS)[1]
    assert stack.returncode == 2, errors
    assert f"--scheduler {address}: the cluster was lost" in errors.splitlines()[-1]
    assert not out.exists()

    with cluster(port, tmp_path), processes([*command, "--resume"], **piped) as (stack,):
        errors = stack.communicate(timeout=SECONDS)[1]
    assert stack.returncode == 0, errors
    values = np.loadtxt(out, delimiter=",", skiprows=1, usecols=1, comments="#")
    np.testing.assert_array_equal(values, ecc.euler_curve(IMAGE, np.arange(99)).values)
