"""The heat map: what it shows, and what the mouse does to it."""

import numpy as np
import pytest
from napari_helpers import TIMEOUT, pixels_of
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("qtpy.QtWidgets", exc_type=ImportError)

from qtpy.QtCore import QPointF
from qtpy.QtGui import QColor

from napari_ecc._qt.canvas import PAPER
from napari_ecc._qt.heatmap import HeatMap, colour_table


@pytest.fixture
def heat(qtbot):
    widget = HeatMap("height", "azimuth")
    qtbot.addWidget(widget)
    widget.resize(400, 300)
    with qtbot.waitExposed(widget, timeout=TIMEOUT):
        widget.show()
    return widget


def test_colours_of_values(heat):
    """The logarithms of 1 + |value| are spread evenly over all colours."""
    values = np.array([[-9.0, -1, 0, 1, 9]])
    heat.set_values(values, np.arange(5.0), np.zeros(1))
    columns = [int(heat.pixels(k, 0)[0]) for k in range(5)]
    found = pixels_of(heat)[int(heat.area().center().y()), columns]
    expected = 127 + 127 * np.sign(values[0]) * np.log1p(np.abs(values[0])) / np.log(10)
    assert_array_equal(found, colour_table(PAPER)[np.rint(expected).astype(int)])


def test_pixels_of_the_map(heat):
    heat.set_colours(PAPER)
    heat.set_values(np.array([[-5.0, 0], [np.nan, 5]]), np.array([0.0, 1]), np.array([0.0, 1]))
    (left, top), (right, bottom) = (np.round(heat.pixels(k, k)).astype(int) for k in (0, 1))
    found = pixels_of(heat)[[top, top, bottom, bottom], [left, right, left, right]]
    expected = PAPER.curve, PAPER.background, PAPER.faint, PAPER.accent
    assert_array_equal(found, [QColor(name).getRgb()[:3] for name in expected])


def test_rows_are_picked_and_values_read(heat, drag_mouse, move_mouse, qtbot):
    rows, columns = np.arange(0.0, 360, 90), np.linspace(-1, 1, 5)
    values = np.arange(20.0).reshape(4, 5)
    values[3, 4] = np.nan
    heat.set_values(values, columns, rows)
    seen = []
    heat.placed.connect(lambda _, row: seen.append(row))
    x = heat.area().center().x()
    drag_mouse(heat, *[(x, heat.pixels(0, row)[1]) for row in (0, 90, 200)], (x, 299))
    assert_allclose(seen, [0, 90, 200, 270], atol=1e-9)
    assert heat.toolTip() == ""
    move_mouse(heat, (x, heat.pixels(0, 180)[1]))
    assert heat.toolTip() == "(0, 180): χ = 12"
    corner = heat.area().bottomRight() - QPointF(3, 3)
    move_mouse(heat, (corner.x(), corner.y()))
    assert heat.toolTip().endswith("not yet known")
    move_mouse(heat, (x, 299))  # below the map
    assert heat.toolTip() == ""
    heat.set_marker(45)
    assert heat.marker == 45
    assert_allclose(heat.pixels(0, 45)[1], heat.area().top() + heat.area().height() / 4, atol=0.5)


def test_an_empty_map_says_why(heat, drag_mouse):
    heat.show_nothing()
    heat.set_state("nothing here")
    seen = []
    heat.placed.connect(lambda _, row: seen.append(row))
    drag_mouse(heat, (200, 100))
    assert seen == []
    assert_array_equal(pixels_of(heat)[5, 5], QColor(PAPER.background).getRgb()[:3])


def test_the_map_is_saved(heat, tmp_path):
    heat.set_values(np.eye(3), np.arange(3.0), np.arange(3.0))
    heat.save(tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(OSError, match="cannot be written"):
        heat.save(tmp_path / "absent" / "map.png")
