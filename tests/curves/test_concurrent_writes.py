"""Arrays that another thread changes during a call: the numbers may differ, nothing else may."""

import pytest
from processes import run_python

PAINTED = """
import sys, threading, time
import numpy as np
import torch
import ecc_core as ecc
from ecc_core.nn import functional

rng = np.random.default_rng(0)
shape = (12, 96, 130)
HUGE = np.iinfo(np.int64).max
# Few ids, one, sparse ones, and ids that are not allowed.
LABELS = [
    rng.integers(0, 40, shape),
    np.full(shape, 70_000),
    rng.integers(0, 9, shape) * (HUGE // 9),
    np.full(shape, -5),
]
IMAGES = [
    rng.random(shape).astype(np.float32),
    np.full(shape, np.nan, np.float32),
    np.full(shape, np.inf, np.float32),
    np.full(shape, 3e38, np.float32),
    np.full(shape, -3e38, np.float32),
]
MASKS = [rng.random(shape) < 0.5, np.ones(shape, bool), np.zeros(shape, bool)]


thresholds = np.linspace(0, 1, 256)
levels = np.linspace(0, 1, 9, dtype=np.float32)
uneven = np.sort(rng.random(300))
directions = rng.standard_normal((5, 3))
done = threading.Event()


def paint():
    turn = np.random.default_rng(1)
    while not done.is_set():
        for target, kinds in ((image, IMAGES), (labels, LABELS), (mask, MASKS)):
            source = kinds[turn.integers(len(kinds))]
            first = turn.integers(shape[0])
            target[first:] = source[first:]
        integers[...] = turn.integers(65_536)
        levels[turn.integers(9)] = turn.choice([0.5, np.nan, np.inf, 1e30])


def soft_curve():
    tensor = torch.from_numpy(image).requires_grad_()
    curve = functional.soft_euler_curve(tensor, torch.from_numpy(levels), sharpness=9.0,
                                        n_spatial=3)
    curve.sum().backward()


def soft_transform():
    functional.soft_euler_transform(torch.from_numpy(image), torch.from_numpy(directions),
                                    torch.from_numpy(levels), sharpness=2.0, n_spatial=3)


CALLS = [
    lambda: ecc.euler_curve(image, thresholds),
    lambda: ecc.euler_curve(image, uneven, connectivity=1, superlevel=True),
    lambda: ecc.euler_curve(image, nan="omit"),
    lambda: ecc.euler_curve(image, mask=mask, nan="omit"),
    lambda: ecc.euler_curve(image, uneven, mask=mask, axis=(1, 2), nan="omit"),
    lambda: ecc.euler_curve(image, "exact", mask=mask, nan="omit"),
    lambda: ecc.euler_curve(image, thresholds, direction=(1, 2, 3), nan="omit"),
    lambda: ecc.euler_curve(integers),
    lambda: ecc.euler_curve(integers, "exact", mask=mask),
    lambda: ecc.euler_number(image),
    lambda: ecc.euler_number(mask),
    lambda: ecc.euler_coefficients(image, mask=mask, nan="omit"),
    lambda: ecc.euler_coefficients(labels, mask=mask),
    lambda: ecc.region_curves(image, labels, thresholds),
    lambda: ecc.region_curves(integers, labels, 16, connectivity=1),
    lambda: ecc.euler_transform(mask, directions, 16),
    lambda: ecc.euler_transform(image, directions, 16, weighted=True),
    lambda: ecc.euler_transform(np.ma.array(integers, mask=mask), directions, 16, weighted=True),
    lambda: ecc.region_transforms(labels, directions, 16),
    lambda: ecc.betti_curves(image, uneven, mask=mask, nan="omit"),
    lambda: ecc.betti_curves(integers, connectivity=1, superlevel=True),
    lambda: ecc.betti_numbers(mask),
    lambda: ecc.persistence_pairs(image, 0, nan="omit"),
    lambda: ecc.persistence_pairs(image, 2, mask=mask),
    lambda: ecc.persistence_pairs(integers, 2, mask=mask),
    soft_curve,
    soft_transform,
]

order = sys.argv[1]
image, labels, mask = (np.array(kinds[0], order=order) for kinds in (IMAGES, LABELS, MASKS))
integers = np.array(IMAGES[0] * 60_000, np.uint16, order=order)
for call in CALLS:  # Kernels compile twice as fast without the painter.
    call()
painter = threading.Thread(target=paint)
painter.start()
end = time.monotonic() + 2
turn = 0
try:
    while time.monotonic() < end or turn < 2 * len(CALLS):
        try:
            CALLS[turn % len(CALLS)]()
        except (ValueError, RuntimeError):  # NaN, negative labels, no finite value
            pass
        turn += 1
finally:
    done.set()
    painter.join()
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("order", ["C", "F"])
def test_painted_arrays(order):
    """A process of its own: corrupted memory shows as a crash, at the latest when it exits."""
    pytest.importorskip("torch", reason="torch is not installed")
    ended = run_python(PAINTED, order, options=("-X", "faulthandler"))
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
