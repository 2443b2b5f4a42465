"""Several processes that compile into one empty cache at once."""

import os
import subprocess
import sys

import numpy as np

import ecc_core as ecc
from ecc_core._backends.cpu import compiling, kernels

# Every process starts when all have come this far, so that they meet in the cache.
CALLS = """
import os, sys, time
import numpy as np
import ecc_core as ecc
import ecc_core._backends.cpu.launch
print("ready", flush=True)
sys.stdin.readline()
image = np.arange(1200).reshape(30, 40) * 7919 % 1201
image = image.astype(sys.argv[1])
for connectivity in (1, 2):
    print(*ecc.euler_curve(image, 9, range=(0, 1200), connectivity=connectivity).values)
"""
DTYPES = ["float32", "float64", "int32", "uint32"]


def test_processes_share_an_empty_cache(tmp_path):
    image = np.arange(1200).reshape(30, 40) * 7919 % 1201
    expected = [
        " ".join(map(str, ecc.euler_curve(image, 9, range=(0, 1200), connectivity=c).values))
        for c in (1, 2)
    ]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for dtypes in (DTYPES, DTYPES[::-1]):  # the second time from what the first have left
        processes = [
            subprocess.Popen(
                [sys.executable, "-W", "error", "-c", CALLS, dtype],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for dtype in dtypes
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
        assert list(tmp_path.rglob("*.nbc"))
        assert not list(tmp_path.rglob("*.tmp*"))


def test_one_signature_never_leads_to_the_code_of_another(tmp_path):
    """Two processes have read an empty index; the first writes its code last."""
    kind = type(kernels.march_2d._cache._cache_file)
    assert kind is compiling._SharedFile

    class Second(kind):
        def _load_index(self):
            return {}

    class First(kind):
        def _save_data(self, name, data):
            Second(str(tmp_path), "march", "stamp").save("float64", "code for float64")
            super()._save_data(name, data)

    First(str(tmp_path), "march", "stamp").save("float32", "code for float32")
    after = kind(str(tmp_path), "march", "stamp")
    for dtype in ("float32", "float64"):
        assert after.load(dtype) in (None, f"code for {dtype}")
    after.save("float64", "code for float64")
    after.save("float32", "code for float32")
    for dtype in ("float32", "float64"):
        assert after.load(dtype) == f"code for {dtype}"
