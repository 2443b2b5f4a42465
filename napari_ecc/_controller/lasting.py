"""Which points are in components, and in holes, that last: at all thresholds at once."""

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import generate_binary_structure, label

import ecc_core as ecc
from napari_ecc._controller.fields import Field, find_objects
from napari_ecc._controller.loading import WORKERS, prepared
from napari_ecc._model.explorer import ExplorerModel
from napari_ecc._workers import Runner, Step, apart

Array = NDArray[Any]
OPTIONS: dict[str, Any] = {"nan": "omit", "workers": WORKERS}


class Flooding:
    """The components of the sets at all thresholds, and where each joins an older one.

    Each point has the label of the minimum or maximum from which it is flooded, or 0 if it never
    enters. Components that a component joins one after the other are more and more persistent.
    """

    def __init__(self, labels: Array, found: Any, *, strict: bool = False) -> None:
        self.labels = labels
        self._superlevel = found.superlevel
        self._strict = strict
        """Whether a point of the threshold's value is outside of the set."""
        # Label 0 has no points, so it may last for ever.
        self._persistence = np.append(np.inf, found.persistence)
        self._older = np.append(0, found.merged_into).astype(np.intp)
        self._deaths = np.append(np.zeros(1, found.deaths.dtype), found.deaths)
        self._least = np.nan
        """The least persistence of the last call."""
        self._standing: tuple[float, Array] | None = None
        """A threshold, and of each label the persistence of the component that it is part of."""
        self._joining: tuple[float, Array, Array] | None = None
        """A least persistence, whether each label has it, and where it joins one that has."""

    def lasting(self, threshold: float, least: float) -> NDArray[np.bool_]:
        """Return whether points of each label are in a component that lasts, if in the set.

        It takes one comparison if only the threshold, or only the least persistence, differs from
        that of the last two calls.
        """
        at = np.float64(threshold)  # Integers are compared exactly, and float32 as float64.
        only_threshold = least == self._least
        self._least = least
        if only_threshold:
            lasts, joins = self._joined(least)
            return np.asarray(lasts | self._is_in_set(joins, at))
        return np.asarray(self._standing_at(at) >= least)

    def _is_in_set(self, values: Array, threshold: np.float64) -> Array:
        """Return which values belong to the set at a threshold."""
        if self._superlevel:
            inside = values > threshold if self._strict else values >= threshold
        else:
            inside = values < threshold if self._strict else values <= threshold
        return np.asarray(inside)

    def _standing_at(self, threshold: np.float64) -> Array:
        """Return, of each label, the persistence of the component that it is part of."""
        if self._standing is None or self._standing[0] != threshold:
            merged = self._is_in_set(self._deaths, threshold)
            component = _last(np.where(merged, self._older, np.arange(merged.size)))
            self._standing = float(threshold), self._persistence[component]
        return self._standing[1]

    def _joined(self, least: float) -> tuple[Array, Array]:
        """Return which labels last, and at which value others join a component that does."""
        if self._joining is None or self._joining[0] != least:
            lasts = self._persistence >= least
            ends = lasts | lasts[self._older]
            joining = _last(np.where(ends, np.arange(lasts.size), self._older))
            self._joining = least, lasts, self._deaths[joining]
        return self._joining[1:]


def _last(following: Array) -> Array:
    """Return where one ends that goes on from each index to the one that follows."""
    while not np.array_equal(further := following[following], following):
        following = further
    return following


class Lasting(NamedTuple):
    """The components of the sets of a field, and those of their complements."""

    components: Flooding
    complement: Flooding
    """Its components are holes (2-D) or cavities (3-D), and the outside."""


def find_lasting(field: Field, *, superlevel: bool, connectivity: int | None) -> Iterator[Step]:
    """Find the components of the sets of a field, and of their complements, at all thresholds.

    The value of the last step is a `Lasting`. Holes are components of the complement that are
    connected the other way, in a frame that is connected with the outside.
    """
    data = field.data
    yield from prepared("components", data)
    find = partial(ecc.persistent_regions, data, 0, mask=field.mask, superlevel=superlevel)
    found = yield from apart(partial(find, connectivity=connectivity, **OPTIONS))
    components = Flooding(found.labels, found)
    complement = yield from _flood_complement(
        field, superlevel=superlevel, connectivity=connectivity
    )
    yield Step(Lasting(components, complement))


