"""Planned calls: results as those in full, without copies between host and device."""

from collections import Counter

import numpy as np
import pytest
from fake_cupy import guarded

import ecc_core
from ecc_core._request.filtration import Direction, Filtration
from ecc_core._request.spatial_axes import geometry_of
from ecc_core._request.thresholds import Thresholds

SHAPE = (70, 264)
FLAT = np.random.default_rng(31).normal(size=SHAPE).astype(np.float32)
MASK = np.random.default_rng(32).random(SHAPE) < 0.8
EVEN = Thresholds(np.linspace(-2, 2, 64))
# The image, its mask, thresholds and direction.
PLANNED = {
    "at given thresholds": (FLAT, None, EVEN, None),
    "every second column": (FLAT[:, ::2], None, EVEN, None),
    "mask and direction": (FLAT, MASK, EVEN, (0.6, 0.8)),
    "default thresholds of bytes": ((FLAT * 30).astype(np.int8), None, Thresholds(count=30), None),
}


@pytest.fixture
def copies(emulator, monkeypatch):
    """Copies between host and device, counted by function."""
    cupy, counts = emulator.backend.arrays.cupy, Counter()

    def counting(name, function):
        def call(*args):
            counts[name] += 1
            return function(*args)

        return call

    for target, name in ((cupy.cuda.runtime, "memcpyAsync"), (cupy, "asarray")):
        monkeypatch.setattr(target, name, counting(name, getattr(target, name)))
    return counts


@pytest.mark.parametrize("name", PLANNED)
def test_planned_curves_copy_nothing(emulator, copies, name):
    image, mask, levels, direction = PLANNED[name]
    heights = direction and Direction(direction, 1.0, (1.0, 1.0), image.shape)
    filtration = Filtration(2, 2, direction=heights)
    there = guarded(image) if image.flags.c_contiguous else guarded(FLAT)[:, ::2]
    shown = () if mask is None else (guarded(mask),)
    given = there[None], None, levels, filtration
    hidden = None if mask is None else shown[0][None]
    run = emulator.launch.plan("curve", *given, mask=hidden, geometry=geometry_of(image.shape))
    copies.clear()
    at, values = run(there, *shown)
    assert not copies
    at = levels.array if at is None else np.asarray(at)
    known = ecc_core.euler_curve(image, at, mask=mask, direction=direction)
    np.testing.assert_array_equal(values, known.values)
