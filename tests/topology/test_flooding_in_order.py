"""Regions that last by points in the order in which they enter, beside those by words."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import ecc_core as ecc
from ecc_core._backends.cpu.betti.entering import sorting_pays
from ecc_core._request.filtration import filtration_of


@pytest.mark.parametrize("shape", [(400,), (30, 45), (9, 12, 15)])
@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_points_in_order_have_the_labels_that_spread_in_words(dtype, shape):
    """Integers of few bits are brought into order, floats are not; their values are the same.

    Few components last, so that they die in others that do not last either.
    """
    rng = np.random.default_rng(len(shape))
    image = rng.integers(0, 120, shape).astype(dtype)
    for connectivity, superlevel in itertools.product({1, len(shape)}, (False, True)):
        options = {"connectivity": connectivity, "superlevel": superlevel}
        cuts = [{}, {"threshold": 50}, {"rel_height": 0.5}, {"rel_height": 0.75, "threshold": 70}]
        for cut_at, mask in itertools.product(cuts, (None, rng.random(shape) < 0.9)):
            found, known = (
                ecc.persistent_regions(values, 20, mask=mask, **options, **cut_at)
                for values in (image, image.astype(np.float32))
            )
            assert len(known.births) > 1
            for name in ("labels", "births", "deaths", "birth_points", "merged_into"):
                own = getattr(found, name)
                if name != "deaths":
                    assert_array_equal(own, getattr(known, name))
                    continue
                dies = np.isfinite(known.deaths)
                assert_array_equal(own[dies], known.deaths[dies])


@pytest.mark.parametrize(
    ("shape", "dtype", "masked", "boundary", "expected"),
    [
        ((9, 12, 15), "uint8", False, "closed", True),
        ((9, 12, 15), "uint8", True, "closed", True),
        ((9, 12, 15), "int16", False, "closed", True),
        ((9, 12, 15), "int16", True, "closed", False),
        ((9, 12, 15), "float16", True, "closed", True),
        ((9, 12, 15), "float32", False, "closed", False),
        ((9, 12, 15), "float32", False, "periodic", True),
        ((256, 256, 256), "uint8", False, "closed", True),
        ((257, 256, 256), "uint8", False, "closed", False),
        ((257, 256, 256), "uint8", False, "periodic", True),
        ((512, 1024), "uint8", False, "closed", True),
        ((513, 1024), "uint8", False, "closed", False),
        ((0, 4), "uint8", False, "periodic", False),
    ],
)
def test_which_images_are_flooded_in_order(shape, dtype, masked, boundary, expected):
    image = np.broadcast_to(np.zeros((), dtype), shape)
    filtration = filtration_of(len(shape), boundary=boundary)
    assert sorting_pays(image, masked, filtration) is expected
