"""Two Labels layers that are compared: what one has and the other has not, at the same place."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from napari.layers import Labels
from numpy.typing import NDArray
from scipy.ndimage import binary_erosion, generate_binary_structure, label

import ecc_core as ecc
from napari_ecc._controller.docks import call
from napari_ecc._controller.fields import PAIRED
from napari_ecc._controller.layers import (
    PLUGIN_KEY,
    Part,
    Selection,
    describe,
    fitting_level,
    matching_level,
    names_of,
    placement,
    selection_of,
    values_of,
)
from napari_ecc._controller.loading import load
from napari_ecc._controller.overlays import embedded, label_colours
from napari_ecc._controller.session import remove_added
from napari_ecc._model.explorer import BETTI_NAMES
from napari_ecc._workers import Job, Runner, Step, apart

TWO_LAYERS = "Select two Labels layers: the lower one in the list is taken as the truth."
FALSE = "#e69f00"
MISSING = "#56b4e9"
COLOURS = {"false": FALSE, "missing": MISSING}
IN_COLOUR = {"false": "Orange: false.", "missing": "Blue: missing."}
IN_FRONT = "translucent_no_depth"
"""Blending in which the objects of a volume do not hide what is missing inside them."""
WIDTH = 2
"""Width in points of the lines around what does not match."""


class Unmatched(NamedTuple):
    """What two masks do not have in common."""

    matching: ecc.BettiMatching
    labels: NDArray[np.uint8]
    """1 where a component or hole of the prediction is false, 2 where one of the target is
    missing."""
    lines: NDArray[np.uint8]
    """Their border: contours of napari are for planes, and it warns of them at each drawing of a
    volume."""
    points: NDArray[np.int64]
    """Where each class that does not match is born, (n, d): in a component, or at the gap or bridge
    that makes the difference."""
    table: pd.DataFrame
    """A row for each point: ``error`` ("false" or "missing") and ``kind``."""
    selection: Selection
    """The selection of the target."""


def match_job(prediction: Any, target: Any, part: Part, connectivity: int | None) -> Job:
    """Return the job that matches two layers in their current state, by a part of the target.

    The value of the last step is what is `Unmatched`. A ValueError says that the layers do not fit.
    """
    selection = selection_of(target, part)
    level = fitting_level(values_of(target, selection), target.name)
    other = matching_level(target, selection, level, prediction)
    shape = tuple(level.full.shape)
    most = PAIRED[len(shape)]
    if level.full.size > most:
        raise ValueError(
            f"“{target.name}” must have at most {most / 1e6:.1f} million points to be matched, got "
            f"{describe(shape)}: crop or bin both layers."
        )

    def compute() -> Iterator[Step]:
        truth = np.asarray((yield from load(level.full)), np.bool_).copy()
        guess = np.asarray((yield from load(other.full)), np.bool_).copy()
        for name, mask in ((target.name, truth), (prediction.name, guess)):
            if not mask.any():
                raise ValueError(f"“{name}” has no objects here.")
        match = partial(ecc.betti_matching, guess, truth, connectivity=connectivity)
        found = yield from apart(match)
        yield Step(_unmatched(found, guess, truth, connectivity, level))

    return compute


def _unmatched(
    found: ecc.BettiMatching,
    prediction: NDArray[np.bool_],
    target: NDArray[np.bool_],
    connectivity: int | None,
    selection: Selection,
) -> Unmatched:
    labels = np.zeros(target.shape, np.uint8)
    points = []
    tables = []
    sides = (
        ("false", found.unmatched_prediction, prediction),
        ("missing", found.unmatched_target, target),
    )
    for number, (error, pairs, mask) in enumerate(sides, 1):
        labels[_regions_of(pairs, mask, connectivity)] = number
        names = [BETTI_NAMES[mask.ndim][k][0] for k in np.asarray(pairs.dimensions).tolist()]
        points.append(np.asarray(pairs.birth_points).reshape(-1, mask.ndim))
        tables.append(pd.DataFrame({"error": error, "kind": names}))
    table = pd.concat(tables, ignore_index=True)
    return Unmatched(found, labels, _border_of(labels), np.concatenate(points), table, selection)


def _border_of(labels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return labels without what is further inside than the width of lines."""
    border = labels.copy()
    for number in (1, 2):
        border[binary_erosion(labels == number, iterations=WIDTH)] = 0
    return border


