"""Lengths of layers that are placed by transforms and units, and layers that lie apart."""

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.layers import Image, Labels
from napari_helpers import settle
from numpy.testing import assert_allclose

import ecc_core as ecc
from napari_ecc import actions
from napari_ecc._controller.layers import part_of, region_mask, selection_of

LABELS = np.zeros((9, 12), int)
LABELS[2:6, 3:8] = 1
LABELS[3, 5] = 0
TURN = np.array([[0.6, -0.8], [0.8, 0.6]])


def affine(matrix, shift=(0, 0)):
    whole = np.eye(3)
    whole[:2, :2], whole[:2, 2] = matrix, shift
    return whole


def functionals(**place):
    """Area and perimeter of the object, by `region_table`."""
    layer = Labels(LABELS, name="cells", **place)
    table = actions.region_table(layer, minkowski=True, directions=1, heights=2)
    return table[["area_shape", "perimeter_shape"]].to_numpy()[0]


@pytest.mark.parametrize(
    ("place", "matrix"),
    [
        ({"scale": (3, 0.5)}, np.diag([3, 0.5])),
        ({"affine": affine(np.diag([3, 0.5]))}, np.diag([3, 0.5])),
        ({"scale": (-3, 0.5)}, np.diag([3, 0.5])),
        ({"scale": (2, 2), "affine": affine(np.diag([1.5, 0.25]), (7, 1))}, np.diag([3, 0.5])),
        ({"affine": affine(3 * TURN)}, np.diag([3, 3])),
        ({"affine": affine(np.diag([3, 0.5])[::-1])}, np.diag([3, 0.5])),
        ({"scale": (3, 0.5), "rotate": 30}, np.diag([3, 0.5])),
        ({"scale": (3, 500), "units": ("um", "nm")}, np.diag([3000, 500])),
        ({"scale": (3000, 0.5), "units": ("nm", "um")}, np.diag([3, 0.5])),
    ],
)
def test_lengths_are_those_of_all_transforms(place, matrix):
    """Areas follow the determinant, and perimeters the same grid without units."""
    area, perimeter = functionals(**place)
    assert area == pytest.approx(19 * abs(np.linalg.det(matrix)))
    found = ecc.region_minkowski(
        LABELS > 0, LABELS, [1], superlevel=True, spacing=matrix.diagonal()
    )
    exact = found.by_name()["perimeter"][0, 0]
    crofton = functionals(scale=matrix.diagonal())[1]
    assert perimeter == pytest.approx(crofton)
    assert 0.7 < perimeter / exact < 1.1


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ({"shear": [0.5]}, "perpendicular axes for lengths, got 63.4 degrees"),
        ({"affine": affine([[1, 0], [1, 1]])}, "perpendicular axes for lengths, got 45 degrees"),
        ({"units": ("um", "pixel")}, "one kind of unit for lengths, got micrometer and pixel"),
    ],
)
def test_lengths_that_are_not_known_are_refused(place, problem):
    """What only counts points is computed, and shapes that may be distorted are announced."""
    with pytest.raises(ValueError, match=problem):
        functionals(**place)
    layer = Labels(LABELS, name="cells", **place)
    with pytest.warns(UserWarning, match=problem):
        table = actions.region_table(layer, betti=True, directions=1, heights=2)
    assert table["b1_shape"].tolist() == [1]
    image = Image(LABELS.astype(float), **place)
    with pytest.raises(ValueError, match=problem):
        actions.layer_curve(image, smoothing=1.0)
    with pytest.raises(ValueError, match=problem):
        actions.layer_transform(image, 4, threshold=0.5)
    assert actions.layer_curve(image, thresholds=2).values.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("place", "how"),
    [
        ({}, ""),
        ({"translate": (5.05, 0)}, ""),  # Places may be rounded.
        ({"scale": (2000, 1000), "units": ("nm", "nm"), "translate": (5000, 0)}, ""),
        ({"scale": (1, 1), "affine": affine(np.diag([2, 1]), (5, 0)), "translate": (0, 0)}, ""),
        ({"translate": (7, 0)}, "shifted by 1 points along y"),
        ({"translate": (5, 0.5)}, "shifted by 0.5 points along x"),
        ({"scale": (1, 1)}, "scaled by 0.5 along y"),
        ({"scale": (2, 3)}, "scaled by 3 along x"),
        ({"scale": (-2, 1), "translate": (21, 0)}, "mirrored along y"),
        ({"rotate": 3}, "rotated, or sheared"),
        ({"units": ("mm", "mm")}, "scaled by 1000 along y and scaled by 1000 along x"),
    ],
)
def test_layers_that_lie_apart_are_refused(place, how):
    """Such a layer is refused as a second image, as the image of objects, and as a region."""
    own = {"scale": (2, 1), "translate": (5, 0), "units": ("um", "um"), "axis_labels": ("y", "x")}
    first = Image(np.random.default_rng(0).random(LABELS.shape), name="image", **own)
    second = Labels(LABELS, name="cells", **own | place)
    wanted = (
        lambda: actions.layer_surface(first, second, thresholds=2),
        lambda: actions.layer_curve(first, region=second, thresholds=2),
    )
    for compute in wanted:
        if how:
            with pytest.raises(
                ValueError, match=f"“cells” must lie where “image” does, but is {how}"
            ):
                compute()
        else:
            compute()
    if how:
        with pytest.raises(ValueError, match="“image” must lie where “cells” does"):
            actions.object_curves(second, first, thresholds=2)


