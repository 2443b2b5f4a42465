"""Curves by the CUDA kernels against those of the CPU backend, bit for bit.

One file, as processes of the suite take whole files, and each of them compiles what it runs.
"""

import ctypes
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from fake_cupy import guarded, ndarray
from kernel_cases import (
    BYTES,
    CASES,
    CLOSE,
    CROWDED,
    CROWDED_AND_INFINITE,
    CROWDED_MANY,
    DENSE_ON_ONE_SIDE,
    EVEN,
    INFINITE,
    PERCENTILES,
    SIDES,
    check,
    check_regions,
    fields,
    filtration_of,
    known_curve,
)

import ecc_core
from ecc_core._backends import backend
from ecc_core._backends.cuda import rules
from ecc_core._request.filtration import Direction, Filtration
from ecc_core._request.image import geometry_of
from ecc_core._request.levels import round_to_levels
from ecc_core._request.thresholds import Thresholds


@pytest.mark.parametrize(
    ("rule", "levels"),
    [
        *((rules.AFFINE, levels) for levels in (EVEN, np.linspace(-2, 2, 4096))),
        (rules.UNIFORM, EVEN.astype(np.float32) * 0.9),
        *((rules.CELLS, levels) for levels in (PERCENTILES, DENSE_ON_ONE_SIDE, INFINITE)),
        *((rules.PIECES, levels) for levels in (CROWDED, CROWDED_MANY, CROWDED_AND_INFINITE)),
        *((None, levels) for levels in (*CLOSE, np.linspace(0, 1, 5000))),
    ],
)
@pytest.mark.parametrize("superlevel", [False, True])
def test_the_cheapest_rule(rule, levels, superlevel):
    values = round_to_levels(levels, np.dtype(np.float32), superlevel).values
    found = rules.pair_rule(values, levels, values, superlevel)
    assert rule == (found and found.rule)


def test_sums_beyond_those_of_a_block(emulator):
    image = np.full((1, 700, 1000), 9000, np.uint16)
    image[:, ::2, ::2] = 2  # a component each, all in one bin
    levels = np.arange(5000)
    check(emulator, image, levels, SIDES[0], "coefficients2d")
    image[0, :300] = 2 * 9000 - image[0, :300]
    check(emulator, image, levels, SIDES[0], "coefficients2d")


# Each kernel is compiled for both sides, but most levels and shapes are tested with one of them.
BOTH_SIDES = {"2-D", "2-D bytes", "2-D single", "3-D", "3-D bytes", "3-D shorts"}


# Other shapes, levels and dtypes for kernels and rules that the other cases run.
SLOW = {
    *(
        "1-D whole rows",
        "1-D many",
        "1-D more",
        "5 rows",
        "2-D many",
        "2-D random many",
        "2-D small",
    ),
    *("2-D dense on one side", "2-D far from zero", "2-D random and infinite", "2-D subnormal"),
    *("2-D int32", "1-D float64", "batch of float64", "one slice", "one row", "3-D many float32"),
    *("3-D many percentiles", "3-D narrow bytes", "3-D few bytes", "2 channels of shorts"),
    *("3-D 12 bits", "3-D odd shorts", "thin bytes", "flat", "very narrow"),
    *("1-D many shorts", "3 channels", "3-D narrow", "3-D complements", "many", "narrow"),
    *("3-D percentiles", "3-D odd", "one column", "uneven", "recoded float64"),
}


@pytest.mark.parametrize(
    ("case", "side"),
    [
        pytest.param(
            case,
            side,
            id=f"{case}-{'cubes' if side[0] else 'vertices'}",
            marks=[pytest.mark.slow] if case in SLOW else [],
        )
        for number, case in enumerate(CASES)
        for side in (SIDES if case in BOTH_SIDES else [SIDES[number % 2]])
    ],
)
def test_curves(emulator, case, side):
    kernel, shape, dtype, levels = CASES[case]
    for images in fields(shape, dtype):
        check(emulator, images, levels, side, kernel)
    if dtype == "float32" and np.prod(shape) < 1 << 16:  # values at and next to levels
        near = np.float32(levels)[np.isfinite(levels)]
        near = [near, *(np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf))]
        images = np.random.default_rng(15).choice(np.ravel(near), shape)
        check(emulator, images, levels, side, kernel)


