"""State of the regions panel: one curve and one transform for each object."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psygnal import SignalGroupDescriptor

from ecc_core import RegionCurves, RegionTransforms
from ecc_core.quantities import CURVES

Floats = NDArray[np.float64]
Basis = Literal["curves", "transforms"]
Shown = Literal["curves", "transforms", "features"]
Corners = tuple[tuple[float, float], ...]
"""The corners of a polygon."""
PREFIXES: dict[Basis, str] = {"curves": "ecc", "transforms": "ect"}
"""How the columns of a table begin."""
ALSO = {name: one for name, one in CURVES.items() if one.of_regions and name != "euler"}
"""What can be measured besides the curves."""
Wanted = make_dataclass("Wanted", [(f"with_{name}", bool, False) for name in ALSO])
"""Whether each of them is wanted, in fields such as `with_betti`."""


class Components(NamedTuple):
    """Scores of objects on principal components, and the explained variance ratios."""

    scores: Floats
    """The score of each object on each component, (objects, count)."""
    shares: Floats
    """The part of the variance that each component explains, (count,)."""


class Regions(NamedTuple):
    """Measurements of the objects of a label image, in the order of their labels."""

    curves: RegionCurves | None
    """The curves of the objects; None without an image."""
    also: dict[str, Any]
    """Those of `ALSO` that are wanted, at the same thresholds; without an image of the objects."""
    transforms: RegionTransforms
    components: dict[Basis, Components]
    """Principal components of the curves and of the transforms."""
    problem: str = ""
    """Why lengths are not known, so that transforms are of another shape, or ""."""

    @property
    def labels(self) -> NDArray[Any]:
        """Labels of the objects, increasing."""
        return self.transforms.labels

    def rows(self, labels: Sequence[int]) -> list[int]:
        """Return the indices of those of some labels that are of measured objects."""
        places = {label: row for row, label in enumerate(self.labels.tolist())}
        return [places[label] for label in labels if label in places]


def principal_components(table: NDArray[Any], count: int = 2) -> Components:
    """Return the scores of the rows of a table on its first principal components.

    Columns are centred, not scaled: they are counts of one kind. The sign of a component is such
    that its largest loading is positive. Components that do not exist are zero.
    """
    centred = table - table.mean(axis=0) if len(table) else table.astype(np.float64)
    left, lengths, right = np.linalg.svd(centred, full_matrices=False)
    found = min(count, lengths.size)
    scores = np.zeros((len(table), count))
    shares = np.zeros(count)
    if found:
        loadings = right[:found]
        largest = np.abs(loadings).argmax(axis=1)
        signs = np.where(loadings[np.arange(found), largest] < 0, -1.0, 1.0)
        scores[:, :found] = left[:, :found] * lengths[:found] * signs
        total = np.sum(lengths**2)
        shares[:found] = lengths[:found] ** 2 / total if total > 0 else 0.0
    return Components(scores, shares)


def feature_columns(regions: Regions) -> dict[str, NDArray[Any]]:
    """Return columns for a table of the objects.

    ``ecc_pc1`` and ``ecc_pc2`` hold the scores on the principal components of the curves,
    ``ect_pc1`` and ``ect_pc2`` those of the transforms; ``ecc_t<threshold>`` holds the curves,
    ``b<dimension>_t<threshold>`` the Betti curves, ``area_t<threshold>`` and the like the Minkowski
    functionals, and ``ect_d<direction>_h<height>`` the transforms, where the direction is a row of
    ``ecc_core.sample_directions``. Without an image, ``b<dimension>_shape``, ``area_shape`` and the
    like are those of the objects themselves.
    """
    curves, also, transforms, components, _ = regions
    columns: dict[str, NDArray[Any]] = {
        f"{PREFIXES[basis]}_pc{k + 1}": scores
        for basis, found in components.items()
        for k, scores in enumerate(found.scores.T)
    }

    found: dict[str, Any] = {} if curves is None else {"ecc": (curves, curves.values)}
    for result in also.values():
        named = result.by_name().items()
        found |= {name: (result, values) for name, values in named if name != "euler_number"}
    for name, (result, numbers) in found.items():
        for t, number in zip(result.thresholds, numbers.T, strict=True):
            columns[f"{name}_shape" if curves is None else f"{name}_t{t:.6g}"] = number
    width = len(str(len(transforms.directions) - 1))
    for k in range(len(transforms.directions)):
        for h, chi in zip(transforms.heights, transforms.values[:, k].T, strict=True):
            columns[f"ect_d{k:0{width}}_h{h:.4g}"] = chi
    return columns


def is_own_column(name: str) -> bool:
    """Whether a column is one of `feature_columns`."""
    own = rf"ec[ct]_pc\d|({_curves()})_shape"
    return is_of_curve(name) or re.fullmatch(own, name) is not None


def is_of_curve(name: str) -> bool:
    """Whether a column is one of `feature_columns` with a value of a curve or a transform.

    Examples
    --------
    >>> from napari_ecc._model.regions import is_of_curve
    >>> [is_of_curve(name) for name in ("ecc_t15", "ect_d0_h0.5", "ecc_pc1", "area_shape", "area")]
    [True, True, False, False, False]
    """
    number = r"[-+.e\d]+"
    values = rf"({_curves()})_t{number}|ect_d\d+_h{number}"
    return re.fullmatch(values, name) is not None


def _curves() -> str:
    """Return a regular expression for how columns of curves begin."""
    return "|".join(["ecc", *(column for one in ALSO.values() for column in one.columns)])


def toggled(selected: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    """Return what is selected after a choice with Ctrl: what was before, and more.

    If all of `more` were selected before, they are no longer.
    """
    fresh = set(more)
    others = tuple(at for at in selected if at not in fresh)
    return others if len(others) + len(more) == len(selected) else (*others, *more)


@dataclass
class RegionModel(Wanted):  # type: ignore[misc, valid-type]
    """Settings and results of the regions panel.

    The image layer is the dock Threshold's.
    """

    labels: str = ""
    """The name of the Labels layer, or ""."""
    scope: Literal["slice", "volume"] = "volume"
    """The displayed plane, or the last three axes."""
    superlevel: bool = True
    connectivity: int | None = None
    """The connectivity of sets, which means the same as in the dock Threshold."""
    n_thresholds: int = 32
    """Columns of the curves."""
    n_directions: int = 8
    """Rows of each transform."""
    n_heights: int = 16
    """Columns of each transform."""
    basis: Shown = "curves"
    """What the principal components of the scatter plot are of; or else it shows two features."""
    first: str = "ecc_pc1"
    """The first of the two features, which are columns of the table."""
    second: str = "ect_pc1"
    gate: Corners = ()
    """What the user has drawn around points, in units of the axes."""
    regions: Regions | None = None
    selected: tuple[int, ...] = ()
    """The labels of selected objects; the last one is also that of the layer controls."""
    class_name: str = "A"
    """The class that `RegionController.classify` gives."""
    classes: tuple[str, ...] = ()
    """The classes of the objects, in the order of `regions`; "" for none."""
    status: str = ""
    """One line for the user."""

    events: ClassVar[SignalGroupDescriptor] = SignalGroupDescriptor()