def _regions_of(pairs: Any, mask: NDArray[np.bool_], connectivity: int | None) -> NDArray[np.bool_]:
    """Return the points of components, and those that holes or cavities surround."""
    ndim = mask.ndim
    full = connectivity in (None, ndim)
    dimensions = np.asarray(pairs.dimensions)
    inside = label(mask, generate_binary_structure(ndim, ndim if full else 1))[0]
    outside = label(~mask, generate_binary_structure(ndim, 1 if full else ndim))[0]
    components = _labels_at(inside, np.asarray(pairs.birth_points)[dimensions == 0])
    holes = _labels_at(outside, np.asarray(pairs.death_points)[dimensions == ndim - 1])
    return np.asarray(np.isin(inside, components) | np.isin(outside, holes))


def _labels_at(labels: NDArray[Any], points: NDArray[Any]) -> NDArray[Any]:
    """Return the labels at points; those outside, of what never dies, are left out."""
    known = points[(points >= 0).all(axis=1)]
    found: NDArray[Any] = labels[tuple(known.T)]
    return found


class Matcher:
    """Matches the Labels layers of the viewer of a `CompareController`."""

    def __init__(self, controller: Any) -> None:
        self._controller = controller
        self.runner = Runner("Matching labels")
        self.code = ""
        """The code of what was matched last; "" before."""

    def match(self) -> None:
        """Match the two Labels layers that are selected, or the only two that there are."""
        controller = self._controller
        viewer = controller.viewer
        own = [viewer.layers[name] for name in names_of(viewer, Labels)]
        chosen = [layer for layer in own if layer in viewer.layers.selection]
        layers = chosen if len(chosen) == 2 else own
        if len(layers) != 2:
            controller.model.status = TWO_LAYERS
            return
        target, prediction = layers
        options = {
            "part": controller.part_in_view(target),
            "connectivity": controller.session.explorer.connectivity,
        }
        try:
            job = match_job(prediction, target, **options)
        except ValueError as error:
            controller.model.status = str(error)
            return
        code = call("matching", "match_labels", prediction, target, **options)
        self.runner.submit(job, partial(self._on_step, prediction, target, code))

    def _on_step(self, prediction: Any, target: Any, code: str, step: Step) -> None:
        if step.value is None or target not in self._controller.viewer.layers:
            return
        before = self.code
        self.code = code
        self._add_layers(prediction, target, step.value, before)
        self._controller.model.status = in_words(step.value, prediction.name, target.name)

    def _add_layers(self, prediction: Any, target: Any, found: Unmatched, before: str) -> None:
        """Add lines around what does not match, and points; both can be undone.

        Undoing restores `before`, the code of an earlier match whose layers may still be shown.
        """
        viewer = self._controller.viewer
        selected = set(viewer.layers.selection)
        title = f"{prediction.name} against {target.name}"
        lines = viewer.add_labels(
            name=title,
            colormap=label_colours(FALSE, MISSING),
            opacity=1.0,
            blending=IN_FRONT,
            metadata={PLUGIN_KEY: math.inf},
            **embedded(found.lines, target, found.selection),
        )
        places = np.zeros((len(found.points), target.ndim))
        for axis, at in enumerate(found.selection.where):
            places[:, axis] = 0 if isinstance(at, slice) else at
        axes = list(found.selection.axes)
        places[:, axes] = found.points * found.selection.step + (found.selection.step - 1) / 2
        points = viewer.add_points(
            places,
            name=f"{title}, points",
            features=found.table,
            face_color=[COLOURS[error] for error in found.table["error"]] or FALSE,
            border_color="black",
            size=5,
            canvas_size_limits=(6, 16),
            blending=IN_FRONT,
            **placement(target),
        )

        def undo() -> None:
            self.code = before
            remove_added(viewer, (lines, points), selected)

        self._controller.session.history.add("Match labels", undo)


def in_words(found: Unmatched, prediction: str, target: str) -> str:
    """Say how many classes of each kind match, are false, and are missing, and in which colours."""
    ndim = found.points.shape[1]
    total = np.bincount(found.matching.target.dimensions, minlength=ndim)
    parts = []
    for dimension, (one, many) in enumerate(BETTI_NAMES[ndim]):
        kinds = found.table[found.table["kind"] == one]["error"]
        false = int((kinds == "false").sum())
        missing = int((kinds == "missing").sum())
        there = int(total[dimension])
        match = f"{there - missing:,} of {there:,} match"
        parts.append(f"{many}: {match}, {missing:,} missing, {false:,} false")
    errors = set(found.table["error"])
    shown = [words for error, words in IN_COLOUR.items() if error in errors]
    colours = f" {' '.join(shown)}" if shown else ""
    return f"“{prediction}” against “{target}”: {'; '.join(parts)}.{colours}"
