"""Curves of device arrays against the reference: every compiled variant, not only the fast ones."""

import itertools

import numpy as np
import pytest
from oracles import euler as reference

import ecc_core
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

cupy = pytest.importorskip("cupy")
arrays = pytest.importorskip("ecc_core._backends.cuda.arrays")
launch = pytest.importorskip("ecc_core._backends.cuda.launch")
bins = pytest.importorskip("ecc_core._backends.cuda.bins")
rules = pytest.importorskip("ecc_core._backends.cuda.rules")
scan_plans = pytest.importorskip("ecc_core._backends.cuda.scan_plans")
programs = pytest.importorskip("ecc_core._backends.cuda.programs")

SHAPES = [(1,), (300,), (1, 1), (19, 150), (40, 256), (1, 1, 1), (9, 30, 140), (20, 70, 128)]
DTYPES = ["bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]
SIDES = list(itertools.product((False, True), (False, True)))


def truth(images, thresholds, cubes, superlevel, mask=None):
    options = {"connectivity": images.ndim - 1 if cubes else 1, "superlevel": superlevel}
    masks = [None] * len(images) if mask is None else mask
    curves = [
        reference.euler_curve(image, thresholds, mask=shown, **options)
        for image, shown in zip(images, masks, strict=True)
    ]
    return np.reshape(curves, (len(images), len(thresholds)))


def filtration_of(images, cubes, superlevel=False, nan="omit"):
    ndim = images.ndim - 1
    return Filtration(ndim, ndim if cubes else 1, superlevel, nan)


def check(images, thresholds, cubes, superlevel, mask=None, nan="omit", device_image=None):
    image = cupy.asarray(images) if device_image is None else device_image
    shown = None if mask is None else cupy.asarray(mask)
    filtration = filtration_of(images, cubes, superlevel, nan)
    values = launch.curve(image, thresholds, filtration, mask=shown)
    assert isinstance(values, cupy.ndarray)
    assert values.dtype == np.int64
    expected = truth(images, thresholds, cubes, superlevel, mask)
    np.testing.assert_array_equal(values.get(), expected)


def check_drawn(draw, batch, dtype, levels, cubes, superlevel):
    """Check any values and few ones, and floats with NaN, too."""
    rng = np.random.default_rng(1)
    for few in (False, True):
        images = draw(rng, batch, dtype, few)
        check(images, levels, cubes, superlevel, nan="raise")
        if images.dtype.kind == "f":
            images[rng.random(images.shape) < 0.1] = np.nan
            check(images, levels, cubes, superlevel)


def batches():
    """Shapes of batches, dtypes and levels."""
    even = np.linspace(-2.5, 2.5, 256)
    few = np.array([-100, 0, 3])
    uneven = np.linspace(-2, 2, 50)
    for shape in SHAPES:
        yield (3, *shape), "f4", even
    # Bytes that are compared bit by bit; 2-D images of fewer samples are scanned in pairs.
    yield (4, 1030, 1036), "i1", few
    yield (1, 2081, 2064), "i1", np.arange(-128, 128)
    yield (2, 3, 62, 132), "i1", few
    # The last axis is that of channels.
    for shape in ((2, 40, 260, 2), (1, 62, 132, 3), (1, 17, 260, 4)):
        yield shape, "u1", np.arange(256)
        yield shape, "i1", few
        yield shape, "u2", np.linspace(0, 65_535, 256)
        for levels in (even, np.linspace(-2, 2, 4096), np.sinh(uneven)):
            yield shape, "f4", levels
    # Few long rows, which are read in tiles, with and without columns behind the last one.
    for shape in ((2, 16_384), (1, 40_003), (2, 2, 9_001), (1, 5, 20_000), (2, 8, 4_100)):
        yield shape, "u1", np.arange(256)
        yield shape, "i2", few
        yield shape, "f8", uneven
        for levels in (even, np.linspace(-2, 2, 4096), np.sinh(uneven)):
            yield shape, "f4", levels
    for shape in ((2, 33, 140), (2, 7, 20, 140)):
        yield shape, "u2", np.arange(1 << 16)
        yield shape, "u2", np.arange(-3, 40)
    for sides in ((1, 1), (1, 700), (700, 1), (15, 127), (16, 128), (17, 129), (250, 301)):
        yield (2, *sides), "f4", even
        yield (2, *sides), "u1", np.linspace(0, 255, 30)
        yield (2, *sides), "i8", np.linspace(-(2.0**63), 2.0**63, 4096)
    yield (2000, 9, 11), "f4", np.linspace(-2, 2, 16)
    for count in (0, 1, 2, 257, 5000, 40_000, 200_000):
        for shape in ((2, 33, 300), (2, 5, 20, 140)):
            yield shape, "f4", np.sort(np.random.default_rng(3).normal(size=count))
    yield (2, 33, 300), "f4", np.linspace(-3, 3, 200_000)


@pytest.mark.parametrize(("batch", "dtype", "levels"), list(batches()))
@pytest.mark.parametrize(("cubes", "superlevel"), SIDES)
def test_batches(draw, batch, dtype, levels, cubes, superlevel):
    check_drawn(draw, batch, dtype, levels, cubes, superlevel)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(19, 150), (9, 30, 132)])
