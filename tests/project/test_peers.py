"""What docs/peers.md says of packages that tests need anyway; findings/ has the others."""

import re
from pathlib import Path

import cripser
import gudhi
import numpy as np
import pytest
import SimpleITK as sitk
from numpy.testing import assert_allclose, assert_array_equal
from skimage.measure import euler_number, perimeter_crofton, regionprops
from skimage.morphology import skeletonize

import ecc_core as ecc
from ecc_core._cli.scores import skeleton_of

ROOT = Path(__file__).parents[2]
PIXEL = np.pad(np.ones((1, 1), np.uint8), 2)
IMAGE = np.array([[1.0, 2, 3], [4, 5, 6]])


def test_order_of_axes_of_gudhi():
    given = gudhi.CubicalComplex(top_dimensional_cells=IMAGE)
    flat = IMAGE.ravel(order="F")
    listed = gudhi.CubicalComplex(dimensions=IMAGE.shape, top_dimensional_cells=flat)
    assert_array_equal(listed.all_cells(), given.all_cells())


def test_nan_in_gudhi_is_a_class_of_dimension_two():
    volume = np.zeros((3, 3, 3))
    volume[1, 1, 1] = np.nan
    found = gudhi.CubicalComplex(top_dimensional_cells=volume).persistence()
    assert (2, (0.0, np.inf)) in found
    with pytest.raises(ValueError, match="NaN"):
        ecc.persistence_pairs(volume, axis=(0, 1, 2))


def test_places_of_pairs_in_gudhi_need_top_dimensional_cells():
    cells = gudhi.CubicalComplex(vertices=IMAGE)
    cells.compute_persistence()
    with pytest.raises(RuntimeError, match="top-dimensional cells"):
        cells.cofaces_of_persistence_pairs()


def test_classes_of_the_torus_never_die_in_gudhi():
    torus = gudhi.PeriodicCubicalComplex(
        top_dimensional_cells=np.zeros((3, 3)), periodic_dimensions=[True, True]
    )
    found = torus.persistence()
    dimensions, intervals = zip(*found, strict=True)
    assert_array_equal(np.bincount(dimensions), [1, 2, 1])
    assert set(intervals) == {(0.0, np.inf)}
    ours = ecc.persistence_pairs(np.zeros((3, 3)), boundary="periodic")
    assert_array_equal(np.bincount(ours.dimensions), [1, 2, 1])
    assert ours.essential.all()


def test_the_classes_of_a_cylinder_in_gudhi():
    cylinder = gudhi.PeriodicCubicalComplex(
        top_dimensional_cells=np.zeros((3, 4)), periodic_dimensions=[False, True]
    )
    dimensions = [dimension for dimension, _ in cylinder.persistence()]
    ours = ecc.persistence_pairs(np.zeros((3, 4)), boundary=("closed", "periodic"))
    assert sorted(dimensions) == ours.dimensions.tolist() == [0, 1]


def test_deaths_of_the_oldest_class_in_cripser():
    largest = np.finfo(np.float64).max
    (old,) = cripser.computePH(IMAGE)
    assert old[[2, 6, 7, 8]].tolist() == [largest, -1, -1, -1]
    (new,) = cripser.compute_ph(IMAGE)
    assert new[[2, 6, 7, 8]].tolist() == [np.inf, -1, -1, -1]


@pytest.mark.parametrize(
    ("ndim", "connectivity", "error"), [(3, 2, NotImplementedError), (4, 1, RuntimeError)]
)
def test_euler_numbers_that_scikit_image_does_not_have(ndim, connectivity, error):
    with pytest.raises(error):
        euler_number(np.ones((2,) * ndim, bool), connectivity)


@pytest.mark.parametrize(("directions", "perimeter"), [(4, 2.6815), (2, np.pi)])
def test_perimeters_of_scikit_image_are_estimates_by_crofton(directions, perimeter):
    assert_allclose(perimeter_crofton(PIXEL, directions), perimeter, rtol=1e-4)
    options = {"superlevel": True, "estimator": f"crofton-{directions}"}
    assert_allclose(ecc.minkowski_curves(PIXEL, [1], **options).perimeter, perimeter, rtol=1e-4)


def test_spacing_of_regions_in_scikit_image():
    (equal,), (unequal,) = (regionprops(PIXEL, spacing=s) for s in ((2, 2), (1, 2)))
    assert_allclose(equal.perimeter_crofton, 2 * 2.6815, rtol=1e-4)
    with pytest.raises(NotImplementedError, match="isotropic"):
        unequal.perimeter  # noqa: B018
    with pytest.raises(NotImplementedError, match="isotropic"):
        unequal.perimeter_crofton  # noqa: B018


@pytest.mark.parametrize("shape", ["pixel", "full", "noise"])
def test_perimeters_of_simple_itk_are_those_of_four_directions(shape):
    noise = np.random.default_rng(0).random((20, 30)) < 0.4
    image = {"pixel": PIXEL, "full": np.ones((5, 5)), "noise": noise}[shape].astype(np.uint8)
    found = sitk.LabelShapeStatisticsImageFilter()
    found.ComputePerimeterOn()
    found.Execute(sitk.GetImageFromArray(image))
    ours = ecc.minkowski_curves(image, [1], superlevel=True, estimator="crofton-4").perimeter
    assert_allclose(found.GetPerimeter(1), ours[0])


def test_scikit_image_erases_objects_of_volumes():
    """A release that keeps a skeleton of each object makes `skeleton_of` superfluous."""
    volume = np.pad(np.ones((6, 6, 6), bool), 2)
    assert not skeletonize(volume).any()
    assert skeleton_of(volume).sum() == 8


def test_images_of_simple_itk_are_rows_to_numpy():
    image = sitk.GetImageFromArray(IMAGE)
    assert np.asarray(image).shape == (6,)
    with pytest.raises(TypeError, match="GetArrayFromImage"):
        ecc.euler_curve(image)


def test_scripts_are_listed_and_linked():
    folder = ROOT / "findings"
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| \[(\w+\.sh)\]\(\1\)", text, re.MULTILINE)) == {
        path.name for path in folder.glob("*.sh")
    }
