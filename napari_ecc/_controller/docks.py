"""The base class of the controllers of docks."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from napari.layers import Image, Labels
from psygnal import Signal

from napari_ecc._controller.layer_choice import LayerChoice
from napari_ecc._controller.layers import Part, part_in_words, unit_of
from napari_ecc._controller.links import Links
from napari_ecc._controller.session import session_of
from napari_ecc._workers import Runner

__all__ = ["NO_IMAGE", "DockController"]

NO_IMAGE = "Open an image, or a sample."


class DockController:
    """Follows the image layer of a session, and runs one job at a time.

    Parameters
    ----------
    viewer : napari.viewer.Viewer
    topic : str
        Its name among the controllers of the session.
    description : str
        Of its work, for the progress bar.

    Attributes
    ----------
    session : Session
    images : LayerChoice
        Of the image, which is the same in all docks.
    runner : Runner
    subject : str
        What is shown: the layer, and the part of it.
    subject_changed : Signal
    """

    sample = "coins"
    """What `open_sample` opens."""
    subject_changed = Signal()

    def __init__(self, viewer: Any, topic: str, description: str) -> None:
        self.viewer = viewer
        self.session = session_of(viewer)
        self.session.controllers[topic] = self
        self.images = LayerChoice(viewer, self.session.explorer, "image", Image, Labels)
        self.runner = Runner(description)
        self.subject = ""
        self._facts: dict[str, str] = {}
        self._links, self._of_layer = Links(), Links()
        self._links.add(self._on_stopped, self.runner.stopped)
        self._links.add(self._on_failed, self.runner.failed)
        self._links.add(self._on_display, viewer.dims.events.ndisplay)
        self._links.add(self._on_names, self.images.names_changed)
        self._shown_part: tuple[Any, Part, str] = (None, (), "")
        if viewer.dims.ndisplay == 3:
            self._on_display()

    @property
    def layer(self) -> Any | None:
        """The selected layer."""
        return self.images.layer

    @property
    def running(self) -> bool:
        """Whether a job is running."""
        return self.runner.running

    def resume(self) -> None:
        """Resume the job that the user has cancelled."""
        raise NotImplementedError

    def python_call(self) -> str:
        """Return the code of what is shown; "" if nothing is shown."""
        raise NotImplementedError

    def show_part(self, layer: Any = None, part: Part = (), state: str = "") -> None:
        """Set the description of the displayed part of a layer; empty without arguments."""
        self._shown_part = layer, part, state
        self.subject, self._facts = "", {}
        if layer is not None:
            words = part_in_words(layer, part)
            source = str(layer.source.path or layer.source.sample or "")
            self._facts = {
                "layer": layer.name,
                "source": source,
                "part": words,
                "unit of lengths": unit_of(layer, part),
                "state": state,
            }
            self.subject = f"{layer.name}, {words}{' · ' if state else ''}{state}"
        self.subject_changed.emit()

    @property
    def facts(self) -> dict[str, str]:
        """Return how the results were computed, to be saved with them."""
        software = {"software": f"napari-ecc {version('napari-ecc')}"}
        return {**software, **self._facts, "code": self.python_call()}

    @property
    def empty(self) -> bool:
        """Whether there is no layer to select."""
        return not self.images.names

    def open_sample(self) -> None:
        """Open sample layers."""
        self.viewer.open_sample("napari-ecc", self.sample)

    def _on_display(self, *_: Any) -> None:
        """Select what is displayed, the volume or a slice of it."""
        self.session.explorer.scope = "volume" if self.viewer.dims.ndisplay == 3 else "slice"

    def _on_names(self) -> None:
        """Follow the names of layers."""
        self.show_part(*self._shown_part)

    def _on_stopped(self) -> None:
        """Report that the user has cancelled the job, and how much is complete."""
        raise NotImplementedError

    def _on_failed(self, message: str) -> None:
        """Show nothing but what went wrong."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop, and disconnect from the viewer."""
        self._links.close()
        self.runner.close()
        self._of_layer.close()
        self.images.close()
