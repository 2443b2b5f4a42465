"""Bad input: one clear error that names the argument, what it must be and what was given."""

import importlib.util
import re

import numpy as np
import pytest

import ecc_core as ecc

IMAGE = np.arange(63 * 7, dtype=np.float32).reshape(7, 63)
VOLUME = np.zeros((2, 3, 4), np.uint8)
LABELS = np.ones(IMAGE.shape, np.int32)


FUNCTIONS = {
    "euler_number": ecc.euler_number,
    "euler_curve": ecc.euler_curve,
    "euler_coefficients": ecc.euler_coefficients,
    "betti_curves": ecc.betti_curves,
    "component_curves": ecc.component_curves,
    "minkowski_curves": ecc.minkowski_curves,
    "persistence_pairs": ecc.persistence_pairs,
    "region_curves": lambda image: ecc.region_curves(image, LABELS),
}

BAD_IMAGES = {
    "0-D": (np.float32(3), ValueError, r"`image`.*\(\)"),
    "4-D": (np.zeros((2, 3, 4, 5)), ValueError, r"`image`.*\(2, 3, 4, 5\)"),
    "complex": (IMAGE.astype(complex), TypeError, "`image`.*complex128"),
    "object": (IMAGE.astype(object), TypeError, "`image`.*object"),
    "str": (np.array([["a", "b"]]), TypeError, "`image`.*(<U1|str)"),
    "bytes": (np.array([[b"a", b"b"]]), TypeError, "`image`.*(S1|bytes)"),
    "time": (np.zeros((2, 2), "datetime64[s]"), TypeError, "`image`.*datetime64"),
    "record": (np.zeros((2, 2), [("a", "u1")]), TypeError, "`image`"),
    "longdouble": (IMAGE.astype(np.longdouble), TypeError, "`image`.*(longdouble|float\\d+)"),
    "none": (None, (TypeError, ValueError), "`image`"),
    "ragged": ([[1, 2], [3]], ValueError, "`image` must be an array, got a ragged sequence"),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("case", BAD_IMAGES)
def test_bad_images(function, case):
    image, error, message = BAD_IMAGES[case]
    with pytest.raises(error, match=message):
        FUNCTIONS[function](image)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("image", "connectivity", "message"),
    [
        (IMAGE[0], 2, "`connectivity` must be 1 for a 1-D image, got 2"),
        (IMAGE, 3, "`connectivity` must be 1 or 2 for a 2-D image, got 3"),
        (IMAGE, 0, "`connectivity` must be 1 or 2 for a 2-D image, got 0"),
        (IMAGE, -1, "`connectivity` must be 1 or 2 for a 2-D image, got -1"),
        (VOLUME, 2, "`connectivity` must be 1 or 3 for a 3-D image, got 2"),
        (VOLUME, 26, "`connectivity` must be 1 or 3 for a 3-D image, got 26"),
    ],
)
def test_connectivity(function, image, connectivity, message):
    labels = [np.ones(image.shape, int)] if function == "region_curves" else []
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        getattr(ecc, function)(image, *labels, connectivity=connectivity)


@pytest.mark.parametrize("place", [(0, 0), (6, 62), (3, 31), (0, 62), (6, 0)])
@pytest.mark.parametrize("connectivity", [1, 2])
def test_a_nan_anywhere_is_found(place, connectivity):
    image = IMAGE.copy()
    image[place] = np.nan
    with pytest.raises(ValueError, match="nan="):
        ecc.euler_curve(image, [0, 1], connectivity=connectivity)


KINDS_OF_NAN = [
    *[("float16", b) for b in (0x7C01, 0x7E00, 0x7FFF, 0xFC01, 0xFE00, 0xFFFF)],
    *[("float32", b) for b in (0x7F800001, 0x7FC00000, 0xFF800001, 0xFFC00000, 0xFFFFFFFF)],
    *[("float64", b << 32 | 1) for b in (0x7FF00000, 0x7FF80000, 0xFFF00000, 0xFFFFFFFF)],
]


@pytest.mark.parametrize(("dtype", "bits"), KINDS_OF_NAN)
def test_every_kind_of_nan_is_found(dtype, bits):
    image = IMAGE.astype(dtype)
    image.view(f"u{image.itemsize}")[4, 33] = bits
    with pytest.raises(ValueError, match="nan="):
        ecc.euler_coefficients(image)
    with pytest.raises(ValueError, match="NaN"):
        ecc.region_curves(image, LABELS)


