"""The life that all docks share: chosen layers, a job, and what is shown of it, also as code."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from napari.layers import Image, Labels, Layer
from psygnal import Signal

from napari_ecc._controller.layers import (
    Part,
    is_lazy,
    levels_of,
    names_of,
    part_in_words,
    part_of,
    problem_with,
)
from napari_ecc._controller.places import unit_of
from napari_ecc._controller.session import Links, session_of
from napari_ecc._workers import Runner

NO_IMAGE = "Open an image, or a sample."
DATA_EVENTS = ("data", "paint", "labels_update")
PLACE_EVENTS = ("scale", "translate", "rotate", "shear", "affine", "units")


class Work(NamedTuple):
    """A job that a dock shows while it runs, and that can be cancelled and resumed."""

    runner: Runner
    title: str
    resume: Callable[[], None]


class LayerChoice:
    """Keeps a field of a model equal to the name of a layer of some classes, or "".

    Without a choice a layer is selected automatically, of the first class that there is one of. An
    `optional` choice is left to the user.
    """

    names_changed = Signal()
    """Layers were added, removed or renamed."""

    def __init__(
        self, viewer: Any, model: Any, field: str, *kinds: Any, optional: bool = False
    ) -> None:
        self.viewer = viewer
        self.model = model
        self.field = field
        self.kinds = kinds
        self.optional = optional
        self._layer: Any = None
        self._chosen = getattr(model.events, field)  # The signal of the choice.
        self._links = Links()
        events = viewer.layers.events
        self._links.add(self._on_renamed, events.renamed)
        self._links.add(self._on_layers, events.inserted, events.removed)
        self._links.add(self._remember, self._chosen)
        self._pick(*self.kinds)
        self._remember()

    def close(self) -> None:
        """Disconnect from the viewer."""
        self._links.close()
        self._layer = None
        self.names_changed.disconnect()

    @property
    def layer(self) -> Any | None:
        """The chosen layer."""
        layers = self.viewer.layers
        name = self.name
        return layers[name] if name and name in layers else None

    @property
    def name(self) -> str:
        """The name of the chosen layer, or ""."""
        return str(getattr(self.model, self.field))

    @property
    def names(self) -> list[str]:
        """The layers that can be selected."""
        return names_of(self.viewer, *self.kinds)

    def _pick(self, *kinds: Any) -> None:
        """Select the viewer's active layer or the last one, unless one is selected."""
        if self.layer is not None:
            return
        active = self.viewer.layers.selection.active
        offered = [] if self.optional else [names_of(self.viewer, kind) for kind in kinds]
        names = next(filter(None, offered), [""])
        found = active.name if active is not None and active.name in names else names[-1]
        setattr(self.model, self.field, found)

    def _remember(self, *_: Any) -> None:
        self._layer = self.layer

    def _on_layers(self, *_: Any) -> None:
        self._pick(*self.kinds)
        self._remember()
        self.names_changed.emit()

    def _on_renamed(self, event: Any) -> None:
        layer = self.viewer.layers[event.index]
        if layer == self._layer:
            with self._chosen.blocked():
                setattr(self.model, self.field, layer.name)
        self.names_changed.emit()


