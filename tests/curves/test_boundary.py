"""Curves of periodic images and of half-open windows."""

import inspect
import itertools

import numpy as np
import pytest
from filtrations import connectivities
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import euler as reference

import ecc_core as ecc
from ecc_core import features
from ecc_core._request import filtration
from ecc_core.testing import assert_curves_equal, strategies

BOUNDARIES = ("periodic", "half-open")
SHAPES = [(7,), (1,), (4, 5), (1, 4), (2, 2), (3, 4, 2), (1, 1, 1)]


def image_of(shape, dtype="float32", seed=0):
    values = np.random.default_rng(seed).integers(0, 6, shape)
    return (values > 2 if dtype == "bool" else values).astype(dtype)


@pytest.mark.parametrize("boundary", ["closed", *BOUNDARIES])
@pytest.mark.parametrize("shape", SHAPES)
def test_cells_are_those_of_the_definition(library, shape, boundary):
    image = image_of(shape)
    mask = np.random.default_rng(1).random(shape) < 0.8
    for connectivity, superlevel in itertools.product(connectivities(len(shape)), (False, True)):
        for kept in (None, mask):
            options = {"connectivity": connectivity, "superlevel": superlevel, "boundary": boundary}
            expected = reference.euler_curve(image, range(7), mask=kept, **options)
            given_mask = None if kept is None else library.asarray(kept)
            found = ecc.euler_curve(
                library.asarray(image), np.arange(7.0), mask=given_mask, **options
            )
            assert found.boundary == boundary
            assert_curves_equal(found.to_numpy(), expected)


SMALL = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)
"""Shapes of images whose cells can be looked at one by one."""


@settings(max_examples=15)
@given(
    strategies.images(dtypes=("bool", "uint8", "float32"), shapes=SMALL),
    st.sampled_from(BOUNDARIES),
    st.booleans(),
)
def test_exact_levels(image, boundary, superlevel):
    for connectivity in connectivities(image.ndim):
        options = {"connectivity": connectivity, "superlevel": superlevel, "boundary": boundary}
        exact = ecc.euler_curve(image, "exact", **options)
        assert exact.thresholds.dtype == image.dtype.newbyteorder("=")
        levels = np.unique(image)
        values = ecc.euler_curve(image, levels, **options).values
        np.testing.assert_array_equal(values, reference.euler_curve(image, levels, **options))
        before = np.append(values[1:], 0) if superlevel else np.append(0, values[:-1])
        np.testing.assert_array_equal(exact.thresholds, levels[values != before])
        np.testing.assert_array_equal(exact.values, values[values != before])


def test_a_torus_a_ring_around_it_and_batches():
    full, ring = np.ones((5, 6), bool), np.zeros((5, 6), bool)
    ring[2] = True
    assert [ecc.euler_number(x, boundary="periodic") for x in (full, ring)] == [0, 0]
    assert [ecc.euler_number(x, boundary="half-open") for x in (full, ring)] == [0, 0]
    stack = np.stack([full, ring, ring & (np.arange(6) < 3)], axis=2)
    found = ecc.euler_curve(stack, [True], superlevel=True, axis=(0, 1), boundary="periodic")
    np.testing.assert_array_equal(found.values, [[0], [0], [1]])


def test_nan_never_enters_across_the_border():
    image = image_of((4, 5))
    image[0, 2] = image[-1, 3] = image[2, -1] = np.nan
    for connectivity, boundary in itertools.product((1, 2), BOUNDARIES):
        options = {"connectivity": connectivity, "boundary": boundary}
        found = ecc.euler_curve(image, range(6), nan="omit", **options)
        assert_curves_equal(found, reference.euler_curve(image, range(6), **options))
        with pytest.raises(ValueError, match="nan="):
            ecc.euler_curve(image, range(6), **options)