@pytest.mark.parametrize(
    "case",
    [
        "2-D float32 levels",
        "3-D random",
        pytest.param("3-D percentiles", marks=pytest.mark.slow),
    ],
)
def test_repeated_tables(emulator, monkeypatch, case):
    monkeypatch.setattr(emulator.backend.recipe, "SAMPLES_A_TABLE", 1)
    kernel, shape, dtype, levels = CASES[case]
    for images in fields(shape, dtype):
        check(emulator, images, levels, SIDES[1], kernel)


@pytest.mark.parametrize(
    "shape",
    [
        (2, 40, 264),
        (2, 5, 20, 142),
        pytest.param((1, 5, 37, 272), marks=pytest.mark.slow),
        pytest.param((1, 40_008), marks=pytest.mark.slow),
    ],
)
def test_samples_that_are_apart(emulator, shape):
    dtype = "uint16" if shape == (1, 5, 37, 272) else "float32"
    levels = EVEN if dtype == "float32" else np.linspace(0, 65535, 300)
    images = next(fields(shape, dtype))
    for view in (images[..., ::2], images[..., 1::2], images[..., ::-3]):
        check(emulator, view, levels, SIDES[1])
        scanned = view.strides[-1] > 0 and view.ctypes.data % 16 == 0 == view.shape[-1] % 4
        assert emulator.launched[0].startswith("pairs" if scanned else "recode")


@pytest.mark.parametrize(
    ("shape", "dtype", "kernel", "side"),
    [
        ((2, 70, 264), "float32", "pairs2d", SIDES[0]),
        pytest.param((1, 90, 260), "float16", "pairs2d", SIDES[1], marks=pytest.mark.slow),
        ((2, 5, 20, 140), "float32", "pairs3d", SIDES[1]),
        pytest.param((1, 5, 37, 272), "uint16", "pairs3d", SIDES[0], marks=pytest.mark.slow),
        pytest.param((1, 5, 37, 60), "float32", "pairs3d", SIDES[0], marks=pytest.mark.slow),
    ],
)
def test_masks_that_lie_as_their_images(emulator, shape, dtype, kernel, side):
    rng = np.random.default_rng(6)
    levels = np.linspace(0, 65535, 100) if dtype == "uint16" else EVEN
    shown = rng.integers(0, 4, shape, dtype=np.uint8)
    for images in fields(shape, dtype):
        if dtype != "uint16":
            images[rng.random(shape) < 0.1] = np.nan
        for order in (range(len(shape)), (0, *range(2, len(shape)), 1)):
            back = np.argsort(order)
            image, mask = (
                np.ascontiguousarray(a.transpose(back)).transpose(order) for a in (images, shown)
            )
            check(emulator, image, levels, side, mask=mask.view(np.bool_), nan="omit")
            aligned = mask.strides[-1] == 1
            assert emulator.scans == [kernel] or (not aligned and "recode" in emulator.launched)


def test_masks_whose_rows_are_not_words(emulator):
    """Rows of 16 bytes in the image, but not of 4 bytes in the mask."""
    image, shown = np.random.default_rng(7).normal(size=(2, 1, 40, 130))
    check(emulator, image[..., :128], EVEN, SIDES[0], mask=(shown > 0)[..., :128], nan="omit")
    assert emulator.launched[0] == "recode"


def test_rows_that_are_far_apart(emulator, monkeypatch):
    monkeypatch.setattr(emulator.backend.recipe, "ROW_STRIDE", 100)
    for rows, kernel in ((3, "pairs2d"), (20, "coefficients2d")):
        image = next(fields((1, rows, 810), "float32"))
        check(emulator, image, EVEN, SIDES[0], kernel)


