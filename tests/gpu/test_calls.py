"""What planned calls copy and wait for, and that those which wait for nothing can be captured."""

from collections import Counter
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np
import pytest
from gpu_helpers import PUT, cupy, to_torch

import ecc_core as ecc
from ecc_core.testing import assert_arrays_equal

RNG = np.random.default_rng(21)
FLAT = RNG.random((70, 160)).astype(np.float32)
VOLUME = RNG.random((9, 40, 160)).astype(np.float32)
BYTES = (FLAT * 255).astype(np.uint8)
SHORTS = (FLAT * 9000).astype(np.int16)
LABELS = (np.arange(FLAT.size).reshape(FLAT.shape) % 7).astype(np.int32)
MASK = FLAT < 0.8
LEVELS = np.linspace(0.1, 0.9, 17)
WHOLE = np.arange(5, 250, 9)
OMIT = {"nan": "omit"}


def curve(image, mask=None, levels=LEVELS, **options):
    return ecc.euler_curve(image, levels, mask=mask, **options).values


def at_default_thresholds(image, mask=None, **options):
    return ecc.euler_curve(image, 30, mask=mask, **options).values


def at_levels_of_the_device(image, levels):
    return ecc.euler_curve(image, levels, nan="omit").values


def coefficients(image, mask=None, **options):
    return ecc.euler_coefficients(image, mask=mask, **options)


def number(image):
    return np.array(ecc.euler_number(image))


def regions(image, labels):
    return ecc.region_curves(image, labels, LEVELS).values


# A call, its arrays, its options, and what the host does: "" for nothing.
CALLS = {
    "curve, NaN is an error": (curve, [FLAT], {}, "wait"),
    "curve": (curve, [FLAT], OMIT, ""),
    "volume": (curve, [VOLUME], OMIT, ""),
    "float64": (curve, [FLAT.astype(float)], OMIT, ""),
    "volume of float64": (curve, [VOLUME.astype(float)], OMIT, ""),
    "float16": (curve, [FLAT.astype(np.float16)], OMIT, ""),
    "int16": (curve, [SHORTS], {"levels": WHOLE}, ""),
    "int32": (curve, [SHORTS.astype(np.int32)], {"levels": WHOLE}, ""),
    "uint8": (curve, [BYTES], {"levels": WHOLE}, ""),
    "uneven thresholds": (curve, [FLAT], {"levels": LEVELS**3, **OMIT}, ""),
    "range": (at_default_thresholds, [FLAT], {"range": (0, 1), **OMIT}, ""),
    "default thresholds": (at_default_thresholds, [FLAT], {}, "wait"),
    "default thresholds, uint8": (at_default_thresholds, [BYTES], {}, ""),
    "default thresholds, int16": (at_default_thresholds, [SHORTS], {}, "wait"),
    "default thresholds, mask": (at_default_thresholds, [FLAT, MASK], {}, "wait"),
    "mask": (curve, [FLAT, MASK], OMIT, ""),
    "mask, uint8": (curve, [BYTES, MASK], {"levels": WHOLE}, ""),
    "batch": (curve, [VOLUME], {"axis": (1, 2), **OMIT}, ""),
    "batch, NaN is an error": (curve, [VOLUME], {"axis": (1, 2)}, "wait"),
    "channels": (curve, [BYTES.reshape(70, 40, 4)], {"axis": (0, 1), "levels": WHOLE}, ""),
    "thin": (curve, [BYTES.reshape(70, 40, 4)], {"axis": (0, 1, 2), "levels": WHOLE}, ""),
    "one slice": (curve, [FLAT[None]], {"axis": (0, 1, 2), **OMIT}, ""),
    "1-D": (curve, [np.tile(FLAT.ravel(), 3)], OMIT, ""),
    "direction": (curve, [FLAT], {"direction": (1, 2), **OMIT}, ""),
    "superlevel": (curve, [FLAT], {"superlevel": True, **OMIT}, ""),
    "coefficients": (coefficients, [BYTES], {}, ""),
    "coefficients, NaN is an error": (coefficients, [FLAT], {}, "wait"),
    "coefficients, mask": (coefficients, [FLAT, MASK], OMIT, ""),
    "number": (number, [BYTES > 90], {}, "wait"),
    "number of floats": (number, [FLAT - np.float32(0.5)], {}, "copy"),
    "regions": (regions, [FLAT, LABELS], {}, "wait"),
    "thresholds on the device": (at_levels_of_the_device, [FLAT, LEVELS], {}, "wait"),
}
WITHIN_DEVICE = 3
"""CUDA's cudaMemcpyDeviceToDevice."""
NOTHING = [name for name, (*_, host) in CALLS.items() if not host]


