"""Memory of the device: what a call takes it gives back, and where there is too little."""

import threading

import numpy as np
import pytest

import ecc_core as ecc

cupy = pytest.importorskip("cupy")

IMAGE = np.random.default_rng(0).integers(0, 9, (12, 20, 40)).astype(np.uint8)
CALLS = 10_000


def in_use():
    """Bytes of arrays, of what CuPy holds for them, and free ones of the device."""
    cupy.cuda.Device().synchronize()
    pool = cupy.get_default_memory_pool()
    return pool.used_bytes(), pool.total_bytes(), cupy.cuda.runtime.memGetInfo()[0]


def test_no_leak_in_10000_calls():
    image = cupy.asarray(IMAGE)
    levels = np.arange(9.0)
    calls = [
        lambda: ecc.euler_curve(image, levels),
        lambda: ecc.euler_transform(image[0], 4, levels, weighted=True),
        lambda: ecc.euler_transform(image > 4, 4, levels),
        lambda: ecc.region_transforms(image[0], 4, levels),
    ]
    for call in 10 * calls:
        call()
    *held, free = in_use()
    for call in CALLS // 4 * calls:
        call()
    *now_held, now_free = in_use()
    assert now_held == held
    assert free - now_free < 32 << 20  # Other processes may allocate, too.


def test_no_leak_of_pinned_memory_and_threads():
    def run():
        ecc.euler_curve(IMAGE, np.arange(9), devices=[0])

    for _ in range(3):
        run()
    used = in_use()[0]
    threads = threading.active_count()
    pinned = cupy.get_default_pinned_memory_pool().n_free_blocks()
    for _ in range(100):
        run()
    assert in_use()[0] == used
    assert threading.active_count() == threads
    assert cupy.get_default_pinned_memory_pool().n_free_blocks() == pinned


@pytest.fixture
def scarce():
    """A device with 256 MiB to give."""
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.get_limit()
    pool.set_limit(size=pool.used_bytes() + (256 << 20))
    yield
    pool.set_limit(size=before)


@pytest.mark.parametrize("how", ["limit", "device"])
def test_out_of_memory_is_a_memory_error_and_the_next_call_works(how, request):
    if how == "limit":
        request.getfixturevalue("scarce")
    image = cupy.asarray(IMAGE)
    levels = np.arange(9.0)
    expected = ecc.euler_curve(IMAGE, levels).values
    total = cupy.cuda.runtime.memGetInfo()[1] if how == "device" else 256 << 20
    many = total // 8 // 1000  # With so many heights the result alone does not fit.
    calls = [
        lambda: ecc.euler_transform(image > 4, 1200, many, range=(-1, 1)),
        lambda: ecc.euler_transform(image, 1200, many, range=(-1, 1), weighted=True),
        lambda: ecc.region_transforms(image, 150, many, range=(-1, 1)),
        lambda: ecc.euler_curve(cupy.broadcast_to(image, (many, 12, 20, 40)), 1200, axis=(2, 3)),
    ]
    for call in calls:
        with pytest.raises(MemoryError, match=r"(?i)out of memory allocating"):
            call()
        np.testing.assert_array_equal(ecc.euler_curve(image, levels).values.get(), expected)
        np.testing.assert_array_equal(
            ecc.euler_transform(image > 4, 5, levels).values.get(),
            ecc.euler_transform(IMAGE > 4, 5, levels).values,
        )
