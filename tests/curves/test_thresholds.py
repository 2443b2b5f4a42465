"""Thresholds of every kind: counted, given, exact, beyond the dtype, many, uneven, one."""

import itertools

import numpy as np
import pytest
from filtrations import name_of, sides, size_of
from oracles import euler as reference
from processes import run_python

import ecc_core as ecc
from ecc_core.testing import assert_curves_equal


def noise(shape, dtype, top=200, seed=0):
    return (np.random.default_rng(seed).random(shape) * top).astype(dtype)


def assert_right(backend, image, thresholds):
    """Compare both constructions and orders with the reference; thresholds come back as given."""
    thresholds = np.asarray(thresholds)
    for options in sides(image.ndim):
        like = backend.asarray(image)
        found = ecc.euler_curve(like, backend.asarray(thresholds), **options)
        expected = reference.euler_curve(image, thresholds, **options)
        assert_curves_equal(found, expected, thresholds=thresholds, like=like)


def test_a_range_as_wide_as_the_floats():
    largest = np.finfo(float).max
    counts = range(2, 300)  # For some, the last step exceeds the largest float.
    curves = [ecc.euler_curve(np.zeros(1), n, range=(-largest, largest)) for n in counts]
    ends = [curve.thresholds[[0, -1]] for curve in curves]
    np.testing.assert_array_equal(ends, [[-largest, largest]] * len(counts))


@pytest.mark.sweep
@pytest.mark.parametrize(
    "thresholds",
    [
        [-1, 0, 5, 255, 256, 300],
        [-(2**63), -1, 0, 2**63 - 1],
        np.array([0, 2**64 - 1], dtype=np.uint64),
        [-1e300, -1.0, -0.5, 0.5, 254.5, 255.5, 300.0, 1e300],
        [-np.inf, 100, np.inf],
        [3.0, 3.0, 3.25, 3.5, 3.5, 4.0],
        np.array([1, 1, 2, 3, 3], dtype=np.uint8),
        np.array([-5, 3], dtype=">i4"),
        np.array([0.1, 30.3], dtype=np.float16),
        [False, True],
        (0, 1, 2),
        range(0, 260, 13),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "uint16", "int32", "uint64", "int64", "float16", "float32"]
)
def test_thresholds_beyond_and_between_the_values(backend, dtype, thresholds):
    image = noise((9, 67), dtype, 120)
    if image.dtype.kind in "iu":
        image[0, :2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    assert_right(backend, image, thresholds)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64"])
def test_integers_beyond_the_doubles(backend, dtype):
    rng = np.random.default_rng(3)
    near = np.array([2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, 2**63 - 513], np.uint64)
    image = rng.choice(near, (17, 67)).astype(dtype)
    assert_right(backend, image, np.sort(near))
    assert_right(backend, image, np.sort(near).astype(np.int64))
    assert_right(backend, image, np.unique(near.astype(np.float64)))
    if dtype == "int64":
        assert_right(backend, -image, -np.sort(near).astype(np.int64)[::-1])


def test_uint64_above_int64(backend):
    values = np.array([0, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1], np.uint64)
    image = np.random.default_rng(4).choice(values, (17, 67))
    assert_right(backend, image, values)
    assert_right(backend, image, np.array([-1, 0, 2**63 - 1]))
    assert_right(backend, image, np.array([-1.0, 2.0**63, 2.0**64, np.inf]))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_doubles_between_two_neighbouring_floats(backend, dtype):
    one = np.array(1, dtype)
    floats = [np.nextafter(one, 0), one, np.nextafter(one, np.array(2, dtype))]
    image = np.random.default_rng(5).choice(np.array(floats, dtype), (17, 67))
    doubles = [float(f) for f in floats]
    beside = [np.nextafter(f, way) for f in doubles for way in (-9, 9)]
    assert_right(backend, image, np.sort([*doubles, *beside]))
    even = np.linspace(doubles[0], doubles[2], 9)
    assert_right(backend, image, even.repeat(2))
    tiny = np.finfo(dtype).smallest_subnormal
    huge = np.finfo(dtype).max
    image = np.random.default_rng(6).choice(np.array([-huge, -tiny, 0, tiny, huge]), (17, 67))
    edges = [-float(huge), -float(tiny), -float(tiny) / 2, 0, float(tiny) / 2, float(huge)]
    assert_right(backend, image.astype(dtype), edges)
    assert_right(backend, image.astype(dtype), [-1.5 * float(huge), 1.5 * float(huge)])


EVEN = [
    *[(0.0, 1.0), (-1.0, 1.0), (0.1, 0.7), (-3e38, 3e38), (0.0, 1e-44), (-1e-38, 2e-38)],
    *[(1e6, 1e6 + 1), (1.0, 1.0 + 2**-20), (16777215.0, 16777300.0), (-1e-3, 1e5)],
    *[(5e-324, 1e-300), (0.0123, 0.0456), (-17.3, 123.4)],
]


@pytest.mark.sweep
@pytest.mark.parametrize("count", [2, 3, 100, 256, 1000])
@pytest.mark.parametrize("limits", EVEN, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_at_and_beside_even_thresholds(backend, dtype, limits, count):
    thresholds = np.linspace(*limits, count)
    near = thresholds.astype(dtype)
    below, above = (np.nextafter(near, np.array(way, dtype)) for way in (-np.inf, np.inf))
    values = np.concatenate([below, near, above])
    image = np.random.default_rng(7).choice(values[np.isfinite(values)], (11, 130))
    assert_right(backend, image, thresholds)
    assert_right(backend, image, near)  # These are nearly evenly spaced.
    assert_right(backend, image, np.arange(*limits, (limits[1] - limits[0]) / count))
    found = ecc.euler_curve(backend.asarray(image), count, range=limits)
    assert_curves_equal(found, reference.euler_curve(image, thresholds), thresholds=thresholds)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "i4", "i8", "f4", "f8"])
