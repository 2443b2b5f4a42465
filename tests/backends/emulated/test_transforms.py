"""Transforms of masks and weights by the CUDA kernels, on the CPU."""

from unittest import mock

import numpy as np
import pytest
from fake_cupy import guarded
from filtrations import cases_of_connectivities

import ecc_core as ecc

NOISE = np.random.default_rng(3).random((2, 40, 140)) < 0.5
# In one orthant two of three points are critical, more than a warp lists at once.
STRIPES = np.add.outer(np.arange(40), np.arange(140)) % 3 != 0
LEVELS = {
    "even": np.linspace(-40, 40, 100),
    "on points": np.arange(-4, 4.25, 0.25),
    "at one end": np.linspace(60, 70, 41),
    "dense": np.linspace(-10, 10, 3000),
    "uneven": np.geomspace(1e-9, 70, 50),
    "one": np.array([0.0]),
}


def directions(ndim, orthants):
    """Random ones, several to an orthant, and those that put many points at one height."""
    random = np.abs(np.random.default_rng(4).standard_normal((7, ndim)))
    signs = 1 - 2.0 * (np.arange(orthants)[:, None] >> np.arange(ndim) & 1)
    spread = (signs[:, None] * random).reshape(-1, ndim)
    found = np.concatenate([spread, np.eye(ndim), -np.eye(ndim), [np.ones(ndim)]])
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def assert_same(emulator, image, vectors, heights, connectivity, spacing=1.0):
    """Transforms of a mask, or of weights."""
    spacing = np.full(image.ndim, spacing)
    weighted = image.dtype != bool
    part = emulator.backend.transform
    transform = part.weighted_transform if weighted else part.mask_transform
    found = transform(guarded(image), vectors, heights, spacing, connectivity)
    options = {"connectivity": connectivity, "spacing": spacing, "weighted": weighted}
    known = ecc.euler_transform(image, vectors, heights, **options).values
    np.testing.assert_array_equal(found, known)
    assert found.dtype == known.dtype


@pytest.mark.sweep
@pytest.mark.parametrize("heights", LEVELS.values(), ids=LEVELS)
@pytest.mark.parametrize("mask", [NOISE, STRIPES, NOISE[0, 3, :70], ~NOISE[:, :3, :66]])
def test_transforms_equal_those_of_the_cpu(emulator, mask, heights):
    for connectivity in {1, mask.ndim}:
        vectors = directions(mask.ndim, 2 if mask.size > 5000 else 2**mask.ndim)
        assert_same(emulator, mask, vectors, heights, connectivity)


def test_many_levels_stay_in_global_memory(emulator):
    heights = np.linspace(-80, 80, 60_000)
    assert_same(emulator, STRIPES, directions(2, 1)[:3], heights, 1, spacing=0.7)


@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("slices", [4, 16])
@pytest.mark.parametrize("density", [0.5, 0.98])
def test_a_warp_walks_through_several_slices(emulator, slices, density, connectivity):
    mask = np.random.default_rng(5).random((19, 35, 70)) < density
    with mock.patch.object(emulator.backend.transform_masks, "SLICES", (slices,)):
        assert_same(emulator, mask, directions(3, 8)[::3], LEVELS["even"], connectivity)


def test_more_critical_points_than_a_warp_can_list(emulator):
    stripes = np.broadcast_to(STRIPES, (3, *STRIPES.shape))
    with mock.patch.object(emulator.backend.transform_masks, "SLICES", (2,)):
        assert_same(emulator, stripes, directions(3, 8)[::5], LEVELS["on points"], 1)


@pytest.mark.sweep
@pytest.mark.parametrize("heights", [LEVELS["even"], LEVELS["dense"]], ids=len)
@pytest.mark.parametrize("case", cases_of_connectivities([(9, 30), (4, 9, 270), (300,)]))
def test_weights(emulator, heights, case):
    shape, connectivity = case
    weights = np.random.default_rng(6).integers(-3, 4, shape)
    assert_same(emulator, weights, directions(len(shape), 2), heights, connectivity)


BLOBS = np.kron(np.random.default_rng(7).integers(0, 6, (4, 5, 6)), np.ones((2, 3, 4), int))
SQUARES = np.kron(np.arange(12 * 15).reshape(12, 15), np.ones((3, 3), int))
LABELS = {
    "a few": BLOBS * 7,
    "noise": np.random.default_rng(8).integers(0, 3, (9, 13, 40)),
    "along an axis": BLOBS[0, 0] + 1,
    "none": np.zeros((4, 70), int),
    "no points": np.zeros((0, 4), int),
    "more than there is room for at first": SQUARES,
    "more than have a row": SQUARES * 100,
    "large": SQUARES * 10**12,
}


@pytest.mark.parametrize("normalize", [None, "radius"])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_regions(emulator, labels, normalize):
    dtype = np.int32 if labels.max(initial=0) < 2**31 else np.int64
    spacing = np.full(labels.ndim, 0.3)
    vectors = directions(labels.ndim, 2)
    part = emulator.backend.transform_regions
    for connectivity in {1, labels.ndim}:
        known = ecc.region_transforms(
            labels, vectors, 20, spacing=0.3, connectivity=connectivity, normalize=normalize
        )
        for _ in range(2):  # The second image has room for as much as the first.
            regions = part.find_regions(guarded(labels.astype(dtype)), spacing, connectivity)
            scales = regions.radii if normalize else None
            found = part.region_transforms(regions, vectors, known.heights, scales)
            np.testing.assert_array_equal(regions.labels, known.labels)
            np.testing.assert_array_equal(found, known.values)


def test_more_corners_than_there_is_room_for(emulator):
    labels = guarded(LABELS["noise"].astype(np.int32))
    part = emulator.backend.transform_regions
    spacing = np.ones(3)
    with mock.patch.multiple(part, LEAST_CORNERS=1, WINDOWS_A_CORNER=10**9):
        regions = part.find_regions(labels, spacing, 3)
    vectors = directions(3, 1)
    found = part.region_transforms(regions, vectors, LEVELS["even"], None)
    known = ecc.region_transforms(labels, vectors, LEVELS["even"])
    np.testing.assert_array_equal(found, known.values)


def test_negative_labels(emulator):
    labels = guarded(np.array([[0, 3, -2], [1, 1, 0]], np.int32))
    with pytest.raises(ValueError, match="`labels` must not be negative, got -2"):
        emulator.backend.transform_regions.find_regions(labels, np.ones(2), 1)
