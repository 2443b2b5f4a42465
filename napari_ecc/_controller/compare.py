"""Comparison of the curves of several layers or frames."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
from napari.layers import Image, Labels

from napari_ecc._controller.curves import (
    compute_curves,
    compute_file_curves,
    curve_table,
    frames_of,
    images_in,
    request_of,
)
from napari_ecc._controller.docks import NO_IMAGE, DockController, Work, call
from napari_ecc._controller.layers import names_of, part_in_words, problem_with
from napari_ecc._controller.matching import Matcher
from napari_ecc._model.compare import (
    KEYS,
    CompareModel,
    Curves,
    column_of_groups,
    compared,
    groups_of,
    joined,
    with_suffixes,
)
from napari_ecc._model.words import counted
from napari_ecc._workers import Runner, Step

NOTHING = (
    "Add selected layers, frames of the image, measured objects or the images in a folder, pin "
    "the curve of the dock Threshold, or match two Labels layers."
)

COMPARED = ("curves", "features", "by", "pattern", "unit", "where", "average")
"""Fields of the model that a comparison depends on."""
Features = dict[str, dict[str, Any]]
Compute = Callable[[Mapping[str, Any]], Iterator[Step]]


class CompareController(DockController):
    """Collects curves and compares their groups."""

    sample = "drops"
    model: CompareModel

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, "compare", "Euler curves of layers")
        self.model = CompareModel(status=NOTHING)
        self._testing = Runner("Permutation test")
        self.matcher = Matcher(self)
        self.runners += [self._testing, self.matcher.runner]
        self._calls: list[str] = []
        self._last: tuple[Compute, Mapping[str, Any], Features, str] | None = None
        self._failure = ""
        """What the last job did not find, and why."""
        self._links.add(self._on_incomparable, self._testing.failed)
        self._links.add(partial(setattr, self.model, "status"), self.matcher.runner.failed)
        events = self.model.events
        self._links.add(self._compare, *(events[name] for name in COMPARED))

    @property
    def works(self) -> tuple[Work, ...]:
        """The curves, and the labels that are matched."""
        return (*super().works, Work(self.matcher.runner, "Matching …", self.matcher.match))

    def add_layers(self) -> None:
        """Add the curves of the selected layers.

        If fewer than two are selected, add those of all images, or of all labels if there are none.
        """
        own = [self.viewer.layers[name] for name in names_of(self.viewer, Image, Labels)]
        chosen = [layer for layer in own if layer in self.viewer.layers.selection]
        images = [layer for layer in own if isinstance(layer, Image)]
        wanted_layers = chosen if len(chosen) > 1 else images or own
        problems = [problem_with(layer) for layer in wanted_layers]
        if problems and all(problems):
            self.model.status = problems[0]
            return
        layers = [at for at, problem in zip(wanted_layers, problems, strict=True) if not problem]
        parts = [self.part_in_view(layer) for layer in layers]
        options = self.session.explorer.options
        wanted = {
            layer.name: request_of(layer, part, **options)
            for layer, part in zip(layers, parts, strict=True)
        }
        features = {}
        for layer in layers:
            known = {k: v for k, v in layer.metadata.items() if isinstance(v, str | int | float)}
            features[layer.name] = {"layer": layer.name, **known}
        code = call("curves", "layer_curves", layers, parts=parts, **options)
        self._submit(compute_curves, wanted, features, code)

    def add_frames(self) -> None:
        """Add the curves of all frames of the image along its first axis."""
        try:
            layer = self.checked_layer()
        except ValueError as error:
            self.model.status = str(error)
            return
        part = self.part_in_view(layer)
        if isinstance(part[0], slice):
            words = part_in_words(layer, part)
            self.model.status = f"“{layer.name}” has no frames besides its {words}."
            return
        options = self.session.explorer.options
        frames = frames_of(layer, part)
        wanted = {name: request_of(layer, at, **options) for name, at in frames.items()}
        features = {
            name: {"layer": layer.name, "frame": frame} for frame, name in enumerate(wanted)
        }
        code = call("curves", "all_frames", layer, part=part, **options)
        self._submit(compute_curves, wanted, features, code)

    def add_folder(self, path: str) -> None:
        """Add the curves of the images in a folder and the folders in it.

        They are read one after the other, and can be grouped by folder.
        """
        files = images_in(Path(path))
        if not files:
            self.model.status = f"There is no image in {path}."
            return
        features = {name: {"folder": str(PurePosixPath(name).parent)} for name in files}
        options = self.session.explorer.options
        code = call("curves", "folder_curves", path, **options)
        self._submit(partial(compute_file_curves, **options), files, features, code)

    def add_objects(self) -> None:
        """Add the curves of the objects that Objects shows, with their other features."""
        self._add_shown("regions", "Measure objects with an image in the dock Objects first.")

    def join(self, path: str) -> None:
        """Join a CSV or Parquet table to the curves, to group them by its columns.

        One of its columns is ``name``, ``layer``, ``frame`` or ``index``. Names of files may lack
        their suffix. Errors in it, such as no row for any curve, are a ValueError or an OSError.
        Curves that are not grouped yet are grouped by the new column of
        the fewest values.
        """
        self._curves()
        parquet = Path(path).suffix.lower() == ".parquet"
        features = pd.read_parquet(path) if parquet else pd.read_csv(path, comment="#")
        model = self.model
        known = set(model.table.columns)
        table = joined(model.table, with_suffixes(features, model.table["name"].tolist()))
        more = [column for column in table.columns if column in features and column not in KEYS]
        has_row = table[more].notna().any(axis=1)
        found = int(has_row.sum())
        title = Path(path).name
        if not found:
            raise ValueError(
                f"{title} has no row for any of the curves, such as {table['name'].iloc[0]!r}: "
                "its column name, layer, frame or index must say which curve a row belongs to."
            )
        rows = table.to_dict("records")
        model.features = {str(row.pop("name")): row for row in rows}
        model.status = f"Joined {title}: rows for {found} of {counted(len(rows), 'curve')}."
        column = column_of_groups(table.drop(columns=[*known & set(table.columns)]))
        if column and not model.by and not model.pattern:
            model.by = column

    def pin(self) -> None:
        """Add the curve that the dock Threshold shows."""
        self._add_shown("explorer", "The dock Threshold shows no complete curve.")

    def _add_shown(self, topic: str, why_not: str) -> None:
        """Add what another dock shows, or say why there is nothing."""
        dock = self.session.controllers.get(topic)
        shown = None if dock is None else dock.shown_curves()
        if shown is None:
            self.model.status = why_not
        else:
            self._keep(*shown)

    def choose(self) -> None:
        """Compare the first of the values that are no replicates within a unit."""
        comparison = self.model.comparison
        if comparison is not None and comparison.mixed is not None:
            more = [self.model.where, comparison.mixed.mixed.choice]
            self.model.where = ", ".join(filter(None, more))

    def average(self) -> None:
        """Take values within a unit as replicates, and average over them."""
        comparison = self.model.comparison
        if comparison is not None and comparison.mixed is not None:
            self.model.average = (*self.model.average, comparison.mixed.mixed.column)

    def clear(self) -> None:
        """Remove all curves."""
        self.show_nothing(NOTHING)

    def _clear(self) -> None:
        self._calls.clear()
        self._last = None
        self._failure = ""
        self.model.curves = {}  # This comes first, as nothing is compared without curves.
        self.model.by = self.model.unit = self.model.where = ""
        self.model.average = ()
        self.model.features = {}

    def _start(self) -> None:
        if self._last is not None:
            compute, wanted, features, code = self._last
            missing = {k: v for k, v in wanted.items() if k not in self.model.curves}
            self._submit(compute, missing, features, code)

    def _statements(self) -> list[str]:
        matched = [self.matcher.code] if self.matcher.code else []
        if not self.model.curves:
            return matched
        collected = [f"{code}\nall_curves |= curves" for code in self._calls]
        curves = _Name("all_curves")
        compared = call("comparison", "compare_groups", curves, **self.model.grouping)
        return ["all_curves = {}", *collected, compared, *matched]

    def curves_table(self) -> pd.DataFrame:
        """A row for each curve and threshold."""
        curves = self._curves()
        grouping = self.model.grouping
        values = grouping["features"][self.model.by] if self.model.by else None
        groups = groups_of(list(curves), self.model.pattern, values)
        group = {name: title for title, members in groups.items() for name in members}
        tables = {name: curve.to_pandas() for name, curve in curves.items()}
        table = pd.concat(tables, names=["name"]).reset_index("name")
        table.insert(1, "group", table["name"].map(group))
        return table

    def table(self) -> pd.DataFrame:
        """A row for each curve with its descriptors."""
        return curve_table(self._curves(), self.model.table)

    @property
    def facts(self) -> dict[str, str]:
        """How the curves were computed, and the result of the test."""
        comparison = self.model.comparison
        result = "" if comparison is None else comparison.in_words()
        state = "complete" if not self._missing() else f"{self._missing()} curves missing"
        groups = f"{self.model.by or 'name'}: {self.model.pattern}"
        unit = self.model.unit or "curve"
        return {**super().facts, "groups": groups, "unit": unit, "result": result, "state": state}

    def _curves(self) -> Curves:
        if not self.model.curves:
            raise ValueError("There is no curve yet.")
        return self.model.curves

    def _missing(self) -> int:
        wanted = {} if self._last is None else self._last[1]
        return len(set(wanted) - set(self.model.curves))

    def _submit(
        self, compute: Compute, wanted: Mapping[str, Any], features: Features, code: str
    ) -> None:
        if not wanted:
            self.model.status = NO_IMAGE
            return
        self._last = (compute, wanted, features, code)
        self._failure = ""
        self.runner.submit(
            partial(compute, wanted), lambda step: self._keep(step.value, features, code)
        )

    def _keep(self, curves: Curves, features: Features, code: str) -> None:
        if curves:
            if code not in self._calls:
                self._calls.append(code)
            known = self.model.features  # Columns that were joined stay.
            more = {name: {**known.get(name, {}), **own} for name, own in features.items()}
            self.model.features = {**known, **more}
            self.model.curves = {**self.model.curves, **curves}

    def _compare(self, *_: Any) -> None:
        """Compare the current groups."""
        curves = self.model.curves
        self.model.comparison = None
        if not curves:
            self._testing.cancel()
            return
        grouping = self.model.grouping

        def job() -> Iterator[Step]:
            yield Step(compared(curves, **grouping))

        def on_step(step: Step) -> None:
            self.model.comparison = step.value
            self.subject = counted(len(curves), "curve")
            self.subject_changed.emit()
            self.model.status = f"{step.value.in_words()} {self._failure}".strip()

        self._testing.submit(job, on_step)

    def _on_incomparable(self, message: str) -> None:
        self.model.status = f"The curves cannot be compared: {message}"

    def _known(self) -> str:
        return f"{self._missing()} curves are missing"

    def _on_failed(self, message: str) -> None:
        self.model.status = self._failure = message


class _Name(str):
    """The name of a variable in the script."""

    __repr__ = str.__str__
