"""Minkowski functionals against counts of cells, known shapes, and each other."""

import itertools
import math
import pickle

import numpy as np
import pytest
from filtrations import ESTIMATORS, with_connectivities, with_sides
from oracles.euler import minkowski_functionals

import ecc_core as ecc
from ecc_core.errors import BackendError

SPACING = (1.5, 2.0, 0.5)
SHAPES = [(7,), (1,), (4, 5), (1, 4), (3, 4, 3), (1, 1, 1)]
NAMES = {
    1: ("length", "euler"),
    2: ("area", "perimeter", "euler"),
    3: ("volume", "surface", "mean_breadth", "euler"),
}
THRESHOLDS = np.arange(7)


def image_of(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).integers(0, 6, shape).astype(dtype)


@pytest.mark.parametrize("boundary", ["closed", "periodic", "half-open"])
@pytest.mark.parametrize("dtype", ["float32", ">i4", ">f8"])
@pytest.mark.parametrize(("shape", "side"), with_sides(SHAPES))
@pytest.mark.parametrize("masked", [False, True])
def test_exact_values_are_those_of_the_cells(boundary, dtype, shape, side, masked):
    image = image_of(shape, dtype)
    spacing = SPACING[: len(shape)]
    mask = np.random.default_rng(1).random(shape) < 0.8 if masked else None
    options = {**side, "mask": mask, "boundary": boundary}
    found = ecc.minkowski_curves(image, THRESHOLDS, spacing=spacing, **options)
    expected = minkowski_functionals(image, THRESHOLDS, spacing, **options)
    assert found.values.dtype == np.float64
    np.testing.assert_allclose(found.values, expected, rtol=1e-13, atol=1e-12)
    euler = ecc.euler_curve(image, THRESHOLDS, **options).values
    np.testing.assert_array_equal(found.euler, euler)
    assert found.euler.dtype == np.int64


@pytest.mark.parametrize("boundary", ["closed", "periodic", "half-open"])
@pytest.mark.parametrize(("shape", "connectivity"), with_connectivities([(7,), (4, 5), (3, 4, 3)]))
def test_the_set_of_all_points_fills_the_window(boundary, shape, connectivity):
    """The window is what cells can cover: between the points of V, or around those of T."""
    image = np.zeros(shape, np.float32)
    options = {"boundary": boundary, "spacing": SPACING[: len(shape)]}
    found = ecc.minkowski_curves(image, [0], connectivity=connectivity, **options)
    assert found.densities().values[0] == pytest.approx(1)


def test_layouts_and_batches():
    image = image_of((3, 4, 5, 6))
    whole = ecc.minkowski_curves(image, THRESHOLDS, axis=(1, 3, 2), spacing=SPACING)
    assert whole.values.shape == (3, 4, 7)
    alone = [
        ecc.minkowski_curves(one.transpose(0, 2, 1), THRESHOLDS, spacing=SPACING) for one in image
    ]
    np.testing.assert_array_equal(whole.values, [one.values for one in alone])
    flipped = ecc.minkowski_curves(image[0, ::-1, :, ::-1], THRESHOLDS)
    np.testing.assert_array_equal(flipped.values, ecc.minkowski_curves(image[0], THRESHOLDS).values)


