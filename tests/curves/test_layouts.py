"""Memory layouts and batch axes: the same numbers, and the input is never written."""

import itertools
import sys

import numpy as np
import pytest
from filtrations import sides
from oracles import euler as reference
from processes import run_python
from stored_arrays import WAYS

import ecc_core as ecc
from ecc_core.testing import assert_arrays_equal, assert_curves_equal

SHAPES = {1: (131,), 2: (19, 67), 3: (5, 18, 67)}
THRESHOLDS = np.array([10, 50.5, 100, 199])


def noise(shape, dtype="uint8", seed=0):
    return (np.random.default_rng(seed).random(shape) * 200).astype(dtype)


@pytest.mark.sweep
@pytest.mark.parametrize("layout", WAYS)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize(
    "case", list(itertools.product(SHAPES, (False, True), (False, True))), ids=str
)
def test_layouts(dtype, layout, case):
    ndim, cubes, superlevel = case
    image = noise(SHAPES[ndim], dtype)
    view = WAYS[layout](image)
    before = np.asarray(view).tobytes()
    connectivity = ndim if cubes else 1
    options = {"connectivity": connectivity, "superlevel": superlevel}
    curve = reference.euler_curve(image, THRESHOLDS, **options)
    assert_curves_equal(ecc.euler_curve(view, THRESHOLDS, **options), curve)
    coefficients = ecc.euler_coefficients(view, **options)
    assert_arrays_equal(coefficients, reference.euler_coefficients(image, **options))
    number = reference.euler_number(image, connectivity)
    assert ecc.euler_number(view, connectivity) == number
    assert np.asarray(view).tobytes() == before


def views(shape, dtype):
    """Volumes whose axes lie in memory in any order, with gaps, and reversed."""
    for order, step in itertools.product(itertools.permutations(range(3)), (1, 2, 3, -1)):
        laid = [shape[axis] for axis in order]
        laid[-1] *= abs(step)
        yield noise(laid, dtype)[..., ::step].transpose(np.argsort(order))


@pytest.mark.sweep
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 17, 35), (16, 2, 48), (33, 1, 17), (3, 3, 300)])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "int64"])
def test_axes_in_any_order(dtype, shape):
    for view in views(shape, dtype):
        assert view.shape == shape
        expected = ecc.euler_coefficients(np.ascontiguousarray(view))
        assert_arrays_equal(ecc.euler_coefficients(view), expected)


