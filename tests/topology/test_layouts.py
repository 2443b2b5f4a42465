"""Images in any layout in memory give what images in C order give."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import ecc_core as ecc

SHAPES = [(23,), (9, 1), (8, 11), (5, 6, 7)]
LEVELS = np.linspace(-1, 1, 5, dtype=np.float32)


def every_second(image):
    other = True if image.dtype == bool else np.nan
    spread = np.full([2 * n for n in image.shape], other, image.dtype)
    view = spread[(slice(None, None, 2),) * image.ndim]
    view[...] = image
    return view


LAYOUTS = {
    "Fortran": np.asfortranarray,
    "first axis reversed": lambda image: image[::-1].copy()[::-1],
    "last axis reversed": lambda image: image[..., ::-1].copy()[..., ::-1],
    "every second point": every_second,
}


def classes(pairs):
    return pairs.births, pairs.deaths, pairs.birth_points, pairs.death_points


def matching(image):
    found = ecc.betti_matching(image, np.ascontiguousarray(image)[::-1])
    return *classes(found.prediction), *classes(found.target), found.matches


FUNCTIONS = {
    "betti_curves": lambda image: (ecc.betti_curves(image, LEVELS).values,),
    "persistence_pairs": lambda image: classes(ecc.persistence_pairs(image)),
    "pairs on a torus": lambda image: classes(ecc.persistence_pairs(image, boundary="periodic")),
    "component_curves": lambda image: ecc.component_curves(image, LEVELS).points,
    "persistent_regions": lambda image: (ecc.persistent_regions(image, 0.3).labels,),
    "betti_matching": matching,
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_layouts(function, layout, shape):
    image = np.random.default_rng(57).normal(size=shape).astype(np.float32)
    other = LAYOUTS[layout](image)
    assert_array_equal(other, image)
    compute = FUNCTIONS[function]
    np.testing.assert_equal(list(compute(other)), list(compute(image)))


MASKED = {
    "betti_curves": lambda image, mask: (ecc.betti_curves(image, LEVELS, mask=mask).values,),
    "persistence_pairs": lambda image, mask: classes(ecc.persistence_pairs(image, mask=mask)),
    "component_curves": lambda image, mask: ecc.component_curves(image, LEVELS, mask=mask).points,
    "persistent_regions": lambda image, mask: (
        ecc.persistent_regions(image, 0.3, mask=mask).labels,
    ),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("function", MASKED)
def test_layouts_of_masks(function, layout, shape):
    rng = np.random.default_rng(58)
    image = rng.normal(size=shape).astype(np.float32)
    mask = rng.random(shape) < 0.7
    compute = MASKED[function]
    wanted = compute(image, mask)
    other_mask = LAYOUTS[layout](mask)
    assert_array_equal(other_mask, mask)
    np.testing.assert_equal(list(compute(image, other_mask)), list(wanted))
    other_image = LAYOUTS[layout](image)
    np.testing.assert_equal(list(compute(other_image, other_mask)), list(wanted))
