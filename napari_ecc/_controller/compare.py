"""Curves of several layers or frames, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from napari.layers import Image, Labels
from numpy.typing import ArrayLike

from ecc_core.features import align_curves, curve_descriptors
from napari_ecc._controller.code import call, script
from napari_ecc._controller.curves import Request, compute_curve, request_of, result_of
from napari_ecc._controller.docks import NO_IMAGE, DockController
from napari_ecc._controller.layers import (
    PLUGIN_KEY,
    Part,
    axis_name,
    levels_of,
    part_in_words,
    part_of,
    problem_with,
    selection_of,
)
from napari_ecc._controller.output import write_columns
from napari_ecc._model.compare import CompareModel, Curves, compare_groups
from napari_ecc._workers import Runner, Step

__all__ = ["CompareController", "compute_curves", "curve_table", "frames_of"]

NOTHING = "Add the selected layers, the frames of the image, or the explorer's curve."


def frames_of(layer: Any, part: Part, axis: int = 0) -> dict[str, Part]:
    """The frames of a layer along an axis, by name."""
    length = levels_of(layer)[0].shape[axis]
    parts = [(*part[:axis], frame, *part[axis + 1 :]) for frame in range(length)]
    width = len(str(length - 1))
    name = axis_name(layer, axis)
    return {f"{layer.name} {name} {k:0{width}}": at for k, at in enumerate(parts)}


def compute_curves(wanted: dict[str, Request]) -> Iterator[Step]:
    """The curve of each request; each step's value is all those found so far."""
    found: Curves = {}
    for name, request in wanted.items():
        for step in compute_curve(request):
            curve, _ = step.value
            if not curve.complete:
                yield Step(dict(found), len(found), len(wanted))
        found[name] = result_of(curve, request)
        yield Step(dict(found), len(found), len(wanted))


def curve_table(curves: Curves) -> pd.DataFrame:
    """Describe curves, a row each: descriptors, and the values at the thresholds of all."""
    rows = {name: curve_descriptors(curve)._asdict() for name, curve in curves.items()}
    table = pd.DataFrame.from_dict(rows, orient="index").astype(float)
    aligned = align_curves(list(curves.values()))
    names = [f"ecc_t{t:.6g}" for t in np.asarray(aligned.thresholds)]
    values = pd.DataFrame(np.asarray(aligned.values), index=table.index, columns=names)
    return pd.concat([table, values], axis=1).rename_axis("name").reset_index()


