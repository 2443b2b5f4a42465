"""Bad input: one clear error that names the argument, what it must be and what came."""

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


@pytest.mark.parametrize("connectivity", ["full", 1.5, (1,)])
def test_connectivity_that_is_no_integer(connectivity):
    with pytest.raises((TypeError, ValueError), match="`connectivity`"):
        ecc.euler_curve(IMAGE, connectivity=connectivity)


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


@pytest.mark.parametrize("nan", ["ignore", None, True, "OMIT"])
def test_nan_policy(nan):
    for function in (ecc.euler_curve, ecc.euler_coefficients):
        with pytest.raises(ValueError, match=f'`nan` must be .*"raise".*"omit".*got {nan!r}'):
            function(IMAGE, nan=nan)


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


def test_no_thresholds_are_an_empty_curve():
    assert ecc.euler_curve(IMAGE, 0).values.shape == (0,)
    assert ecc.region_curves(IMAGE, LABELS, 0).values.shape == (1, 0)


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


def test_mask():
    for function in (ecc.euler_curve, ecc.euler_coefficients):
        with pytest.raises(ValueError, match=r"`mask`.*\(7, 63\).*\(63, 7\)"):
            function(IMAGE, mask=np.ones((63, 7), bool))
        with pytest.raises(ValueError, match="`mask`"):
            function(IMAGE, mask=True)
        with pytest.raises(TypeError, match=r"`mask`.*float64"):
            function(IMAGE, mask=np.ones((7, 63)))


@pytest.mark.parametrize(
    ("axis", "error"),
    [
        (3, ValueError),
        (-4, ValueError),
        ((0, 3), ValueError),
        ((0, 0), ValueError),
        ((0, -3), ValueError),
        ((), ValueError),
        (1.5, TypeError),
        ("x", TypeError),
    ],
)
def test_axis(axis, error):
    with pytest.raises(error, match="`axis`"):
        ecc.euler_curve(VOLUME, [0], axis=axis)


def test_at_most_three_spatial_axes():
    with pytest.raises(ValueError, match="`axis`"):
        ecc.euler_curve(np.zeros((2, 2, 2, 2)), [0], axis=(0, 1, 2, 3))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"direction": (1, 0, 0)}, ValueError, r"`direction`.*\(2,\).*\(3,\)"),
        ({"direction": 1.0}, ValueError, "`direction`"),
        ({"direction": (0, 0)}, ValueError, "`direction`"),
        ({"direction": (np.nan, 1)}, ValueError, "`direction`"),
        ({"direction": (np.inf, 1)}, ValueError, "`direction`"),
        ({"direction": ("a", "b")}, TypeError, "`direction`"),
        ({"direction": (1j, 0)}, TypeError, "`direction`"),
        ({"direction_scale": np.nan}, ValueError, "`direction_scale`"),
        ({"direction_scale": np.inf}, ValueError, "`direction_scale`"),
        ({"direction_scale": "2"}, TypeError, "`direction_scale`"),
        ({"spacing": 0}, ValueError, "`spacing`"),
        ({"spacing": (1, -1)}, ValueError, "`spacing`"),
        ({"spacing": (1, np.nan)}, ValueError, "`spacing`"),
        ({"spacing": (1, 1, 1)}, ValueError, "`spacing`"),
        ({"spacing": "wide"}, TypeError, "`spacing`"),
    ],
)
def test_direction(options, error, message):
    with pytest.raises(error, match=message):
        ecc.euler_curve(IMAGE, [0.0], **{"direction": (1, 0), **options})


def test_exact_thresholds_of_a_batch():
    with pytest.raises(ValueError, match=r"exact.*`axis`|`thresholds`.*exact"):
        ecc.euler_curve(VOLUME, "exact", axis=(1, 2))


@pytest.mark.parametrize(
    ("workers", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError)]
)
def test_workers(workers, error):
    with pytest.raises(error, match=f"`workers`.*{workers}"):
        ecc.euler_curve(IMAGE, workers=workers)


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


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_good_input_warns_of_nothing(function):
    for dtype in ("bool", "uint8", "float16", "float32"):
        FUNCTIONS[function](IMAGE.astype(dtype))
    FUNCTIONS[function](np.array([[np.inf, -np.inf, 3.0]]))