GUARDED = """
import ctypes, itertools, mmap
import numpy as np
import ecc_core as ecc

page, PROT_NONE = mmap.PAGESIZE, 0
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

def between_guards(array, at_end):
    size = -(-array.nbytes // page) * page
    memory = mmap.mmap(-1, size + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for guard in (start, start + page + size):
        assert libc.mprotect(guard, page, PROT_NONE) == 0
    offset = page + (size - array.nbytes if at_end else 0)
    inside = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    inside[...] = array
    return inside

shapes = [(1,), (67,), (1, 63), (9, 65), (8, 64), (17, 130), (1, 1, 66), (3, 9, 65), (2, 8, 128)]
rng = np.random.default_rng(0)
for shape, dtype, at_end in itertools.product(shapes, "u1 u2 f4 f8 i8 f2".split(), (False, True)):
    image = between_guards(rng.integers(9, size=shape).astype(dtype), at_end)
    mask = between_guards(rng.random(shape) < 0.7, at_end)
    labels = between_guards(rng.integers(3, size=shape), at_end)
    for connectivity in (1, len(shape)):
        for thresholds in (np.arange(9.0), np.array([1.0, 2.5, 2.75, 4.0])):
            ecc.euler_curve(image, thresholds, connectivity=connectivity, mask=mask)
            ecc.euler_curve(image, thresholds, connectivity=connectivity, superlevel=True)
            ecc.region_curves(image, labels, thresholds, connectivity=connectivity)
        ecc.euler_coefficients(image, connectivity=connectivity)
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="uses mprotect")
def test_nothing_is_read_outside_the_arrays():
    """A read outside of an array that lies between two guard pages ends the process."""
    done = run_python(GUARDED)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


LARGE = [
    *[((3, 700, 700), (1, 2)), ((700, 3, 700), (0, 2)), ((3, 2, 20_011), (1, 2))],
    *[((3, 20_011), 1), ((40, 60, 61), (1, 2)), ((2, 70, 80, 131), (1, 2, 3))],
]
"""Batches larger than a block of the CPU backend."""


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((3, 9, 67), (1, 2)),
        ((3, 9, 67), (-2, -1)),
        ((9, 3, 67), (0, 2)),
        ((9, 67, 3), (0, 1)),
        ((67, 3, 9), (2, 0)),
        ((2, 3, 9, 67), (2, 3)),
        ((2, 5, 9, 67), (1, 2, 3)),
        ((5, 2, 9, 3, 33), (0, 2, 4)),
        ((4, 67), 1),
        ((4, 67), -1),
        ((67, 4), (0,)),
        ((3, 4, 67), -1),
        ((9, 67), (0, 1)),
        ((1, 9, 67), (1, 2)),
        ((0, 9, 7), (1, 2)),
        ((3, 0, 7), (1, 2)),
        ((3, 9, 0), (1, 2)),
        *LARGE,
        ((2, 2, 2, 2, 2, 17), (4, 5)),
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_batch_axes_lead_the_result(backend, dtype, shape, axis):
    image = noise(shape, dtype)
    given = backend.asarray(image)
    spatial = [a % len(shape) for a in np.atleast_1d(axis)]
    batch = [a for a in range(len(shape)) if a not in spatial]
    stack = image.transpose(*batch, *spatial)
    leading = tuple(shape[a] for a in batch)
    for options in sides(len(spatial)):
        expected = np.empty((*leading, THRESHOLDS.size), np.int64)
        for index in np.ndindex(leading):
            expected[index] = reference.euler_curve(stack[index], THRESHOLDS, **options)
        found = ecc.euler_curve(given, THRESHOLDS, axis=axis, workers=1, **options)
        assert_curves_equal(found, expected, thresholds=THRESHOLDS, like=given)
        found = ecc.euler_curve(given, THRESHOLDS, axis=axis, workers=3, **options)
        assert_curves_equal(found, expected, thresholds=THRESHOLDS, like=given)


@pytest.mark.parametrize("masked", ["each", "all", "none"])
def test_masks_and_nan_of_a_batch(backend, masked):
    image = noise((3, 9, 67), "float32")
    masks = noise((3, 9, 67), seed=1) > 50
    image[1, 2:4, 5:30] = np.nan
    mask = {"each": masks, "all": masks[0], "none": np.ones((9, 67), bool)}[masked]
    found = ecc.euler_curve(
        backend.asarray(image), THRESHOLDS, axis=(1, 2), mask=backend.asarray(mask), nan="omit"
    )
    each = zip(image, np.broadcast_to(mask, image.shape), strict=True)
    expected = [reference.euler_curve(plane, THRESHOLDS, mask=kept) for plane, kept in each]
    assert_curves_equal(found, expected)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("thresholds", [np.arange(-1, 8), np.array([2])], ids=len)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("superlevel", [False, True])
def test_many_images_of_one_axis(axis, superlevel, thresholds, masked):
    """Each row has the curve that it has alone, masked and with a single threshold, too."""
    rng = np.random.default_rng(0)
    image = rng.integers(0, 6, (11, 70)).astype(np.uint8)
    mask = rng.random((11, 70)) < 0.7
    options = {"superlevel": superlevel, "mask": mask if masked else None}
    found = ecc.euler_curve(image, thresholds, axis=axis, **options).values
    rows = image if axis == 1 else image.T
    masks = [None] * len(rows)
    if masked:
        masks = mask if axis == 1 else mask.T
    alone = [
        ecc.euler_curve(row, thresholds, superlevel=superlevel, mask=own).values
        for row, own in zip(rows, masks, strict=True)
    ]
    np.testing.assert_array_equal(found, alone)
