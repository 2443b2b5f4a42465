"""Any number of workers, and calls from several Python threads at once: the same numbers."""

import _thread
import functools
import itertools
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from oracles import euler as reference

import ecc_core as ecc
from ecc_core._backends.cpu.betti import launch, tunnels
from ecc_core.testing import assert_curves_equal


def noise(shape, dtype="uint8", seed=0):
    return (np.random.default_rng(seed).random(shape) * 200).astype(dtype)


THRESHOLDS = np.linspace(-1, 201, 99)


@functools.cache
def curve_of_noise(shape, dtype, connectivity):
    """The reference, which takes longer than the functions: once for all numbers of workers."""
    return reference.euler_curve(noise(shape, dtype), THRESHOLDS, connectivity=connectivity)


@pytest.mark.parametrize("workers", [1, 2, 3, 17, None])
@pytest.mark.parametrize("connectivity", [1, None])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize(
    "shape", [(50_001,), (1000, 1100), (70, 80, 131), (3, 700, 700), (600, 5, 3), (1, 1), (2, 9, 9)]
)
def test_workers_change_nothing(shape, dtype, connectivity, workers):
    image = noise(shape, dtype)
    expected = curve_of_noise(shape, dtype, connectivity)
    found = ecc.euler_curve(image, THRESHOLDS, connectivity=connectivity, workers=workers)
    assert_curves_equal(found, expected, thresholds=THRESHOLDS)


@functools.cache
def with_masks_and_nan():
    image = noise((70, 80, 131), "float32")
    image[image < 20] = np.nan
    mask = noise(image.shape, seed=1) > 30
    thresholds = np.linspace(20, 200, 50)
    return image, mask, thresholds, reference.euler_curve(image, thresholds, mask=mask)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_workers_share_masks_and_nan(workers):
    image, mask, thresholds, expected = with_masks_and_nan()
    found = ecc.euler_curve(image, thresholds, mask=mask, nan="omit", workers=workers)
    assert_curves_equal(found, expected)
    image = image.copy()
    image[-1, -1, -1] = np.nan
    with pytest.raises(ValueError, match="nan="):
        ecc.euler_curve(image, thresholds, workers=workers)


def test_calls_from_several_threads():
    thresholds = np.arange(0, 200, 3)
    jobs = []
    shapes = ((40, 61, 67), (400, 467))
    seeds = range(3)
    dtypes = ("u1", "f4")
    for shape, seed, dtype in itertools.product(shapes, seeds, dtypes):
        image = noise(shape, dtype, seed)
        for connectivity in (1, None):
            expected = reference.euler_curve(image, thresholds, connectivity=connectivity)
            for workers in (1, 2, None):
                options = {"connectivity": connectivity, "workers": workers}
                jobs.append((partial(ecc.euler_curve, image, thresholds, **options), expected))
    image = noise((50, 60, 67))
    labels = noise(image.shape, "int32", 1) // 40
    _, curves = reference.region_curves(image, labels, [50, 100])
    jobs += [(partial(ecc.region_curves, image, labels, [50, 100]), curves)] * 6
    coefficients = reference.euler_coefficients(image)
    jobs += [(partial(ecc.euler_coefficients, image), coefficients)] * 6
    calls, expected = zip(*jobs, strict=True)
    with ThreadPoolExecutor(6) as pool:
        for _ in range(3):
            results = pool.map(lambda call: call(), calls)
            found = [getattr(one, "values", one) for one in results]
            np.testing.assert_equal(found, expected)


def test_an_interrupt_ends_a_call_and_harms_nothing():
    image = noise((120, 130, 131))
    expected = ecc.euler_curve(image, 64, workers=2).values
    # Processes started in the background of a shell ignore SIGINT, and so would this test.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    deadline = time.monotonic() + 60
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - until the timer fires
            while time.monotonic() < deadline:
                ecc.euler_curve(image, 64, workers=2)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, handler)
    again = [ecc.euler_curve(image, 64, workers=workers).values for workers in (1, 2)]
    np.testing.assert_array_equal(again, [expected] * 2)


def test_an_interrupt_ends_the_reduction_of_tunnels_in_all_threads(monkeypatch):
    """Columns are reduced in parts, and no thread begins another one."""
    image = noise((40, 41, 42), "float32")
    expected = ecc.persistence_pairs(image, workers=1)
    interrupted = threading.Event()
    calls = {"here": 0, "elsewhere": 0}
    reduce_columns = tunnels.reduce_columns

    def interrupt(*arguments):
        here = threading.current_thread() is threading.main_thread()
        calls["here" if here else "elsewhere"] += 1
        if here:
            interrupted.set()
            raise KeyboardInterrupt
        interrupted.wait(60)
        time.sleep(0.2)  # The other threads must see it.
        return reduce_columns(*arguments)

    monkeypatch.setattr(launch, "worker_count", lambda workers, *_: workers)
    monkeypatch.setattr(tunnels, "COLUMNS_AT_ONCE", 100)
    with monkeypatch.context() as patch:
        patch.setattr(tunnels, "reduce_columns", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ecc.persistence_pairs(image, workers=2)
        assert calls["here"] == 1
        assert calls["elsewhere"] <= 1
    assert ecc.persistence_pairs(image, workers=2) == expected
