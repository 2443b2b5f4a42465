"""`euler_curve` and `euler_number` against the reference, scikit-image and GUDHI."""

import itertools

import numpy as np
import pytest
from filtrations import connectivities, sides
from oracles import euler as reference
from skimage.measure import euler_number as skimage_euler_number

import ecc_core as ecc
from ecc_core.testing import assert_curves_equal, known_shapes, strategies

EVERY_DTYPE = (*strategies.NATIVE_DTYPES, *strategies.SWAPPED_DTYPES)
SHAPES = {1: (301,), 2: (19, 131), 3: (4, 18, 67)}


def few_levels(shape, dtype, seed=0):
    """Return an image of five adjacent values, hence with many ties."""
    return np.random.default_rng(seed).integers(5, size=shape).astype(dtype)


@pytest.mark.parametrize("ndim", SHAPES)
@pytest.mark.parametrize("dtype", EVERY_DTYPE)
def test_every_dtype(backend, dtype, ndim):
    if not backend.supports(dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    rng = np.random.default_rng(1)
    noise = rng.integers(-100, 100, SHAPES[ndim]).astype(dtype)
    if noise.dtype.kind == "f":
        noise += rng.random(noise.shape).astype(dtype)
    for image, connectivity, superlevel in itertools.product(
        (noise, few_levels(SHAPES[ndim], dtype)), connectivities(ndim), (False, True)
    ):
        like = backend.asarray(image)
        options = {"connectivity": connectivity, "superlevel": superlevel}
        found = ecc.euler_curve(like, **options)
        low, high = image.min().item(), image.max().item()
        thresholds = np.linspace(float(low), float(high), 256)
        if float(high) != high:  # float64 would end below or above it
            thresholds = np.array([low + i * (high - low) // 255 for i in range(256)], np.uint64)
        expected = reference.euler_curve(image, thresholds, **options)
        assert_curves_equal(found, expected, thresholds=thresholds, like=like)
        found = ecc.euler_curve(like, "exact", **options)
        thresholds = reference.changing_levels(image, **options)
        expected = reference.euler_curve(image, thresholds, **options)
        assert_curves_equal(found, expected, thresholds=thresholds, like=like)


def assert_right_on_noise(backend, shape, dtype="uint8"):
    """Compare both constructions of an image with many ties and of one with few."""
    rng = np.random.default_rng(sum(shape))
    for top in (3, 250):
        image = rng.integers(top, size=shape).astype(dtype)
        thresholds = np.arange(-1, top + 1)
        for connectivity in connectivities(image.ndim):
            expected = reference.euler_curve(image, thresholds, connectivity=connectivity)
            found = ecc.euler_curve(
                backend.asarray(image), backend.asarray(thresholds), connectivity=connectivity
            )
            np.testing.assert_array_equal(found.values, expected, err_msg=f"{shape}")


@pytest.mark.parametrize("width", [1, 2, 3, 31, 32, 33, *range(61, 68), *range(125, 132), 257])
def test_widths_and_heights_around_words_and_groups(backend, width):
    assert_right_on_noise(backend, (width,))
    for height in (1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 66):
        assert_right_on_noise(backend, (height, width))
    for depth, height in itertools.product((1, 2, 3), (1, 2, 7, 8, 9, 16, 17)):
        assert_right_on_noise(backend, (depth, height, width))


LARGE = [
    (200_003,),
    (1000, 1100),
    (3, 70_001),
    (30_011, 3),
    (70, 80, 131),
    (3, 700, 700),
    (600, 5, 3),
    (2, 3, 20_011),
    (131, 130, 2),
]


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("shape", LARGE, ids=lambda s: "x".join(map(str, s)))
def test_larger_than_a_block(backend, shape, dtype):
    rng = np.random.default_rng(2)
    waves = sum(np.cos(g / 9.0) for g in np.ogrid[tuple(slice(n) for n in shape)])
    noise = rng.random(shape) * 2 * len(shape) - len(shape)
    for field in (waves, noise):
        image = ((field + 3) * 40).astype(dtype)
        for connectivity in connectivities(image.ndim):
            found = ecc.euler_curve(backend.asarray(image), connectivity=connectivity)
            thresholds = np.linspace(float(image.min()), float(image.max()), 256)
            expected = reference.euler_curve(image, thresholds, connectivity=connectivity)
            np.testing.assert_array_equal(found.values, expected)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(36_000, 60_001), (1300, 1301, 1303)])
def test_more_than_two_to_the_31_points(shape):
    # One row or slice over and over, without memory of its own: the curve is that of one of them.
    part = np.random.default_rng(11).integers(50, size=shape[1:]).astype(np.uint8)
    image = np.broadcast_to(part, shape)
    assert image.size > 2**31
    found = ecc.euler_curve(image, np.arange(50), connectivity=1)
    assert_curves_equal(found, reference.euler_curve(part, np.arange(50), connectivity=1))


@pytest.mark.parametrize("shape", known_shapes(), ids=lambda s: s.name)
def test_euler_number_of_known_shapes(backend, shape):
    image = backend.asarray(shape.image)
    assert ecc.euler_number(image, 1) == shape.euler_1
    assert ecc.euler_number(image, shape.image.ndim) == shape.euler_d
    assert ecc.euler_number(image) == shape.euler_d


@pytest.mark.parametrize("dtype", EVERY_DTYPE)
@pytest.mark.parametrize("shape", [(9, 66), (4, 9, 66)])
def test_euler_number_equals_scikit_image(backend, shape, dtype):
    if not backend.supports(dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    low = 0 if np.dtype(dtype).kind in "ub" else -2
    image = np.random.default_rng(4).integers(low, 3, shape).astype(dtype)
    if image.dtype.kind == "f":
        image[..., 0, :5] = [np.nan, np.inf, -np.inf, -0.0, 1e-7]
    for connectivity in (None, 1, image.ndim):
        found = ecc.euler_number(backend.asarray(image), connectivity)
        assert isinstance(found, int)
        assert found == skimage_euler_number(image, connectivity)
    assert ecc.euler_number(backend.asarray(image), connectivity=1) == skimage_euler_number(
        image, connectivity=1
    )


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (0, 0, 0), (3, 0, 2)])
def test_empty_images_have_zero_curves(backend, shape):
    image = backend.asarray(np.zeros(shape, dtype=np.uint8))
    assert_curves_equal(ecc.euler_curve(image, [0, 1, 2]), [0, 0, 0], like=image)
    assert ecc.euler_number(image) == 0
    assert_curves_equal(ecc.euler_curve(image, 3, range=(0, 2)), [0, 0, 0], like=image)
    found = ecc.euler_curve(image, "exact")
    assert_curves_equal(found, [], thresholds=np.zeros(0, np.uint8), like=image)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_default_range_is_that_of_finite_values(backend, dtype):
    image = few_levels((17, 67), dtype, seed=5)
    image[image == 3] = np.inf
    image[image == 0] = -np.inf
    for options in ({}, {"connectivity": 1, "superlevel": True}):
        found = ecc.euler_curve(backend.asarray(image), 3, **options)
        at = [1.0, 2.5, 4.0]
        assert_curves_equal(found, reference.euler_curve(image, at, **options), thresholds=at)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_two_zeros_are_one_value(backend, dtype):
    image = np.where(np.random.default_rng(6).random((9, 70)) < 0.5, -0.0, 0.0).astype(dtype)
    image[::4, ::5] = 1
    image[::3, ::7] = -1
    for connectivity, superlevel, zero in itertools.product((1, 2), (False, True), (-0.0, 0.0)):
        options = {"connectivity": connectivity, "superlevel": superlevel}
        found = ecc.euler_curve(backend.asarray(image), [zero], **options)
        assert_curves_equal(found, reference.euler_curve(image, [0.0], **options))
        exact = ecc.euler_curve(backend.asarray(image), "exact", **options)
        levels = reference.changing_levels(image, **options)
        assert_curves_equal(exact, reference.euler_curve(image, levels, **options))
        np.testing.assert_array_equal(exact.thresholds, levels)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("ndim", SHAPES)