@pytest.mark.parametrize("count", [255, 256, 257, 300, 66_000])
def test_many_thresholds(backend, dtype, count):
    image = noise((23, 131) if count < 1000 else (5, 131), dtype)
    assert_right(backend, image, np.linspace(-1, 201, count))
    assert_right(backend, image, np.linspace(-3.3, 77.7, count))
    assert_right(backend, image, np.linspace(-40_000.5, 40_000, count))
    assert_right(backend, image, np.geomspace(1e-9, 250, count))
    assert_right(backend, image, 100 + 100 * np.linspace(-1, 1, count) ** 3)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_many_equal_and_clustered_thresholds(backend, dtype):
    image = noise((23, 131), dtype)
    cluster = 77 + np.arange(300) * 1e-12
    assert_right(backend, image, np.sort([*cluster, 0, 199.0, 1e18]))
    assert_right(backend, image, np.full(300, 77.0))
    assert_right(backend, image, np.sort(image, axis=None).astype(np.float64))


@pytest.mark.parametrize("dtype", ["uint16", "int64", "float32"])
def test_thresholds_at_every_value(backend, dtype):
    image = noise((23, 131), dtype, 60_000)
    assert_right(backend, image, np.unique(image))


def test_no_thresholds(backend):
    image = backend.asarray(noise((9, 67), "uint8"))
    assert_curves_equal(ecc.euler_curve(image, []), [], like=image)
    assert ecc.euler_curve(image, 0).values.shape == (0,)
    assert ecc.euler_curve(image, np.int64(7)) == ecc.euler_curve(image, 7)
    none = np.empty(0, np.float32)
    assert_curves_equal(
        ecc.euler_curve(image, backend.asarray(none)), [], thresholds=none, like=image
    )


MEMORY = """
import resource
import numpy as np
import ecc_core as ecc
image = (np.random.default_rng(0).random((64, 67)) * 200).astype({dtype!r})
thresholds = np.linspace(-1, 201, 2**24)
ecc.euler_curve(image, 300)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
found = ecc.euler_curve(image, thresholds, workers=4)
extra = peak() - before
assert found.values.dtype == np.int64
levels = np.unique(image)
few = ecc.euler_curve(image, levels)
index = np.searchsorted(levels, thresholds, side="right") - 1
expected = np.where(index < 0, 0, few.values[np.maximum(index, 0)])
assert np.array_equal(found.values, expected)
print(extra / thresholds.nbytes)
"""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_two_to_the_24_thresholds_in_bounded_memory(dtype):
    done = run_python(MEMORY.format(dtype=dtype))
    assert done.returncode == 0, done.stderr
    # In arrays of that length, of which the result is one, however many workers there are.
    assert float(done.stdout) < 12