@pytest.mark.parametrize(("dtype", "bits"), KINDS_OF_NAN)
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize(
    ("connectivity", "thresholds"), [(1, 256), (2, 256), (1, [1, 5, 30]), (2, "exact")]
)
def test_every_kind_of_nan_is_omitted(dtype, bits, connectivity, thresholds, superlevel):
    image = IMAGE.astype(dtype)
    image.view(f"u{image.itemsize}")[4, 33] = bits
    options = {"connectivity": connectivity, "superlevel": superlevel}
    with pytest.raises(ValueError, match="nan="):
        ecc.euler_curve(image, thresholds, **options)
    omitted = ecc.euler_curve(image, thresholds, nan="omit", **options)
    masked = ecc.euler_curve(image, thresholds, mask=~np.isnan(image), **options)
    np.testing.assert_array_equal(omitted.values, masked.values)


@pytest.mark.parametrize(
    ("image", "options"),
    [
        (np.zeros((0, 3)), {}),
        (np.zeros(0, np.uint8), {}),
        (np.full((3, 3), np.nan), {"nan": "omit"}),
        (np.full((3, 3), np.inf), {}),
        (np.array([-np.inf, np.inf]), {}),
        (np.ones((3, 3)), {"mask": np.zeros((3, 3), bool)}),
        (np.ma.masked_all((3, 3)), {}),
    ],
    ids=["no rows", "no points", "all NaN", "all inf", "both inf", "all masked", "masked array"],
)
def test_no_finite_value_to_take_the_range_from(image, options):
    with pytest.raises(ValueError, match="`range`"):
        ecc.euler_curve(image, 5, **options)
    found = ecc.euler_curve(image, 3, range=(0, 2), **options)
    assert found.values.shape == (3,)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize(
    ("argument", "error", "value"),
    [
        pytest.param(argument, error, value, id=f"{argument}-{value!r:.30}")
        for argument, error, values in [
            ("thresholds", ValueError, ([3, 1, 2], np.array([2.0, 1.0]), [*range(100), 5])),
            ("thresholds", ValueError, (np.array([5, 3], np.uint8), np.array([2**53 + 1, 2**53]))),
            ("thresholds", ValueError, (np.array([2**64 - 1, 2**63], np.uint64), [[1, 2], [3, 4]])),
            ("thresholds", ValueError, ([1.0, np.nan, 2.0], [np.nan], [np.nan, 1.0], "all", -5)),
            ("thresholds", TypeError, ([1j, 2j], [slice(2)], ["1", "2"])),
            ("thresholds", (TypeError, ValueError), (2.5, None)),
            ("range", ValueError, ((2, 1), (np.nan, 1), (0, np.nan), (0, np.inf), (-np.inf, 0))),
            ("range", (TypeError, ValueError), ((1,), (0, 1, 2), "ab", (0, 10**400))),
            ("connectivity", (TypeError, ValueError), (1.5,)),
            ("axis", ValueError, (2, -3, (0, 2), (0, -2), ())),
            ("axis", TypeError, (1.5,)),
            ("direction", ValueError, (1.0, (0, 0), (np.nan, 1), (np.inf, 1))),
            ("direction", TypeError, (("a", "b"), (1j, 0))),
            ("direction_scale", ValueError, (np.nan, np.inf)),
            ("direction_scale", TypeError, ("2", [1, [2]], 10**400)),
            ("spacing", ValueError, (0, (1, -1), (1, np.nan), (1, 1, 1))),
            ("spacing", TypeError, ("wide",)),
            ("workers", ValueError, (-1,)),
            ("workers", TypeError, (1.5, np.array([1, 2]))),
        ]
        for value in values
    ],
)
def test_bad_arguments(argument, error, value, dtype):
    image = IMAGE.astype(dtype)
    given = {"thresholds": 5}
    if argument in ("direction_scale", "spacing"):
        given["direction"] = (1, 0)
    given[argument] = value
    with pytest.raises(error, match=f"`{argument}`"):
        ecc.euler_curve(image, **given)
    if argument in ("thresholds", "range"):
        with pytest.raises(error, match=f"`{argument}`"):
            ecc.region_curves(image, LABELS, **given)


