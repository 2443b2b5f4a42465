"""The base class of the docks: what is above and below their widgets."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from napari.utils.notifications import show_info
from qtpy import QtWidgets
from qtpy.QtCore import QEvent, QSize, Qt, QTimer

from napari_ecc._controller.docks import LayerChoice
from napari_ecc._controller.session import Links
from napari_ecc._qt.canvas import Plot
from napari_ecc._qt.canvas_guard import guard
from napari_ecc._qt.colours import colours_of
from napari_ecc._qt.form import Form, Rows, buttons
from napari_ecc._qt.saving import Saver, errors_shown, load_settings, save_settings
from napari_ecc._qt.work_line import BESIDE, PREPARING, WorkLine

HEIGHT_A_DOCK = 620
"""Height of the window in pixels per dock of the plugin; if it is lower, docks become tabs."""
LOWEST = 150
"""Minimum height of a dock in pixels; its contents can be scrolled."""
NARROW_TABS = "QTabBar::tab { padding: 3px 2px; }"
"""Six docks are side by side in a window of 1280 pixels."""
GUIDE_SIZE = 620, 640
PICTURE = r"!\[.*?\]\(.*?\)"


class Panel(QtWidgets.QWidget):
    """The contents of a dock, which cleans up when the dock or the viewer is closed.

    From top to bottom: a line that explains the dock, what it shows, its widgets, which can be
    scrolled, and what is being done.
    """

    dock: Any
    """The class of its controller."""
    about: str
    actions: Any
    """A row of buttons."""
    title: str
    """Its heading in the guide."""
    more_settings: ClassVar[dict[str, Callable[[str, Any], Any]]] = {}
    """Fields of the model that are saved beside those of the forms, and how values are checked."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.controller = controller = self.dock(napari_viewer)
        self.model = controller.model
        self.explorer = controller.session.explorer
        self._links = Links()
        self._links.callback(controller.close)
        self._docked = False
        self.undo_button = ("Undo", "Undo the last change to layers", self._undo)
        self.copy_button = ("Copy Python", "The code that gives what is shown", self.copy_python)
        # The partial keeps the links alive.
        self.destroyed.connect(partial(Links.close, self._links))
        self.work = WorkLine(controller)
        self.heading = QtWidgets.QLabel(wordWrap=True)
        self.heading.linkActivated.connect(self._follow_link)
        self.subject = QtWidgets.QLabel(textFormat=Qt.TextFormat.PlainText, wordWrap=True)
        self.empty = buttons(
            sample=("Open a sample", "An image to begin with", controller.open_sample)
        )
        self.empty.native.layout().setContentsMargins(0, 0, BESIDE, 0)
        inside = QtWidgets.QWidget()
        self._content = QtWidgets.QVBoxLayout(inside)
        self._content.setSpacing(6)
        self._content.setContentsMargins(0, 0, BESIDE, 0)
        layout = self._below = QtWidgets.QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 4, 6)
        layout.setSpacing(4)
        for part in (self.heading, self.empty.native, self.subject):
            layout.addWidget(part)
        self._column = _Column(inside)
        layout.addWidget(self._column, stretch=1)
        layout.addWidget(self.work)
        self.show(self.show_empty, controller.images.names_changed)
        self.setMinimumHeight(LOWEST)
        self.setSizePolicy(
            QtWidgets.QSizePolicy.Policy.Preferred, QtWidgets.QSizePolicy.Policy.Expanding
        )
        self._fill()
        for plot in self.findChildren(Plot):
            saver = Saver(self, "picture.png", None, plot)
            # The partial keeps the saver alive.
            plot.picture_wanted.connect(partial(Saver.ask, saver))
        self.show(self.show_state, self.model.events.status, controller.subject_changed)
        self.work.changed.connect(self.show_state)
        self.show(self._set_colours, controller.viewer.events.theme)

    def _fill(self) -> None:
        """Add the widgets, and connect them with model and controller."""
        raise NotImplementedError

    def add(self, part: Any, *, stretch: int = 0) -> Any:
        """Append a widget of Qt or magicgui, and return it."""
        self._content.addWidget(getattr(part, "native", part), stretch)
        return part

    def add_actions(self, **actions: tuple[Any, ...]) -> Any:
        """Append a row of buttons at the bottom, where they are always in view."""
        row = buttons(**actions)
        left, top, _, bottom = row.native.layout().getContentsMargins()
        row.native.layout().setContentsMargins(left, top, BESIDE, bottom)
        self._below.addWidget(row.native)
        return row

    @staticmethod
    def enable(row: Any, *names: str, on: bool) -> None:
        """Enable or disable some buttons of a row."""
        for name in names:
            row[name].enabled = on

    def add_form(self, rows: Rows, *models: Any) -> Form:
        """Append a form that follows models until the panel is closed."""
        form: Form = self.add(Form(rows))
        for model in models:
            form.follow(model, self._links)
        return form

    def add_line(self, lines: int = 1) -> QtWidgets.QLabel:
        """Append lines of fixed height, and return their label."""
        place: _Line = self.add(_Line(lines))
        return place.label

    def add_settings(self, rows: Rows, *models: Any) -> Form:
        """Append a form with a button that shows and hides it."""
        button = self.add(QtWidgets.QPushButton(checkable=True, styleSheet="text-align: left"))
        button.setAccessibleName("Settings")
        form = self.add_form(rows, *models)

        def show(shown: bool) -> None:
            form.setVisible(shown)
            button.setText(f"{'▼' if shown else '▶'} Settings")
            if shown:
                QTimer.singleShot(0, partial(self._column.ensureWidgetVisible, form))

        button.toggled.connect(show)
        show(False)
        return form

    @property
    def message(self) -> str:
        """What the plot shows while there is nothing to draw."""
        return str(self.model.status)

    @property
    def main(self) -> Plot:
        """The plot that shows the state."""
        found: Plot = getattr(self, "map", None) or self.plot
        return found

    def show_state(self) -> None:
        """Show the displayed part, the state in the plot, and what is known of a result."""
        other = self.controller.beside
        subject = self.controller.subject
        self.subject.setText(f"{subject} (not the selected layer)" if other else subject)
        self.subject.setToolTip(f"“{other}” is selected: choose it below" if other else "")
        self.subject.setVisible(bool(self.controller.subject))
        state = self.work.state or self.controller.state.replace("complete", "")
        self.work.text.setText(self.model.status)
        self.work.text.setVisible(not self.main.empty)
        text = state or (self.message if self.main.empty else "")
        self.main.set_state(text, busy=self.work.state == PREPARING)

    def show_empty(self) -> None:
        """Show a button that opens a sample if there is no layer."""
        self.empty.visible = not self.controller.choice.names

    def copy_python(self) -> None:
        """Copy the code of what is shown to the clipboard."""
        code = self.controller.python_call()
        if code:
            QtWidgets.QApplication.clipboard().setText(code)
        show_info("Copied: paste it in napari's console." if code else "There is no curve yet.")

    def _undo(self) -> None:
        """Undo the newest change, and say which one it was."""
        history = self.controller.session.history
        newest = history.newest
        history.undo()
        if newest:
            self.model.status = f"Undone: {newest}"

    def _show_undo(self) -> None:
        """Say in the button `undo` of `actions` what it would undo."""
        newest = self.controller.session.history.newest
        self.actions["undo"].enabled = bool(newest)
        self.actions["undo"].tooltip = f"Undo: {newest}" if newest else "Nothing to undo"

    def offer(self, form: Form, name: str, choice: LayerChoice, **more: str) -> None:
        """Offer the layers of a choice in a combo box of a form.

        `more` are other values to choose from, by the text that the user reads.
        """

        def offer_layers() -> None:
            names = {**more, **{name: name for name in choice.names}}
            form.offer(name, names, choice.name)

        self.show(offer_layers, choice.names_changed)

    def _set_colours(self) -> None:
        """Let links and plots follow the colours of napari's theme."""
        colours = colours_of(self.controller.viewer.theme)
        links = {"guide": "Help", "save": "Save settings", "load": "Load settings"}
        style = f"style='color: {colours.text}'"
        texts = " · ".join(f"<a href='{at}' {style}>{text}</a>" for at, text in links.items())
        self.heading.setText(f"{self.about}<br>{texts}")
        for plot in self.findChildren(Plot):
            plot.set_colours(colours)

    def _follow_link(self, link: str) -> None:
        """Show the guide, or ask for a file to save the settings to or to load them from."""
        if link == "guide":
            self._show_guide()
            return
        dialog = QtWidgets.QFileDialog
        kinds = "Settings (*.json)"
        if link == "save":
            path, _ = dialog.getSaveFileName(self, "Save settings", "settings.json", kinds)
        else:
            path, _ = dialog.getOpenFileName(self, "Load settings", "", kinds)
        if path:
            with errors_shown():
                (save_settings if link == "save" else load_settings)(self, path)

    def _show_guide(self) -> None:
        """Show the section of the guide about this dock in a window, without pictures.

        It is ``docs/napari.md`` of the repository, and a file beside the plugin in the wheel.
        """
        package = Path(__file__).parents[1]
        places = package / "guide.md", package.parent / "docs" / "napari.md"
        guide = next(place for place in places if place.exists())
        text = guide.read_text(encoding="utf-8")
        section = text.partition(f"\n## {self.title}\n")[2].partition("\n## ")[0]
        browser = QtWidgets.QTextBrowser(
            self, openExternalLinks=True, windowTitle=f"Guide: {self.title}"
        )
        browser.setWindowFlag(Qt.WindowType.Dialog)
        browser.setMarkdown(f"## {self.title}\n{re.sub(PICTURE, '', section)}")
        browser.resize(*GUIDE_SIZE)
        browser.show()

    def show(self, callback: Callable[..., Any], *signals: Any) -> None:
        """Call a function now, and when a signal is emitted until the panel is closed."""
        self._links.add(callback, *signals)
        callback()

    def event(self, event: Any) -> bool:
        """Clean up when napari removes the panel from its dock, as it does to close it."""
        if event.type() == QEvent.Type.ParentChange:
            if self.parent() is not None:
                self._docked = True
                QTimer.singleShot(0, self._make_room)
            elif self._docked:
                self._links.close()
                self.deleteLater()
        return bool(super().event(event))

    def _main_window(self) -> QtWidgets.QMainWindow | None:
        dock = self.parent()
        window = dock.parent() if isinstance(dock, QtWidgets.QDockWidget) else None
        return window if isinstance(window, QtWidgets.QMainWindow) else None

    def _make_room(self) -> None:
        """Become a tab if the docks of the plugin would be too low below each other."""
        dock = self.parent()
        window = self._main_window()
        if window is None:
            return
        guard(window)
        dock.setWindowTitle(self.title)  # The tab shows the title without the plugin's name.
        if dock.isFloating():
            return
        area = window.dockWidgetArea(dock)
        docks = [panel.parent() for panel in window.findChildren(Panel)]
        beside = [at for at in docks if at is not dock and window.dockWidgetArea(at) == area]
        stacked = [at for at in beside if at.isVisible()]
        if stacked and window.height() < HEIGHT_A_DOCK * (len(stacked) + 1):
            window.tabifyDockWidget(stacked.pop(), dock)
            dock.show()
            dock.raise_()
            for tabs in window.findChildren(QtWidgets.QTabBar):
                if tabs.parent() is window:  # Titles are whole, with arrows where there is no room.
                    tabs.setElideMode(Qt.TextElideMode.ElideNone)
                    tabs.setUsesScrollButtons(True)
                    tabs.setStyleSheet(NARROW_TABS)
        if stacked:
            docks = [*stacked, dock]
            window.resizeDocks(docks, [HEIGHT_A_DOCK] * len(docks), Qt.Orientation.Vertical)


