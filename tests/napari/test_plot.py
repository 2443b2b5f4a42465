"""The plot: what is drawn, and what the mouse does."""

import numpy as np
import pytest
from napari_helpers import TIMEOUT
from qtpy.QtCore import QPoint, QPointF, Qt
from qtpy.QtGui import QColor, QWheelEvent
from qtpy.QtWidgets import QApplication

from napari_ecc._qt.axes import nice_ticks, tick_label
from napari_ecc._qt.painted import PAPER, colours_of
from napari_ecc._qt.plot import CurvePlot, Line, _thin


@pytest.fixture
def plot(qtbot):
    widget = CurvePlot("t", "χ")
    qtbot.addWidget(widget)
    widget.resize(400, 300)
    widget.set_lines([Line(np.arange(11.0), np.arange(11) ** 2)])
    widget.set_threshold(2.0)
    with qtbot.waitExposed(widget, timeout=TIMEOUT):
        widget.show()
    return widget


def column(widget, x):
    """Names of the colours in a column of pixels."""
    picture = widget.grab().toImage()
    return {picture.pixelColor(round(x), y).name() for y in range(picture.height())}


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
    qtbot.mouseClick(plot, Qt.MouseButton.LeftButton, pos=QPoint(1, 100))
    assert moved[-1] == 0


def test_line_is_drawn_where_the_threshold_is(plot):
    accent = QColor(PAPER.accent).name()
    assert accent in column(plot, plot.position_of(2))
    plot.set_threshold(8.0)
    assert accent not in column(plot, plot.position_of(2))
    assert accent in column(plot, plot.position_of(8))
    plot.set_threshold(float("nan"))
    assert accent not in column(plot, plot.position_of(8))


def test_a_drag_does_not_draw_the_curves_anew(plot, monkeypatch):
    drawn = []
    monkeypatch.setattr(plot, "_paint_curves", lambda *_: drawn.append(1))
    for t in range(5):
        plot.set_threshold(float(t))
        plot.repaint()
    assert drawn == []
    plot.set_lines([Line(np.arange(3.0), np.arange(3))])
    plot.repaint()
    assert drawn == [1]


def test_wheel_stretches_the_vertical_axis(plot, qtbot):
    """The wheel moves the curve's end out of the plot, a double click brings it back."""
    squares = Line(np.arange(11.0), np.arange(11) ** 2, colour="#ff0000", width=3)
    plot.set_lines([squares])

    def last_step_is_shown():
        picture = plot.grab().toImage()
        x = round(plot.position_of(9.5))
        column = [picture.pixelColor(x, y) for y in range(picture.height())]
        return any(colour.red() - colour.green() > 150 for colour in column)

    assert last_step_is_shown()
    for turns in (120, 240, -120):
        QApplication.sendEvent(plot, wheel(plot, turns))
    assert not last_step_is_shown()
    for _ in range(9):
        QApplication.sendEvent(plot, wheel(plot, -120))
    assert last_step_is_shown()
    QApplication.sendEvent(plot, wheel(plot, 600))
    assert not last_step_is_shown()
    qtbot.mouseDClick(plot, Qt.MouseButton.LeftButton, pos=QPoint(200, 100))
    assert last_step_is_shown()


def wheel(widget, turn):
    at = QPointF(200, 100)
    return QWheelEvent(
        at,
        widget.mapToGlobal(at),
        QPoint(),
        QPoint(0, turn),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )


def test_message_instead_of_curves(plot, qtbot):
    before = plot.grab().toImage()
    plot.set_lines([])
    plot.set_state("Open an image")
    assert plot.grab().toImage() != before
    moved = []
    plot.threshold_moved.connect(moved.append)
    qtbot.mouseClick(plot, Qt.MouseButton.LeftButton, pos=QPoint(200, 100))
    assert moved == []


def test_another_suffix_is_refused(plot, tmp_path):
    with pytest.raises(ValueError, match=r"`path` must end with .png or .svg, got 'curve.gif'"):
        plot.save(tmp_path / "curve.gif")


def test_a_thinned_line_covers_the_same_pixels():
    rng = np.random.default_rng(0)
    x, y = np.sort(rng.uniform(0, 50, 10_000)), rng.standard_normal(10_000)
    thin_x, thin_y = _thin(x, y)
    assert thin_x.size == 4 * 50
    for pixel in range(50):
        here, there = y[np.floor(x) == pixel], thin_y[np.floor(thin_x) == pixel]
        assert there.min() == here.min()
        assert there.max() == here.max()
        assert (there[0], there[-1]) == (here[0], here[-1])


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 255, 6, [0, 50, 100, 150, 200, 250]),
        (-0.31, 0.42, 4, [-0.2, 0, 0.2, 0.4]),
        (0, 1e6, 2, [0, 5e5, 1e6]),
        (3, 3, 4, [3]),
        (0, float("inf"), 4, []),
    ],
)
def test_ticks(low, high, most, expected):
    assert np.allclose(nice_ticks(low, high, most), expected)


def test_whole_ticks():
    assert nice_ticks(0, 2, 9, whole=True) == [0, 1, 2]


@pytest.mark.parametrize(
    ("value", "span", "text"),
    [
        (0, 1, "0"),
        (250_000, 1e6, "250k"),
        (-20, 100, "\N{MINUS SIGN}20"),
        (2.5e6, 4e7, "2.5M"),
        (0.125, 1, "0.125"),
    ],
)
def test_tick_labels(value, span, text):
    assert tick_label(value, span) == text


def test_colours_are_told_apart_in_both_themes():
    for theme in ("dark", "light"):
        colours = colours_of(theme)
        background = QColor(colours.background).lightness()
        for name in ("text", "curve", "accent"):
            assert abs(QColor(getattr(colours, name)).lightness() - background) > 50