@pytest.mark.parametrize(("cubes", "superlevel"), SIDES)
def test_every_dtype(draw, dtype, shape, cubes, superlevel, few):
    rng = np.random.default_rng(2)
    images = draw(rng, (2, *shape), dtype, few)
    levels = np.sort(images.ravel()[::97])
    check(images, levels, cubes, superlevel)
    mask = rng.random(images.shape) < 0.8
    check(images, levels, cubes, superlevel, mask)
    if images.dtype.kind in "iu":
        info = np.iinfo(images.dtype)
        ends = np.array([info.min, info.max], images.dtype)
        check(images, ends, cubes, superlevel, mask)


RNG = np.random.default_rng(11)
AFFINE = np.linspace(-2, 2, 33)
NEAR = np.linspace(-1.7, 1.9, 40)
UNEVEN = np.sinh(np.linspace(-2, 2, 50))
PAIRED = [
    ("f4", AFFINE, rules.AFFINE),
    ("f4", NEAR, rules.UNIFORM),
    ("f4", UNEVEN, rules.CELLS),
    ("f2", UNEVEN, rules.CELLS),
    ("f4", np.sort(RNG.normal(size=300)), rules.PIECES),
    ("f4", np.linspace(-2, 2, 1024), rules.AFFINE),
    ("f4", np.linspace(-2, 2, 4096), rules.AFFINE),
    ("f4", np.linspace(-1.7, 1.9, 4096, dtype=np.float32), rules.UNIFORM),
    ("f4", np.sort(RNG.uniform(-2, 2, 1100)), rules.PIECES),
    ("f2", AFFINE, rules.AFFINE),
    ("u2", np.linspace(0, 65535, 256), rules.AFFINE),
    ("i2", np.linspace(-30_000, 30_001, 200), None),
    ("i2", np.linspace(-32_768, 32_767, 4096), None),
    ("u2", np.sort(RNG.integers(0, 65536, 60)), None),
    ("u1", np.linspace(3, 250, 90), rules.TABLE),
    ("i1", np.arange(-128, 128), rules.TABLE),
]


@pytest.mark.parametrize(
    ("dtype", "levels", "rule"),
    PAIRED,
    ids=[f"{dtype}-{len(levels)} levels" for dtype, levels, _ in PAIRED],
)
@pytest.mark.parametrize(("cubes", "superlevel"), SIDES)
@pytest.mark.parametrize(
    "shape", [(33, 140), (50, 260), (7, 16, 140), (5, 37, 260), (6, 20, 144), (3, 33, 272)]
)
def test_two_samples_in_a_register(draw, cubes, superlevel, shape, dtype, levels, rule):
    variant = bins.Variant(False, superlevel, 0, np.dtype(dtype).name, False)
    prepared = bins.prepare(levels, variant, 0)
    assert rule is None or prepared.rules.pair == rule
    check_drawn(draw, (2, *shape), dtype, levels, cubes, superlevel)


@pytest.mark.parametrize(
    ("shape", "dtype", "cubes"),
    [
        ((1, 4000, 4000, 3), "u1", False),  # There are more channels than warps take at once.
        ((1, 4000, 4000, 3), "f4", False),
        ((1, 1300, 1300, 1300), "u1", True),  # There are more than 2**31 samples.
        ((1, 46_400, 46_400), "u1", True),
        ((1, 1 << 28), "u1", False),  # There are more blocks than a grid has rows.
        ((65_540, 257, 256), "u1", False),  # There are more images than a grid has rows.
    ],
)
def test_large_batches(shape, dtype, cubes):
    images = cupy.random.default_rng(12).integers(0, 256, shape, np.uint8)
    images = images.astype(dtype, copy=False)
    found = launch.curve(images, np.arange(256), filtration_of(images, cubes)).get()
    ends = sorted({0, len(images) - 1})
    connectivity = images.ndim - 1 if cubes else 1
    known = [
        ecc_core.euler_curve(images[i].get(), np.arange(256), connectivity=connectivity).values
        for i in ends
    ]
    np.testing.assert_array_equal(found[ends], known)