class _Line(QtWidgets.QWidget):
    """Lines of text, which the window is not laid out anew for.

    A label asks the layout of its parent for that at each change, whatever its size. This takes a
    twentieth of a drag of the threshold, so the parent has no layout.
    """

    def __init__(self, lines: int) -> None:
        super().__init__()
        self.label = QtWidgets.QLabel(self, wordWrap=lines > 1)
        policy = QtWidgets.QSizePolicy.Policy
        self.setSizePolicy(policy.Ignored, policy.Fixed)
        self.setFixedHeight(lines * self.label.fontMetrics().height() + 10 // lines)

    def resizeEvent(self, event: Any) -> None:
        """Fill all of it with the text."""
        self.label.setGeometry(self.rect())


class _Column(QtWidgets.QScrollArea):
    """Scrolls vertically, and is as wide as its content needs."""

    def __init__(self, content: QtWidgets.QWidget) -> None:
        super().__init__(widgetResizable=True, frameShape=QtWidgets.QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(content)

    def minimumSizeHint(self) -> QSize:
        """Return the minimum width of the content beside the scroll bar."""
        bar = self.verticalScrollBar().sizeHint().width()
        content = self.widget().minimumSizeHint().width()
        return QSize(content + bar, 40)

    def eventFilter(self, widget: Any, event: Any) -> bool:
        """Update the width when the content changes."""
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return bool(super().eventFilter(widget, event))
