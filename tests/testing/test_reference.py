"""The reference against scikit-image, GUDHI, shapes known by hand and the plainest Python."""

import itertools
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from filtrations import connectivities
from hypothesis import given
from hypothesis import strategies as st
from oracles import euler as reference
from skimage.measure import euler_number
from topology_helpers import alive, intervals

from ecc_core.testing import known_shapes, strategies

ROOT = Path(__file__).parents[2]


def every_cell(shape, cubes, boundary):
    """Walk over the doubled grid: the extent of each cell, and the points that decide about it."""
    doubled = [2 * n for n in shape]
    sides = {
        "closed": [range(n + 1 if cubes else n - 1) for n in doubled],
        "periodic": [range(n) for n in doubled],
        "half-open": [range(int(cubes), n - 2 + cubes) for n in doubled],
    }
    for cell in itertools.product(*sides[boundary]):
        spans = []
        # Vertices have even coordinates, cubes odd ones.
        for c, n in zip(cell, shape, strict=True):
            span = [c // 2] if c % 2 == cubes else [c // 2 - cubes, c // 2 - cubes + 1]
            spans.append([i % n for i in span if boundary == "periodic" or 0 <= i < n])
        yield tuple(c % 2 for c in cell), sorted(itertools.product(*spans))  # They are in C order.


@pytest.mark.parametrize("shape", known_shapes(), ids=lambda s: s.name)
def test_known_shapes(shape):
    assert reference.euler_number(shape.image, 1) == shape.euler_1
    assert reference.euler_number(shape.image, shape.image.ndim) == shape.euler_d


@given(st.data(), st.sampled_from((2, 3)))
def test_curve_equals_scikit_image(data, ndim):
    image = data.draw(strategies.images(ndim))
    mask = data.draw(st.none() | strategies.masks(image.shape))
    native = image.dtype.newbyteorder("=").name
    thresholds = data.draw(strategies.thresholds(image, dtypes=[native]))
    kept = True if mask is None else mask
    for connectivity, superlevel in itertools.product((1, ndim), (False, True)):
        compare = np.greater_equal if superlevel else np.less_equal
        expected = [euler_number(compare(image, t) & kept, connectivity) for t in thresholds]
        options = {"connectivity": connectivity, "superlevel": superlevel, "mask": mask}
        found = reference.euler_curve(image, thresholds, **options)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)


@given(strategies.images(dtypes=("uint8", "int16", "float16", "float32"), infinities=False))
def test_curve_equals_gudhi(image):
    thresholds = np.unique(image.astype(float))[:100]
    for connectivity in connectivities(image.ndim):
        signs = [[1], [-1], [1]][: image.ndim]
        expected = (alive(intervals(image, connectivity), thresholds) * signs).sum(axis=0)
        found = reference.euler_curve(image, thresholds, connectivity=connectivity)
        np.testing.assert_array_equal(found, expected)


SMALL = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


@pytest.mark.parametrize("boundary", ["closed", "periodic", "half-open"])
@given(image=strategies.images(dtypes=("bool", "uint8", "float64"), shapes=SMALL))
def test_cells_and_coefficients_equal_plain_python(boundary, image):
    for connectivity in connectivities(image.ndim):
        cubes = connectivity != 1
        coefficients = np.zeros(image.shape, np.int8)
        values = {extent: [] for extent in itertools.product((0, 1), repeat=image.ndim)}
        for extent, points in every_cell(image.shape, cubes, boundary):
            value = (min if cubes else max)(image[p] for p in points)
            values[extent].append(value)
            owner = next(p for p in points if image[p] == value)
            coefficients[owner] += (-1) ** sum(extent)
        if boundary == "closed":
            found = reference.euler_coefficients(image, connectivity=connectivity)
            np.testing.assert_array_equal(found, coefficients)
        levels = np.unique(image)
        options = {"connectivity": connectivity, "boundary": boundary}
        counts = reference.cell_counts(image, levels, **options)
        assert list(counts) == list(values)
        below = {extent: np.greater_equal.outer(levels, own) for extent, own in values.items()}
        expected = {extent: own.sum(axis=1) for extent, own in below.items()}
        np.testing.assert_equal(dict(counts), expected)
        signs = [(-1) ** sum(extent) for extent in counts]
        total = sum(sign * count for sign, count in zip(signs, counts.values(), strict=True))
        np.testing.assert_array_equal(reference.euler_curve(image, levels, **options), total)


@given(st.data())
def test_coefficients_add_up_to_the_curve(data):
    image = data.draw(strategies.images(nan=True))
    mask = data.draw(strategies.masks(image.shape))
    for connectivity, superlevel in itertools.product(connectivities(image.ndim), (False, True)):
        options = {"connectivity": connectivity, "superlevel": superlevel, "mask": mask}
        levels = np.unique(image[~np.isnan(image)])
        coefficients = reference.euler_coefficients(image, **options)
        compare = np.greater_equal if superlevel else np.less_equal
        summed = [coefficients[compare(image, t)].sum() for t in levels]
        np.testing.assert_array_equal(reference.euler_curve(image, levels, **options), summed)
        assert not coefficients[~mask | np.isnan(image)].any()
        jumps = np.diff([0, *summed]) if not superlevel else np.diff([*summed, 0])
        changing = reference.changing_levels(image, **options)
        np.testing.assert_array_equal(changing, levels[jumps != 0])


def test_large_integers_are_not_rounded():
    image = np.array([2**53, 2**53 + 1, 2**63 - 1], dtype=np.int64)
    thresholds = np.array([2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1], dtype=np.uint64)
    np.testing.assert_array_equal(reference.euler_curve(image, thresholds), [1, 1, 1, 1])
    coefficients = reference.euler_coefficients(image, connectivity=1)
    np.testing.assert_array_equal(coefficients, [1, 0, 0])
    image = image[[1, 0, 1, 2, 1]]
    np.testing.assert_array_equal(reference.euler_curve(image, thresholds), [1, 2, 2, 1])
    # 2.0**53 + 2 is the next double; 2.0**63 lies above everything.
    np.testing.assert_array_equal(
        reference.euler_curve(image, np.array([2.0**53, 2.0**53 + 2, 2.0**63])), [1, 2, 1]
    )


def imports_of(path):
    """Names of the packages that a file imports."""
    return set(re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.MULTILINE))


def test_oracles_share_no_code_with_what_they_judge():
    oracles = [ROOT / "tests/oracles/euler.py", ROOT / "tests/oracles/transform.py"]
    imported = set().union(*map(imports_of, oracles)) - sys.stdlib_module_names
    assert imported <= {"numpy", "oracles"}
    files = [*ROOT.glob("ecc_core/**/*.py"), *ROOT.glob("napari_ecc/**/*.py")]
    assert len(files) > 100
    assert not [path for path in files if {"oracles", "tests"} & imports_of(path)]