@pytest.mark.parametrize(
    ("shape", "side"),
    [
        ((2, 37, 96), (False, False)),
        ((1, 19, 16), (True, True)),
        ((2, 9, 11, 48), (True, False)),
        ((1, 17, 8, 32), (False, True)),
    ],
)
def test_one_level_of_bytes(emulator, shape, side):
    rng = np.random.default_rng(11)
    for dtype, levels in (("uint8", (0, 127, 128, 255)), ("int8", (-128, -3, 126)), ("bool", (1,))):
        images = rng.integers(0, 256, shape, dtype=np.uint8).view(dtype)
        if dtype == "bool":
            images = np.where(rng.random(shape) < 0.5, images.view(np.uint8), 0).view(np.bool_)
        known = images if dtype != "bool" else images.view(np.uint8) != 0
        for level in levels:
            check(emulator, images, np.array([level]), side, "number", known=known)


@pytest.mark.parametrize(
    "shape",
    [(16, 512), (33, 1040), (32, 16), (17, 8, 512), (9, 17, 528), (20, 64, 64), (1 << 5, 31, 16)],
)
def test_numbers(emulator, shape):
    """One and several warps and chunks, with and without a lane beyond the last points."""
    rng = np.random.default_rng(12)
    for cubes, share in ((False, 0.7), (True, 0.2)):
        images = rng.random((3, *shape)) < share
        filtration = Filtration(len(shape), len(shape) if cubes else 1, True)
        level = np.array([0.5])
        for i in range(3):
            known = ecc_core.euler_number(images[i], filtration.connectivity)
            image = guarded(images[i : i + 1])
            given = image, None, Thresholds(level), filtration
            run = emulator.launch.plan("number", *given, geometry=geometry_of(shape))
            assert run(image) == known == emulator.launch.number(image, level, filtration)
        # By words of the device that the number shares with other results.
        assert emulator.launch.value_range(guarded(images), filtration) == (0, 1)
    assert emulator.launched == [*["number"] * 6, "range"] * 2


@pytest.mark.parametrize(
    ("shape", "side"), list(zip([(2, 50, 150), (1, 8, 30, 70)], SIDES, strict=True))
)
def test_masks_infinities_and_strides(emulator, shape, side):
    rng = np.random.default_rng(3)
    images = rng.normal(size=shape).astype(np.float32)
    images[rng.random(shape) < 0.1] = np.inf
    images[rng.random(shape) < 0.1] = np.nan
    mask = rng.random(shape) < 0.8
    levels = np.array([-np.inf, -1, 0, 0.5, np.inf])
    for view, shown in ((images, mask), (images[..., ::-3], mask[..., ::-3])):
        for hidden in (None, shown):
            check(emulator, view, levels, side, mask=hidden, nan="omit")
            assert emulator.launched[0] == "recode"
    with pytest.raises(ValueError, match="NaN"):
        emulator.curve(images, levels, filtration_of(len(shape) - 1, side), mask | np.isnan(images))


@pytest.mark.parametrize(
    ("shape", "kernel", "side"),
    [((2, 70, 260), "bytes2d", SIDES[0]), ((1, 9, 40, 272), "bytes3d", SIDES[1])],
)
def test_booleans_whose_true_is_any_byte(emulator, shape, kernel, side):
    rng = np.random.default_rng(9)
    images, mask = rng.random((2, *shape)) < 0.7
    odd, shown = (
        (part * rng.integers(1, 256, shape)).astype(np.uint8).view(np.bool_)
        for part in (images, mask)
    )
    levels = np.array([0.0, 0.5, 1.0])
    check(emulator, odd, levels, side, kernel, known=images)
    check(emulator, odd, levels, side, known=images, mask=shown)