@pytest.mark.parametrize(("cubes", "superlevel"), SIDES)
@pytest.mark.parametrize("dtype", ["u2", "i2"])
@pytest.mark.parametrize("shape", [(1, 16, 4), (4, 16, 140), (3, 37, 256), (9, 32, 141)])
def test_volumes_of_16_bits(draw, cubes, superlevel, dtype, shape):
    rng = np.random.default_rng(13)
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, 0, 5, info.max - 1, info.max], dtype)
    uneven = np.unique(rng.integers(info.min, info.max, 30_000))
    every = np.arange(info.min, info.max + 1)
    images = draw(rng, (2, *shape), dtype)
    check(images, every, cubes, superlevel)
    check(images, uneven, cubes, superlevel)
    images = rng.choice(ends, (2, *shape))
    check(images, every, cubes, superlevel)
    check(images, uneven, cubes, superlevel)


@pytest.fixture
def one_processor(monkeypatch):
    """Blocks are as large as on a device with a single multiprocessor."""
    monkeypatch.setattr(scan_plans, "processors", lambda _: 1)
    programs.forget_plans()
    yield
    programs.forget_plans()


FULL = (512, 48, 512)


def number_of_odd_indices():
    parities = [np.arange(n, dtype=np.uint16) % 2 for n in FULL]
    return sum(np.meshgrid(*parities, indexing="ij", sparse=True))


def crystal(*values):
    """Give points values by how many indices are odd: coefficients are -5 to 7 where none is."""
    return np.array(values, np.uint16)[number_of_odd_indices()]


def peaks():
    """One in 32 samples counts, so that few events of a word do."""
    z, y, x = np.ogrid[:512, :48, :512]
    return 9 * ((z % 2 | y % 4 | x % 4) == 0).astype(np.uint16)


FULL_OF_ONE_VALUE = {
    "checkers": lambda: 7 * (number_of_odd_indices() % 2) + 65_528,
    "constant": lambda: np.full(FULL, 40_000, np.uint16),
    "peaks": peaks,
    "crystal 5": lambda: crystal(5, 0, 1, 9),
    "crystal 5, last alike": lambda: crystal(5, 0, 9, 9),
    "crystal 4": lambda: crystal(4, 9, 8, 0),
    "crystal 4, last alike": lambda: crystal(4, 9, 0, 0),
}


@pytest.mark.parametrize("kind", FULL_OF_ONE_VALUE)
@pytest.mark.parametrize("cubes", [False, True])
@pytest.mark.usefixtures("one_processor")
def test_volumes_that_fill_one_bin(cubes, kind):
    """Many times what a count of 16 bits holds, of both signs."""
    levels = np.arange(1 << 16)
    host = FULL_OF_ONE_VALUE[kind]()
    device = cupy.asarray(host)[None]
    found = launch.curve(device, levels, filtration_of(device, cubes))
    known = ecc_core.euler_curve(host, levels, connectivity=3 if cubes else 1).values
    np.testing.assert_array_equal(found.get()[0], known)


def test_a_bin_that_holds_more_than_16_bits():
    checkers = np.indices((1024, 1024)).sum(axis=0) % 2 * np.ones((1, 1, 1), np.uint16)
    check(checkers.astype(np.uint16), np.arange(1 << 16), False, False)
    check(checkers.astype(np.uint16), np.arange(1 << 16), True, False)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("shape", [(33, 140), (7, 20, 140)])
@pytest.mark.parametrize(("cubes", "superlevel"), SIDES)
def test_nan_and_infinities(draw, dtype, shape, cubes, superlevel):
    rng = np.random.default_rng(5)
    images = draw(rng, (2, *shape), dtype)
    for value in (np.inf, -np.inf, 0.0, -0.0):
        images[rng.random(images.shape) < 0.05] = value
    limits = np.array([-np.inf, -1, -0.0, 0.5, np.inf])
    check(images, limits, cubes, superlevel, nan="raise")
    images[rng.random(images.shape) < 0.1] = np.nan
    mask = rng.random(images.shape) < 0.8
    check(images, limits, cubes, superlevel)
    check(images, limits, cubes, superlevel, mask)
    check(images, np.linspace(-2, 2, 64), cubes, superlevel)
    check(images, np.linspace(-2, 2, 64), cubes, superlevel, mask)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("shape", [(1, 1), (33, 140), (7, 20, 140)])
