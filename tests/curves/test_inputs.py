"""Bad input: one clear error that names the argument, what it must be and what was given."""

import importlib.util
import re

import numpy as np
import pytest

import ecc_core as ecc

IMAGE = np.arange(63 * 7, dtype=np.float32).reshape(7, 63)
VOLUME = np.zeros((2, 3, 4), np.uint8)
LABELS = np.ones(IMAGE.shape, np.int32)


def with_value(value):
    image = IMAGE.copy()
    image[3, 4] = value
    return image


FUNCTIONS = {
    "euler_number": ecc.euler_number,
    "euler_curve": ecc.euler_curve,
    "euler_coefficients": ecc.euler_coefficients,
    "region_curves": lambda image: ecc.region_curves(image, np.ones(np.shape(image), int)),
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
    "longdouble": (
        IMAGE.astype(np.longdouble),
        TypeError,
        f"`image`.*{np.dtype(np.longdouble).name}",
    ),
    "none": (None, (TypeError, ValueError), "`image`"),
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


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4"])
def test_nan_is_an_error_by_default(dtype):
    image = with_value(np.nan).astype(dtype)
    for function in (ecc.euler_curve, ecc.euler_coefficients):
        with pytest.raises(ValueError, match="nan="):
            function(image)
        with pytest.raises(ValueError, match="nan="):
            function(image, nan="raise")
        function(image, nan="omit")
    for thresholds in ([1, 2], "exact", 300):
        with pytest.raises(ValueError, match="nan="):
            ecc.euler_curve(image, thresholds)
    with pytest.raises(ValueError, match="NaN"):
        ecc.region_curves(image, LABELS)


@pytest.mark.parametrize("place", [(0, 0), (6, 62), (3, 31), (0, 62), (6, 0)])
def test_a_nan_anywhere_is_found(place):
    image = IMAGE.copy()
    image[place] = np.nan
    for connectivity in (1, 2):
        with pytest.raises(ValueError, match="nan="):
            ecc.euler_curve(image, [0, 1], connectivity=connectivity)


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        *[("float16", b) for b in (0x7C01, 0x7E00, 0x7FFF, 0xFC01, 0xFE00, 0xFFFF)],
        *[("float32", b) for b in (0x7F800001, 0x7FC00000, 0xFF800001, 0xFFC00000, 0xFFFFFFFF)],
        *[("float64", b << 32 | 1) for b in (0x7FF00000, 0x7FF80000, 0xFFF00000, 0xFFFFFFFF)],
    ],
)
def test_every_kind_of_nan_is_found(dtype, bits):
    image = IMAGE.astype(dtype)
    image.view(f"u{image.itemsize}")[4, 33] = bits
    for connectivity, thresholds in ((1, 256), (2, 256), (1, [1, 5, 30])):
        with pytest.raises(ValueError, match="nan="):
            ecc.euler_curve(image, thresholds, connectivity=connectivity)
        for superlevel in (False, True):
            options = {"connectivity": connectivity, "superlevel": superlevel}
            omitted = ecc.euler_curve(image, thresholds, nan="omit", **options)
            masked = ecc.euler_curve(image, thresholds, mask=~np.isnan(image), **options)
            np.testing.assert_array_equal(omitted.values, masked.values)


BAD_THRESHOLDS = {
    "unsorted": ([3, 1, 2], ValueError),
    "decreasing": (np.array([2.0, 1.0]), ValueError),
    "unsorted at the end": ([*range(100), 5], ValueError),
    "unsorted unsigned": (np.array([5, 3], np.uint8), ValueError),
    "unsorted uint64": (np.array([2**64 - 1, 2**63], np.uint64), ValueError),
    "unsorted large": (np.array([2**53 + 1, 2**53]), ValueError),
    "NaN": ([1.0, np.nan, 2.0], ValueError),
    "NaN alone": ([np.nan], ValueError),
    "NaN first": ([np.nan, 1.0], ValueError),
    "2-D": ([[1, 2], [3, 4]], ValueError),
    "word": ("all", ValueError),
    "negative": (-5, ValueError),
    "float": (2.5, (TypeError, ValueError)),
    "none": (None, (TypeError, ValueError)),
    "complex": ([1j, 2j], TypeError),
    "object": ([object()], TypeError),
    "words": (["1", "2"], TypeError),
}


@pytest.mark.parametrize("case", BAD_THRESHOLDS)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_bad_thresholds(case, dtype):
    thresholds, error = BAD_THRESHOLDS[case]
    with pytest.raises(error, match="`thresholds`"):
        ecc.euler_curve(IMAGE.astype(dtype), thresholds)
    with pytest.raises(error, match="`thresholds`"):
        ecc.region_curves(IMAGE.astype(dtype), LABELS, thresholds)


@pytest.mark.parametrize(
    "limits",
    [
        (2, 1),
        (np.nan, 1),
        (0, np.nan),
        (0, np.inf),
        (-np.inf, 0),
        (1,),
        (0, 1, 2),
        "ab",
        (0, 10**400),
    ],
)
def test_bad_ranges(limits):
    with pytest.raises((TypeError, ValueError), match="`range`"):
        ecc.euler_curve(IMAGE, 5, range=limits)
    with pytest.raises((TypeError, ValueError), match="`range`"):
        ecc.region_curves(IMAGE, LABELS, 5, range=limits)


@pytest.mark.filterwarnings("error")
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