@pytest.mark.parametrize(("shape", "side"), list(zip([(50, 150), (8, 30, 70)], SIDES, strict=True)))
def test_directions(emulator, shape, side):
    image = np.random.default_rng(4).integers(0, 9, shape).astype(np.int16)
    vector = np.array([2.0, -1.0, 3.0])[: len(shape)]
    unit = tuple((vector / np.linalg.norm(vector)).tolist())
    direction = Direction(unit, 0.7, (1.0, 2.0, 0.5)[: len(shape)], shape)
    filtration = filtration_of(len(shape), side, direction=direction)
    values = direction.add(image, (0,) * len(shape))
    found = emulator.curve(image[None], EVEN, filtration)[0]
    np.testing.assert_array_equal(found, known_curve(values, EVEN, side))
    on_device = image[None].view(emulator.backend.arrays.cupy.ndarray)
    low, high = emulator.launch.value_range(on_device, filtration)
    assert (low, high) == (values.min(), values.max())


@pytest.mark.parametrize(
    ("dtype", "shape", "side"),
    [
        ("f4", (37, 300), SIDES[0]),
        pytest.param("f4", (37, 300), SIDES[1], marks=pytest.mark.slow),
        pytest.param("f4", (9, 23, 128), SIDES[0], marks=pytest.mark.slow),
        ("f4", (5, 9, 35), SIDES[1]),
        pytest.param("u1", (11, 125), SIDES[0], marks=pytest.mark.slow),
        pytest.param("i4", (9, 124), SIDES[1], marks=pytest.mark.slow),
        ("i8", (17, 90), SIDES[0]),
        ("b1", (40,), SIDES[1]),
    ],
)
def test_coefficients_exact_curves_and_ranges(emulator, dtype, shape, side):
    rng = np.random.default_rng(6)
    cubes, superlevel = side
    connectivity = len(shape) if cubes else 1
    for image, masked in zip(fields(shape, dtype), (False, True), strict=True):
        if not masked and image.dtype.kind in "iu":
            image.flat[::3] = np.iinfo(dtype).max
        mask = rng.random(shape) < 0.8 if masked else None
        options = {"superlevel": superlevel, "connectivity": connectivity, "mask": mask}
        filtration = Filtration(len(shape), connectivity, superlevel)
        given = guarded(image[None]), filtration
        shown = None if mask is None else guarded(mask[None])
        emulator.clear()
        found = emulator.launch.coefficients(*given, mask=shown)
        assert found.dtype == np.int8
        np.testing.assert_array_equal(found[0], ecc_core.euler_coefficients(image, **options))
        levels, values = emulator.launch.exact_curve(*given, mask=shown)
        known = ecc_core.euler_curve(image, "exact", **options)
        assert levels.dtype == known.thresholds.dtype
        np.testing.assert_array_equal(levels, known.thresholds)
        np.testing.assert_array_equal(values, known.values)
        kept = image if mask is None else image[mask]
        low, high = emulator.launch.value_range(*given, mask=shown)
        assert (low, high) == (kept.min(), kept.max())