@pytest.mark.sweep
@pytest.mark.parametrize("span", [300, 9000, 2**23, 2**31, 2**50, 2**63])
@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8"])
def test_exact_levels_of_narrow_and_wide_ranges(dtype, span):
    """Bins of a narrow range, several digits of a wider one, and keys that fill a word."""
    limits = np.iinfo(dtype)
    low = max(limits.min, -span // 3)
    values = np.random.default_rng(10).integers(
        low, min(low + span, limits.max), 71 * 40, dtype=dtype, endpoint=True
    )
    image = np.where(np.arange(values.size) % 3, values, values[::-1]).reshape(71, 40)
    levels = reference.changing_levels(image)
    found = ecc.euler_curve(image, "exact")
    assert_curves_equal(found, reference.euler_curve(image, levels), thresholds=levels)


SHAPES = [(1,), (131,), (9, 65), (17, 130), (3, 9, 67)]  # Around words of 64 and vectors of 16.


def ulps(value, count, dtype):
    """`count` neighbouring values of a dtype."""
    integers = f"i{np.dtype(dtype).itemsize}"
    first = np.array(value, dtype).view(integers)
    return (first + np.arange(count, dtype=integers)).view(dtype)


def uneven(dtype):
    rng = np.random.default_rng(1)
    dtype = np.dtype(dtype)
    yield "random", np.sort(rng.random(300) * 200 - 100)
    yield "two scales", np.r_[50 + np.arange(20) * 1e-5, 99.0]
    yield "geometric", np.geomspace(1e-6, 100, 256)
    yield "signed zero", np.array([-0.0])
    yield "subnormal", np.array([-5e-324, 0, 5e-324, 1e-320])
    yield "infinite", np.array([-np.inf, 0, np.inf])
    if dtype.kind == "f":
        yield "one ulp apart", ulps(3.7, 10, dtype)
        yield "smallest", ulps(0, 4, dtype)
    else:
        info = np.iinfo(dtype)
        yield "ends", np.array([info.min, info.min + 1, 5, info.max - 1, info.max], dtype)
        yield "last", np.array([info.max], dtype)


def images(shape, dtype, thresholds):
    rng = np.random.default_rng(2)
    dtype = np.dtype(dtype)
    image = (rng.random(shape) * 200 - (100 if dtype.kind != "u" else 0)).astype(dtype)
    image[rng.random(shape) < 0.3] = 0
    yield image
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            near = thresholds.astype(dtype)
        special = np.array([np.inf, -np.inf, -0.0, 0.0], dtype)
        near = np.concatenate([near, np.nextafter(near, dtype.type(9)), special])
    else:
        near = np.array([np.iinfo(dtype).min, 0, 4, 5, 6, np.iinfo(dtype).max], dtype)
    yield rng.choice(near, shape)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32", "int64", "uint64"])
def test_uneven_thresholds(dtype):
    for (_, thresholds), shape in itertools.product(uneven(dtype), SHAPES):
        for image in images(shape, dtype, thresholds):
            for options in sides(len(shape)):
                found = ecc.euler_curve(image, thresholds, **options)
                assert_curves_equal(found, reference.euler_curve(image, thresholds, **options))
            holes = image.copy()
            never = np.random.default_rng(3).random(shape) < 0.2
            shown = {"mask": ~never}
            if holes.dtype.kind == "f":
                holes[never] = np.nan
                found = ecc.euler_curve(holes, thresholds, nan="omit", **options)
            else:
                found = ecc.euler_curve(holes, thresholds, **options, **shown)
            assert_curves_equal(found, reference.euler_curve(image, thresholds, **options, **shown))


@pytest.mark.parametrize(("superlevel", "connectivity"), [(False, 3), (True, 1)])
@pytest.mark.parametrize("high", [0.9, 1.1])
@pytest.mark.parametrize("low", [-0.1, 0.1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("even", [True, False])
def test_as_many_levels_as_a_byte_has_values(dtype, even, low, high, superlevel, connectivity):
    """There are 257 ranks: keys of a byte leave out the first or the last, or are widened."""
    rng = np.random.default_rng(6)
    at = np.linspace(0, 1, 256) if even else np.sort(rng.random(254))
    at = at if even else np.r_[0, at, 1]
    shape = (6, 130, 60)  # The image has several blocks.
    image = (low + rng.random(shape) * (high - low)).astype(dtype)
    inside = np.clip(image, 0.01, 0.99)
    lone = inside.copy()
    lone[3, 7, 9], lone[3, 120, 50] = -1, 2  # They are in two blocks.
    holes = lone.copy()
    holes[rng.random(shape) < 0.1] = np.nan
    mask = rng.random(shape) < 0.9
    options = {"superlevel": superlevel, "connectivity": connectivity}
    found = ecc.euler_curve(image, at, **options)
    assert_curves_equal(found, reference.euler_curve(image, at, **options))
    found = ecc.euler_curve(inside, at, mask=mask, **options)
    assert_curves_equal(found, reference.euler_curve(inside, at, mask=mask, **options))
    found = ecc.euler_curve(lone, at, mask=mask, **options)
    assert_curves_equal(found, reference.euler_curve(lone, at, mask=mask, **options))
    found = ecc.euler_curve(holes, at, nan="omit", **options)
    expected = reference.euler_curve(lone, at, mask=~np.isnan(holes), **options)
    assert_curves_equal(found, expected)


SIZES = [(1,), (130,), (1, 1), (1, 200), (65, 63), (17, 257), (1, 1, 1), (11, 20, 67), (3, 1, 129)]
BLOCKS = [(40, 9000), (8000, 9), (5, 150, 66)]
"""Shapes of images that are counted in several blocks."""


@pytest.mark.parametrize("cubes", [False, True])
@pytest.mark.parametrize("fraction", [0, 0.1, 0.5, 0.9, 1])
@pytest.mark.parametrize("shape", [*SIZES, *BLOCKS], ids=str)
def test_euler_number_of_blocks(shape, fraction, cubes):
    rng = np.random.default_rng(1)
    image = rng.random(shape) < fraction
    connectivity = len(shape) if cubes else 1
    expected = reference.euler_number(image, connectivity)
    assert ecc.euler_number(image, connectivity) == expected
    assert ecc.euler_number(np.asfortranarray(image), connectivity) == expected


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
@pytest.mark.parametrize(
    "case",
    [
        pytest.param((shape, at, side), id=f"{size_of(shape)}-{at}-{name_of(side)}")
        for shape in [(40, 130), *BLOCKS[1:]]
        for at in ([40], [40, 40, 40], [-5], [300], [-5, 40], [99, 300])
        for side in sides(len(shape))
    ],
)
def test_curves_at_one_level(dtype, case):
    """Thresholds may be repeated or beyond all values, and points may never enter."""
    shape, at, options = case
    rng = np.random.default_rng(2)
    image = (rng.random(shape) * 100).astype(dtype)
    mask = rng.random(shape) < 0.8
    found = ecc.euler_curve(image, at, **options)
    assert_curves_equal(found, reference.euler_curve(image, at, **options))
    found = ecc.euler_curve(image, at, mask=mask, **options)
    expected = reference.euler_curve(image, at, mask=mask, **options)
    assert_curves_equal(found, expected)
    if image.dtype.kind == "f":
        holes = np.where(mask, image, image.dtype.type(np.nan))
        found = ecc.euler_curve(holes, at, nan="omit", **options)
        assert_curves_equal(found, expected)


def test_stack_at_one_level():
    stack = np.random.default_rng(3).random((5, 33, 70)) < 0.4
    found = ecc.euler_curve(stack, [0.5], axis=(1, 2), superlevel=True).values[:, 0]
    np.testing.assert_array_equal(found, [reference.euler_number(image) for image in stack])