def test_where_a_boundary_is_not_defined():
    image = image_of((4, 5))
    with pytest.raises(ValueError, match='`boundary` must be "closed" together with `direction`'):
        ecc.euler_curve(image, direction=(1, 2), boundary="periodic")
    with pytest.raises(ValueError, match='`boundary` must be "closed" together with `devices`'):
        ecc.euler_curve(image, devices=[0], boundary="half-open")
    shape = image > 2
    with pytest.raises(
        ValueError, match="for transforms, whose heights are measured from the centre"
    ):
        ecc.euler_transform(shape, 4, 4, boundary="periodic")
    with pytest.raises(
        ValueError, match="for regions, each of which stands alone, got 'half-open'"
    ):
        ecc.region_transforms(shape, 4, 4, boundary="half-open")
    for empty in ((0,), (3, 0)):
        values = ecc.euler_curve(np.zeros(empty), [0], boundary="periodic").values
        np.testing.assert_array_equal(values, [0])


@pytest.mark.parametrize("shape", [(90, 70, 67), (300, 1100), (9, 8300), (70, 128)])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_blocks_of_large_images(shape, boundary):
    image = np.random.default_rng(3).integers(0, 200, shape).astype(np.float32)
    image[0, 0] = 500.5  # beyond the thresholds, which some plans have no keys for
    at = np.linspace(3.5, 190, 20)
    for connectivity in (1, len(shape)):
        options = {"connectivity": connectivity, "boundary": boundary}
        expected = reference.euler_curve(image, at, **options)
        for array in (image, np.asfortranarray(image), image[..., ::-1].copy()[..., ::-1]):
            found = ecc.euler_curve(array, at, workers=2, **options)
            np.testing.assert_array_equal(found.values, expected)


@pytest.mark.parametrize("boundary", ["closed", "periodic", "half-open"])
def test_exact_curves_of_float16_are_those_of_float32(boundary):
    """NumPy 2.4 sorts some large arrays of float16 wrongly on some processors."""
    for seed in range(2275, 2285):
        rng = np.random.default_rng(seed)
        image = rng.normal(size=(41, 60)).astype(np.float16)
        image[rng.random(image.shape) < 0.5] = -0.0
        image[rng.random(image.shape) < 0.3] = 0.0
        found = ecc.euler_curve(image, "exact", boundary=boundary)
        known = ecc.euler_curve(image.astype(np.float32), "exact", boundary=boundary)
        np.testing.assert_array_equal(found.values, known.values)
        np.testing.assert_array_equal(found.thresholds.astype(np.float32), known.thresholds)


def labels_of(shape, dtype="uint16"):
    """Scattered regions, and one that extends over a slab and so over opposite sides."""
    labels = np.random.default_rng(2).integers(0, 4, shape).astype(dtype)
    labels[..., -2:] = 300 if dtype == "uint16" else 5
    return labels


