"""Several processes that compile into one empty cache at once."""

import os
import subprocess
import sys

import numpy as np

import ecc_core as ecc

# Every process starts when all have come this far, so that they meet in the cache.
CALLS = """
import os, sys, time
import numpy as np
import ecc_core as ecc
import ecc_core._cpu.launch
print("ready", flush=True)
sys.stdin.readline()
image = np.load(sys.argv[1])
for connectivity in (1, 2):
    print(*ecc.euler_curve(image, np.linspace(0, 1, 9), connectivity=connectivity).values)
"""


def test_processes_share_an_empty_cache(tmp_path):
    image = np.random.default_rng(7).random((40, 70), dtype=np.float32)
    np.save(tmp_path / "image.npy", image)
    cache = tmp_path / "cache"
    command = [sys.executable, "-W", "error", "-c", CALLS, str(tmp_path / "image.npy")]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    expected = [
        " ".join(map(str, ecc.euler_curve(image, np.linspace(0, 1, 9), connectivity=c).values))
        for c in (1, 2)
    ]
    for _ in range(2):  # the second time from what the first have left
        processes = [
            subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(4)
        ]
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            out, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
            assert out.splitlines() == expected
        assert list(cache.rglob("*.nbc"))
        assert not list(cache.rglob("*.tmp*"))