def _flood_complement(
    field: Field, *, superlevel: bool, connectivity: int | None
) -> Generator[Step, None, Flooding]:
    """Return the components of the complements of the sets of a field."""
    ndim = field.data.ndim
    full = connectivity in (None, ndim)
    framed = _framed(field, superlevel=superlevel)
    yield from prepared("components", framed)
    find = partial(ecc.persistent_regions, framed, 0, superlevel=not superlevel)
    found = yield from apart(partial(find, connectivity=1 if full else ndim, **OPTIONS))
    within = (slice(1, -1),) * ndim
    return Flooding(found.labels[within], found, strict=True)


def find_solid_objects(
    field: Field,
    threshold: float,
    least: float,
    *,
    least_of_holes: float,
    known: Lasting | None,
    **sets: Any,
) -> Iterator[Step]:
    """Find the `Objects` of a field as `find_objects`, with the holes in them that do not last.

    These are of less persistence than `least_of_holes`. `known` is what lasts, if that is known; it
    is found otherwise, where it is needed.
    """
    found: Any = None
    for step in find_objects(field, threshold, least, **sets):
        found = step.value
        yield Step(None)
    if least_of_holes and found.table is not None:
        complement = known and known.complement
        if complement is None:
            complement = yield from _flood_complement(field, **sets)
        brief = ~complement.lasting(threshold, least_of_holes)[complement.labels]
        inside = field.inside(threshold, sets["superlevel"])
        labels = with_holes(found.labels, inside, brief, sets["connectivity"])
        points = np.bincount(labels.ravel(), minlength=len(found.table) + 1)[1:]
        found = found._replace(labels=labels, table=found.table.assign(points=points))
    yield Step(found)


def with_holes(
    labels: Array,
    inside: NDArray[np.bool_],
    brief: NDArray[np.bool_],
    connectivity: int | None,
) -> Array:
    """Return labels of components of a set, extended to the `brief` parts of its complement.

    These are holes or cavities, and what is in them. Each gets the least label that it touches, or
    none.
    """
    structure = generate_binary_structure(labels.ndim, connectivity or labels.ndim)
    solid = inside | brief
    bodies, count = label(solid, structure)
    none = np.iinfo(labels.dtype).max
    least = np.full(count + 1, none, labels.dtype)
    labelled = labels > 0
    np.minimum.at(least, bodies[labelled], labels[labelled])
    least[least == none] = 0
    return np.where(solid & ~labelled, least[bodies], labels)


class LastingSearch:
    """Finds in the background what is needed to show what lasts of a field."""

    def __init__(self, model: ExplorerModel) -> None:
        self.runner = Runner("What lasts")
        self._model = model
        self._lasting: Lasting | None = None
        self._searching = False
        self.runner.busy.connect(self._on_busy)

    @property
    def known(self) -> Lasting | None:
        """What lasts; None before it is needed."""
        return self._lasting

    def forget(self) -> None:
        """Stop, and forget the field."""
        self._lasting = None
        self._stop()

    def find(self, field: Field | None, use: Callable[[Lasting | None], None]) -> None:
        """Call a function with what lasts, once it is known; None if all counts."""
        model = self._model
        if field is None or model.classes is None:
            self._stop()
        elif not model.least:
            self._stop()
            use(None)
        elif self._lasting is not None:
            use(self._lasting)
        elif not self._searching:
            self._searching = True
            job = partial(find_lasting, field, **model.sets)
            self.runner.submit(job, partial(self._found, use))

    def _found(self, use: Callable[[Lasting | None], None], step: Step) -> None:
        if step.value is not None:
            self._lasting = step.value
            use(step.value)

    def _on_busy(self, busy: bool) -> None:
        if not busy:
            self._searching = False

    def _stop(self) -> None:
        self._searching = False
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
