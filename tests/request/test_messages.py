"""Errors name the argument as the caller did, what it must be, and what came."""

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core.features import EulerCurveTransformer
from ecc_core.quantities import CURVES

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")

IMAGE = np.zeros((3, 4))
BRAIN = IMAGE.astype(ml_dtypes.bfloat16)
QUARTER = IMAGE.astype(ml_dtypes.int4)
SQUARE = [[0, 1], [1, 2], [2, 3], [3, 0]]
OF_NUMPY = "which is none of NumPy's dtypes: convert it with `astype`"


def in_torch(array):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.asarray(np.asarray(array, np.float32)).bfloat16()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ecc.euler_curve(None), "`image` must be an array, got None"),
        (lambda: ecc.euler_curve("a.png"), "got 'a.png'; `ecc_core.io.read_image` reads files"),
        (lambda: ecc.euler_curve({}), "`image` must be an array, got an object of type builtins"),
        (lambda: ecc.euler_curve(IMAGE, mask="m.png"), "`mask` must be an array, got 'm.png'"),
        (lambda: ecc.euler_curve(IMAGE, True), "`thresholds` must be an int or an array, got True"),
        (lambda: ecc.euler_curve(IMAGE, np.True_), "must be an int or an array, got True"),
        (lambda: ecc.euler_curve(IMAGE, connectivity="8"), "for a 2-D image, got '8'"),
        (lambda: ecc.euler_curve(QUARTER), f"at most 64 bits, got int4, {OF_NUMPY}"),
        (lambda: ecc.euler_curve(IMAGE, QUARTER[0]), f"at most 64 bits, got int4, {OF_NUMPY}"),
        (lambda: ecc.euler_curve(IMAGE, mask=BRAIN), "(True: keep the point), got bfloat16"),
        (lambda: ecc.euler_curve(in_torch(IMAGE), mask=in_torch(IMAGE)), "got bfloat16"),
        (lambda: ecc.region_curves(IMAGE, BRAIN, 4), "`labels` must have an integer dtype, got bf"),
        (lambda: ecc.region_curves(in_torch(IMAGE), in_torch(IMAGE), 4), "dtype, got bfloat16"),
        (lambda: ecc.region_curves(IMAGE, QUARTER, 4), f"integer dtype, got int4, {OF_NUMPY}"),
        (lambda: ecc.region_transforms(BRAIN), "`labels` must have an integer dtype, got bfloat16"),
        (lambda: ecc.euler_transform(IMAGE > 0, True), "`directions` must be an int or an array"),
        (lambda: ecc.simplicial_curve(None, SQUARE), "`values` must be an array, got None"),
        (lambda: ecc.simplicial_curve("a.gii", SQUARE), "`ecc_core.io.read_point_values` reads"),
        (lambda: ecc.simplicial_transform("a.ply", SQUARE), "`ecc_core.io.read_mesh` reads files"),
        (lambda: ecc.simplicial_curve([], []), "for a complex without finite values, got None"),
        (lambda: ecc.simplicial_curve(range(4), BRAIN), "must hold integers, got bfloat16"),
        (lambda: EulerCurveTransformer().fit("a.png"), "`X` must be a list of paths, got one: 'a."),
        (lambda: EulerCurveTransformer().fit([]), "`X` must hold one image or more, got []"),
    ],
)
def test_message(call, message):
    with pytest.raises((TypeError, ValueError)) as error:
        call()
    assert message in str(error.value)


@pytest.mark.parametrize("name", [one.of_regions for one in CURVES.values() if one.of_regions])
def test_labels_must_be_given(name):
    with pytest.raises(TypeError, match="`labels` must be an array, got None"):
        getattr(ecc, name)(IMAGE, None, [0.0])
