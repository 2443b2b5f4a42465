"""Figures of transforms show the transform's own numbers, where they belong."""

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core.plotting import plot_transform, plot_transform_polar, plot_transforms

BAR = np.zeros((20, 30), bool)
BAR[12:18, 3:25] = True


@pytest.mark.parametrize("plot", [plot_transform, plot_transform_polar])
@pytest.mark.parametrize("smooth", [False, True])
def test_all_values_are_drawn(plot, smooth):
    transform = ecc.euler_transform(BAR, 12, [-np.inf, -9.0, -3.0, 0.0, 5.0, 12.0, np.inf])
    if smooth:
        transform = ecc.smooth_transform(ecc.euler_transform(BAR, 12, 9))
    finite = np.isfinite(transform.heights)
    (mesh,) = plot(transform).collections
    drawn = mesh.get_array().reshape(mesh.get_coordinates().shape[0] - 1, -1).T
    np.testing.assert_array_equal(drawn, transform.values[:, finite])
    low, high = mesh.get_clim()
    assert low == -high < 0


def test_heat_map_has_angles_and_heights():
    transform = ecc.euler_transform(BAR, 8, 5)
    ax = plot_transform(transform)
    corners = ax.collections[0].get_coordinates()
    middles = (corners[:-1, :-1] + corners[1:, 1:]) / 2
    np.testing.assert_allclose(middles[0, :, 0], 45 * np.arange(8), atol=1e-12)
    np.testing.assert_allclose(middles[:, 0, 1], transform.heights, atol=1e-12)
    solid = plot_transform(ecc.euler_transform(np.ones((2, 3, 4), bool), 8, 5))
    assert solid.get_xlabel() == "direction"


def test_directions_lie_where_they_point_to_in_the_image():
    transform = ecc.euler_transform(BAR, 4, 5)
    edges = plot_transform_polar(transform).collections[0].get_coordinates()[0, :, 0]
    down, right = transform.directions.T
    off = (edges[:-1] + edges[1:]) / 2 - np.arctan2(-down, right)
    np.testing.assert_allclose(np.exp(1j * off), 1, atol=1e-12)


def test_colours_are_not_stretched_by_a_few_values():
    values = np.ones((40, 50), int)
    values[3, 4] = 900
    transform = ecc.EulerTransform(ecc.sample_directions(40, 2), np.arange(50.0), values)
    assert plot_transform(transform).collections[0].get_clim() == (-1, 1)
    assert plot_transform(transform, vmax=7).collections[0].get_clim() == (-1, 7)


def test_several_share_their_colours():
    transforms = {f"object $ {i}": ecc.euler_transform(BAR[i:], 8, 5) for i in range(5)}
    figure = plot_transforms(transforms)
    panels = [ax for ax in figure.axes if ax.collections and ax.get_label() != "<colorbar>"]
    assert [ax.get_title() for ax in panels[::2]] == list(transforms)
    assert len(panels) == 10
    limits = [ax.collections[0].get_clim() for ax in panels]
    assert len(set(limits)) == 1
    figure.savefig("/dev/null", format="png", dpi=30)
    assert plot_transforms({}).axes == []


def test_shapes_are_drawn_above_their_transforms():
    ball = np.zeros((4, 6, 7), bool)
    ball[1:3, 2:5, 3:5] = True
    shapes = {"ball": ball, "bar": BAR}
    transforms = {
        "ball": ecc.euler_transform(ball, 8, 5, spacing=(1, 3, 2)),
        "bar": ecc.euler_transform(BAR, 8, 5),
    }
    figure = plot_transforms(transforms, shapes)
    first, *_, second = [ax for ax in figure.axes if ax.images]
    assert (first.get_title(), second.get_title()) == ("ball", "bar")
    np.testing.assert_array_equal(first.images[0].get_array(), ball.any(axis=0))
    np.testing.assert_array_equal(second.images[0].get_array(), BAR)
    assert first.get_aspect() == 1.5
    bars = [ax for ax in figure.axes if ax.get_label() == "<colorbar>"]
    assert [ax.get_ylabel() for ax in bars] == ["Euler characteristic"]
    weights = plot_transform(ecc.euler_transform(BAR * 0.5, 8, 5, weighted=True))
    assert weights.figure.axes[-1].get_ylabel() == "weighted Euler characteristic"


def test_a_circle_is_needed():
    solid = ecc.euler_transform(np.ones((2, 3, 4), bool), 8, 5)
    with pytest.raises(ValueError, match=r"spaced on the circle, got directions of shape \(8, 3\)"):
        plot_transform_polar(solid)
    figure = plot_transforms({"solid": solid}, {"solid": np.ones((2, 3, 4))})
    assert figure.axes[0].get_gridspec().nrows == 2  # There is no room for a polar plot.
