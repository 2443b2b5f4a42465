"""Curves of periodic images and of half-open windows."""

import itertools

import numpy as np
import pytest
from filtrations import ESTIMATORS, cases_of_sides, connectivities
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import euler as reference

import ecc_core as ecc
from ecc_core._backends import backend
from ecc_core._request.boundary import Border, Boundary
from ecc_core._request.estimator import estimator_of
from ecc_core._request.filtration import Filtration, filtration_of
from ecc_core.testing import assert_curves_equal, strategies

BOUNDARIES = ("periodic", "half-open")
WORDS = ("closed", *BOUNDARIES)
NEXT_WORD = dict(zip(WORDS, (*BOUNDARIES, "closed"), strict=True))
# Of volumes, each pair of words along each pair of axes; the rest is slow.
PAIRWISE = {
    (first, second, WORDS[(i + j) % 3])
    for i, first in enumerate(WORDS)
    for j, second in enumerate(WORDS)
}


def is_slow(shape, boundary):
    """Tell whether other rows have each word along each axis of a shape.

    One word for both axes, one of which is short, is tested by
    `test_cells_are_those_of_the_definition`.
    """
    if len(shape) == 3:
        return boundary not in PAIRWISE
    return min(shape) <= 2 and NEXT_WORD[boundary[0]] != boundary[1]


OF_EACH_AXIS = [
    pytest.param(shape, boundary, marks=[pytest.mark.slow] if is_slow(shape, boundary) else [])
    for shape in [(4, 5), (1, 4), (4, 1), (2, 2), (5, 70), (2, 3, 4)]
    for boundary in itertools.product(WORDS, repeat=len(shape))
]
OF_EACH_AXIS += [((1, 2, 3), boundary) for boundary in itertools.permutations(WORDS)]
SOME_MIXED = [
    ("closed", "periodic", "half-open"),
    ("periodic", "half-open", "closed"),
    ("half-open", "closed", "periodic"),
]
"""Borders along the axes of a volume; images of fewer axes have the first ones."""
SHAPES = [(7,), (1,), (4, 5), (1, 4), (2, 2), (3, 4, 2), (1, 1, 1)]


def image_of(shape, dtype="float32", seed=0):
    values = np.random.default_rng(seed).integers(0, 6, shape)
    return (values > 2 if dtype == "bool" else values).astype(dtype)


@pytest.mark.sweep
@pytest.mark.parametrize("boundary", ["closed", *BOUNDARIES])
@pytest.mark.parametrize("case", cases_of_sides(SHAPES))
def test_cells_are_those_of_the_definition(library, boundary, case):
    shape, side = case
    image = image_of(shape)
    mask = np.random.default_rng(1).random(shape) < 0.8
    options = {**side, "boundary": boundary}
    at = np.arange(7.0)
    found = ecc.euler_curve(library.asarray(image), at, **options)
    assert found.boundary == boundary
    assert_curves_equal(found.to_numpy(), reference.euler_curve(image, at, **options))
    found = ecc.euler_curve(library.asarray(image), at, mask=library.asarray(mask), **options)
    assert found.boundary == boundary
    expected = reference.euler_curve(image, at, mask=mask, **options)
    assert_curves_equal(found.to_numpy(), expected)


def borders(boundary, ndim):
    return boundary if isinstance(boundary, str) else boundary[:ndim]