@pytest.mark.parametrize(
    ("shape", "estimator"),
    [(shape, name) for shape in [(6, 7), (4, 5, 4)] for name in ESTIMATORS[len(shape)]],
)
@pytest.mark.parametrize("cubes", [False, True])
def test_windows_of_a_partition_add_up(shape, estimator, cubes):
    image = image_of(shape, "uint8")
    connectivity = len(shape) if cubes else 1
    options = {"connectivity": connectivity, "boundary": "half-open", "estimator": estimator}
    whole = ecc.minkowski_curves(image, THRESHOLDS, **options)
    parts = [((0, n // 3 + 1), (n // 3, n)) for n in shape]
    windows = []
    for box in itertools.product(*parts):
        window = tuple(slice(*ends) for ends in box)
        part = image[window]
        windows.append(ecc.minkowski_curves(part, THRESHOLDS, **options))
    total = sum(window.values for window in windows)
    np.testing.assert_allclose(total, whole.values, rtol=1e-12, atol=1e-12)
    assert sum(window.window for window in windows) == whole.window


@pytest.mark.parametrize("connectivity", [None, 1])
def test_points_of_a_line_are_vertices(connectivity):
    """So n points have the length n - 1, and a single one has none."""
    image = np.array([0, 0, 0, 5, 0])
    found = ecc.minkowski_curves(image, [0, 5], connectivity=connectivity)
    np.testing.assert_array_equal(found.length, [2, 4])
    np.testing.assert_array_equal(found.euler, [2, 1])


def test_boxes():
    image = np.ones((9, 10, 11))
    image[2:5, 3:7, 1:6] = 0  # 3 x 4 x 5 cubes, or 2 x 3 x 4 between centres.
    cubes = ecc.minkowski_curves(image, [0], spacing=(1, 2, 3))
    np.testing.assert_allclose(cubes.values[:, 0], [3 * 8 * 15, 2 * (24 + 45 + 120), 13, 1])
    vertices = ecc.minkowski_curves(image, [0], spacing=(1, 2, 3), connectivity=1)
    np.testing.assert_allclose(vertices.values[:, 0], [2 * 6 * 12, 2 * (12 + 24 + 72), 10, 1])
    flat = ecc.minkowski_curves(image[3], [0], spacing=(2, 3))
    np.testing.assert_allclose(flat.values[:, 0], [8 * 15, 2 * (8 + 15), 1])


def coordinates(size, ndim=3):
    return np.meshgrid(*[np.arange(size) - (size - 1) / 2] * ndim, indexing="ij")


def test_balls_shells_and_tori_within_the_stated_error():
    z, y, x = coordinates(53)
    radius = np.sqrt(x**2 + y**2 + z**2)
    ball = ecc.minkowski_curves(radius, [20], estimator="crofton-13")
    theory = [4 / 3 * np.pi * 20**3, 4 * np.pi * 20**2, 2 * 20, 1]
    np.testing.assert_allclose(ball.values[:, 0], theory, rtol=0.02)
    shell = ecc.minkowski_curves(np.abs(radius - 16), [6], estimator="crofton-13")
    theory = [4 / 3 * np.pi * (22**3 - 10**3), 4 * np.pi * (22**2 + 10**2), 2 * 12, 2]
    np.testing.assert_allclose(shell.values[:, 0], theory, rtol=0.04)
    ring = np.hypot(np.hypot(x, y) - 16, z)
    torus = ecc.minkowski_curves(ring, [8], estimator="crofton-13")
    theory = [2 * np.pi**2 * 16 * 8**2, 4 * np.pi**2 * 16 * 8, np.pi * 16, 0]
    np.testing.assert_allclose(torus.values[:, 0], theory, rtol=0.04)
    exact = ecc.minkowski_curves(radius, [20])
    np.testing.assert_allclose(exact.surface, 1.5 * 4 * np.pi * 20**2, rtol=0.01)


@pytest.mark.parametrize("spacing", [(1, 1), (1, 1.6)])
def test_disks_and_anisotropic_spacing(spacing):
    y, x = coordinates(81, 2)
    distance = np.hypot(y * spacing[0], x * spacing[1])
    disk = ecc.minkowski_curves(distance, [30], spacing=spacing, estimator="crofton-4")
    np.testing.assert_allclose(disk.perimeter, 60 * np.pi, rtol=0.02)
    np.testing.assert_allclose(disk.area, 900 * np.pi, rtol=0.01)


def test_a_ball_and_anisotropic_spacing():
    z, y, x = coordinates(45)
    distance = np.sqrt(x**2 + y**2 + (1.5 * z) ** 2)
    ball = ecc.minkowski_curves(distance, [20], spacing=(1.5, 1, 1), estimator="crofton-13")
    np.testing.assert_allclose(ball.surface, 1600 * np.pi, rtol=0.02)
    np.testing.assert_allclose(ball.mean_breadth, 40, rtol=0.04)


def test_nan_and_masked_arrays():
    image = image_of((4, 5))
    hidden = np.ma.masked_equal(image, 3)
    image[1, 2] = np.nan
    with pytest.raises(ValueError, match="nan="):
        ecc.minkowski_curves(image, THRESHOLDS)
    found = ecc.minkowski_curves(image, THRESHOLDS, nan="omit")
    np.testing.assert_array_equal(found.values, minkowski_functionals(image, THRESHOLDS, (1, 1)))
    masked = ecc.minkowski_curves(hidden, THRESHOLDS)
    kept = ecc.minkowski_curves(hidden.data, THRESHOLDS, mask=hidden.data != 3)
    assert masked == kept
    with pytest.raises(ValueError, match="unknown with a mask"):
        masked.densities()


def test_other_libraries():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    image = image_of((4, 5))
    found = ecc.minkowski_curves(torch.from_numpy(image), 5)
    assert isinstance(found.area, torch.Tensor)
    assert found.euler.dtype == torch.int64
    assert found.to_numpy() == ecc.minkowski_curves(image, 5)


def test_a_backend_without_cell_counts():
    from plain import Box

    with pytest.raises(BackendError, match="Cell counts are not available on plain"):
        ecc.minkowski_curves(Box(image_of((4, 5))), 5)


@pytest.mark.parametrize("shape", [(5,), (4, 5), (3, 4, 3)])
def test_results_keep_their_names_and_facts(shape):
    curves = ecc.minkowski_curves(image_of(shape), 5, spacing=2, boundary="half-open")
    thresholds, values = curves
    named = [getattr(curves, name) for name in NAMES[len(shape)]]
    np.testing.assert_array_equal(named, values)
    assert curves.measures == NAMES[len(shape)]
    assert pickle.loads(pickle.dumps(curves)) == curves
    with pytest.raises(AttributeError):
        curves.breadth  # noqa: B018
    density = curves.densities()
    size = math.prod(2 * (n - 1) for n in shape)
    np.testing.assert_array_equal(density.values, values / size)
    np.testing.assert_array_equal(density.euler, curves.euler / size)
    assert (density.euler.dtype, curves.euler.dtype) == (float, int)
    assert (density.window, density.density) == (1, True)
    table = curves.to_pandas()
    assert list(table) == ["measure", "threshold", "functional"]
    assert curves.to_xarray().sel(measure="euler").shape == thresholds.shape


def test_bad_arguments():
    image = image_of((4, 5))
    with pytest.raises(ValueError, match="'crofton-2' or 'crofton-4' for a 2-D image, got"):
        ecc.minkowski_curves(image, estimator="crofton-13")
    with pytest.raises(ValueError, match="`thresholds` must be an int or an array for Minkowski"):
        ecc.minkowski_curves(image, "exact")
    empty = ecc.minkowski_curves(np.zeros((0, 3)), [0, 1])
    np.testing.assert_array_equal(empty.values, np.zeros((3, 2)))


@pytest.mark.parametrize("shape", [(20, 70, 200), (70, 8300)])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("cubes", [False, True])
def test_blocks_of_large_images(shape, dtype, cubes):
    image = np.random.default_rng(3).integers(0, 200, shape).astype(dtype)
    thresholds = np.linspace(3.5, 190, 40)
    connectivity = len(shape) if cubes else 1
    spacing = (1,) * len(shape)
    expected = minkowski_functionals(image, thresholds, spacing, connectivity=connectivity)
    found = [
        ecc.minkowski_curves(array, thresholds, connectivity=connectivity, workers=2).values
        for array in (image, np.asfortranarray(image), image[..., ::-1])
    ]
    np.testing.assert_array_equal(found, [expected] * 3)


@pytest.mark.parametrize("connectivity", [1, 2])
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0)], ids=["contiguous", "interleaved"])
def test_stacks_of_images_in_one_call(order, connectivity):
    stack = np.random.default_rng(4).integers(0, 9, (40, 30, 20)).astype(np.float32)
    inverse = np.argsort(order)
    images = np.ascontiguousarray(stack.transpose(order)).transpose(inverse)
    options = {"connectivity": connectivity}
    found = ecc.minkowski_curves(images, np.arange(9), axis=(1, 2), **options)
    alone = [ecc.minkowski_curves(image, np.arange(9), **options) for image in stack[::13]]
    np.testing.assert_array_equal(found.values[::13], [one.values for one in alone])


