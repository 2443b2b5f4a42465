"""What the controllers of docks about the explorer's image share."""

from __future__ import annotations

from typing import Any

from napari_ecc._controller.following import LayerChoice
from napari_ecc._controller.links import Links
from napari_ecc._controller.session import session_of
from napari_ecc._workers import Runner

__all__ = ["DockController"]


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
        Of the image, which is the explorer's.
    runner : Runner
    """

    def __init__(self, viewer: Any, topic: str, description: str) -> None:
        self.viewer = viewer
        self.session = session_of(viewer)
        self.session.controllers[topic] = self
        self.images = LayerChoice(viewer, self.session.explorer, "image")
        self.runner = Runner(description)
        self._links, self._of_layer = Links(), Links()
        self._links.add(self._on_stopped, self.runner.stopped)
        self._links.add(self._on_failed, self.runner.failed)

    @property
    def running(self) -> bool:
        """Whether something is computed."""
        return self.runner.running

    def _on_stopped(self) -> None:
        """Say that the user has cancelled the work, and what there is of it."""
        raise NotImplementedError

    def _on_failed(self, message: str) -> None:
        """Show nothing but what went wrong."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop, and let go of the viewer."""
        self._links.close()
        self.runner.close()
        self._of_layer.close()
        self.images.close()
