"""The public functions on CuPy arrays and torch tensors equal those on NumPy arrays."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from gpu_helpers import PUT, assert_same, cupy, to_torch

import ecc_core as ecc
from ecc_core.testing import assert_arrays_equal

RNG = np.random.default_rng(7)
VOLUME = RNG.integers(0, 200, (9, 20, 70))
MASK = RNG.random(VOLUME.shape) < 0.8


@PUT
@pytest.mark.parametrize("true", [2, 254, 255])
@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize(
    "thresholds", [np.array([0.0, 0.5, 1.0]), 3, "exact"], ids=["given", "3", "exact"]
)
def test_booleans_whose_true_is_another_byte(put, true, ndim, superlevel, thresholds):
    part = (0,) * (3 - ndim)
    image = (VOLUME > 90)[part]
    mask = MASK[part]
    labels = (VOLUME // 50)[part]

    def odd(array):
        stored = (array * np.uint8(true)).view(np.bool_) if array.dtype == bool else array
        return put(stored)

    options = {"superlevel": superlevel, "put": odd}
    assert_same(ecc.euler_curve, image, thresholds, **options)
    assert_same(ecc.euler_curve, image, thresholds, mask=mask, **options)
    assert_same(ecc.euler_coefficients, image, mask=mask, **options)
    assert ecc.euler_number(odd(image)) == ecc.euler_number(image)
    assert_same(ecc.region_curves, (image, labels), 3, put=odd)
    assert_same(ecc.region_curves, (labels, image), 3, put=odd)
    if ndim > 1:
        assert_same(ecc.euler_transform, image, 4, 9, put=odd)
        assert_same(ecc.euler_transform, image, 4, 9, put=odd, weighted=True)
        assert_same(ecc.region_transforms, image, 4, 9, put=odd)


@PUT
@pytest.mark.parametrize("true", [1, 254, 255])
def test_nan_under_a_mask_whose_true_is_another_byte(put, true):
    image = VOLUME.astype(np.float32)
    image[4, 4, 4], mask = np.nan, np.zeros(VOLUME.shape, np.uint8)
    mask[:, 4] = true
    with pytest.raises(ValueError, match="`image` must not contain NaN"):
        ecc.euler_curve(put(image), [1.0], mask=put(mask.view(np.bool_)))


@PUT
def test_every_function(put):
    image = VOLUME.astype(np.float32)
    labels = (VOLUME // 50).astype(np.int32)
    assert_same(ecc.euler_curve, image, put=put)
    assert ecc.euler_number(put(VOLUME > 90)) == ecc.euler_number(VOLUME > 90)
    assert_same(ecc.euler_coefficients, image, put=put)
    assert_same(ecc.region_curves, (image, labels), 9, put=put)


@PUT
def test_masks_batches_and_directions(put):
    image = VOLUME.astype(np.float64)
    image[0, 0, :5] = np.nan
    options = {"axis": (0, 2), "nan": "omit", "mask": MASK}
    assert_same(ecc.euler_curve, image, np.array([3.0, 50.0]), put=put, **options)
    tilted = {"direction": (1, 2, -1), "direction_scale": 0.7, "spacing": (2, 1, 1)}
    assert_same(ecc.euler_curve, VOLUME, 20, put=put, **tilted)


def test_bfloat16():
    torch = pytest.importorskip("torch")
    image = torch.from_numpy(VOLUME.astype(np.float32) * 1.01).to(torch.bfloat16)
    thresholds = np.linspace(0, 200, 33)
    found = ecc.euler_curve(image.cuda(), thresholds).values
    known = ecc.euler_curve(image.float().numpy(), thresholds).values
    assert_arrays_equal(found, known, like=image.cuda())


@PUT
def test_the_mask_must_be_on_the_same_device(put):
    with pytest.raises(ValueError, match="`mask` must be on the image's device"):
        ecc.euler_curve(put(VOLUME), [1.0], mask=MASK)
    with pytest.raises(ValueError, match="`mask` must be on the image's device, numpy"):
        ecc.euler_curve(VOLUME, [1.0], mask=cupy.asarray(MASK))


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_torch_captures_the_call(mode):
    torch = pytest.importorskip("torch")
    image = to_torch(RNG.normal(size=(300, 300)).astype(np.float32))
    thresholds = np.linspace(-2, 2, 50)
    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        ecc.euler_curve(image, thresholds, nan="omit")
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode=mode):
        values = ecc.euler_curve(image, thresholds, nan="omit").values
    for _ in range(3):
        image.normal_()
        graph.replay()
        torch.cuda.synchronize()
        expected = ecc.euler_curve(image.cpu().numpy(), thresholds).values
        np.testing.assert_array_equal(values.cpu().numpy(), expected)


def test_thresholds_of_torch_that_have_not_changed_are_not_read_again():
    """A call that waits for the device cannot be captured."""
    torch = pytest.importorskip("torch")
    image = torch.rand((40, 50), device="cuda")
    levels = torch.linspace(0, 1, 5, dtype=torch.float64, device="cuda")

    def curve():
        return ecc.euler_curve(image, levels, nan="omit").values

    def known():
        return ecc.euler_curve(image.cpu().numpy(), levels.cpu().numpy()).values

    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        np.testing.assert_array_equal(curve().cpu(), known())
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        captured = curve()
    graph.replay()
    np.testing.assert_array_equal(captured.cpu(), known())
    levels.mul_(0.5)
    np.testing.assert_array_equal(curve().cpu(), known())


def test_calls_in_a_thread_that_has_not_used_the_device():
    image = cupy.asarray(np.random.default_rng(0).random((40, 50), dtype=np.float32))
    levels = np.linspace(0, 1, 5)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: ecc.euler_curve(image, levels, nan="omit").values.get())
        np.testing.assert_array_equal(found.result(), ecc.euler_curve(image.get(), levels).values)


def test_repeated_calls():
    levels = np.linspace(0, 1, 33)
    first, second = RNG.random((2, 60, 130)).astype(np.float32)
    for image, step in ((first, 1), (second, 1), (first, 2), (first, 1)):
        device = cupy.asarray(image)[:, ::step]
        for superlevel in (False, True):
            options = {"nan": "omit", "superlevel": superlevel}
            known = ecc.euler_curve(image[:, ::step], levels, **options)
            for _ in range(2):
                found = ecc.euler_curve(device, levels, **options)
                assert_arrays_equal(found.values, known.values, like=device)
                found = ecc.euler_curve(device, cupy.asarray(levels), **options)
                assert_arrays_equal(found.values, known.values, like=device)
    device = cupy.asarray(first)
    for low in (0.0, 0.25):
        levels[:] = np.linspace(low, 1, 33)  # They are in the same memory.
        found = ecc.euler_curve(device, levels, nan="omit")
        known = ecc.euler_curve(first, levels, nan="omit").values
        assert_arrays_equal(found.values, known, like=device)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        found = ecc.euler_curve(device, levels, nan="omit").values
        graph = stream.end_capture()
        device[...] = cupy.asarray(second)
        graph.launch(stream)
        stream.synchronize()
    assert_arrays_equal(found, ecc.euler_curve(second, levels, nan="omit").values, like=device)


def test_repeated_calls_of_tensors():
    torch = pytest.importorskip("torch")
    levels = np.linspace(0, 1, 33)
    first, second = RNG.random((2, 60, 130)).astype(np.float32)
    side = torch.cuda.Stream()
    for nan in ("raise", "omit"):
        for image in (first, second, first):
            tensor = torch.from_numpy(image).cuda()
            known = ecc.euler_curve(image, levels).values
            for stream in (torch.cuda.current_stream(), side):
                stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(stream):
                    found = ecc.euler_curve(tensor, levels, nan=nan)
                    assert_arrays_equal(found.values, known, like=tensor)
                torch.cuda.synchronize()
    for value, error in ((np.inf, None), (np.nan, "NaN")):
        tensor[3, 4] = value
        for image in (tensor, cupy.from_dlpack(tensor)):
            for _ in range(2):
                if error is None:
                    known = ecc.euler_curve(tensor.cpu().numpy(), levels).values
                    assert_arrays_equal(ecc.euler_curve(image, levels).values, known, like=image)
                else:
                    with pytest.raises(ValueError, match=error):
                        ecc.euler_curve(image, levels)


def test_thresholds_that_change_on_the_device():
    image = RNG.random((60, 130)).astype(np.float32)
    device = cupy.asarray(image)
    levels = cupy.linspace(0, 1, 33)
    for _ in range(3):
        levels *= 0.9
        known = ecc.euler_curve(image, levels.get(), nan="omit").values
        for _ in range(3):
            found = ecc.euler_curve(device, levels, nan="omit")
            assert_arrays_equal(found.values, known, like=device)
            assert found.thresholds is levels


@pytest.mark.parametrize("shape", [(70, 260), (9, 40, 260), (4096,), (64, 64, 64)])
def test_repeated_default_calls_and_numbers(shape):
    for scale, offset in ((1, 0), (1e-3, 7), (1e30, -1e30), (-0.3, 0), (1e-38, 0), (0, 1)):
        image = (RNG.normal(size=shape) * scale + offset).astype(np.float32)
        for superlevel in (False, True):
            for _ in range(2):
                assert_same(ecc.euler_curve, image, superlevel=superlevel)
    image.flat[5] = np.nan
    for _ in range(2):
        with pytest.raises(ValueError, match="NaN"):
            ecc.euler_curve(cupy.asarray(image))
    for share in (0.2, 0.7):
        mask = RNG.random(shape) < share
        for connectivity in (1, len(shape)):
            known = ecc.euler_number(mask, connectivity)
            assert [ecc.euler_number(cupy.asarray(mask), connectivity) for _ in "12"] == [known] * 2


def test_repeated_calls_in_threads_and_streams():
    images = RNG.random((8, 100, 256)).astype(np.float32)
    known = [(ecc.euler_curve(image).values, ecc.euler_number(image > 0.5)) for image in images]

    def call(i):
        with cupy.cuda.Stream(non_blocking=True) as stream:
            image = cupy.asarray(images[i % 8])
            mask = image > 0.5
            for _ in range(20):
                values = ecc.euler_curve(image).values
                number = ecc.euler_number(mask)
                np.testing.assert_array_equal(values.get(), known[i % 8][0])
                assert number == known[i % 8][1]
            stream.synchronize()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, range(16)))


VARIED = {
    "mask": (lambda x: x, {}, True),
    "batch": (lambda x: x, {"axis": (1, 2)}, False),
    "masked batch": (lambda x: x, {"axis": (0, 2)}, True),
    "two batch axes": (lambda x: x, {"axis": 1}, False),
    "strides": (lambda x: x[:, :, ::2], {}, False),
    "strides, mask": (lambda x: x[:, 1:, ::3], {}, True),
    "line": (lambda x: x.reshape(-1), {}, True),
    "direction": (lambda x: x, {"direction": (1.0, 2.0, 0.5)}, True),
    "range": (lambda x: x, {"range": (-1, 1), "nan": "omit"}, False),
}


@PUT
@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "u1", "i4"])
@pytest.mark.parametrize(("part", "options", "masked"), VARIED.values(), ids=VARIED)
def test_repeated_calls_of_other_layouts(put, part, options, masked, dtype):
    """Other values in the same memory, masks included; NaN is noticed in any call."""
    thresholds = 9 if "range" in options else np.linspace(-1.5, 1.5, 7)
    shape = (4, 30, 48)
    scale = 100 if dtype[0] in "ui" else 1
    host = np.zeros(shape, dtype)
    image = put(host)
    kept = put(np.ones(shape, bool))
    for _ in range(3):
        host = (scale * RNG.random(shape)).astype(dtype)
        mask = RNG.random(shape) < 0.7
        image[...], kept[...] = put(host), put(mask)
        given = options | ({"mask": part(mask)} if masked else {})
        there = options | ({"mask": part(kept)} if masked else {})
        levels = thresholds if isinstance(thresholds, int) else scale * thresholds
        known = ecc.euler_curve(part(host), levels, **given)
        found = ecc.euler_curve(part(image), levels, **there)
        assert_arrays_equal(found.values, known.values, like=image)
        np.testing.assert_array_equal(found.thresholds.tolist(), known.thresholds)
    if dtype[0] == "f" and options.get("nan") != "omit":
        image[1, 3, 6], kept[1, 3, 6] = np.nan, True
        with pytest.raises(ValueError, match="NaN"):
            ecc.euler_curve(part(image), levels, **there)