def test_omitted_nan_never_enters(backend, ndim, dtype):
    rng = np.random.default_rng(7)
    image = rng.random(SHAPES[ndim]).astype(dtype)
    image[rng.random(image.shape) < 0.2] = np.nan
    for options in sides(ndim):
        thresholds = np.linspace(np.nanmin(image).item(), np.nanmax(image).item(), 256)
        found = ecc.euler_curve(backend.asarray(image), nan="omit", **options)
        expected = reference.euler_curve(image, thresholds, **options)
        assert_curves_equal(found, expected, thresholds=thresholds)
        # The complex of V has holes at the points that never enter, even at infinity.
        last = ecc.euler_curve(backend.asarray(image), [-np.inf, np.inf], nan="omit", **options)
        assert_curves_equal(last, reference.euler_curve(image, [-np.inf, np.inf], **options))


@pytest.mark.parametrize("dtype", EVERY_DTYPE)
def test_masked_points_never_enter(backend, dtype):
    if not backend.supports(dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    rng = np.random.default_rng(8)
    for shape in SHAPES.values():
        image = few_levels(shape, dtype, seed=8)
        mask = rng.random(shape) < 0.8
        mask[..., :2] = True  # the extremes are outside the mask, not inside
        image[~mask] = rng.choice(np.array([0, 1, 90], dtype), int((~mask).sum()))
        for options in sides(len(shape)):
            found = ecc.euler_curve(backend.asarray(image), mask=backend.asarray(mask), **options)
            kept = image[mask].astype(float)
            thresholds = np.linspace(kept.min(), kept.max(), 256)
            expected = reference.euler_curve(image, thresholds, mask=mask, **options)
            assert_curves_equal(found, expected, thresholds=thresholds)


def test_nan_below_the_mask_is_no_nan_of_the_image(backend):
    image = few_levels((9, 66), "float32")
    image[3, 4] = np.nan
    mask = ~np.isnan(image)
    found = ecc.euler_curve(backend.asarray(image), [1, 2], mask=backend.asarray(mask))
    assert_curves_equal(found, reference.euler_curve(image, [1, 2], mask=mask))


def test_masked_arrays():
    image, rng = few_levels((9, 66), "float32"), np.random.default_rng(9)
    hidden, also = rng.random((2, *image.shape)) < 0.3
    masked = np.ma.array(image, mask=hidden)
    both = ecc.euler_curve(masked, [0, 1], mask=also)
    assert_curves_equal(both, reference.euler_curve(image, [0, 1], mask=also & ~hidden))
    assert ecc.euler_number(masked, 1) == skimage_euler_number((image > 0) & ~hidden, 1)


def test_nothing_kept(backend):
    image = backend.asarray(few_levels((9, 66), "uint8"))
    nothing = backend.asarray(np.zeros((9, 66), bool))
    assert_curves_equal(ecc.euler_curve(image, [0, 9], mask=nothing), [0, 0], like=image)
