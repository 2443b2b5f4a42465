"""Complexes and arguments that are refused, or that are empty."""

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core.errors import BackendError


class OnDevice:
    """An array on a CUDA device, as far as its origin is concerned."""

    shape = (3,)
    ndim = 1
    dtype = np.dtype(float)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **options):
        raise AssertionError


@pytest.mark.parametrize("function", [ecc.simplicial_curve, ecc.simplicial_transform])
def test_arrays_on_devices_are_refused(function):
    with pytest.raises(BackendError, match="must be in host memory"):
        function(OnDevice(), [], [1])


@pytest.mark.parametrize("function", [ecc.simplicial_curve, ecc.simplicial_transform])
def test_no_points(function):
    nothing = np.empty(0) if function is ecc.simplicial_curve else np.empty((0, 2))
    more = {"directions": 3} if function is ecc.simplicial_transform else {}
    found = function(nothing, [], thresholds=[0, 1], **more)
    assert not found.values.any()
    with pytest.raises(ValueError, match="`range` must be given"):
        function(nothing, [], thresholds=3, **more)


TRIANGLE = [np.array([[0, 1], [1, 2], [0, 2]]), np.array([[0, 1, 2]])]
WRONG_SIMPLICES = {
    "outside": (np.array([[0, 5]]), ValueError, r"from 0 to 3, got the edge \(0, 5\)"),
    "negative": (np.array([[0, 1, -1]]), ValueError, r"from 0 to 3, got the triangle \(0, 1, -1\)"),
    "repeated": (np.array([[2, 0, 2]]), ValueError, r"repeat a point .* triangle \(2, 0, 2\)"),
    "open": (
        [TRIANGLE[0][:2], TRIANGLE[1]],
        ValueError,
        r"`complete` is True, got the triangle \(0, 1, 2\) without its edge \(0, 2\)",
    ),
    "no edges": (
        [np.array([[0, 1, 2]]), np.array([[0, 1, 2, 3]])],
        ValueError,
        r"the tetrahedron \(0, 1, 2, 3\) without its triangle \(1, 2, 3\)",
    ),
    "floats": (np.array([[0.0, 1.0]]), TypeError, "must hold integers, got float64"),
    "booleans": (np.array([[True, False]]), TypeError, "must hold integers, got bool"),
    "mixed": ([[0, 1], [0, 1, 2]], ValueError, "rows of different lengths"),
    "same size": ([[[0, 1]], [[1, 2]]], ValueError, "one array for each number of points"),
    "points": (np.array([[0], [1]]), ValueError, "at least 2 points"),
    "numbers": ([0, 1, 2], ValueError, "sequence of .* got the number 0 for an array"),
    "number": (3, TypeError, "sequence of such arrays"),
}


@pytest.mark.parametrize("case", WRONG_SIMPLICES)
@pytest.mark.parametrize("function", [ecc.simplicial_curve, ecc.simplicial_transform])
def test_wrong_simplices(function, case):
    simplices, error, message = WRONG_SIMPLICES[case]
    values = np.zeros(4) if function is ecc.simplicial_curve else np.zeros((4, 2))
    with pytest.raises(error, match=message) as raised:
        function(values, simplices)
    assert str(raised.value).startswith("`simplices` must")


POINTS = np.arange(8.0).reshape(4, 2)
WRONG_TRANSFORMS = {
    "NaN": ({"points": [[0, np.nan]]}, "`points` must be finite, got .* in row 0"),
    "one axis": ({"points": [0.0, 1.0]}, r"`points` must have shape \(n, d\)"),
    "large": ({"points": [[1e200, 0]]}, "`points` must be below"),
    "five axes": ({"points": np.zeros((2, 5))}, "`directions` must be vectors for points of 5"),
    "components": ({"directions": [[1, 0, 0]]}, r"`directions` must have shape \(k, 2\)"),
    "zero": ({"directions": [[0, 0]]}, "`directions` must be finite and not zero"),
    "decreasing": ({"thresholds": [1, 0]}, "`thresholds` must be increasing"),
    "both": ({"thresholds": [0, 1], "range": (0, 1)}, "`range` must be None"),
    "weights": ({"weights": [1, 2]}, r"`weights` must have shape \(4,\)"),
    "infinite": ({"weights": [1, 2, np.inf, 0]}, "`weights` must be finite, got inf at point 2"),
    "overflow": ({"weights": [2**62, 0, 0, 0]}, "`weights` must be integers whose sums"),
    "center": ({"center": "median"}, "`center` must be None"),
    "normalize": ({"normalize": True}, "`normalize` must be None"),
    "no radius": ({"points": np.zeros((3, 2)), "normalize": "radius"}, "`normalize` must be None"),
}


def test_weights_add_up_over_points_and_simplices():
    """Three points and an edge of 2**61 each are too many, and without the edge they fit."""
    points = POINTS[:3]
    weights = [2**61] * 3
    alone = ecc.simplicial_transform(points, [], [[1, 0]], [9], weights=weights)
    assert alone.values.tolist() == [[3 * 2**61]]
    with pytest.raises(ValueError, match="`weights` must be integers whose sums"):
        ecc.simplicial_transform(points, [[0, 1]], [[1, 0]], [9], weights=weights)


@pytest.mark.parametrize("case", WRONG_TRANSFORMS)
def test_wrong_transforms(case):
    changed, message = WRONG_TRANSFORMS[case]
    with pytest.raises(ValueError, match=message):
        ecc.simplicial_transform(**{"points": POINTS, "simplices": [], **changed})


WRONG_CURVES = {
    "NaN": ({"values": [0, np.nan]}, ValueError, "`values` must not contain NaN"),
    "complex": ({"values": [1j]}, TypeError, "`values` must have"),
    "number": ({"values": 3.0}, ValueError, r"`values` must have shape \(\.\.\., n\)"),
    "decreasing": ({"thresholds": [1, 0]}, ValueError, "`thresholds` must be increasing"),
    "superlevel": ({"superlevel": "yes"}, TypeError, "`superlevel` must be"),
    "complete": ({"complete": None}, TypeError, "`complete` must be"),
    "exact batch": (
        {"values": np.zeros((2, 3)), "thresholds": "exact"},
        ValueError,
        '`thresholds` must not be "exact"',
    ),
}


@pytest.mark.parametrize("case", WRONG_CURVES)
def test_wrong_curves(case):
    changed, error, message = WRONG_CURVES[case]
    with pytest.raises(error, match=message):
        ecc.simplicial_curve(**{"values": [0, 1], "simplices": [], **changed})


WRONG_PAIRS = {
    "NaN": ({"values": [0, np.nan]}, ValueError, "`values` must not contain NaN"),
    "axes": ({"values": np.zeros((2, 2))}, ValueError, r"`values` must have shape \(n,\)"),
    "persistence": ({"min_persistence": -1}, ValueError, "`min_persistence` must not be negative"),
    "device": ({"values": OnDevice()}, BackendError, "must be in host memory"),
}


@pytest.mark.parametrize("case", WRONG_PAIRS)
def test_wrong_pairs(case):
    changed, error, message = WRONG_PAIRS[case]
    with pytest.raises(error, match=message):
        ecc.simplicial_pairs(**{"values": [0, 1], "simplices": [], **changed})