def test_connectivity_density_of_a_frame_is_that_of_bonej():
    """The edges of a box: 5 loops in the volume of all points, in BoneJ's own test."""
    frame = np.zeros((192, 128, 96), bool)
    across = [(slice(31, 31 + n), (31, 30 + n)) for n in (128, 64, 32)]
    for axis in range(3):
        along = [across[other][1] for other in range(3)]
        along[axis] = [across[axis][0]]
        for place in itertools.product(*along):
            frame[place] = True
    curves = ecc.minkowski_curves(frame, [True], superlevel=True, spacing=0.2)
    density = (1 - curves.euler[0]) / curves.window
    np.testing.assert_allclose(density, 5 / (96 * 128 * 192 * 0.2**3))


@pytest.mark.parametrize(("share", "bonej"), [(0.1, 10.5), (0.3, -96.5), (0.7, 42.625)])
def test_mean_over_mirror_images_is_bonejs_correction_at_the_border(share, bonej):
    mask = np.random.default_rng(0).random((9, 10, 11)) < share
    mirrored = [
        np.flip(mask, axes) for n in range(4) for axes in itertools.combinations((0, 1, 2), n)
    ]
    found = [ecc.euler_number(one, boundary="half-open") for one in mirrored]
    assert np.mean(found) == bonej