@pytest.mark.parametrize(("shape", "boundary"), OF_EACH_AXIS)
def test_every_axis_has_its_own_border(shape, boundary):
    """Cells counted one by one; lengths 1 and 2, several layouts, masked elements, dask."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    ndim = len(shape)
    at = np.arange(7.0)
    spacing = (2, 3, 1)
    axis = tuple(range(ndim))
    image = image_of(shape, seed=sum(shape))
    shown = np.random.default_rng(1).random(shape) < 0.8
    layouts = [image, np.asfortranarray(image), image[::-1].copy()[::-1], da.from_array(image, 3)]
    for connectivity, superlevel in itertools.product((1, ndim), (False, True)):
        sets = {"connectivity": connectivity, "superlevel": superlevel, "boundary": boundary}
        expected = reference.euler_curve(image, at, **sets)
        for array in layouts:
            found = ecc.euler_curve(array, at, axis=axis, **sets)
            np.testing.assert_array_equal(np.asarray(found.values), expected)
        assert found.boundary == (boundary[0] if len({*boundary}) == 1 else boundary)
        missing = ecc.euler_curve(np.ma.array(image, mask=~shown), at, axis=axis, **sets)
        if set(boundary) != {"half-open"}:  # In the reference a mask would be a window.
            known = reference.euler_curve(image, at, mask=shown, **sets)
            np.testing.assert_array_equal(missing.values, known)
        lengths = {"spacing": spacing[:ndim], **sets}
        known = reference.minkowski_functionals(image, at, **lengths)
        for array in (layouts[0], layouts[-1]):
            found = ecc.minkowski_curves(array, at, axis=axis, **lengths).to_numpy()
            np.testing.assert_allclose(found.values, known, atol=1e-9)


@pytest.mark.parametrize("boundary", SOME_MIXED)
@pytest.mark.parametrize("shape", [(8, 9), (5, 6, 4)])
def test_sections_across_some_axes(shape, boundary):
    """Crofton's formula: groups of points that a copy of the image continues along each axis.

    The groups of a half-open window are those whose points fit into it.
    """
    ndim = len(shape)
    at = np.arange(7.0)
    image = image_of(shape, seed=3)
    boundary = boundary[:ndim]
    estimator = ESTIMATORS[ndim][-1]
    options = {"connectivity": 1, "estimator": estimator, "boundary": boundary}
    cells = estimator_of(estimator, None, filtration_of(ndim, 1, boundary=boundary)).cells
    weights = estimator_of(estimator, None, filtration_of(ndim, 1)).weights
    longer = np.pad(image, [(0, int(word == "periodic")) for word in boundary], mode="wrap")
    counts = []
    for group, extents in zip(cells.groups, cells.extents, strict=True):
        starts = []
        for n, extent, word in zip(shape, extents, boundary, strict=True):
            missing = {"closed": extent, "half-open": 1, "periodic": 0}[word]
            starts.append(n - missing)
        parts = []
        for offset in group:
            ends = np.add(offset, starts)
            parts.append(longer[tuple(map(slice, offset, ends))])
        latest = np.max(parts, axis=0)
        counts.append([(latest <= t).sum() for t in at])
    found = ecc.minkowski_curves(image, at, **options)
    np.testing.assert_allclose(found.values[:-1], (weights @ np.array(counts))[:-1], atol=1e-9)


@pytest.mark.parametrize(
    ("of_mask", "of_regions"),
    [(ecc.euler_curve, ecc.region_curves), (ecc.minkowski_curves, ecc.region_minkowski)],
)
@pytest.mark.parametrize("boundary", [("half-open", "closed"), ("periodic", "half-open")])
@pytest.mark.parametrize("lazy", [False, True])
def test_masks_and_regions_of_windows_along_some_axes_are_refused(
    boundary, lazy, of_mask, of_regions
):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    image = np.zeros((4, 5))
    part = np.eye(4, 5, dtype=int)
    arrays = [da.from_array(array, 2) if lazy else array for array in (image, part)]
    message = (
        '`boundary` must be "half-open" along all axes or along none with `mask` or `labels`, which'
        " are windows of the image along half-open axes, and stand alone along others, got "
    )
    with pytest.raises(ValueError, match=message):
        of_mask(arrays[0], [0.0], mask=part == 1, boundary=boundary)
    with pytest.raises(ValueError, match=message):
        of_regions(*arrays, [0.0], boundary=boundary)


SMALL = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)
"""Shapes of images whose cells can be looked at one by one."""


@settings(max_examples=15)
@given(
    strategies.images(dtypes=("bool", "uint8", "float32"), shapes=SMALL),
    st.sampled_from([*BOUNDARIES, *SOME_MIXED]),
    st.booleans(),
)
def test_exact_levels(image, boundary, superlevel):
    boundary = borders(boundary, image.ndim)
    for connectivity in connectivities(image.ndim):
        options = {"connectivity": connectivity, "superlevel": superlevel, "boundary": boundary}
        exact = ecc.euler_curve(image, "exact", **options)
        assert exact.thresholds.dtype == image.dtype.newbyteorder("=")
        levels = reference.changing_levels(image, **options)
        np.testing.assert_array_equal(exact.thresholds, levels)
        np.testing.assert_array_equal(exact.values, reference.euler_curve(image, levels, **options))


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_torus_and_a_ring_around_it(boundary):
    full = np.ones((5, 6), bool)
    ring = np.zeros((5, 6), bool)
    ring[2] = True
    assert ecc.euler_number(full, boundary=boundary) == 0
    assert ecc.euler_number(ring, boundary=boundary) == 0
    assert ecc.euler_curve(np.zeros((3, 0)), [0], boundary=boundary).values == [0]


def test_a_periodic_batch():
    full = np.ones((5, 6), bool)
    ring = np.zeros((5, 6), bool)
    ring[2] = True
    stack = np.stack([full, ring, ring & (np.arange(6) < 3)], axis=2)
    found = ecc.euler_curve(stack, [True], superlevel=True, axis=(0, 1), boundary="periodic")
    np.testing.assert_array_equal(found.values, [[0], [0], [1]])


@pytest.mark.parametrize("connectivity", [1, 2])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_nan_never_enters_across_the_border(connectivity, boundary):
    image = image_of((4, 5))
    image[0, 2] = image[-1, 3] = image[2, -1] = np.nan
    options = {"connectivity": connectivity, "boundary": boundary}
    found = ecc.euler_curve(image, range(6), nan="omit", **options)
    assert_curves_equal(found, reference.euler_curve(image, range(6), **options))
    with pytest.raises(ValueError, match="nan="):
        ecc.euler_curve(image, range(6), **options)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda x: ecc.euler_curve(x, direction=(1, 2), boundary="periodic"), "with `direction`"),
        (lambda x: ecc.euler_curve(x, devices=[0], boundary="half-open"), "with `devices`"),
        (lambda x: ecc.euler_transform(x, 4, 4, boundary="periodic"), "measured from the centre"),
        (lambda x: ecc.region_transforms(x, 4, 4, boundary="half-open"), "each .* stands alone"),
        (
            lambda x: ecc.euler_curve(x, direction=(1, 2), boundary=("periodic", "closed")),
            r"with `direction`, .*got \('periodic', 'closed'\)",
        ),
    ],
)
def test_where_a_boundary_is_not_defined(call, reason):
    with pytest.raises(ValueError, match=f'`boundary` must be "closed" .*{reason}'):
        call(np.eye(4, 5, dtype=bool))


@pytest.mark.parametrize("transform", [ecc.euler_transform, ecc.region_transforms])
def test_transforms_take_one_closed_border_for_each_axis(transform):
    image = np.eye(4, 5, dtype=bool)
    found = transform(image, 4, 4, boundary=("closed", "closed"))
    np.testing.assert_array_equal(found.values, transform(image, 4, 4).values)
    with pytest.raises(ValueError, match="one for each of the 2 spatial axes"):
        transform(image, 4, 4, boundary=("closed", "closed", "closed"))


@pytest.mark.sweep
@pytest.mark.parametrize("boundary", [*BOUNDARIES, *SOME_MIXED])
@pytest.mark.parametrize(
    "case",
    list(itertools.product([(90, 70, 67), (300, 1100), (9, 8300), (70, 128)], (False, True))),
    ids=str,
)
def test_blocks_of_large_images(boundary, case):
    shape, cubes = case
    boundary = borders(boundary, len(shape))
    image = np.random.default_rng(3).integers(0, 200, shape).astype(np.float32)
    image[0, 0] = 500.5  # Some plans have no key for a value beyond thresholds.
    at = np.linspace(3.5, 190, 20)
    options = {"connectivity": len(shape) if cubes else 1, "boundary": boundary}
    expected = reference.euler_curve(image, at, **options)
    layouts = (image, np.asfortranarray(image), image[..., ::-1].copy()[..., ::-1])
    found = [ecc.euler_curve(array, at, workers=2, **options).values for array in layouts]
    np.testing.assert_array_equal(found, [expected] * 3)


@pytest.mark.parametrize("seed", range(2275, 2285))
@pytest.mark.parametrize("boundary", ["closed", "periodic", "half-open"])
def test_exact_curves_of_float16_are_those_of_float32(boundary, seed):
    """NumPy 2.4 sorts some large arrays of float16 wrongly on some processors."""
    rng = np.random.default_rng(seed)
    image = rng.normal(size=(41, 60)).astype(np.float16)
    image[rng.random(image.shape) < 0.5] = -0.0
    image[rng.random(image.shape) < 0.3] = 0.0
    found = ecc.euler_curve(image, "exact", boundary=boundary)
    known = ecc.euler_curve(image.astype(np.float32), "exact", boundary=boundary)
    np.testing.assert_array_equal(found.values, known.values)
    np.testing.assert_array_equal(found.thresholds.astype(np.float32), known.thresholds)


HALF_PERIODIC = [("closed", "periodic", "periodic"), ("periodic", "closed", "closed")]


def labels_of(shape, dtype="uint16"):
    """Scattered regions, and one that extends over a slab and so over opposite sides."""
    labels = np.random.default_rng(2).integers(0, 4, shape).astype(dtype)
    labels[..., -2:] = 300 if dtype == "uint16" else 5
    return labels


@pytest.mark.sweep
@pytest.mark.parametrize("boundary", ["closed", *BOUNDARIES, *HALF_PERIODIC])
@pytest.mark.parametrize("shape", [*SHAPES, (40, 70)])
def test_regions_are_the_rest_of_the_image_masked(shape, boundary):
    """Images are in memory or in chunks, with NaN outside the regions and short batch axes."""
    boundary = borders(boundary, len(shape))
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    at = np.arange(7.0)
    axes = tuple(range(len(shape)))
    for dtype, superlevel in [("bool", True), ("int16", False), ("float32", True)]:
        image = image_of(shape, dtype)
        labels = labels_of(shape)
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
                np.testing.assert_array_equal(found.labels, np.setdiff1d(labels, [0]))
                alone = [{"mask": labels == label, "axis": axes} for label in found.labels]
                known = [ecc.euler_curve(image, at, **one, **options) for one in alone]
                assert [found.select(label) for label in found.labels] == known


@pytest.mark.sweep
@pytest.mark.parametrize("boundary", ["closed", *BOUNDARIES, *HALF_PERIODIC])
@pytest.mark.parametrize("shape", [(9, 12), (5, 6, 4)])
def test_functionals_of_regions(boundary, shape):
    boundary = borders(boundary, len(shape))
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    ndim = len(shape)
    image = image_of(shape)
    labels = labels_of(shape)
    at = np.arange(7.0)
    labels[(slice(3),) * ndim] = 0  # The first chunk has no region.
    lazy = da.from_array(image, 4), da.from_array(labels, 3)
    for connectivity, estimator in itertools.product((1, ndim), ESTIMATORS[ndim]):
        options = {"connectivity": connectivity, "boundary": boundary}
        options |= {"estimator": estimator, "spacing": (2, 3, 1)[:ndim]}
        found = ecc.region_minkowski(image, labels, at, **options)
        chunked = ecc.region_minkowski(*lazy, at, **options)
        np.testing.assert_allclose(chunked.values, found.values, atol=1e-9)
        for label in found.labels:
            expected = ecc.minkowski_curves(image, at, mask=labels == label, **options)
            np.testing.assert_allclose(found.select(label).values, expected.values, atol=1e-9)


@pytest.mark.parametrize("connectivity", [1, 2])
@pytest.mark.parametrize(
    "function", [ecc.region_curves, ecc.region_minkowski, ecc.region_betti_curves]
)
def test_a_region_across_opposite_sides_of_a_rolled_image(function, connectivity):
    image = image_of((12, 15))
    labels = np.zeros((12, 15), int)
    labels[3:9, 4:10] = 1
    rolled = [np.roll(array, (5, 9), (0, 1)) for array in (image, labels)]
    options = {"range": (0, 5), "connectivity": connectivity}
    inside = function(image, labels, 6, **options).values
    across = function(*rolled, 6, boundary="periodic", **options).values
    np.testing.assert_array_equal(across[:, : inside.shape[1]], inside)
    assert not across[:, inside.shape[1] :].any()


OPEN = Border("open", "", ((("first", -1), ("last", -1)),) * 2)
"""A border of planes alone: cells in the outermost points (V) or faces (T) are missing."""


def open_cells(image, connectivity):
    """Yield the sign and the value of each cell off the border, by its doubled coordinates."""
    ends = [2 * n - 2 if connectivity == 1 else 2 * n for n in image.shape]
    for cell in itertools.product(*(range(1, end) for end in ends)):
        if connectivity == 1:  # Odd coordinates are between two points.
            points = [{c // 2, (c + 1) // 2} for c in cell]
            value = max(image[point] for point in itertools.product(*points))
        else:  # Odd coordinates are within a cube, even ones between two.
            points = [{c // 2, (c - 1) // 2} for c in cell]
            value = min(image[point] for point in itertools.product(*points))
        yield (-1) ** sum(c % 2 for c in cell), value


@pytest.mark.parametrize("connectivity", [1, 2])
def test_a_border_of_planes_is_computed_without_a_kernel_for_it(connectivity):
    image = image_of((6, 7))
    filtration = Filtration(2, connectivity, boundary=Boundary.alike(OPEN, 2))
    found = backend("cpu").curve(image[None], np.arange(6.0), filtration)[0]
    cells = list(open_cells(image, connectivity))
    signs, values = map(np.array, zip(*cells, strict=True))
    assert found.tolist() == [signs[values <= t].sum() for t in range(6)]