NAN = '`nan` must be "raise" or "omit"'
BOOLEAN = "`superlevel` must be True or False"
ALONE = "must be None without `direction`"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"connectivity": np.array([1, 2])}, ValueError, "`connectivity` must be 1 or 2 for a 2-D"),
        ({"superlevel": "no"}, TypeError, f"{BOOLEAN}, got 'no'"),
        ({"superlevel": np.array([True, False])}, TypeError, BOOLEAN),
        ({"nan": None}, ValueError, f"{NAN}, got None"),
        ({"nan": np.array(["omit"])}, ValueError, NAN),
        ({"mask": np.ones((63, 7), bool)}, ValueError, r"`mask`.*\(7, 63\).*\(63, 7\)"),
        ({"mask": True}, ValueError, "`mask`"),
        ({"mask": np.ones((7, 63))}, TypeError, "`mask`.*float64"),
        ({"mask": [[True], [True, False]]}, ValueError, "`mask` must be an array, got a ragged"),
        ({"axis": [[0], [1, 2]]}, TypeError, "`axis` must be an int or a tuple of ints"),
        ({"image": VOLUME[None], "axis": (0, 1, 2, 3)}, ValueError, "`axis`"),
        ({"image": VOLUME, "thresholds": "exact", "axis": (1, 2)}, ValueError, "exact"),
        ({"direction": (1, 0, 0)}, ValueError, r"`direction`.*\(2,\).*\(3,\)"),
        ({"direction": [[1], [1, 2]]}, ValueError, "`direction` must be numbers, got a ragged"),
        ({"direction_scale": "x"}, ValueError, f"`direction_scale` {ALONE}"),
        ({"spacing": 0}, ValueError, f"`spacing` {ALONE}, got 0"),
    ],
)
def test_options_of_a_curve(options, error, message):
    with pytest.raises(error, match=message):
        ecc.euler_curve(**{"image": IMAGE, "thresholds": [1.0, 2.0], **options})


DEVICES = "distinct non-negative device numbers, got"
TOGETHER = "must be None together with `devices`"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"devices": 0}, TypeError, "`devices` must be a sequence of ints, got 0"),
        ({"devices": ["gpu"]}, TypeError, r"`devices` must be a sequence of ints, got \['gpu'\]"),
        ({"devices": []}, ValueError, rf"`devices` must be {DEVICES} \[\]"),
        ({"devices": [0, -1]}, ValueError, rf"{DEVICES} \[0, -1\]"),
        ({"devices": [1, 1]}, ValueError, rf"{DEVICES} \[1, 1\]"),
        ({"mask": VOLUME > 0}, ValueError, f"`mask` {TOGETHER}"),
        ({"image": np.ma.array(VOLUME, mask=VOLUME == 0)}, ValueError, f"`mask` {TOGETHER}"),
        ({"axis": (1, 2)}, ValueError, f"`axis` {TOGETHER}, got tuple"),
        ({"direction": [1, 0, 0]}, ValueError, f"`direction` {TOGETHER}"),
        ({"direction_scale": 1.0}, ValueError, f"`direction_scale` {TOGETHER}"),
        ({"spacing": 2}, ValueError, f"`spacing` {TOGETHER}"),
        ({"workers": 2}, ValueError, f"`workers` {TOGETHER}"),
        ({"thresholds": "exact"}, ValueError, "`thresholds` must be an int or an array together"),
        ({"image": VOLUME[0, 0]}, ValueError, r"`image` must have 2 or 3 axes together.*\(4,\)"),
        ({"image": VOLUME * 1j}, TypeError, "`image` must have a boolean, integer or real floati"),
        ({"connectivity": 2}, ValueError, "`connectivity` must be 1 or 3 for a 3-D image, got 2"),
        ({"nan": "skip"}, ValueError, NAN),
    ],
)
def test_options_of_several_devices(options, error, message):
    with pytest.raises(error, match=message):
        ecc.euler_curve(**{"image": VOLUME, "thresholds": [0], "devices": [0], **options})


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_devices_need_cupy():
    message = r"`devices` need CuPy: pip install \"\.\[cuda12\]\" or pip install"
    with pytest.raises(ecc.errors.BackendError, match=message):
        ecc.euler_curve(VOLUME, [0], devices=[0])


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (-LABELS, ValueError, "`labels`.*-1"),
        (np.where(IMAGE == 5, -(2**40), 1), ValueError, f"`labels`.*{-(2**40)}"),
        (LABELS.astype(float), TypeError, "`labels`.*float64"),
        (LABELS.astype(complex), TypeError, "`labels`.*complex128"),
        (LABELS.astype(object), TypeError, "`labels`.*object"),
        (LABELS[:-1], ValueError, r"`labels`.*\(7, 63\).*\(6, 63\)"),
        (LABELS[0], ValueError, r"`labels`.*\(7, 63\).*\(63,\)"),
        ([[1, 2], [3]], ValueError, "`labels` must be an array, got a ragged sequence"),
    ],
)
def test_labels(labels, error, message):
    with pytest.raises(error, match=message):
        ecc.region_curves(IMAGE, labels)


def test_infinite_values_with_a_direction_are_no_nan():
    image = np.array([[-np.inf, 1.0], [np.inf, 2.0]])
    found = ecc.euler_curve(image, [-1e9, 1e300], direction=(1, 1), direction_scale=1e300)
    assert found.values.tolist() == [1, 1]


def test_labels_that_are_booleans_stay_so_where_the_image_is_masked():
    image = np.ma.array(IMAGE, mask=IMAGE == 5)
    found = ecc.region_curves(image, IMAGE > 3, [1000])
    assert found.labels.dtype == np.bool_
    assert found.labels.tolist() == [True]
