"""Jobs of ``ecc stack``: what is computed of an image by blocks, without the image itself.

`ecc stack` reads an image once for each pass of its job, adds up the values of blocks to totals,
and makes curves of the totals. A job can be written to a file together with the totals of some
blocks, so that curves can be made without the image.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._blocks.boxes import BoxValues
from ecc_core._blocks.glued import BoxPieces, GluedWork
from ecc_core._blocks.totals import JoinedTotal, Total, total_of
from ecc_core._blocks.work import Work, labels_of, values_of
from ecc_core._io.curve_columns import Curves, add_facts, columns_of, plain
from ecc_core._io.lazy import Array
from ecc_core._io.results import describe_result
from ecc_core._request.filtration import Direction, Filtration, filtration_of
from ecc_core.quantities import CurveQuantity
from ecc_core.quantities._base import EULER_NUMBER
from ecc_core.quantities.registry import CURVES, quantities_of
from ecc_core.quantities.windows import WindowCurve, closed_filtration, joined_tables
from ecc_core.results import CurveResult, EulerCurve, RegionCurves, curve_facts
from ecc_core.results._base import known_by

Values = NDArray[np.int64]
Columns = dict[str, Array]


class Table(NamedTuple):
    """The columns of a table, and its metadata."""

    columns: Columns
    metadata: dict[str, Any]


class Pass(NamedTuple):
    """A computation for which an image is read once."""

    quantity: CurveQuantity[Any]
    boxes: BoxValues


@dataclass(frozen=True)
class StackJob:
    """The computations of an image by blocks."""

    image: dict[str, Any]
    """The description of the image in the metadata of a table."""
    settings: dict[str, Any]
    """The arguments of the command that the numbers depend on, as types that JSON supports."""
    software: str
    filtration: Filtration
    """The filtration without the direction, whose term has been added to blocks."""
    direction: Direction | None
    dtype: np.dtype[Any]
    """The dtype of the points of blocks."""
    masked: bool
    labels: np.dtype[Any] | None
    windows: bool
    """Whether the mask or the labels are windows of the image."""
    heads: dict[str, Array]
    """Columns that identify each image along the batch axes."""
    thresholds: Array
    chunks: tuple[tuple[int, ...], ...]
    """The lengths of the blocks along each axis."""

    @property
    def arguments(self) -> Namespace:
        """The settings as arguments of a command, in which infinity is a number."""
        numbers = {"inf": math.inf, "-inf": -math.inf}
        arguments = dict(self.settings)
        for name, value in self.settings.items():
            if isinstance(value, str):
                arguments[name] = numbers.get(value, value)
        return Namespace(**arguments)

    @property
    def batch(self) -> tuple[int, ...]:
        shape: Sequence[int] = self.image["shape"]
        return tuple(shape[: len(shape) - self.filtration.ndim])

    @property
    def spacing(self) -> tuple[float, ...] | None:
        found = self.image["spacing"]
        return None if found is None else tuple(found)

    def passes(self) -> list[Pass]:
        """Return the passes, in the order in which the image is read."""
        found = []
        for quantity in quantities_of(self.arguments):
            own = quantity.own_of(self.arguments, self.spacing)
            if not self.windows:
                boxes = quantity.boxes(
                    self.thresholds, self.filtration, own, dtype=self.dtype, masked=self.masked
                )
                found.append(Pass(quantity, boxes))
                continue
            curve = WindowCurve(self.thresholds, closed_filtration(self.filtration))
            found.append(Pass(CURVES["euler"], curve))
            inside = quantity.window_boxes(self.thresholds, self.filtration, own)
            if inside is not None:
                found.append(Pass(quantity, inside))
        return found

    def works(self, read: Callable[..., Any] | None = None) -> list[Work]:
        """Return the work of each pass. Without `read`, it can only join totals."""
        works: list[Work] = []
        for _, boxes in self.passes():
            if isinstance(boxes, BoxPieces):
                works.append(GluedWork(read, self.chunks, boxes))
            else:
                regions = self.labels is not None
                works.append(Work(read, self.chunks, boxes, regions=regions))
        return works

    def totals(self) -> list[Total]:
        """Return an empty total for each pass."""
        return [total_of(work) for work in self.works()]

    def curves(self, totals: Sequence[Total]) -> Curves:
        """Return the curves of an image from the totals of all of its blocks."""
        pairs = list(zip(self.passes(), totals, strict=True))
        if self.windows:
            found = [self._curves_of_windows(pairs)]
        else:
            found = [self._curves_of(one, total) for one, total in pairs]
        return self.joined(found)

    def joined(self, found: Sequence[Curves]) -> Curves:
        """Return the curves of all quantities as one."""
        measures: dict[str, Any] = {}
        for own in found:
            for name, values in own.measures.items():
                # If several have an Euler characteristic, that of lasting classes comes first.
                measures.setdefault(name, values)
        if self.settings["density"] and not self.windows:
            measures = self._divided(measures)
        curves = found[0]._replace(measures=measures)
        return curves.distinct() if isinstance(self.settings["thresholds"], int) else curves

    def _divided(self, measures: Mapping[str, Any]) -> dict[str, Any]:
        """Divide measures by the size of the image, which a quantity with --density defines."""
        arguments = self.arguments
        measured = next(one for one in quantities_of(arguments) if "density" in one.own_options)
        own = measured.own_of(arguments, self.spacing)
        window = measured.window_size(
            tuple(self.image["shape"][len(self.batch) :]), self.filtration, own
        )
        if not window:
            raise ValueError("--density must be of an image with a size, got 0")
        return {name: values / window for name, values in measures.items()}

    def _curves_of(self, one: Pass, total: Total) -> Curves:
        boxes = one.boxes
        at = self.thresholds
        if isinstance(boxes, BoxPieces):
            assert isinstance(total, JoinedTotal)
            numbers = np.zeros((*self.batch, boxes.rows, at.size), np.int64)
            for place, piece in total.pieces():
                numbers[place] = boxes.numbers([piece])[0]
            found = numbers.reshape((math.prod(self.batch), boxes.rows, at.size))
            return self.curves_of_result(one.quantity.result(at, found))
        labels, rows = self._rows(total.work, total.sums, boxes.size)
        return self.curves_of_result(one.quantity.result(at, boxes.curves(rows)), labels)

    def _curves_of_windows(self, pairs: Sequence[tuple[Pass, Total]]) -> Curves:
        """Return the curves of windows, and their other measures if there are any."""
        if len(pairs) == 1:
            return self._curves_of(*pairs[0])
        (curve, euler), ((quantity, inside), cells) = pairs
        size = curve.boxes.size
        join = _side_by_side if self.labels is None else joined_tables
        joined = {images: join(table, cells.sums[images]) for images, table in euler.sums.items()}
        labels, rows = self._rows(euler.work, joined, size + inside.size)
        counts = rows[:, size:]
        measured: Any = inside
        values = measured.with_euler(counts, rows[:, :size])
        own = quantity.own_of(self.arguments, self.spacing)
        facts = quantity.facts(self.filtration, own)
        sizes = tuple(measured.sizes(counts).tolist())
        result = quantity.result(self.thresholds, values, **facts, window=sizes)
        return self.curves_of_result(
            result.densities() if self.settings["density"] else result, labels
        )

    def _rows(
        self, work: Work, sums: Mapping[tuple[int, ...], Values], size: int
    ) -> tuple[list[Array] | None, Values]:
        """Return the labels of each image, or None, and the sums of all images, (rows, size)."""
        if self.labels is None:
            values = np.zeros((*self.batch, size), np.int64)
            for images, own in sums.items():
                values[work.partition.box(images)] = own
            return None, values.reshape((-1, size))
        dtype = self.labels
        empty = np.zeros((0, 1 + size), np.int64)
        tables = [sums.get(images, empty) for images in np.ndindex(*self.batch)]
        rows = np.concatenate([values_of(table, order=dtype) for table in tables])
        return [labels_of(table, order=dtype) for table in tables], rows

    def curves_of_result(
        self, result: CurveResult[Any], labels: Sequence[Array] | None = None
    ) -> Curves:
        """Return the curves of a result: one for each image, or for each of its labels."""
        at = result.thresholds
        heads = dict(self.heads)
        if labels is not None:
            counts = [len(own) for own in labels]
            heads = {name: np.repeat(column, counts) for name, column in heads.items()}
            heads["label"] = np.concatenate(labels)
        columns = {}
        for name, values in result.by_name().items():
            curves = math.prod(values.shape[:-1])
            columns[name] = values.reshape((curves, at.size))
        numbers = at.astype(np.uint8) if at.dtype == np.bool_ else at
        return Curves(self.image["path"], numbers, heads, columns)

    def described(self, curves: Curves) -> dict[str, Any]:
        """Return the metadata from which `ecc_core.io.read_result` makes a result.

        They are empty for labels along batch axes, and without the Euler characteristic.
        """
        labels = curves.heads.get("label")
        if (labels is not None and self.batch) or EULER_NUMBER not in curves.measures:
            return {}
        facts = curve_facts(replace(self.filtration, direction=self.direction))
        facts["density"] = self.settings["density"]
        if self.direction:
            facts["spacing_units"] = self.image["unit"]
        at = curves.thresholds
        values = curves.measures[EULER_NUMBER]
        result: CurveResult[Any]
        if labels is None:
            result = EulerCurve(at, values.reshape((*self.batch, at.size)), **facts)
        else:
            result = RegionCurves(labels, at, values, **known_by(RegionCurves, facts))
        return {"result": describe_result(result)}

    def table(self, curves: Curves) -> Table:
        """Return the table of all curves of an image."""
        axes = self.image["axes"][: len(self.batch)].lower()
        columns = columns_of([curves], axes)
        del columns["input"]
        add_facts(columns, self.arguments, self.image["unit"] or "")
        metadata = {
            "software": self.software,
            "settings": self.settings | {"thresholds": plain(curves.thresholds)},
            "inputs": [self.image],
            **self.described(curves),
        }
        return Table(columns, metadata)

    def to_json(self) -> dict[str, Any]:
        """Return the job as types that JSON supports."""
        filtration = self.filtration
        direction = self.direction
        return {
            "image": self.image,
            "settings": self.settings,
            "software": self.software,
            "filtration": {
                "ndim": filtration.ndim,
                "connectivity": filtration.connectivity,
                "superlevel": filtration.superlevel,
                "nan": filtration.nan,
                "boundary": filtration.boundary.name,
            },
            "direction": None if direction is None else astuple(direction),
            "dtype": self.dtype.str,
            "masked": self.masked,
            "labels": None if self.labels is None else self.labels.str,
            "windows": self.windows,
            "heads": {name: [of.dtype.str, of.tolist()] for name, of in self.heads.items()},
            "thresholds": [self.thresholds.dtype.str, self.thresholds.tobytes().hex()],
            "chunks": self.chunks,
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> StackJob:
        """Return the job that `to_json` described."""
        given = dict(facts["filtration"])
        boundary = given["boundary"]
        given["boundary"] = boundary if isinstance(boundary, str) else tuple(boundary)
        direction = None
        if facts["direction"] is not None:
            vector, scale, spacing, shape = facts["direction"]
            direction = Direction(tuple(vector), scale, tuple(spacing), tuple(shape))
        dtype, content = facts["thresholds"]
        heads = facts["heads"]
        return cls(
            image=facts["image"],
            settings=facts["settings"],
            software=facts["software"],
            filtration=filtration_of(**given),
            direction=direction,
            dtype=np.dtype(facts["dtype"]),
            masked=facts["masked"],
            labels=None if facts["labels"] is None else np.dtype(facts["labels"]),
            windows=facts["windows"],
            heads={name: np.array(column, kind) for name, (kind, column) in heads.items()},
            thresholds=np.frombuffer(bytes.fromhex(content), dtype).copy(),
            chunks=tuple(map(tuple, facts["chunks"])),
        )


def _side_by_side(first: Values, second: Values) -> Values:
    return np.concatenate([first, second], axis=-1)