class DockController:
    """Follows a layer of a session, by default the image, and runs one job at a time.

    A change of the layers, of the displayed part or of the settings calls `request`, which starts
    the job of the dock. The dock shows the results as they come, or nothing but the reason why
    there are none. `topic` is its name among the controllers of the session, `description` that of
    its work, for the progress bar.
    """

    sample = "coins"
    """What `open_sample` opens."""
    subject_changed = Signal()
    model: Any

    def __init__(self, viewer: Any, topic: str, description: str) -> None:
        self.viewer = viewer
        self.session = session_of(viewer)
        self.session.controllers[topic] = self
        self.images = LayerChoice(viewer, self.session.explorer, "image", Image, Labels)
        self.choice = self.images
        """The choice of the layer that the job works on."""
        self.runner = Runner(description)
        self.runners = [self.runner]
        """All runners of the dock; the first one computes what it shows."""
        self.subject = ""
        """What is shown: the layer, and the part of it."""
        self.state = ""
        """Either "complete", or what is missing of it, or why it is not up to date."""
        self._owned: list[Any] = [self.images]
        """Choices and overlays, which are closed with the dock."""
        self._part: Part | None = None
        """What the job is of; None without one."""
        self._links = Links()
        self._of_layers = Links()
        dims = viewer.dims.events
        self._links.add(self._on_stopped, self.runner.stopped)
        self._links.add(self._on_failed, self.runner.failed)
        self._links.add(self._on_display, dims.ndisplay)
        self._links.add(self._on_dims, dims.current_step, dims.order, dims.ndisplay)
        self._links.add(lambda: self.show_part(*self._shown_part), self.images.names_changed)
        self._shown_part: tuple[Any, Part, str] = (None, (), "")
        active = viewer.layers.selection.events.active
        self._links.add(lambda: self.subject_changed.emit(), active)
        if viewer.dims.ndisplay == 3:
            self._on_display()

    @property
    def layer(self) -> Any | None:
        """The selected layer."""
        return self.choice.layer

    @property
    def layers(self) -> tuple[Any, ...]:
        """The layers whose data the job depends on; None for those that are not chosen."""
        return (self.layer,)

    @property
    def works(self) -> tuple[Work, ...]:
        """What is shown while it runs."""
        return (Work(self.runner, "Computing …", self.resume),)

    @property
    def beside(self) -> str:
        """The name of the selected layer if the dock could show it but shows another one."""
        active = self.viewer.layers.selection.active
        layer = self._shown_part[0]
        if active is None or layer is None or active == layer:
            return ""
        kinds = (getattr(at, "__wrapped__", at) for at in (active, layer))
        same = len({type(at) for at in kinds}) == 1
        return str(active.name) if same and active.name in self.choice.names else ""

    @property
    def scope(self) -> str:
        """Which part of the layer is meant; see `part_of`."""
        return self.session.explorer.scope

    @property
    def running(self) -> bool:
        """Whether any job is running."""
        return any(runner.running for runner in self.runners)

    def part_in_view(self, layer: Any) -> Part:
        """Return the part of a layer that is meant now."""
        return part_of(self.viewer, layer, self.scope)

    def checked_layer(self) -> Any:
        """Return the selected layer; a ValueError says why there is none, or no curve of it."""
        problem = NO_IMAGE if self.layer is None else problem_with(self.layer)
        if problem:
            raise ValueError(problem)
        return self.layer

    def request(self, *_: Any) -> None:
        """Compute what is missing in the background, or show why that is impossible."""
        try:
            self._start()
        except ValueError as error:
            self.show_nothing(str(error))

    def resume(self) -> None:
        """Resume the job that the user has cancelled."""
        self.request()

    def refresh(self, *_: Any) -> None:
        """Compute again, as the data have changed, maybe in place."""
        self.request()

    def python_call(self) -> str:
        """Return the code of what is shown, with its imports; "" if nothing is shown.

        It is for napari's console, where `viewer` is defined.
        """
        statements = self._statements()
        if not statements:
            return ""
        lines = ["from napari_ecc import actions", "", *statements, ""]
        if any("np." in statement for statement in statements):
            lines = ["import numpy as np", "", *lines]
        return "\n".join(lines)

    def show_nothing(self, why: str = "") -> None:
        """Stop, and show nothing but why."""
        self.runner.cancel()
        self._part = None
        self._clear()
        self.model.status = why
        self.show_part()

    def show_part(self, layer: Any = None, part: Part = (), state: str = "") -> None:
        """Set the description of the displayed part of a layer; empty without arguments."""
        self._shown_part = layer, part, state
        self.subject = "" if layer is None else f"{layer.name}, {part_in_words(layer, part)}"
        self.state = state
        self.subject_changed.emit()

    @property
    def facts(self) -> dict[str, str]:
        """Return how the results were computed, to be saved with them."""
        layer, part, state = self._shown_part
        facts = {"software": f"napari-ecc {version('napari-ecc')}"}
        if layer is not None:
            facts |= {
                "layer": layer.name,
                "source": str(layer.source.path or layer.source.sample or ""),
                "part": part_in_words(layer, part),
                "unit of lengths": unit_of(layer, part),
                "state": state,
            }
        return {**facts, "code": self.python_call()}

    def open_sample(self) -> None:
        """Open sample layers."""
        self.viewer.open_sample("napari-ecc", self.sample)

    def close(self) -> None:
        """Stop, disconnect from the viewer, and remove the overlays."""
        self._links.close()
        self._of_layers.close()
        for part in (*self.runners, *self._owned):
            part.close()

    def _start(self) -> None:
        """Start the job; raise a ValueError that says why there is none."""
        raise NotImplementedError

    def _clear(self) -> None:
        """Remove all results."""
        raise NotImplementedError

    def _statements(self) -> list[str]:
        """Return the statements of `python_call`."""
        raise NotImplementedError

    def _known(self) -> str:
        """Return which results there are, for the message about a cancelled job."""
        return ""

    def _watch(self) -> None:
        """Follow the data of the layers, and where they are."""
        self._of_layers.close()
        for layer in self.layers:
            if layer is not None:
                emitters = layer.events.emitters
                data = [emitters[name] for name in DATA_EVENTS if name in emitters]
                self._of_layers.add(self.refresh, *data)
                self._of_layers.add(self.request, *(emitters[name] for name in PLACE_EVENTS))
                self._watch_drawing(layer)

    def _watch_drawing(self, layer: Any) -> None:
        """Notice ``layer.data[...] = ...; layer.refresh()``, napari's idiom for changes in place.

        napari emits the same event when it draws another slice, another view, or other data; those
        have events of their own. Data that are not in memory, or of several resolutions, are left
        out: napari draws them whenever the camera moves, and to compute them again takes a while.
        """
        if getattr(layer, "multiscale", False) or problem_with(layer):
            return
        if is_lazy(levels_of(layer)[0]):
            return

        def state() -> tuple[Any, ...]:
            dims = self.viewer.dims
            place = part_of(self.viewer, layer, "slice"), dims.ndisplay, tuple(layer.scale)
            return layer.data, place

        drawn = state()

        def on_drawn(_: Any) -> None:
            nonlocal drawn
            before = drawn
            drawn = state()
            if before[0] is drawn[0] and before[1] == drawn[1]:
                self.refresh()

        self._of_layers.add(on_drawn, layer.events.set_data)

    def _on_display(self, *_: Any) -> None:
        """Select what is displayed, the volume or a slice of it."""
        self.session.explorer.scope = "volume" if self.viewer.dims.ndisplay == 3 else "slice"

    def _on_dims(self, *_: Any) -> None:
        """Follow the sliders to another part."""
        layer = self.layer
        part = self._part
        if layer is not None and part is not None and part != self.part_in_view(layer):
            self.request()

    def _on_stopped(self) -> None:
        """Report that the user has cancelled the job, and how much is complete."""
        known = self._known()
        self.model.status = f"Cancelled: {known}." if known else "Cancelled."

    def _on_failed(self, message: str) -> None:
        """Show what went wrong."""
        self.show_nothing(message)