def test_a_slice_beside_the_other_layer_is_refused():
    """The nearest slice is not that which lies there, but planes lie in all slices."""
    stack = Image(
        np.random.default_rng(0).random((4, *LABELS.shape)), scale=(3, 1, 1), name="stack"
    )
    below = Labels(np.stack([LABELS] * 4), scale=(3, 1, 1), translate=(6, 0, 0), name="cells")
    selection = selection_of(stack, np.s_[3, :, :])
    assert region_mask(stack, selection, below)().sum() == 19
    with pytest.raises(ValueError, match="points beside the selected slice"):
        region_mask(stack, selection_of(stack, np.s_[0, :, :]), below)
    with pytest.raises(ValueError, match="points beside the selected slice"):
        region_mask(stack, selection_of(stack, np.s_[1, :, :]), below)
    selection = selection_of(stack, np.s_[2, :, :])
    of_plane = region_mask(stack, selection, Labels(LABELS))
    assert of_plane().sum() == 19
    of_slice = region_mask(stack, selection, Labels(LABELS[None]))
    assert of_slice().sum() == 19


@pytest.mark.parametrize("step", [0, 4, 6])
def test_the_slice_in_view_follows_the_units(step):
    """napari's sliders are in the smallest of the units, whatever those of a layer are."""
    viewer = ViewerModel()
    place = {"scale": (2, 500, 500), "units": ("um", "nm", "nm")}
    layer = viewer.add_image(np.zeros((7, 5, 6)), **place)
    viewer.dims.set_current_step(0, step)
    assert part_of(viewer, layer, "slice") == (step, slice(None), slice(None))


def test_the_dock_says_why_lengths_are_not_known(open_panel, qtbot):
    viewer, panel = open_panel("Objects", labels=LABELS)
    layer = viewer.layers["labels"]
    layer.shear = [0.5]
    panel.actions["measure"].native.click()
    settle(qtbot, panel)
    assert "1 object · CPU. Shapes may be distorted: “labels” must have" in panel.model.status
    layer.shear = [0.0]
    assert panel.controller.state.startswith("stale")
    layer.shear = [0.5]
    panel.model.with_minkowski = True
    panel.actions["measure"].native.click()
    settle(qtbot, panel)
    assert panel.model.status.startswith("“labels” must have perpendicular axes for lengths")
    assert_allclose(viewer.layers["labels"].data, LABELS)
