"""Processes: forked or spawned at any time, and no more threads than they are given."""

import json
import os

import pytest
from processes import run_python

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


def run(script: str, *arguments: str, **environment: str) -> str:
    done = run_python(script, *arguments, options=("-W", "ignore"), **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


FORK_DURING_WARMUP = """
import os, sys, time
import numpy as np
import ecc_core as ecc
ecc.warmup()
time.sleep(float(sys.argv[1]))
if (child := os.fork()) == 0:
    values = ecc.euler_curve(np.eye(5, dtype="uint8"), [0, 1]).values
    os._exit(list(values) != [-2, 1])
deadline = time.monotonic() + 200
while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
    time.sleep(0.01)
assert ended[0], "the child waits"
assert os.waitstatus_to_exitcode(ended[1]) == 0
"""


@needs_fork
@pytest.mark.parametrize(
    "delay",
    [pytest.param(0.0, marks=pytest.mark.slow), 0.2, pytest.param(0.6, marks=pytest.mark.slow)],
)
def test_forks_during_warmup(delay):
    run(FORK_DURING_WARMUP, str(delay))


FORK_DURING_A_COMPILATION = """
import os, threading, time
import numpy as np
from numba import njit
from numba.core.compiler_lock import global_compiler_lock
import ecc_core as ecc
ecc.euler_number(np.eye(3))
begun = threading.Event()
def compile_slowly():
    with global_compiler_lock:
        begun.set()
        time.sleep(0.5)
thread = threading.Thread(target=compile_slowly)
thread.start()
begun.wait()
if (child := os.fork()) == 0:
    os._exit(njit(lambda x: x + 1)(1) != 2)
thread.join()
assert njit(lambda x: x + 2)(1) == 3
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


LOADER = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset
import ecc_core as ecc

class Curves(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        image = torch.eye(40, dtype=torch.uint8) * i
        return ecc.euler_curve(image.numpy(), [0, 1]).values, ecc.euler_curve(image, [0, 1]).values

def check(workers, **options):
    for arrays, tensors in DataLoader(Curves(), batch_size=4, num_workers=workers, **options):
        assert torch.equal(arrays, tensors)
        assert arrays[:, 0].tolist() == [1, -37, -37, -37]

if __name__ == "__main__":
    method = sys.argv[1]
    if method == "fork":
        check(2, multiprocessing_context=method)
        thread = ecc.warmup()
        check(4, multiprocessing_context=method)
        thread.join()
        check(0)
    check(2 if method == "fork" else 1, multiprocessing_context=method)
"""


@pytest.mark.parametrize("method", [pytest.param("fork", marks=pytest.mark.slow), "spawn"])
def test_data_loaders(method, tmp_path):
    """Right after the import, during and after the warmup, and after calls."""
    pytest.importorskip("torch", reason="torch is not installed")
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("needs os.fork")
    script = tmp_path / "loader.py"  # Spawned processes can import a file.
    script.write_text(LOADER)
    code = "import runpy, sys; sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"
    run(code, str(script), method)


FORK_AFTER_CALLS = """
import os
import numpy as np
import ecc_core as ecc
image = (np.random.default_rng(0).random((70, 80, 131)) * 200).astype("u1")
expected = ecc.euler_curve(image, workers=3).values
child = os.fork()
assert np.array_equal(ecc.euler_curve(image, workers=3).values, expected)
if child == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@needs_fork
@pytest.mark.parametrize(
    "script", [FORK_DURING_A_COMPILATION, FORK_AFTER_CALLS], ids=["compilation", "calls"]
)
def test_forks(script):
    run(script)


THREADS = """
import json, sys
import numpy as np
import torch
import ecc_core as ecc
from ecc_core._backends.cpu import pool
image = np.random.default_rng(0).random((64, 512, 256)).astype("float32")  # enough for 8 threads
pool.os.sched_getaffinity = lambda pid: range(4)
helpers, submit = [], pool.ThreadPoolExecutor.submit
def record(*given):  # a helper that is done early takes the place of a later one
    helpers.append(given)
    return submit(*given)
pool.ThreadPoolExecutor.submit = record
for of_torch, workers in json.loads(sys.argv[1]):
    helpers.clear()
    if of_torch:
        torch.set_num_threads(of_torch)
    given = torch.from_numpy(image) if of_torch else image
    ecc.euler_curve(given, [0.5], workers=workers)
    print(len(helpers) + 1)
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs sched_getaffinity")
@pytest.mark.parametrize(
    ("openmp", "numba", "calls"),
    [
        ("", "4", {(None, None): 4, (None, 6): 6, (1, None): 1, (2, None): 2}),
        ("1", "", {(None, None): 1, (None, 3): 3, (1, 2): 2}),
        pytest.param("3,2", "", {(None, None): 3}, marks=pytest.mark.slow),
        pytest.param("1", "2", {(None, None): 2}, marks=pytest.mark.slow),
    ],
)
def test_numbers_of_threads(openmp, numba, calls):
    """They follow from torch's number of threads, for tensors, and from the argument `workers`."""
    pytest.importorskip("torch", reason="torch is not installed")
    environment = {"OMP_NUM_THREADS": openmp, "NUMBA_NUM_THREADS": numba}
    found = run(THREADS, json.dumps(list(calls)), **environment).split()
    assert [int(threads) for threads in found] == list(calls.values())