@pytest.mark.parametrize("boundary", ["closed", *BOUNDARIES])
@pytest.mark.parametrize("shape", [*SHAPES, (40, 70)])
def test_regions_are_the_rest_of_the_image_masked(shape, boundary):
    """In memory and in chunks, with NaN outside the regions, along batch axes of length 1."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    at, axes = np.arange(7.0), tuple(range(len(shape)))
    for dtype, superlevel in itertools.product(("bool", "int16", "float32"), (False, True)):
        image, labels = image_of(shape, dtype), labels_of(shape)
        if dtype == "float32":
            image[labels == 0] = np.nan
        chunks = tuple(-(-length // 2) for length in shape)
        lazy = (da.from_array(array, chunks) for array in (image, labels))
        arrays = [(image, labels), (image[None, ..., None], labels[None, ..., None]), tuple(lazy)]
        for connectivity in connectivities(len(shape)):
            options = {"connectivity": connectivity, "superlevel": superlevel, "boundary": boundary}
            for k, pair in enumerate(arrays):
                spatial = tuple(axis + (k == 1) for axis in axes)
                found = ecc.region_curves(*pair, at, axis=spatial, **options).to_numpy()
                if boundary != "half-open" or min(shape) > 1:  # lazy ones need cells
                    np.testing.assert_array_equal(found.labels, np.setdiff1d(labels, [0]))
                for label in found.labels:
                    alone = {"mask": labels == label, "axis": axes, **options}
                    assert found.select(label) == ecc.euler_curve(image, at, **alone)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("estimator", ["exact", "crofton-4"])
def test_functionals_of_regions(boundary, estimator):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    image, labels, at = image_of((9, 12)), labels_of((9, 12)), np.arange(7.0)
    lazy = da.from_array(image, (4, 5)), da.from_array(labels, (4, 5))
    for connectivity in (1, 2):
        options = {"connectivity": connectivity, "boundary": boundary, "estimator": estimator}
        found = ecc.region_minkowski(image, labels, at, spacing=(2, 3), **options)
        chunked = ecc.region_minkowski(*lazy, at, spacing=(2, 3), **options)
        np.testing.assert_allclose(chunked.values, found.values, atol=1e-9)
        for label in found.labels:
            alone = {"mask": labels == label, "spacing": (2, 3), **options}
            expected = ecc.minkowski_curves(image, at, **alone)
            np.testing.assert_allclose(found.select(label).values, expected.values, atol=1e-9)


def test_a_region_across_opposite_sides_of_a_rolled_image():
    image, labels = image_of((12, 15)), np.zeros((12, 15), int)
    labels[3:9, 4:10] = 1
    rolled = [np.roll(array, (5, 9), (0, 1)) for array in (image, labels)]
    for function in (ecc.region_curves, ecc.region_minkowski, ecc.region_betti_curves):
        for connectivity in (1, 2):
            options = {"range": (0, 5), "connectivity": connectivity}
            inside = function(image, labels, 6, **options).values
            across = function(*rolled, 6, boundary="periodic", **options).values
            np.testing.assert_array_equal(across[:, : inside.shape[1]], inside)
            assert not across[:, inside.shape[1] :].any()


def takes_a_boundary(module):
    functions = {name: getattr(module, name) for name in module.__all__}
    return {
        name
        for name, function in functions.items()
        if inspect.isfunction(function) and "boundary" in inspect.signature(function).parameters
    }


CALLS = {
    "euler_number": lambda image, **given: ecc.euler_number(image > 2, **given),
    "euler_curve": ecc.euler_curve,
    "minkowski_curves": ecc.minkowski_curves,
    "betti_numbers": lambda image, **given: ecc.betti_numbers(image > 2, **given),
    "betti_curves": ecc.betti_curves,
    "component_curves": ecc.component_curves,
    "persistence_pairs": ecc.persistence_pairs,
    "persistent_regions": lambda image, **given: ecc.persistent_regions(image, 1, **given),
    "euler_transform": lambda image, **given: ecc.euler_transform(image > 2, 4, 4, **given),
    "region_curves": lambda image, **given: ecc.region_curves(image, image > 2, **given),
    "region_betti_curves": lambda image, **given: ecc.region_betti_curves(
        image, image > 2, **given
    ),
    "region_minkowski": lambda image, **given: ecc.region_minkowski(image, image > 2, **given),
    "region_transforms": lambda image, **given: ecc.region_transforms(image > 2, 4, 4, **given),
    "expected_gaussian_curve": lambda image, **given: features.expected_gaussian_curve(
        image.shape, [0.0], spectral_moments=1, **given
    ),
    "gaussian_threshold": lambda image, **given: features.gaussian_threshold(
        image.shape, spectral_moments=1, **given
    ),
}
"""A call of every public function that takes a boundary."""


def test_every_function_that_takes_a_boundary_is_called():
    assert takes_a_boundary(ecc) | takes_a_boundary(features) == set(CALLS)


@pytest.fixture
def mirrored(monkeypatch):
    """A boundary that only curves are defined for, with planes like those of another one."""
    boundary = filtration.Boundary("mirrored", filtration.HALF_OPEN.planes)
    known = (*filtration.DEFINED["curves"], boundary)
    monkeypatch.setitem(filtration.DEFINED, "curves", known)
    return boundary.name


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"euler_number", "euler_curve"}))
def test_a_boundary_is_an_error_where_it_is_not_defined(name, mirrored):
    with pytest.raises(ValueError, match=r"^`boundary` must be .*, got 'mirrored'$"):
        CALLS[name](image_of((4, 5)), boundary=mirrored)


def test_a_boundary_that_curves_are_defined_for(mirrored):
    image, at = image_of((4, 5)), np.arange(7.0)
    found = ecc.euler_curve(image, at, boundary=mirrored)
    assert found.boundary == mirrored
    np.testing.assert_array_equal(
        found.values, ecc.euler_curve(image, at, boundary="half-open").values
    )
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    with pytest.raises(ValueError, match=r"^`boundary` must be .*, got 'mirrored'$"):
        ecc.euler_curve(da.from_array(image, 3), at, boundary=mirrored)
