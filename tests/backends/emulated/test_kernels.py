"""Curves by the CUDA kernels against those of the CPU backend, bit for bit."""

import numpy as np
import pytest
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
    fields,
)

from ecc_core._backends.cuda import rules
from ecc_core._request.levels import round_to_levels


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
    image[:, ::2, ::2] = 2  # Each point is a component, and all are in one bin.
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
    noise, smooth = fields(shape, dtype)
    check(emulator, noise, levels, side, kernel)
    check(emulator, smooth, levels, side, kernel)
    if dtype == "float32" and np.prod(shape) < 1 << 16:  # Values lie at and next to levels.
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
    monkeypatch.setattr(emulator.backend.scan_plans, "SAMPLES_A_TABLE", 1)
    kernel, shape, dtype, levels = CASES[case]
    noise, smooth = fields(shape, dtype)
    check(emulator, noise, levels, SIDES[1], kernel)
    check(emulator, smooth, levels, SIDES[1], kernel)


@pytest.mark.parametrize(
    ("dtype", "level"),
    [
        *[("uint8", level) for level in (0, 127, 128, 255)],
        *[("int8", level) for level in (-128, -3, 126)],
        ("bool", 1),
    ],
)
@pytest.mark.parametrize(
    ("shape", "side"),
    [
        ((2, 37, 96), (False, False)),
        ((1, 19, 16), (True, True)),
        ((2, 9, 11, 48), (True, False)),
        ((1, 17, 8, 32), (False, True)),
    ],
)
def test_one_level_of_bytes(emulator, shape, side, dtype, level):
    rng = np.random.default_rng(11)
    images = rng.integers(0, 256, shape, dtype=np.uint8).view(dtype)
    if dtype == "bool":
        images = np.where(rng.random(shape) < 0.5, images.view(np.uint8), 0).view(np.bool_)
    known = images if dtype != "bool" else images.view(np.uint8) != 0
    check(emulator, images, np.array([level]), side, "number", known=known)


@pytest.mark.parametrize(
    ("shape", "kernel", "side"),
    [((2, 70, 260), "bytes2d", SIDES[0]), ((1, 9, 40, 272), "bytes3d", SIDES[1])],
)
def test_booleans_whose_true_is_any_byte(emulator, shape, kernel, side):
    rng = np.random.default_rng(9)
    images, mask = rng.random((2, *shape)) < 0.7
    bytes_ = [(part * rng.integers(1, 256, shape)).astype(np.uint8) for part in (images, mask)]
    odd, shown = (part.view(np.bool_) for part in bytes_)
    levels = np.array([0.0, 0.5, 1.0])
    check(emulator, odd, levels, side, kernel, known=images)
    check(emulator, odd, levels, side, known=images, mask=shown)


def test_warps_that_take_several_parts_of_channels(emulator, monkeypatch):
    monkeypatch.setattr(emulator, "processors", 1)
    images = next(fields((1, 280, 132, 3), "uint8"))
    check(emulator, images, BYTES, SIDES[0], "bytes3d")
