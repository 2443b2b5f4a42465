"""Every number of thresholds at which a width of codes changes: the CPU has the same numbers.

Those of the CPU are compared with sets counted one by one (tests/curves/test_threshold_counts.py).
"""

import numpy as np
import pytest
from gpu_helpers import assert_same
from threshold_cases import COUNTS, DTYPES, KINDS, case_of

import ecc_core as ecc

pytestmark = pytest.mark.gpu

SHAPES = ((6, 7), (3, 4, 5), (70, 133), (9, 18, 131))


def cases(dtype):
    """Images of every kind, and sides."""
    for number, kind in enumerate(KINDS):
        shape = SHAPES[(number + DTYPES.index(dtype)) % len(SHAPES)]
        sides = {"connectivity": (1, None)[number % 2], "superlevel": bool(number // 2 % 2)}
        yield case_of(kind, dtype, shape), sides


@pytest.mark.parametrize("function", [ecc.euler_curve, ecc.betti_curves, ecc.minkowski_curves])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_number_of_thresholds(function, dtype):
    for case, options in cases(dtype):
        for at in map(case.thresholds, COUNTS):
            assert_same(function, case.image, at, mask=case.mask, nan="omit", **options)


@pytest.mark.parametrize("dtype", DTYPES)
def test_regions_and_surfaces(dtype):
    for case, options in cases(dtype):
        image = np.nan_to_num(case.image)
        labels = np.where(case.shown, 1, 2)
        for at in map(case.thresholds, COUNTS):
            for function in (ecc.region_curves, ecc.region_minkowski):
                assert_same(function, (image, labels), at, **options)
            assert_same(ecc.euler_surface, (labels, image), np.array([1.0, 2.0]), at, **options)