def test_one_nan_anywhere_raises(draw, dtype, shape, seed):
    rng = np.random.default_rng(seed)
    images = draw(rng, (1, *shape), dtype)
    images.ravel()[rng.integers(images.size)] = np.nan
    with pytest.raises(ValueError, match="nan") as caught:
        check(images, np.linspace(-1, 1, 9), True, False, nan="raise")
    assert str(caught.value) == NAN_MESSAGE
    check(images, np.linspace(-1, 1, 9), True, False, ~np.isnan(images), nan="raise")


@pytest.mark.parametrize("shape", [(33, 140), (7, 20, 140)])
@pytest.mark.parametrize(("cubes", "superlevel"), SIDES)
def test_subnormal_values_and_differences(shape, cubes, superlevel):
    rng = np.random.default_rng(10)
    images = rng.integers(-50, 50, (2, *shape)).astype(np.float32) * np.float32(1e-45)
    check(images, np.unique(images), cubes, superlevel)
    check(images, np.arange(-20, 20) * np.float64(np.float32(1e-45)), cubes, superlevel)
    images += np.float32(1.2e-38)
    check(images, np.unique(images)[::3], cubes, superlevel, nan="raise")


@pytest.mark.parametrize("dtype", ["f4", "u2", "i1"])
def test_layouts(draw, dtype):
    rng = np.random.default_rng(7)
    base = cupy.asarray(draw(rng, (3, 12, 40, 300), dtype))
    wide, long = (cupy.asarray(draw(rng, s, dtype)) for s in ((2, 5, 36, 544), (2, 5, 16_640)))
    views = [
        base[:, ::-1, :, ::-1],
        base[:, ::2, 3:, 5:],
        base[..., ::3],
        base.transpose(0, 3, 2, 1),
        base.transpose(0, 2, 3, 1)[::-1],
        base[:, 4, :, 1:],
        base[:, 4, :, ::2].transpose(0, 2, 1),
        base[:, :, :1, :1],
        cupy.broadcast_to(base[:1], base.shape),
        wide[..., ::2],
        wide[..., 1::2],
        wide[:, ::2, ::-1, ::2],
        wide[:, 3, :, ::2],
        *(long, long[..., 1:], long[..., ::2], long[..., ::-1], long[:, ::2], long[:, 3]),
        long[:, 2, ::2],
    ]
    levels = np.linspace(-2, 2, 40) if dtype == "f4" else np.linspace(-128, 60_000, 40)
    for view in views:
        mask = cupy.asarray(rng.random(view.shape) < 0.9)
        for cubes, superlevel in SIDES:
            check(view.get(), levels, cubes, superlevel, device_image=view)
            check(view.get(), levels, cubes, superlevel, mask.get(), device_image=view)


@pytest.mark.parametrize("shape", [(90, 140), (700, 700), (20, 40, 300)])
def test_replays_begin_anew_whatever_ran_before(draw, shape):
    """Counts are cleared by the call itself; other calls and streams have their own."""
    rng = np.random.default_rng(14)
    levels = np.linspace(-2, 2, 256)
    image = cupy.empty((1, *shape), np.float32)
    filtration = filtration_of(image, True, nan="raise")
    adopted = arrays.ArrayView(image, "float32", None)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]
    launch.enqueue(adopted, levels, filtration)
    with streams[0]:
        streams[0].begin_capture()
        captured = [launch.enqueue(adopted, levels, filtration) for _ in range(2)]
        graph = streams[0].end_capture()
    for turn in range(6):
        host = draw(rng, image.shape, "f4")
        if turn % 2:
            host.ravel()[rng.integers(host.size)] = np.nan
        image.set(host)
        cupy.cuda.Device().synchronize()
        eager = []
        for _ in range(5):
            graph.launch(streams[0])
            for stream in streams:
                with stream:
                    eager.append(launch.enqueue(adopted, levels, filtration))
        cupy.cuda.Device().synchronize()
        for values, flag in captured + eager:
            assert bool(flag[0]) == bool(turn % 2)
            if not turn % 2:
                np.testing.assert_array_equal(values.get(), truth(host, levels, True, False))
