"""Curves and heat maps: what is drawn, and what the mouse does."""

import numpy as np
import pytest
from napari_helpers import TIMEOUT, pixels_of, turn_wheel
from numpy.testing import assert_allclose, assert_array_equal
from qtpy.QtCore import QPoint, QPointF, Qt
from qtpy.QtGui import QColor

from napari_ecc._model.explorer import Histogram
from napari_ecc._qt.canvas import Axis, symlog
from napari_ecc._qt.colours import PAPER, colours_of
from napari_ecc._qt.heatmap import HeatMap, colour_table
from napari_ecc._qt.plot import CurvePlot, Line


@pytest.fixture
def shown(qtbot):
    """Show a widget."""

    def show(widget):
        qtbot.addWidget(widget)
        widget.resize(400, 300)
        with qtbot.waitExposed(widget, timeout=TIMEOUT):
            widget.show()
        return widget

    return show


@pytest.fixture
def plot(shown):
    widget = CurvePlot("t", "χ")
    widget.set_lines([Line(np.arange(11.0), np.arange(11) ** 2)])
    widget.set_threshold(2.0)
    return shown(widget)


@pytest.fixture
def heat(shown):
    return shown(HeatMap("height", "azimuth"))


def is_red(picture):
    return picture[..., 0] - picture[..., 1] > 150


def test_descenders_of_labels_are_not_cut(plot):
    axis = plot.plotItem.getAxis("bottom")
    plot.set_x_label("(gjpqy_)")
    plot.resize(360, plot.minimumHeight())
    plot.plotItem.layout.activate()
    assert axis.label.mapRectToParent(axis.label.boundingRect()).bottom() <= axis.size().height()


def test_the_last_number_of_an_axis_is_not_cut(shown):
    """It reaches beyond the axis, to which napari's style may add some pixels."""
    widget = CurvePlot("", "")
    widget.set_lines([Line(np.arange(254.0), np.arange(254) % 7)])
    shown(widget).resize(360, 250)
    widget.plotItem.layout.activate()
    picture = pixels_of(widget)
    below = picture[round(widget.area().bottom()) + 3 : -3]
    ink = np.flatnonzero((np.abs(below - below[0, 0]) > 60).any(axis=(0, 2)))
    assert widget.area().right() < ink.max() < 360 - 4


def test_drag_and_click(plot, qtbot, drag_mouse, move_mouse):
    moved = []
    plot.threshold_moved.connect(moved.append)
    start, middle, end = ((round(plot.position_of(t)), 100) for t in (2, 4.5, 7))
    drag_mouse(plot, start, middle, end)
    assert np.allclose(moved, [2, 4.5, 7], atol=0.05)
    move_mouse(plot, start)
    assert len(moved) == 3
    assert plot.cursor().shape() == Qt.CursorShape.SplitHCursor
    move_mouse(plot, end)
    assert plot.cursor().shape() == Qt.CursorShape.ArrowCursor
    qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(1, 100))
    assert moved[-1] == 0


def test_line_is_drawn_where_the_threshold_is(plot):
    def is_drawn(t):
        column = pixels_of(plot)[:, int(plot.position_of(t))]
        accent = QColor(PAPER.accent).getRgb()[:3]
        return (column == accent).all(axis=1).any()

    assert is_drawn(2)
    plot.set_threshold(8.0)
    assert not is_drawn(2)
    assert is_drawn(8)
    plot.set_threshold(float("nan"))
    assert not is_drawn(8)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("colour", ["#ffff00", "#ffffff", "#000000", "#2b0a3d", "#56b4e9"])
def test_any_colour_can_be_seen(theme, colour):
    """WCAG's contrast ratio is high enough; colours that can be seen are as they were."""
    colours = colours_of(theme)

    def contrast(colour):
        rgb = np.array([QColor(colour).getRgbF()[:3], QColor(colours.background).getRgbF()[:3]])
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        dark, light = np.sort(linear @ [0.2126, 0.7152, 0.0722]) + 0.05
        return light / dark

    shown = colours.named(colour)
    assert contrast(shown) > 1.6
    if contrast(colour) > 2.5:
        assert shown == QColor(colour)


