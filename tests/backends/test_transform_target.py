"""Machines with narrower vectors than this one compile the transform to the same numbers."""

import os
import subprocess
import sys

import pytest

# The package, wherever it is imported from here, and the oracles.
PATH = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
CHECK = """
import numpy as np
import ecc_core as ecc
from oracles import transform as reference

rng = np.random.default_rng(0)
for shape in ((35, 131), (3, 18, 67)):
    mask, ndim = rng.random(shape) < 0.5, len(shape)
    for connectivity in (1, ndim):
        options = {"connectivity": connectivity}
        found = ecc.euler_transform(mask, 5, 40, **options)
        weighted = ecc.euler_transform(mask * 3, 5, 40, weighted=True, **options)
        expected = reference.euler_transform(
            mask.astype(np.int64), *found[:2], connectivity, np.ones(ndim)
        )
        np.testing.assert_array_equal(found.values, expected)
        np.testing.assert_array_equal(weighted.values, 3 * expected)
print("done")
"""


@pytest.mark.slow
def test_generic_target(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        env={**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path)} | PATH,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
