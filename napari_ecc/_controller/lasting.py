"""Which points are in components, and in holes, that last: at all thresholds at once."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import ecc_core as ecc
from napari_ecc._controller.fields import Field
from napari_ecc._controller.loading import WORKERS, prepared
from napari_ecc._workers import Step, apart

Array = NDArray[Any]


class Flooding:
    """The components of the sets at all thresholds, and where each joins an older one."""

    def __init__(self, values: Array, labels: Array, found: Any) -> None:
        self._values = values
        self._labels = labels
        self._superlevel = found.superlevel
        self._persistence = np.append(np.inf, found.persistence)  # of label 0, which has no points
        self._older = np.append(0, found.merged_into).astype(np.intp)
        self._deaths = np.append(np.zeros(1, values.dtype), found.deaths.astype(values.dtype))

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
    """Its complement consists of the holes (2-D) or cavities (3-D) that last, and the outside."""


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
    complement = Flooding(framed[within], found.labels[within], found)
    yield Step(Lasting(field, components, complement))


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
