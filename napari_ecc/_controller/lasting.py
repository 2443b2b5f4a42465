"""Which points are in components, and in holes, that last: at all thresholds at once."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import ecc_core as ecc
from napari_ecc._controller.fields import Field
from napari_ecc._controller.loading import WORKERS, prepared
from napari_ecc._model.explorer import ExplorerModel
from napari_ecc._workers import Runner, Step, apart

Array = NDArray[Any]
HUGE = float(np.finfo(np.float32).max)
"""Stands for infinity, which not every graphics card compares."""


class Flooding:
    """The components of the sets at all thresholds, and where each joins an older one."""

    def __init__(self, values: Array, labels: Array, found: Any) -> None:
        self._values = values
        self._labels = labels
        self._superlevel = found.superlevel
        self._persistence = np.append(np.inf, found.persistence)  # of label 0, which has no points
        self._older = np.append(0, found.merged_into).astype(np.intp)
        deaths = found.deaths
        if values.dtype.kind == "f":
            deaths = np.clip(deaths, -HUGE, HUGE)
        self._deaths = np.append(np.zeros(1, values.dtype), deaths.astype(values.dtype))

    def lasting(self, least: float) -> Array:
        """Return values whose sets have the components that last, and no others.

        They are those of the image, but in components that do not last the values at which these
        have joined one that does.
        """
        lasts = self._persistence >= least
        last = np.where(lasts | lasts[self._older], np.arange(lasts.size), self._older)
        while not np.array_equal(further := last[last], last):
            last = further
        ends = self._deaths[last]
        ends[lasts] = _extreme(ends.dtype, highest=self._superlevel)
        limit = np.minimum if self._superlevel else np.maximum
        return np.asarray(limit(self._values, ends[self._labels]))


class LastingSets(NamedTuple):
    """Values whose sets are those of a field without what does not last."""

    inside: Array
    """The set at a threshold consists of the components that last."""
    outside: Array
    """Its complement consists of the holes (2-D) or cavities (3-D) that last, and the outside.

    In float32, as the graphics card compares, whatever the dtype of the field.
    """


class Lasting:
    """The components of a field and those of its complement."""

    def __init__(self, field: Field, components: Flooding, complement: Flooding) -> None:
        self._field = field
        self._components = components
        self._complement = complement

    def sets(self, least: float) -> LastingSets:
        """Return what has at least some persistence."""
        return LastingSets(self._components.lasting(least), self._complement.lasting(least))


def find_lasting(field: Field, *, superlevel: bool, connectivity: int | None) -> Iterator[Step]:
    """Find the components of the sets of a field, and of their complements, at all thresholds.

    The value of the last step is a `Lasting`. Holes are components of the complement that are
    connected the other way, in a frame that is connected with the outside.
    """
    data = field.data
    ndim = field.data.ndim
    full = connectivity in (None, ndim)
    options: dict[str, Any] = {"nan": "omit", "workers": WORKERS}
    yield from prepared("components", data)
    find = partial(ecc.persistent_regions, data, 0, mask=field.mask, superlevel=superlevel)
    found = yield from apart(partial(find, connectivity=connectivity, **options))
    components = Flooding(data, found.labels, found)

    framed = _framed(field, superlevel=superlevel)
    yield from prepared("components", framed)
    find = partial(ecc.persistent_regions, framed, 0, superlevel=not superlevel)
    found = yield from apart(partial(find, connectivity=1 if full else ndim, **options))
    within = (slice(1, -1),) * ndim
    drawn = np.clip(framed[within], -HUGE, HUGE).astype(np.float32)
    complement = Flooding(drawn, found.labels[within], found)
    yield Step(Lasting(field, components, complement))


class LastingSearch:
    """Finds what lasts of a field in the background, anew whenever the least persistence changes.

    A change while it is being found does not begin it again: what is found is shown, and then that
    of the newest persistence. What is shown can so follow a drag of the slider.
    """

    def __init__(self, model: ExplorerModel) -> None:
        self.runner = Runner("What lasts")
        self._model = model
        self._lasting: Lasting | None = None  # None before it is needed
        self._search: Callable[[], None] | None = None  # begins it; None if nothing is wanted
        self._least = 0.0  # of what is being found
        self.runner.busy.connect(self._on_busy)

    @property
    def known(self) -> bool:
        """Whether the components are known, so that what lasts is soon."""
        return self._lasting is not None

    def forget(self) -> None:
        """Stop, and forget the field."""
        self._lasting = None
        self._stop()

    def find(self, field: Field | None, use: Callable[[LastingSets | None], None]) -> None:
        """Call a function with the sets of what lasts, once they are known; None if all counts."""
        model = self._model
        if field is None or model.classes is None or not model.least:
            self._stop()
            if field is not None and not model.least:
                use(None)
            return
        going_on = self._search is not None and self.runner.running
        self._search = partial(self._begin, field, use)
        if not going_on:
            self._search()

    def _begin(self, field: Field, use: Callable[[LastingSets | None], None]) -> None:
        known = self._lasting
        model = self._model
        sets = model.sets

        def job() -> Iterator[Step]:
            lasting = known
            self._least = model.least
            if lasting is None:
                for step in find_lasting(field, **sets):
                    lasting = step.value
                    yield Step(None)
            assert lasting is not None  # the last step has it
            shown = None
            while shown != model.least:
                shown = self._least = model.least
                yield Step((lasting, lasting.sets(shown)))

        def on_step(step: Step) -> None:
            if step.value is not None:
                self._lasting, found = step.value
                use(found)

        self.runner.submit(job, on_step)

    def _on_busy(self, busy: bool) -> None:
        """Find what has been missed, as the persistence changed when a job was about to end."""
        if not busy and self._search is not None and self._least != self._model.least:
            self._search()

    def _stop(self) -> None:
        self._search = None
        self.runner.cancel()


def _framed(field: Field, *, superlevel: bool) -> Array:
    """Return the values in a frame; it, and points that never enter, are outside of all sets."""
    data = field.data
    kind = data.dtype if data.dtype.kind == "f" and data.dtype.itemsize >= 4 else np.float64
    never = -np.inf if superlevel else np.inf
    values = data.astype(kind)
    values[np.isnan(values)] = never
    if field.mask is not None:
        values[~field.mask] = never
    return np.pad(values, 1, constant_values=never)


def _extreme(dtype: np.dtype[Any], *, highest: bool) -> Any:
    """Return the highest or the lowest value of a dtype."""
    if dtype.kind == "f":
        return np.inf if highest else -np.inf
    if dtype.kind == "b":
        return highest
    info = np.iinfo(dtype)
    return info.max if highest else info.min