def call(target: str, action: str, *arguments: Any, **options: Any) -> str:
    """A statement that assigns the result of one of `napari_ecc.actions`.

    Layers become ``viewer.layers[name]``, indices ``np.s_[...]``; None is left out.

    Examples
    --------
    >>> from napari_ecc._controller.docks import call
    >>> print(call("t, chi", "layer_curve", part=(3, slice(None)), superlevel=True, region=None))
    t, chi = actions.layer_curve(
        part=np.s_[3, :],
        superlevel=True,
    )
    """
    written = [_written(argument) for argument in arguments]
    written += [f"{name}={_written(at)}" for name, at in options.items() if at is not None]
    lines = [f"    {argument}," for argument in written]
    return "\n".join([f"{target} = actions.{action}(", *lines, ")"])


def _written(value: Any) -> str:
    if isinstance(value, Layer):
        return f"viewer.layers[{value.name!r}]"
    if isinstance(value, tuple) and any(isinstance(at, slice) for at in value):
        indices = [":" if isinstance(at, slice) else str(at) for at in value]
        return f"np.s_[{', '.join(indices)}]"
    if isinstance(value, list):
        return f"[{', '.join(_written(at) for at in value)}]"
    if isinstance(value, np.ndarray | np.generic):
        return repr(value.tolist())
    return repr(value)
