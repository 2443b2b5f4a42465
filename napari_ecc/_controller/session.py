"""State that the docks of a viewer share, the plugin's settings, and connections."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any
from weakref import WeakValueDictionary

from napari.settings import get_plugin_settings
from psygnal import Signal

from napari_ecc._model.explorer import ExplorerModel


def read_settings(category: str) -> dict[str, Any]:
    """Current values of a category of the manifest's ``configurations``, such as "explorer".

    Empty where napari does not know the plugin, so that defaults hold.
    """
    try:
        settings: Any = get_plugin_settings("napari-ecc")
    except KeyError:
        return {}
    found: dict[str, Any] = getattr(settings, category).model_dump()
    return found


class Links(ExitStack):
    """Signals and events that are connected until `close`, and what else is undone then."""

    def add(self, callback: Callable[..., Any], *signals: Any, **options: Any) -> None:
        """Connect a function to signals, with options of their ``connect``."""
        for signal in signals:
            signal.connect(callback, **options)
            self.callback(signal.disconnect, callback)


class History:
    """Changes that can be undone, the newest first."""

    changed = Signal(str)
    """The name of the change that `undo` would take back, or ""."""

    def __init__(self) -> None:
        self._changes: list[tuple[str, Callable[[], None]]] = []

    @property
    def newest(self) -> str:
        """The name of the change that `undo` reverts, or ""."""
        return self._changes[-1][0] if self._changes else ""

    def add(self, name: str, undo: Callable[[], None]) -> None:
        """Add the name of a change, such as "Make Labels", and the function that takes it back."""
        self._changes.append((name, undo))
        self.changed.emit(self.newest)

    def undo(self) -> None:
        """Undo the newest change, if there is one."""
        if self._changes:
            _, undo = self._changes.pop()
            undo()
            self.changed.emit(self.newest)

    def change_features(
        self, layer: Any, features: Any, undone: Callable[[], None] | None = None
    ) -> None:
        """Replace the features of a layer; `undone` is called when they are back."""
        before = layer.features

        def undo() -> None:
            layer.features = before
            if undone is not None:
                undone()

        layer.features = features
        self.add(f"Features of {layer.name}", undo)


def remove_added(viewer: Any, added: Iterable[Any], selected: set[Any]) -> None:
    """Remove layers that a change has added, and select what was selected before it.

    The selection changes first: napari would otherwise show the controls of no layer in between. It
    collects the garbage of the whole process after each removal, but once after those of a batch.
    """
    layers = viewer.layers
    gone = [layer for layer in added if layer in layers]
    if not gone:  # The user has removed them, and may have selected others since.
        return
    layers.selection = (selected & set(layers)).difference(gone)
    with layers.batched_update():
        for layer in gone:
            layers.remove(layer)


class Session:
    """State shared by the docks of a viewer, kept while one of them is open.

    The `explorer` has the image layer and the threshold for the other docks to follow;
    `controllers` are those of the docks that are open now, by topic.
    """

    def __init__(self) -> None:
        self.history = History()
        settings = read_settings("explorer")
        full = settings.pop("full_connectivity", True)
        self.explorer = ExplorerModel(**settings, connectivity=None if full else 1)
        self.controllers: WeakValueDictionary[str, Any] = WeakValueDictionary()


_sessions: WeakValueDictionary[int, Session] = WeakValueDictionary()


def session_of(viewer: Any) -> Session:
    """Return the session of a viewer, or of a proxy of one; a new one if no dock is open.

    Keep it: the plugin itself holds no strong reference.
    """
    key = id(getattr(viewer, "__wrapped__", viewer))
    session = _sessions.get(key)
    if session is None:
        session = _sessions[key] = Session()
    return session