def test_a_drag_does_not_draw_the_curves_anew(plot, monkeypatch):
    drawn = []
    monkeypatch.setattr(plot, "_draw", lambda: drawn.append(1))
    for t in range(5):
        plot.set_threshold(float(t))
        plot.set_band((t, t + 1))
    assert drawn == []
    plot.set_lines([Line(np.arange(3.0), np.arange(3))])
    assert drawn == [1]


@pytest.mark.parametrize("log", [False, True])
def test_the_largest_count_is_as_high_as_the_plot(plot, log):
    """Few values, whose logarithms are below 1, are as high, too."""
    heights = []
    for counts in ([1, 4, 2], [100, 400, 200]):
        plot.set_bars(Histogram(np.arange(4.0), np.array(counts), 0.0), log=log)
        heights.append(plot._histogram.getData()[1].max())
    assert heights[0] == pytest.approx(heights[1])
    plot.set_bars(Histogram(np.arange(4.0), np.zeros(3, int), 0.0), log=log)
    assert_array_equal(plot._histogram.getData()[1], plot._histogram.opts["fillLevel"])


def test_the_wheel_zooms(plot, qtbot):
    """The wheel moves the curve's end out of the plot, a double click brings it back."""
    squares = Line(np.arange(11.0), np.arange(11) ** 2, colour="#ff0000", width=3)
    plot.set_lines([squares])

    def shown():
        return is_red(pixels_of(plot)[:100]).any()

    def turn(*angles):
        for angle in angles:
            turn_wheel(plot.viewport(), (200, 250), angle)

    assert shown()
    turn(600, 120, -120)
    assert not shown()
    plot.set_lines([squares._replace(y=squares.y + 1)])
    assert not shown()
    turn(*[-120] * 9)
    assert shown()
    turn(600)
    assert not shown()
    qtbot.mouseDClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(200, 100))
    assert shown()
    turn(600)
    plot.set_lines([squares._replace(x=squares.x + 100)])  # These are the curves of another image.
    assert shown()


@pytest.mark.parametrize(("superlevel", "value"), [(False, 9), (True, 16)])
def test_the_value_under_the_mouse(plot, move_mouse, superlevel, value):
    plot.set_lines([Line(np.arange(11.0), np.arange(11) ** 2, superlevel)])
    move_mouse(plot, (plot.position_of(3.5), 100))
    t, _, chi = plot.toolTip().partition(": ")
    assert float(t) == pytest.approx(3.5, abs=0.05)
    assert chi == str(value)


def test_another_suffix_is_refused(plot, tmp_path):
    with pytest.raises(ValueError, match=r"must end with one of .png, .svg, .pdf, got 'curve.gif'"):
        plot.save(tmp_path / "curve.gif")


def test_steps_hold_to_the_side_of_the_set():
    x, y = np.array([0.0, 1, 3]), np.array([5, 7, 9])
    below = np.array(Line(x, y, False).corners())
    above = np.array(Line(x, y, True).corners())
    assert below.tolist() == [[0, 1, 1, 3, 3], [5, 5, 7, 7, 9]]
    assert above.tolist() == [[0, 0, 1, 1, 3], [5, 7, 7, 9, 9]]


@pytest.mark.parametrize("size", [11, 10_000])
def test_curves_of_one_look_are_not_joined(plot, size):
    x = np.linspace(0, 10, size)
    plot.set_threshold(None)
    lower, upper = np.full(size, -9), np.full(size, 9)
    plot.set_lines([Line(x, y, colour="#ff0000", width=3) for y in (lower, upper)])
    red = is_red(pixels_of(plot)[:, int(plot.position_of(5))])
    assert np.count_nonzero(np.diff(red.astype(int)) == 1) == 2


