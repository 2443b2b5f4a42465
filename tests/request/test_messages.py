"""One clear message for arguments of the wrong kind."""

import numpy as np
import pytest

import ecc_core as ecc

IMAGE = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"superlevel": "no"}, TypeError, "`superlevel` must be True or False, got 'no'"),
        ({"superlevel": np.array([True, False])}, TypeError, "`superlevel` must be True or False"),
        ({"connectivity": np.array([1, 2])}, ValueError, "`connectivity` must be 1 or 2 for a 2-D"),
        ({"connectivity": "2"}, ValueError, "`connectivity` must be 1 or 2 for a 2-D image, got 2"),
        ({"nan": np.array(["omit"])}, ValueError, '`nan` must be "raise" or "omit"'),
        ({"nan": ["omit"]}, ValueError, r'`nan` must be "raise" or "omit", got \[\'omit\'\]'),
        ({"axis": [[0], [1, 2]]}, TypeError, "`axis` must be an int or a tuple of ints"),
        ({"direction": [[1], [1, 2]]}, ValueError, "`direction` must be numbers, got a ragged"),
        ({"direction_scale": 2.0}, ValueError, "`direction_scale` must be None without `direct"),
        ({"direction_scale": "x"}, ValueError, "`direction_scale` must be None without `direct"),
        ({"spacing": 0}, ValueError, "`spacing` must be None without `direction`, got 0"),
        (
            {"direction": (1, 0), "direction_scale": [1, [2]]},
            TypeError,
            "`direction_scale` must be a real number",
        ),
        ({"direction": (1, 0), "direction_scale": 10**400}, TypeError, "`direction_scale` must be"),
        ({"mask": [[True], [True, False]]}, ValueError, "`mask` must be an array, got a ragged"),
        ({"workers": np.array([1, 2])}, TypeError, "`workers` must be a positive int or None"),
    ],
)
def test_options_of_a_curve(options, error, message):
    with pytest.raises(error, match=message):
        ecc.euler_curve(IMAGE, [1, 2], **options)


def test_ragged_images():
    for function in (ecc.euler_curve, ecc.euler_coefficients, ecc.euler_number):
        with pytest.raises(ValueError, match="`image` must be an array, got a ragged sequence"):
            function([[1, 2], [3]])
    with pytest.raises(ValueError, match="`labels` must be an array, got a ragged sequence"):
        ecc.region_curves(IMAGE, [[1, 2], [3]], [0])


@pytest.mark.parametrize(
    "options",
    [{"workers": 2}, {"direction_scale": 1.0}, {"spacing": 2}, {"axis": (0, 1)}, {"mask": IMAGE}],
)
def test_devices_use_no_other_options(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"`{name}` must be None together with `devices`, got"):
        ecc.euler_curve(IMAGE, [0], devices=[0], **options)


def test_dask_arrays():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    lazy = da.from_array(IMAGE, chunks=2)
    for options in ({"direction_scale": 1.0}, {"spacing": 2}):
        (name,) = options
        with pytest.raises(ValueError, match=f"`{name}` must be None without `direction`"):
            ecc.euler_curve(lazy, [0], **options)
    with pytest.raises(TypeError, match="`superlevel` must be True or False"):
        ecc.euler_curve(lazy, [0], superlevel="no")


def test_chunks_of_tensors():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    lazy = da.from_array(IMAGE, chunks=2)
    lazy._meta = torch.zeros((0, 0))
    with pytest.raises(TypeError, match="`image` must have chunks of NumPy or CuPy arrays, got th"):
        ecc.euler_curve(lazy, [0])


def test_infinite_values_with_a_direction_are_no_nan():
    image = np.array([[-np.inf, 1.0], [np.inf, 2.0]])
    found = ecc.euler_curve(image, [-1e9, 1e300], direction=(1, 1), direction_scale=1e300)
    assert found.values.tolist() == [1, 1]


def test_labels_that_are_booleans_stay_so_where_the_image_is_masked():
    image = np.ma.array(IMAGE, mask=IMAGE == 5)
    found = ecc.region_curves(image, IMAGE > 3, [100])
    assert found.labels.dtype == np.bool_
    assert found.labels.tolist() == [True]