DIRECTED = {"direction": (1, 0)}
NAN = '`nan` must be "raise" or "omit"'
BOOLEAN = "`superlevel` must be True or False"
ALONE = "must be None without `direction`"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"connectivity": 1.5}, (TypeError, ValueError), "`connectivity`"),
        ({"connectivity": np.array([1, 2])}, ValueError, "`connectivity` must be 1 or 2 for a 2-D"),
        ({"connectivity": "2"}, ValueError, "`connectivity` must be 1 or 2 for a 2-D image, got 2"),
        ({"superlevel": "no"}, TypeError, f"{BOOLEAN}, got 'no'"),
        ({"superlevel": np.array([True, False])}, TypeError, BOOLEAN),
        ({"nan": None}, ValueError, f"{NAN}, got None"),
        ({"nan": "OMIT"}, ValueError, f"{NAN}, got 'OMIT'"),
        ({"nan": np.array(["omit"])}, ValueError, NAN),
        ({"nan": ["omit"]}, ValueError, rf"{NAN}, got \['omit'\]"),
        ({"mask": np.ones((63, 7), bool)}, ValueError, r"`mask`.*\(7, 63\).*\(63, 7\)"),
        ({"mask": True}, ValueError, "`mask`"),
        ({"mask": np.ones((7, 63))}, TypeError, "`mask`.*float64"),
        ({"mask": [[True], [True, False]]}, ValueError, "`mask` must be an array, got a ragged"),
        ({"axis": 2}, ValueError, "`axis`"),
        ({"axis": -3}, ValueError, "`axis`"),
        ({"axis": (0, 2)}, ValueError, "`axis`"),
        ({"axis": (0, -2)}, ValueError, "`axis`"),
        ({"axis": ()}, ValueError, "`axis`"),
        ({"axis": 1.5}, TypeError, "`axis`"),
        ({"axis": [[0], [1, 2]]}, TypeError, "`axis` must be an int or a tuple of ints"),
        ({"direction": (1, 0, 0)}, ValueError, r"`direction`.*\(2,\).*\(3,\)"),
        ({"direction": 1.0}, ValueError, "`direction`"),
        ({"direction": (0, 0)}, ValueError, "`direction`"),
        ({"direction": (np.nan, 1)}, ValueError, "`direction`"),
        ({"direction": (np.inf, 1)}, ValueError, "`direction`"),
        ({"direction": ("a", "b")}, TypeError, "`direction`"),
        ({"direction": (1j, 0)}, TypeError, "`direction`"),
        ({"direction": [[1], [1, 2]]}, ValueError, "`direction` must be numbers, got a ragged"),
        ({"direction_scale": 2.0}, ValueError, f"`direction_scale` {ALONE}"),
        ({"direction_scale": "x"}, ValueError, f"`direction_scale` {ALONE}"),
        ({**DIRECTED, "direction_scale": np.nan}, ValueError, "`direction_scale`"),
        ({**DIRECTED, "direction_scale": np.inf}, ValueError, "`direction_scale`"),
        ({**DIRECTED, "direction_scale": "2"}, TypeError, "`direction_scale`"),
        ({**DIRECTED, "direction_scale": [1, [2]]}, TypeError, "`direction_scale` must be a real"),
        ({**DIRECTED, "direction_scale": 10**400}, TypeError, "`direction_scale` must be"),
        ({"spacing": 0}, ValueError, f"`spacing` {ALONE}, got 0"),
        ({**DIRECTED, "spacing": 0}, ValueError, "`spacing`"),
        ({**DIRECTED, "spacing": (1, -1)}, ValueError, "`spacing`"),
        ({**DIRECTED, "spacing": (1, np.nan)}, ValueError, "`spacing`"),
        ({**DIRECTED, "spacing": (1, 1, 1)}, ValueError, "`spacing`"),
        ({**DIRECTED, "spacing": "wide"}, TypeError, "`spacing`"),
        ({"workers": 0}, ValueError, "`workers`.*0"),
        ({"workers": -1}, ValueError, "`workers`.*-1"),
        ({"workers": 1.5}, TypeError, "`workers`.*1.5"),
        ({"workers": "2"}, TypeError, "`workers`.*2"),
        ({"workers": np.array([1, 2])}, TypeError, "`workers` must be a positive int or None"),
    ],
)
def test_options_of_a_curve(options, error, message):
    with pytest.raises(error, match=message):
        ecc.euler_curve(IMAGE, [1.0, 2.0], **options)


def test_axes_that_no_image_has():
    with pytest.raises(ValueError, match="`axis`"):
        ecc.euler_curve(np.zeros((2, 2, 2, 2)), [0], axis=(0, 1, 2, 3))
    with pytest.raises(ValueError, match=r"exact.*`axis`|`thresholds`.*exact"):
        ecc.euler_curve(VOLUME, "exact", axis=(1, 2))


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
    message = r"`devices` need CuPy: install napari-ecc\[cuda12\] or napari-ecc\[cuda13\]"
    with pytest.raises(ecc.errors.BackendError, match=message):
        ecc.euler_curve(VOLUME, [0], devices=[0])


def test_ragged_sequences():
    for function in (ecc.euler_curve, ecc.euler_coefficients, ecc.euler_number):
        with pytest.raises(ValueError, match="`image` must be an array, got a ragged sequence"):
            function([[1, 2], [3]])
    with pytest.raises(ValueError, match="`labels` must be an array, got a ragged sequence"):
        ecc.region_curves(IMAGE, [[1, 2], [3]], [0])


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


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_good_input_warns_of_nothing(function):
    for dtype in ("bool", "uint8", "float16", "float32"):
        FUNCTIONS[function](IMAGE.astype(dtype))
    FUNCTIONS[function](np.array([[np.inf, -np.inf, 3.0]]))
