"""The heading of a dock: what it is for, its guide, and its settings in files."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

from qtpy.QtCore import QEvent, Qt
from qtpy.QtWidgets import QFileDialog, QLabel, QTextBrowser

from napari_ecc._qt.form import Form
from napari_ecc._qt.saving import attempt

GUIDE_SIZE = 620, 640
PICTURE = r"!\[.*?\]\(.*?\)"


class Heading(QLabel):
    """Describes a dock, and links to its guide and its settings."""

    def __init__(self, panel: Any) -> None:
        super().__init__()
        self._panel, self.title = panel, panel.title
        self.setWordWrap(True)
        self.linkActivated.connect(self._follow_link)
        self._show()

    def changeEvent(self, event: Any) -> None:
        """Follow the theme's colours."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._show()

    def show_guide(self) -> None:
        """Show the section of the guide about this dock in a window."""
        browser = QTextBrowser(self)
        browser.setWindowFlag(Qt.WindowType.Dialog)
        browser.setWindowTitle(f"Guide: {self.title}")
        browser.setOpenExternalLinks(True)
        browser.setMarkdown(section_of_guide(self.title))
        browser.resize(*GUIDE_SIZE)
        browser.show()

    def _show(self) -> None:
        colour = self.palette().text().color().name()
        links = {"guide": "Help", "save": "Save settings", "load": "Load settings"}
        texts = [f"<a href='{at}' style='color: {colour}'>{text}</a>" for at, text in links.items()]
        self.setText(f"{self._panel.about}<br>{' · '.join(texts)}")

    def _follow_link(self, link: str) -> None:
        """Show the guide, or ask for a file to save the settings to or to load them from."""
        kinds = "Settings (*.json)"
        if link == "guide":
            self.show_guide()
        elif link == "save":
            path, _ = QFileDialog.getSaveFileName(self, "Save settings", "settings.json", kinds)
            if path:
                attempt(partial(self.save_settings, path))
        else:
            path, _ = QFileDialog.getOpenFileName(self, "Load settings", "", kinds)
            if path:
                attempt(partial(self.load_settings, path))

    def _settings(self) -> dict[str, Any]:
        """The model of each setting: what the forms show, but for layers and what is in them."""
        models = dict.fromkeys(self._panel.more_settings, self._panel.model)
        for form in self._panel.findChildren(Form):
            models |= {k: model for k, model in form.models.items() if k not in form.offered}
        return models

    def save_settings(self, path: str) -> None:
        """Write the settings as JSON."""
        values = {name: getattr(model, name) for name, model in self._settings().items()}
        text = json.dumps({"dock": self.title, **values}, indent=1)
        Path(path).write_text(text, encoding="utf-8")

    def load_settings(self, path: str) -> None:
        """Read settings of this dock; a ValueError says that they are not."""
        models, values = self._settings(), json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(values, dict) or values.pop("dock", None) != self.title:
            raise ValueError(f"{path}: these are not settings of the dock {self.title}")
        unknown = sorted(set(values) - set(models))
        if unknown:
            raise ValueError(f"{path}: the dock {self.title} has no settings {unknown}")
        for name, value in values.items():
            setattr(models[name], name, tuple(value) if isinstance(value, list) else value)


def section_of_guide(title: str) -> str:
    """Return a section of the guide as Markdown, without pictures.

    The guide is ``docs/napari.md`` of the repository, and a file beside the plugin in the wheel.
    """
    package = Path(__file__).parents[1]
    places = package / "guide.md", package.parent / "docs" / "napari.md"
    text = next(place for place in places if place.exists()).read_text(encoding="utf-8")
    section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return f"## {title}\n{re.sub(PICTURE, '', section)}"