@pytest.mark.parametrize(("shape", "dtype"), [((30, 260), "u2"), ((9, 11, 35), "i8")])
def test_regions(emulator, monkeypatch, shape, dtype):
    rng = np.random.default_rng(7)
    image = rng.normal(size=shape).astype(np.float32)
    if dtype == "u2":  # more labels than a block has rows for
        monkeypatch.setattr(emulator.backend.regions, "MOST_POINTS_OF_32_BITS", 0)
        few = rng.integers(0, 200, (shape[0] // 3, shape[1] // 2))
        labels = few.repeat(3, axis=0).repeat(2, axis=1).astype(dtype)
    else:
        monkeypatch.setattr(emulator.backend.regions, "ROWS_BYTES", 0)
        labels = (rng.integers(0, 5, shape) * 7).astype(dtype)
        labels[labels == 7] = 1 << 40
    levels = np.linspace(-1, 1, 9)
    for side in SIDES:
        emulator.clear()
        check_regions(emulator, image, labels, levels, side)
        few = np.minimum(labels, 3)  # whose curves the kernel writes that counts them
        check_regions(emulator, image, few, levels, side)
        check_regions(emulator, image, few, levels, side)
        assert not any(zeros.any() for zeros in emulator.backend.calls._shared.values())
    if dtype == "i8":
        labels[2, 3, 4] = -2
        with pytest.raises(ValueError, match="`labels` must not be negative, got -2"):
            emulator.backend.regions.rank_labels(labels.view(ndarray))


def test_labels_that_change_are_never_an_index(emulator, monkeypatch):
    """Another thread writes larger and negative labels after they were ranked."""
    image = np.random.default_rng(8).normal(size=(60, 70)).astype(np.float32).view(ndarray)
    labels = np.full((60, 70), 60_000, np.int32).view(ndarray)
    rank_labels = emulator.backend.regions.rank_labels

    def rank_and_change(given):
        found = rank_labels(given)
        given[::2] = 1 << 30
        given[1::2] = -5
        return found

    monkeypatch.setattr(emulator.backend.regions, "rank_labels", rank_and_change)
    monkeypatch.setattr(emulator.backend.regions, "MOST_BYTES", 1 << 17)
    ids, values = emulator.launch.region_curves(image, labels, np.zeros(1), Filtration(2, 2))
    assert ids.shape == (0,)  # no label of those that were ranked is left
    assert values.shape == (0, 1)


@pytest.mark.parametrize(
    "shape",
    [(5, 12, 40), *(pytest.param(s, marks=pytest.mark.slow) for s in ((40, 75), (64, 6, 30)))],
)
def test_more_and_larger_labels_than_in_the_last_image(emulator, monkeypatch, shape):
    rng = np.random.default_rng(11)
    image = rng.normal(size=shape).astype(np.float32)
    monkeypatch.setattr(emulator.backend.regions, "FIRST", 2)
    monkeypatch.setattr(emulator.backend.regions, "MOST_BYTES", 4 * 4 * 3000)
    levels = np.linspace(-1, 1, 3)
    check_regions(emulator, image, np.ones(shape, np.int32), levels, SIDES[0])
    # The largest label, the step from label to label, and how often they are counted.
    cases = (2, 1, 1), (150, 1, 2), (170, 1, 1), (200, 1, 2), (90, 30, 1), (9000, 1, 2), (9, 1, 1)
    for most, step, times in cases:
        # Most regions are one run of a row.
        labels = np.arange(image.size, dtype=np.int32).reshape(shape) // 9 % (most // step + 1)
        labels *= step
        labels.flat[-1] = most
        emulator.launched.clear()
        check_regions(emulator, image, labels, levels, SIDES[0])
        assert sum(source.startswith("points") for source in emulator.launched) == times
    labels.flat[0] = -4
    with pytest.raises(ValueError, match="`labels` must not be negative, got -4"):
        check_regions(emulator, image, labels, levels, SIDES[0])


def test_thresholds_that_change_in_place(emulator):
    levels, filtration = np.linspace(0, 1, 17), filtration_of(2, SIDES[0], nan="omit")
    images = np.random.default_rng(3).random((2, 1, 40, 260), np.float32)
    for _ in range(2):
        for image in images:
            found = emulator.launch.curve(guarded(image), levels, filtration)
            np.testing.assert_array_equal(found[0], known_curve(image[0], levels, SIDES[0]))
        levels *= 0.5


@pytest.mark.sweep
@pytest.mark.parametrize("levels", [EVEN, np.linspace(-2, 2, 5000), None])
@pytest.mark.parametrize("shape", [(40, 260), (9, 40, 260)])
def test_single_images_are_searched_for_nan(emulator, shape, levels):
    """Kernels of curves, and of coefficients (None), report to the host what is not finite."""
    image = np.random.default_rng(3).random(shape, np.float32)
    filtration = filtration_of(image.ndim, SIDES[0])

    def check_single(mask=None):
        shown = None if mask is None else guarded(mask[None])
        if levels is None:
            found = emulator.launch.coefficients(guarded(image[None]), filtration, mask=shown)
            known = ecc_core.euler_coefficients(image, connectivity=1, mask=mask, nan="omit")
        else:
            found = emulator.launch.curve(guarded(image[None]), levels, filtration, mask=shown)
            known = known_curve(image, levels, SIDES[0], mask=mask)
        np.testing.assert_array_equal(found[0], known)

    for value in (1.5, np.inf, -np.inf, 3e38):
        image[..., 7] = value
        check_single()
    for place in ((0,) * image.ndim, (3,) * image.ndim, (-1,) * image.ndim):
        before, image[place] = image[place], np.nan
        for shown in (None, np.ones(shape, bool)):
            with pytest.raises(ValueError, match="NaN"):
                check_single(shown)
        check_single(np.isfinite(image))
        image[place] = before
    check_single()


# Places of NaN: corners, borders of warps and of sixteen rows, and inside.
@pytest.mark.parametrize(
    ("shape", "dtype", "levels", "kernel"),
    [
        ((8, 40_003), "float32", EVEN, "pairs2d"),
        ((3, 3, 8100), "float32", EVEN, "pairs2d"),
        ((30, 70, 150), "float32", EVEN, "pairs2d"),
        pytest.param((2, 130, 260), "float64", EVEN, "pairs2d", marks=pytest.mark.slow),
        pytest.param((6, 5, 37, 272), "float32", PERCENTILES, "pairs3d", marks=pytest.mark.slow),
        pytest.param((6, 5, 37, 272), "float16", EVEN, "pairs3d", marks=pytest.mark.slow),
        pytest.param((6, 5, 50, 60), "float32", EVEN, "pairs3d", marks=pytest.mark.slow),
        ((6, 5, 20, 133), "float32", CROWDED, "pairs3d"),
    ],
)
def test_nan_is_noticed_wherever_it_is(emulator, shape, dtype, levels, kernel):
    rng = np.random.default_rng(4)
    images = rng.random(shape).astype(dtype)
    corner = (0,) * (len(shape) - 1)
    places = [corner, tuple(n - 1 for n in shape[1:])]
    places += [tuple(min(n - 1, at) for n in shape[1:]) for at in (3, 16, 128)]
    with_nan = np.arange(len(images)) % 3 != 1
    for i in np.flatnonzero(with_nan):
        places.append(tuple(rng.integers(0, shape[1:])))
        images[i][places.pop(0)] = np.nan
    adopted = emulator.backend.arrays.ArrayView(guarded(images), dtype, None)
    filtration = filtration_of(images.ndim - 1, SIDES[0])
    _, flags = emulator.launch.enqueue(adopted, levels, filtration)
    assert emulator.scans == [kernel]
    np.testing.assert_array_equal(flags != 0, with_nan)


@pytest.mark.parametrize(
    ("shape", "superlevel"),
    [
        ((1, 40, 260), False),
        ((1, 40, 260), True),
        pytest.param((1, 5, 20, 132), True, marks=pytest.mark.slow),
    ],
)
def test_even_thresholds_over_the_range(emulator, shape, superlevel):
    rng = np.random.default_rng(13)
    filtration = Filtration(len(shape) - 1, len(shape) - 1, superlevel)
    images = rng.normal(size=shape).astype(np.float32)

    def curve(image, nan="raise"):
        given, asked = guarded(image[None]), replace(filtration, nan=nan)
        geometry = geometry_of(image.shape)
        levels = Thresholds(count=200)
        run = emulator.launch.plan("curve", given, None, levels, asked, geometry=geometry)
        return run(given[0])

    for scale, offset in ((1, 0), (1e-3, 7), (1e30, -1e30), (-0.3, 0), (1e-38, 0), (0.01, -40)):
        image = images[0] * np.float32(scale) + np.float32(offset)
        thresholds, values = curve(image)
        at = np.linspace(float(image.min()), float(image.max()), 200)
        assert thresholds.dtype == np.float64
        np.testing.assert_array_equal(thresholds, at)
        np.testing.assert_array_equal(values, known_curve(image, at, (True, superlevel)))
    image[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        curve(image)
    thresholds, values = curve(image, "omit")
    known = known_curve(image, thresholds.get(), (True, superlevel))
    np.testing.assert_array_equal(values, known)
    # Ranges that the kernel leaves to the host: one value, and fewer values than thresholds.
    for some in (images[0] * 0, 1 + images[0] * np.float32(1e-6)):
        thresholds, values = curve(some)
        at = np.linspace(float(some.min()), float(some.max()), 200)
        np.testing.assert_array_equal(thresholds, at)
        np.testing.assert_array_equal(values, known_curve(some, at, (True, superlevel)))
    with pytest.raises(ValueError, match="`range` must be given"):
        curve(images[0] * np.nan, "omit")
    nothing = guarded(images[:, :0]), None, Thresholds(count=200), filtration
    geometry = geometry_of(nothing[0].shape[1:])
    assert emulator.launch.plan("curve", *nothing, geometry=geometry) is None


def test_warps_that_take_several_parts_of_channels(emulator, monkeypatch):
    monkeypatch.setattr(emulator, "processors", 1)
    images = next(fields((1, 280, 132, 3), "uint8"))
    check(emulator, images, BYTES, SIDES[0], "bytes3d")


@pytest.mark.parametrize("captured", [False, True])
def test_graphs_do_not_read_host_arrays_again(emulator, monkeypatch, captured):
    arrays = emulator.backend.arrays
    copies = []

    def copy(to, start, size, *_):
        copies.append(size)
        ctypes.memmove(to, start, size)

    monkeypatch.setattr(arrays.cupy.cuda.runtime, "memcpyAsync", copy)
    monkeypatch.setattr(emulator.backend.programs, "is_capturing", lambda: captured)
    np.testing.assert_array_equal(arrays.on_device(EVEN), EVEN)
    assert copies == ([] if captured else [EVEN.nbytes])


@pytest.mark.sweep
@pytest.mark.parametrize("levels", [EVEN, np.linspace(-2, 2, 20_000)], ids=len)
@pytest.mark.parametrize("superlevel", [False, True])
def test_lines_with_masks_and_nan(emulator, superlevel, levels):
    rng = np.random.default_rng(14)
    images = np.round(rng.normal(size=(2, 20_001)), 1).astype(np.float32)
    images[rng.random(images.shape) < 0.1] = np.nan
    mask = rng.random(images.shape) < 0.8
    for shown in (None, mask):
        side = False, superlevel
        few = "pairs2d" if shown is None else "recode pairs2d"
        kernel = "counts" if levels.size > 4096 else few
        check(emulator, images, levels, side, kernel, mask=shown, nan="omit")
    with pytest.raises(ValueError, match="NaN"):
        emulator.curve(images, levels, Filtration(1, 1, superlevel), mask)


@pytest.mark.parametrize("width", [2**31, np.int64(2**31), -(2**31) - 1, 1.5])
def test_structures_refuse_what_their_fields_cannot_hold(emulator, width):
    """The kernels count the points of a row in 32 bits."""
    with pytest.raises(OverflowError):
        emulator.backend.samples.SAMPLES(width=width)
    found = emulator.backend.samples.SAMPLES(width=2**31 - 1)
    assert found.view(emulator.backend.samples.SAMPLES.dtype)["width"] == 2**31 - 1


def test_exact_curve_of_bfloat16_along_a_direction(emulator, monkeypatch):
    """The backend sees such images as bits, to which nothing can be added."""
    image = np.random.default_rng(3).integers(-3, 4, (1, 9, 12)).astype(np.float32)
    bits = guarded((image.view(np.uint32) >> 16).astype(np.uint16).view(np.int16))
    view = emulator.backend.arrays.ArrayView(bits, "bfloat16", np.asarray)
    monkeypatch.setattr(emulator.launch, "adopt", lambda _: nullcontext(view))
    filtration = Filtration(2, 2, direction=Direction((0.6, 0.8), 0.5, (1.0, 1.0), (9, 12)))
    found = emulator.launch.exact_curve(bits, filtration)
    for own, wanted in zip(found, backend("cpu").exact_curve(image, filtration), strict=True):
        np.testing.assert_array_equal(own, wanted)