@pytest.mark.parametrize(
    ("kind", "low", "high", "size", "texts"),
    [
        ("even", 0, 1, 250, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        ("whole", 0, 2, 250, ["0", "1", "2"]),
        ("whole", -20, 20, 250, ["−20", "−10", "0", "10", "20"]),  # noqa: RUF001
        ("even", 0, 1e6, 250, ["0", "200k", "400k", "600k", "800k", "1000k"]),
        ("even", 0, 4e7, 250, ["0", "10M", "20M", "30M", "40M"]),
        ("log", -12, 2000, 400, ["−10", "−1", "0", "1", "10", "100", "1000"]),  # noqa: RUF001
        ("log", -12, 2000, 130, ["−10", "0", "10", "100", "1000"]),  # noqa: RUF001
        ("log", 0, 3, 200, ["0", "1"]),
    ],
)
@pytest.mark.usefixtures("qapp")
def test_ticks(kind, low, high, size, texts):
    axis = Axis("left", whole=kind == "whole")
    axis.log = kind == "log"
    ends = (symlog(low), symlog(high)) if axis.log else (low, high)
    spacing, ticks = axis.tickValues(*ends, size)[0]
    assert axis.tickStrings(ticks, 1.0, spacing) == texts


@pytest.mark.parametrize("name", ["text", "curve", "accent"])
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_colours_are_told_apart_in_both_themes(theme, name):
    colours = colours_of(theme)
    background = QColor(colours.background).lightness()
    drawn = QColor(getattr(colours, name)).lightness()
    assert abs(drawn - background) > 50


def test_pixels_of_the_map(heat):
    """The logarithms of 1 + |value| are spread evenly over all colours."""
    heat.set_colours(PAPER)
    row = np.array([-9.0, -1, 0, 1, 9])
    heat.set_values(np.stack([row, np.full(5, np.nan)]), np.arange(5.0), np.arange(2.0))
    columns = [int(heat.pixels(k, 0)[0]) for k in range(5)]
    rows = [int(heat.pixels(0, k)[1]) for k in range(2)]
    upper, lower = pixels_of(heat)[np.ix_(rows, columns)]
    places = 127 + 127 * np.sign(row) * np.log1p(np.abs(row)) / np.log(10)
    assert_array_equal(upper, colour_table(PAPER)[np.rint(places).astype(int)])
    names = PAPER.curve, PAPER.background, PAPER.accent, PAPER.faint
    expected = [QColor(name).getRgb()[:3] for name in names]
    assert_array_equal([*upper[[0, 2, 4]], lower[0]], expected)


def test_rows_are_picked_and_values_read(heat, drag_mouse, move_mouse, qtbot):
    rows, columns = np.arange(0.0, 360, 90), np.linspace(-1, 1, 5)
    values = np.arange(20.0).reshape(4, 5)
    values[3, 4] = np.nan
    heat.set_values(values, columns, rows)
    seen = []
    heat.placed.connect(lambda _, row: seen.append(row))
    x = heat.area().center().x()
    heights = [heat.pixels(0, row)[1] for row in (0, 90, 200)]
    drag_mouse(heat, *[(x, y) for y in heights], (x, 299))
    assert_allclose(seen, [0, 90, 200, 270], atol=1e-9)
    assert heat.toolTip() == ""
    move_mouse(heat, (x, heat.pixels(0, 180)[1]))
    assert heat.toolTip() == "(0, 180): χ = 12"
    corner = heat.area().bottomRight() - QPointF(3, 3)
    move_mouse(heat, (corner.x(), corner.y()))
    assert heat.toolTip().endswith("not yet known")
    move_mouse(heat, (x, 299))  # This is below the map.
    assert heat.toolTip() == ""
    heat.set_marker(45)
    assert heat.marker == 45
    assert_allclose(heat.pixels(0, 45)[1], heat.area().top() + heat.area().height() / 4, atol=0.5)


def test_messages_instead_of_curves_and_of_a_map(plot, heat, drag_mouse):
    before = pixels_of(plot)
    plot.set_lines([])
    plot.set_state("Open an image")
    assert (pixels_of(plot) != before).any()
    heat.show_nothing()
    heat.set_state("nothing here")
    assert_array_equal(pixels_of(heat)[5, 5], QColor(PAPER.background).getRgb()[:3])
    moved = []
    plot.threshold_moved.connect(moved.append)
    heat.placed.connect(lambda _, row: moved.append(row))
    for widget in (plot, heat):
        drag_mouse(widget, (200, 100))
    assert moved == []
