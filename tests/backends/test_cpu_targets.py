"""Machines with narrower vectors than this one: the same numbers."""

import os
import platform
import sys

import pytest
from processes import run_python

# The package, wherever it is imported from here, and the oracles.
PATH = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
CHECK = """
import itertools
import numpy as np
import ecc_core as ecc
from oracles import euler as reference
from oracles import transform

rng = np.random.default_rng(0)
for dtype, shape in (("uint8", (35, 131)), ("float32", (3, 18, 67))):
    image = (rng.random(shape) * 200).astype(dtype)
    for connectivity, top in itertools.product((1, len(shape)), (200, 3)):
        image %= top
        thresholds = np.linspace(-1, top + 1, 99)
        found = ecc.euler_curve(image, thresholds, connectivity=connectivity)
        expected = reference.euler_curve(image, thresholds, connectivity=connectivity)
        np.testing.assert_array_equal(found.values, expected)
        found = ecc.euler_coefficients(image, connectivity=connectivity)
        expected = reference.euler_coefficients(image, connectivity=connectivity)
        np.testing.assert_array_equal(found, expected)
        labels = rng.integers(3, size=shape).repeat(7, axis=-1)[..., : shape[-1]]
        found = ecc.region_curves(image, labels, thresholds, connectivity=connectivity)
        _, expected = reference.region_curves(image, labels, thresholds, connectivity=connectivity)
        np.testing.assert_array_equal(found.values, expected)
    for connectivity in (1, len(shape)):
        options = {"connectivity": connectivity, "superlevel": (False, True)}
        surface = ecc.euler_surface(image, image, thresholds, [1], **options)
        expected = [
            reference.euler_curve(image, [1], connectivity=connectivity, superlevel=True, mask=mask)
            for mask in (image <= t for t in thresholds)
        ]
        np.testing.assert_array_equal(surface.values, expected)
        mask = image > 1
        found = ecc.euler_transform(mask, 5, 40, connectivity=connectivity)
        weighted = ecc.euler_transform(mask * 3, 5, 40, connectivity=connectivity, weighted=True)
        expected = transform.euler_transform(
            mask.astype(np.int64), *found[:2], connectivity, np.ones(mask.ndim)
        )
        np.testing.assert_array_equal(found.values, expected)
        np.testing.assert_array_equal(weighted.values, 3 * expected)
print("done")
"""


@pytest.mark.slow  # Each compiles all kernels anew.
@pytest.mark.parametrize("name", ["generic", "haswell"])
def test_cpu_target(name, tmp_path):
    if name == "haswell" and platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("haswell is an x86 machine")
    done = run_python(CHECK, NUMBA_CPU_NAME=name, NUMBA_CACHE_DIR=str(tmp_path), **PATH)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