@contextmanager
def counted():
    """Count copies between host and device, and what the host waits for, by kind."""
    from ecc_core._backends.cuda import calls

    counts: Counter[str] = Counter()

    def count(kind, function):
        def counting(*args, **kwargs):
            counts[kind] += 1
            return function(*args, **kwargs)

        return counting

    def copy(to, start, size, kind, *rest):
        if kind != WITHIN_DEVICE:
            counts["copy"] += 1
        return memcpy(to, start, size, kind, *rest)

    memcpy = cupy.cuda.runtime.memcpyAsync
    asarray = cupy.asarray
    upload = count("copy", asarray)

    def adopt(array, *rest):
        return (asarray if hasattr(array, "get") else upload)(array, *rest)

    with ExitStack() as stack:
        for target, name, new in (
            (cupy.cuda.runtime, "memcpyAsync", copy),
            (cupy, "asarray", adopt),
            (cupy.ndarray, "get", count("copy", cupy.ndarray.get)),
            (cupy.cuda.runtime, "deviceSynchronize", count("wait", lambda: None)),
            (cupy.cuda, "Device", count("wait", cupy.cuda.Device)),
            (calls.Reply, "wait", count("wait", calls.Reply.wait)),
        ):
            stack.enter_context(mock.patch.object(target, name, new))
        if torch := _torch():
            for name in ("cpu", "cuda", "to", "item", "tolist"):
                own = count("copy", getattr(torch.Tensor, name))
                stack.enter_context(mock.patch.object(torch.Tensor, name, own))
        yield counts


def _torch():
    try:
        import torch
    except ImportError:
        return None
    return torch


@PUT
@pytest.mark.parametrize("name", CALLS)
def test_copies_and_waits(put, name):
    function, arrays, options, host = CALLS[name]
    there = [put(array) for array in arrays]
    known = function(*arrays, **options)
    for _ in range(2):  # The first call is planned.
        function(*there, **options)
    with counted() as counts:
        found = function(*there, **options)
    if name == "thresholds on the device" and put is to_torch:
        host = ""  # A tensor that has not changed is not read again.
    assert dict(counts) == ({host: 1} if host else {})
    assert_arrays_equal(found, known, like=None if isinstance(found, np.ndarray) else there[0])


def changed(array):
    """Other values of the same kind."""
    return np.ascontiguousarray(array[::-1, ..., ::-1] if array.ndim > 1 else array[::-1])


@pytest.mark.parametrize("name", NOTHING)
def test_calls_that_wait_for_nothing_are_captured(name):
    function, arrays, options, _ = CALLS[name]
    there = [cupy.asarray(array) for array in arrays]
    function(*there, **options)
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        found = function(*there, **options)
        graph = stream.end_capture()
        for values in (arrays, [changed(array) for array in arrays]):
            for array, value in zip(there, values, strict=True):
                array.set(value)
            stream.synchronize()
            graph.launch(stream)
            stream.synchronize()
            assert_arrays_equal(found, function(*values, **options), like=there[0])


@pytest.mark.parametrize("name", NOTHING)
def test_torch_captures_calls_that_wait_for_nothing(name):
    torch = pytest.importorskip("torch")
    function, arrays, options, _ = CALLS[name]
    there = [to_torch(array) for array in arrays]
    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):  # The graph takes memory of this stream.
        function(*there, **options)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        found = function(*there, **options)
    values = [changed(array) for array in arrays]
    for array, value in zip(there, values, strict=True):
        array.copy_(to_torch(value))
    graph.replay()
    torch.cuda.synchronize()
    assert_arrays_equal(found, function(*values, **options), like=there[0])


@pytest.mark.parametrize("name", [name for name in CALLS if "error" in name])
def test_a_captured_call_that_must_wait_says_so(name):
    function, arrays, options, _ = CALLS[name]
    there = [cupy.asarray(array) for array in arrays]
    function(*there, **options)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        try:
            with pytest.raises(ecc.errors.BackendError, match="must not wait for the device"):
                function(*there, **options)
        finally:
            stream.end_capture()
