"""Numbers of cells by the CUDA kernel against those of the CPU backend, bit for bit."""

import numpy as np
import pytest
from fake_cupy import guarded, ndarray

from ecc_core._backends.cpu import cells as launch
from ecc_core._request.estimator import estimator_of
from ecc_core._request.filtration import filtration_of

BEYOND = [-200, -128, -3, 2.5, 2.5, 127, 200, 255, 300]
# Dtypes, shapes, thresholds and superlevels: one to three axes, rows of full and of other widths,
# codes of 8 and 16 bits, several chunks of slices, counts in shared and in global memory.
CASES = {
    "lines": ("float32", (3, 40), [-1, 1, 2.5, 2.5, 4], False),
    "bytes": ("uint8", (2, 9, 37), np.arange(8), True),
    "no level": ("uint8", (1, 5, 7), [-3, -2], True),
    "volumes": ("float64", (1, 9, 6, 20), np.linspace(0, 7, 300), False),
    "many": ("float32", (2, 5, 4, 6), np.linspace(-1, 8, 20_000), False),
    "all bytes": ("uint8", (2, 9, 24), BEYOND, False),
    "signed bytes": ("int8", (1, 5, 4, 140), BEYOND, True),
}
ALONE = "all bytes", "signed bytes"
"""Cases without a mask, whose bytes are not recoded."""
BOUNDARIES = "closed", "periodic", "half-open"
MIXED = [
    ("periodic", "closed", "half-open"),
    ("half-open", "periodic", "closed"),
    ("closed", "half-open", "periodic"),
]
"""Borders along the axes of a volume; images of fewer axes have the last ones."""
NAMES = {1: ("exact",), 2: ("exact", "crofton-4"), 3: ("exact", "crofton-13")}


def drawn(case):
    dtype, shape, thresholds, _ = CASES[case]
    rng = np.random.default_rng(len(case))
    image = rng.integers(0, 256 if case in ALONE else 8, shape).astype(dtype)
    mask = None if case in ALONE else rng.random(shape) < 0.9
    if image.dtype.kind == "f":
        image[rng.random(shape) < 0.05] = np.nan
    return image, mask, np.asarray(thresholds, np.float64)


def cells_of(filtration, estimators=NAMES):
    return [estimator_of(name, None, filtration).cells for name in estimators[filtration.ndim]]


# Lines have one construction; so many levels take long.
CONSTRUCTIONS = [
    (case, cubes)
    for case in CASES
    for cubes in (False, True)
    if not cubes or case not in ("lines", "many")
]


@pytest.mark.parametrize(("case", "cubes"), CONSTRUCTIONS)
@pytest.mark.parametrize("boundary", [*BOUNDARIES, *MIXED], ids=str)
def test_counts(emulator, case, cubes, boundary):
    image, mask, thresholds = drawn(case)
    shown = None if mask is None else guarded(mask)
    ndim, superlevel = image.ndim - 1, CASES[case][-1]
    connectivity = ndim if cubes else 1
    if isinstance(boundary, tuple):
        boundary = boundary[-ndim:]
    filtration = filtration_of(ndim, connectivity, superlevel, "omit", None, boundary)
    few = case in ("many", *ALONE)
    of_each = cells_of(filtration)[: 1 if few else None]
    known = [
        launch.cell_counts(image, thresholds, cells, filtration, mask=mask) for cells in of_each
    ]
    kernels = ["recode"] * (case not in ALONE) + ["cells"]
    found = []
    launched = []
    dtypes = set()
    for cells in of_each:
        emulator.clear()
        given = guarded(image), thresholds, cells, filtration
        counts = emulator.backend.cells.cell_counts(*given, mask=shown)
        found.append(np.asarray(counts))
        dtypes.add(counts.dtype)
        launched.append(list(emulator.launched))
    np.testing.assert_equal(found, known)
    assert dtypes == {np.dtype(np.int64)}
    assert launched == [kernels] * len(of_each)


def test_nothing_to_count(emulator):
    filtration = filtration_of(2)
    (cells, _) = cells_of(filtration)
    empty = np.zeros((2, 0, 3)).view(ndarray)
    found = emulator.backend.cells.cell_counts(empty, np.array([1.0]), cells, filtration)
    np.testing.assert_array_equal(found, np.zeros((2, 4, 1), np.int64))


@pytest.mark.parametrize(("case", "connectivity"), [("lines", 1), ("bytes", 2), ("volumes", 1)])
def test_regions(emulator, case, connectivity):
    image, _, thresholds = drawn(case)
    image, labels = image[0], np.random.default_rng(5).integers(0, 4, image.shape[1:])
    sparse = np.where(labels > 1, 10**12 + labels, 0)
    labels = {"lines": labels > 2, "bytes": labels, "volumes": sparse}[case]
    filtration = filtration_of(image.ndim, connectivity, CASES[case][-1], "omit")
    for cells in cells_of(filtration)[: 2 if case == "bytes" else 1]:
        emulator.clear()
        ids, found = emulator.backend.cells.region_cell_counts(
            guarded(image), guarded(labels), thresholds, cells, filtration
        )
        numbers, expected = launch.region_cell_counts(image, labels, thresholds, cells, filtration)
        np.testing.assert_array_equal(np.asarray(ids), numbers)
        np.testing.assert_array_equal(np.asarray(found), expected)
        assert ids.dtype == numbers.dtype