class CompareController(DockController):
    """Collects curves and compares their groups.

    Parameters
    ----------
    viewer : napari.viewer.Viewer

    Attributes
    ----------
    model : CompareModel
    """

    sample = "drops"

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, "compare", "Euler curves of layers")
        self.model = CompareModel(status=NOTHING)
        self._testing = Runner("Permutation test")
        self._calls: list[str] = []
        self._last: tuple[dict[str, Request], str] | None = None
        self._links.add(self._on_incomparable, self._testing.failed)
        self._links.add(self._compare, self.model.events.curves, self.model.events.pattern)

    @property
    def running(self) -> bool:
        """Whether curves are computed or compared."""
        return self.runner.running or self._testing.running

    def close(self) -> None:
        """Stop, and disconnect from the viewer."""
        super().close()
        self._testing.close()

    def add_layers(self) -> None:
        """Add the curves of the selected layers, or of all images where fewer than two are."""
        kinds = (Image, Labels)
        own = [
            layer
            for layer in self.viewer.layers
            if isinstance(layer, kinds) and PLUGIN_KEY not in layer.metadata
        ]
        chosen = [layer for layer in own if layer in self.viewer.layers.selection]
        layers = chosen if len(chosen) > 1 else [at for at in own if isinstance(at, Image)]
        layers = [layer for layer in layers if not problem_with(layer)]
        parts = [part_of(self.viewer, layer, self._scope) for layer in layers]
        wanted = {
            layer.name: request_of(layer, selection_of(layer, part), **self._options)
            for layer, part in zip(layers, parts, strict=True)
        }
        self._submit(wanted, call("curves", "layer_curves", layers, parts=parts, **self._options))

    def add_frames(self) -> None:
        """Add the curves of all frames of the image along its first axis."""
        layer = self.layer
        if layer is None or problem_with(layer):
            self.model.status = NO_IMAGE if layer is None else problem_with(layer)
            return
        part = part_of(self.viewer, layer, self._scope)
        if isinstance(part[0], slice):
            words = part_in_words(layer, part)
            self.model.status = f"“{layer.name}” has no frames besides its {words}."
            return
        wanted = {
            name: request_of(layer, selection_of(layer, at), **self._options)
            for name, at in frames_of(layer, part).items()
        }
        self._submit(wanted, call("curves", "all_frames", layer, part=part, **self._options))

    def pin(self) -> None:
        """Add the curve that the Euler explorer shows."""
        explorer = self.session.controllers.get("explorer")
        pinned = None if explorer is None else explorer.complete_curve()
        if pinned is None:
            self.model.status = "The Euler explorer shows no complete curve."
            return
        name, curve, code = pinned
        self._keep({name: curve}, code)

    def clear(self) -> None:
        """Forget all curves."""
        self.runner.cancel()
        self._calls.clear()
        self.model.curves = {}

    def resume(self) -> None:
        """Compute the curves that are missing."""
        if self._last is not None:
            wanted, code = self._last
            self._submit({k: v for k, v in wanted.items() if k not in self.model.curves}, code)

    def python_call(self) -> str:
        """The calls that give the curves and their comparison; "" if there are none."""
        if not self.model.curves:
            return ""
        collected = [f"{code}\nall_curves |= curves" for code in self._calls]
        compared = call("comparison", "compare_groups", _Name("all_curves"), self.model.pattern)
        return script("all_curves = {}", *collected, compared)

    def save_curves(self, path: str) -> None:
        """Write a row for each curve and threshold; see `write_columns`."""
        curves = self._known()
        group = {
            name: title
            for title, members in compare_groups(
                curves, self.model.pattern, n_permutations=1
            ).groups.items()
            for name in members
        }
        sizes = [curve.thresholds.size for curve in curves.values()]
        columns: dict[str, ArrayLike] = {
            "name": np.repeat(list(curves), sizes),
            "group": np.repeat([group[name] for name in curves], sizes),
            "threshold": np.concatenate([curve.thresholds for curve in curves.values()]),
            "euler_characteristic": np.concatenate([curve.values for curve in curves.values()]),
        }
        write_columns(path, columns, self.facts)

    def save_table(self, path: str) -> None:
        """Write a row for each curve with its descriptors; see `write_columns`."""
        table = curve_table(self._known())
        write_columns(path, {str(name): table[name].to_numpy() for name in table}, self.facts)

    @property
    def facts(self) -> dict[str, str]:
        """How the curves were computed, and the result of the test."""
        comparison = self.model.comparison
        result = "" if comparison is None else comparison.in_words()
        state = "complete" if not self._missing() else f"{self._missing()} curves missing"
        return {**super().facts, "groups": self.model.pattern, "result": result, "state": state}

    @property
    def _scope(self) -> str:
        return self.session.explorer.scope

    @property
    def _options(self) -> dict[str, Any]:
        """Those of the Euler explorer."""
        explorer = self.session.explorer
        return {
            "thresholds": explorer.bins,
            "superlevel": explorer.superlevel,
            "connectivity": explorer.connectivity,
            "smoothing": explorer.sigma,
        }

    def _known(self) -> Curves:
        if not self.model.curves:
            raise ValueError("There is no curve yet.")
        return self.model.curves

    def _missing(self) -> int:
        wanted = {} if self._last is None else self._last[0]
        return len(set(wanted) - set(self.model.curves))

    def _submit(self, wanted: dict[str, Request], code: str) -> None:
        if not wanted:
            self.model.status = NO_IMAGE
            return
        self._last = wanted, code
        self.runner.submit(
            lambda: compute_curves(wanted), lambda step: self._keep(step.value, code)
        )

    def _keep(self, curves: Curves, code: str) -> None:
        if curves:
            if code not in self._calls:
                self._calls.append(code)
            self.model.curves = {**self.model.curves, **curves}

    def _compare(self, *_: Any) -> None:
        """Compare the groups that the pattern makes now."""
        curves, pattern = self.model.curves, self.model.pattern
        self.model.comparison = None
        if not curves:
            self._testing.cancel()
            self.subject, self.model.status = "", NOTHING
            self.subject_changed.emit()
            return
        job = (Step(compare_groups(at, pattern)) for at in (curves,))
        self._testing.submit(lambda: job, self._on_comparison)

    def _on_comparison(self, step: Step) -> None:
        self.model.comparison = step.value
        self.subject = f"{len(self.model.curves)} curves"
        self.subject_changed.emit()
        self.model.status = step.value.in_words()

    def _on_incomparable(self, message: str) -> None:
        self.model.status = f"The curves cannot be compared: {message}"

    def _on_stopped(self) -> None:
        self.model.status = f"Cancelled: {self._missing()} curves are missing."

    def _on_failed(self, message: str) -> None:
        self.model.status = message


class _Name:
    """A variable of the script."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name
