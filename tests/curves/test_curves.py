"""Curves, Euler numbers and coefficients against the reference and scikit-image."""

import itertools

import numpy as np
import pytest
from filtrations import (
    EVERY_DTYPE,
    any_side,
    cases_of_connectivities,
    connectivities,
    name_of,
    sides,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import euler as reference
from skimage.measure import euler_number as skimage_euler_number

import ecc_core as ecc
from ecc_core.testing import assert_arrays_equal, assert_curves_equal, known_shapes, strategies

SHAPES = {1: (301,), 2: (19, 131), 3: (4, 18, 67)}


@pytest.mark.parametrize("dtype", EVERY_DTYPE)
@pytest.mark.parametrize(
    ("ndim", "options"),
    [
        pytest.param(ndim, side, id=f"{ndim}-D-{name_of(side)}")
        for ndim in SHAPES
        for side in sides(ndim)
    ],
)
@pytest.mark.parametrize("ties", [False, True])
def test_every_dtype(backend, dtype, ndim, options, ties):
    if not backend.supports(dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    rng = np.random.default_rng(1)
    image = rng.integers(-100, 100, SHAPES[ndim]).astype(dtype)
    if image.dtype.kind == "f":
        image += rng.random(image.shape).astype(dtype)
    if ties:
        image = rng.integers(5, size=image.shape).astype(dtype)
    like = backend.asarray(image)
    found = ecc.euler_curve(like, **options)
    low = image.min().item()
    high = image.max().item()
    thresholds = np.linspace(float(low), float(high), 256)
    if float(high) != high:  # float64 cannot represent this end.
        levels = [low + i * (high - low) // 255 for i in range(256)]
        thresholds = np.array(levels, np.uint64)
    expected = reference.euler_curve(image, thresholds, **options)
    assert_curves_equal(found, expected, thresholds=thresholds, like=like)
    found = ecc.euler_curve(like, "exact", **options)
    thresholds = reference.changing_levels(image, **options)
    expected = reference.euler_curve(image, thresholds, **options)
    assert_curves_equal(found, expected, thresholds=thresholds, like=like)


@pytest.mark.parametrize("width", [1, 2, 3, 31, 32, 33, *range(61, 68), *range(125, 132), 257])
def test_widths_and_heights_around_words_and_groups(backend, width):
    """Both constructions of images with many ties and with few."""
    rng = np.random.default_rng(width)
    heights = (1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 66)
    deep = itertools.product((1, 2, 3), (1, 2, 7, 8, 9, 16, 17))
    shapes = [(width,), *((height, width) for height in heights), *((*d, width) for d in deep)]
    for shape, top in itertools.product(shapes, (3, 250)):
        image = rng.integers(top, size=shape).astype(np.uint8)
        array = backend.asarray(image)
        thresholds = np.arange(-1, top + 1)
        for connectivity in connectivities(image.ndim):
            expected = reference.euler_curve(image, thresholds, connectivity=connectivity)
            found = ecc.euler_curve(array, backend.asarray(thresholds), connectivity=connectivity)
            np.testing.assert_array_equal(found.values, expected, err_msg=f"{shape}")
            expected = reference.euler_coefficients(image, connectivity=connectivity)
            found = ecc.euler_coefficients(array, connectivity=connectivity)
            np.testing.assert_array_equal(found, expected, err_msg=f"{shape}")


LARGE = [
    *[(200_003,), (1000, 1100), (3, 70_001), (30_011, 3), (33_001, 2), (9, 8_200)],
    *[(70, 80, 131), (3, 700, 700), (600, 5, 3), (2, 3, 20_011), (131, 130, 2)],
]


def assert_curve_of_range(backend, image, connectivity):
    """Compare the curve at evenly spaced thresholds over the range with the reference."""
    found = ecc.euler_curve(backend.asarray(image), connectivity=connectivity)
    thresholds = np.linspace(float(image.min()), float(image.max()), 256)
    expected = reference.euler_curve(image, thresholds, connectivity=connectivity)
    np.testing.assert_array_equal(found.values, expected)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("case", cases_of_connectivities(LARGE))
def test_larger_than_a_block(backend, dtype, case):
    shape, connectivity = case
    rng = np.random.default_rng(2)
    along_axes = np.meshgrid(*[np.arange(n) for n in shape], indexing="ij", sparse=True)
    waves = sum(np.cos(places / 9.0) for places in along_axes)
    noise = rng.random(shape) * 2 * len(shape) - len(shape)
    assert_curve_of_range(backend, ((waves + 3) * 40).astype(dtype), connectivity)
    image = ((noise + 3) * 40).astype(dtype)
    assert_curve_of_range(backend, image, connectivity)
    found = ecc.euler_coefficients(backend.asarray(image), connectivity=connectivity)
    expected = reference.euler_coefficients(image, connectivity=connectivity)
    np.testing.assert_array_equal(found, expected)


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


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", EVERY_DTYPE)
@pytest.mark.parametrize("shape", [(9, 66), (4, 9, 66)])
def test_euler_number_equals_scikit_image(backend, shape, dtype):
    if not backend.supports(dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    low = 0 if np.dtype(dtype).kind in "ub" else -2
    image = np.random.default_rng(4).integers(low, 3, shape).astype(dtype)
    if image.dtype.kind == "f":
        image[..., 0, :5] = [np.nan, np.inf, -np.inf, -0.0, 1e-7]
    given = backend.asarray(image)
    found = [ecc.euler_number(given, connectivity) for connectivity in (None, 1, image.ndim)]
    assert {type(number) for number in found} == {int}
    assert found == [
        skimage_euler_number(image, connectivity) for connectivity in (None, 1, image.ndim)
    ]


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (0, 0, 0), (3, 0, 2)])
def test_empty_images_have_zero_curves(backend, shape):
    image = backend.asarray(np.zeros(shape, dtype=np.uint8))
    assert_curves_equal(ecc.euler_curve(image, [0, 1, 2]), [0, 0, 0], like=image)
    assert ecc.euler_number(image) == 0
    assert_arrays_equal(ecc.euler_coefficients(image), np.zeros(shape, np.int8), like=image)
    assert_curves_equal(ecc.euler_curve(image, 3, range=(0, 2)), [0, 0, 0], like=image)
    found = ecc.euler_curve(image, "exact")
    assert_curves_equal(found, [], thresholds=np.zeros(0, np.uint8), like=image)


@pytest.mark.parametrize("connectivity", [1, 2])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("zero", [-0.0, 0.0])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_two_zeros_are_one_value(backend, dtype, connectivity, superlevel, zero):
    negative = np.random.default_rng(6).random((9, 70)) < 0.5
    image = np.where(negative, -0.0, 0.0).astype(dtype)
    image[::4, ::5] = 1
    image[::3, ::7] = -1
    options = {"connectivity": connectivity, "superlevel": superlevel}
    found = ecc.euler_curve(backend.asarray(image), [zero], **options)
    assert_curves_equal(found, reference.euler_curve(image, [0.0], **options))
    exact = ecc.euler_curve(backend.asarray(image), "exact", **options)
    levels = reference.changing_levels(image, **options)
    assert_curves_equal(exact, reference.euler_curve(image, levels, **options))
    np.testing.assert_array_equal(exact.thresholds, levels)


@pytest.mark.parametrize("dtype", EVERY_DTYPE)
def test_masked_points_and_omitted_nan_never_enter(backend, dtype):
    """The extremes are outside the mask. The complex of V has holes there, even at infinity."""
    if not backend.supports(dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    rng = np.random.default_rng(8)
    for shape, top in itertools.product(SHAPES.values(), (5, 90)):
        image = rng.integers(top, size=shape).astype(dtype)
        mask = rng.random(shape) < 0.8
        image[~mask] = rng.choice(np.array([0, 1, 100], dtype), np.count_nonzero(~mask))
        cases = [(image, {"mask": backend.asarray(mask)})]
        if image.dtype.kind == "f":
            cases.append((np.where(mask, image, np.array(np.nan, dtype)), {"nan": "omit"}))
        inside = image[mask].astype(float)
        infinite = np.array([-np.inf, np.inf])
        even = np.linspace(inside.min(), inside.max(), 256)
        for (points, kept), options in itertools.product(cases, sides(len(shape))):
            levels = reference.changing_levels(image, mask=mask, **options)
            for thresholds, at in ((256, even), ("exact", levels), (infinite, infinite)):
                found = ecc.euler_curve(backend.asarray(points), thresholds, **kept, **options)
                expected = reference.euler_curve(image, at, mask=mask, **options)
                assert_curves_equal(found, expected, thresholds=at)


def test_masked_arrays():
    rng = np.random.default_rng(9)
    image = rng.integers(5, size=(9, 66)).astype(np.float32)
    hidden, also = rng.random((2, *image.shape)) < 0.3
    masked = np.ma.array(image, mask=hidden)
    both = ecc.euler_curve(masked, [0, 1], mask=also)
    assert_curves_equal(both, reference.euler_curve(image, [0, 1], mask=also & ~hidden))
    assert ecc.euler_number(masked, 1) == skimage_euler_number((image > 0) & ~hidden, 1)
    found = ecc.euler_coefficients(masked)
    assert_arrays_equal(found, reference.euler_coefficients(image, mask=~hidden))
    assert not np.ma.isMaskedArray(found)


@pytest.mark.parametrize("lazy", [False, True])
def test_masked_elements_of_labels_and_masks_are_left_out(lazy):
    """Labels with missing values, as files are read, have no region there."""
    dask_array = pytest.importorskip("dask.array", reason="dask is not installed")
    rng = np.random.default_rng(10)
    image = rng.integers(5, size=(9, 66)).astype(np.float32)
    labels = rng.integers(1, 4, image.shape)
    hidden = (rng.random(image.shape) < 0.3) | (labels == 2)
    kept = rng.random(image.shape) < 0.7
    place = dask_array.from_array if lazy else np.ma.asarray
    known = [place(np.ma.array(array, mask=hidden)) for array in (labels, kept)]
    given = dask_array.from_array(image, chunks=(4, 20)) if lazy else image

    ids, rows = reference.region_curves(image, labels * ~hidden, [0, 1])
    regions = ecc.region_curves(given, known[0], [0, 1])
    assert_arrays_equal(np.asarray(regions.labels), ids)
    assert_arrays_equal(np.asarray(regions.values), rows)
    masked = ecc.euler_curve(given, [0, 1], mask=known[1]).values
    assert_arrays_equal(
        np.asarray(masked), reference.euler_curve(image, [0, 1], mask=kept & ~hidden)
    )


@settings(max_examples=150)
@given(st.data())
def test_coefficients_equal_the_reference(backend, data):
    dtypes = [d for d in EVERY_DTYPE if backend.supports(d)]
    image = data.draw(strategies.images(dtypes=dtypes, nan=data.draw(st.booleans())))
    mask = data.draw(st.none() | strategies.masks(image.shape))
    shown = {} if mask is None else {"mask": backend.asarray(mask)}
    options = data.draw(any_side(image.ndim))
    before = image.copy()
    found = ecc.euler_coefficients(backend.asarray(image), nan="omit", **shown, **options)
    expected = reference.euler_coefficients(image, mask=mask, **options)
    assert_arrays_equal(found, expected, like=backend.asarray(image))
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize(
    ("connectivity", "around", "extreme"),
    [
        (1, [5, 0, 9], 1 - 4),
        (2, [5, 9, 0], 1 - 4),
        (1, [5, 0, 9, 9], 1 - 6),
        (1, [5, 0, 0, 9], 1 - 6 + 12),
        (3, [5, 9, 0, 0], -1 + 6),
        (3, [5, 9, 9, 0], -1 + 6 - 12),
    ],
)
def test_extreme_coefficients(backend, connectivity, around, extreme):
    # The value of a point depends on the number of axes along which it is off the centre.
    off = np.indices((3,) * (len(around) - 1)) != 1
    image = np.array(around, np.uint8)[off.sum(axis=0)]
    found = ecc.euler_coefficients(backend.asarray(image), connectivity=connectivity)
    assert found[(1,) * image.ndim] == extreme
