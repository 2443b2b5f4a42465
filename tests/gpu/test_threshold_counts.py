"""Every number of thresholds at which a width of codes changes: the CPU has the same numbers.

Those of the CPU are compared with sets counted one by one (tests/curves/test_threshold_counts.py).
"""

import numpy as np
import pytest
from threshold_cases import COUNTS, DTYPES, KINDS, case_of

import ecc_core as ecc
from ecc_core.testing import assert_arrays_equal

cupy = pytest.importorskip("cupy")

pytestmark = pytest.mark.gpu

SHAPES = ((6, 7), (3, 4, 5), (70, 133), (9, 18, 131))


@pytest.mark.parametrize("name", ["euler_curve", "betti_curves", "minkowski_curves"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_number_of_thresholds(name, dtype):
    function = getattr(ecc, name)
    for number, kind in enumerate(KINDS):
        shape = SHAPES[(number + DTYPES.index(dtype)) % len(SHAPES)]
        case = case_of(kind, dtype, shape)
        image, mask = cupy.asarray(case.image), case.mask
        shown = None if mask is None else cupy.asarray(mask)
        options = {"connectivity": (1, None)[number % 2], "superlevel": bool(number // 2 % 2)}
        for count in COUNTS:
            thresholds = case.thresholds(count)
            known = function(case.image, thresholds, mask=mask, nan="omit", **options)
            found = function(image, thresholds, mask=shown, nan="omit", **options)
            assert_arrays_equal(found.values, known.values, like=image)


@pytest.mark.parametrize("dtype", DTYPES)
def test_regions_and_surfaces(dtype):
    for number, kind in enumerate(KINDS):
        shape = SHAPES[(number + DTYPES.index(dtype)) % len(SHAPES)]
        case = case_of(kind, dtype, shape)
        values = np.nan_to_num(case.image)
        image, labels = cupy.asarray(values), np.where(case.shown, 1, 2)
        options = {"connectivity": (1, None)[number % 2], "superlevel": bool(number // 2 % 2)}
        for count in COUNTS:
            thresholds = case.thresholds(count)
            for function in (ecc.region_curves, ecc.region_minkowski):
                known = function(values, labels, thresholds, **options)
                found = function(image, cupy.asarray(labels), thresholds, **options)
                assert_arrays_equal(found.values, known.values, like=image)
            steps = np.array([1.0, 2.0])
            known = ecc.euler_surface(labels, values, steps, thresholds, **options)
            found = ecc.euler_surface(cupy.asarray(labels), image, steps, thresholds, **options)
            assert_arrays_equal(found.values, known.values, like=image)
