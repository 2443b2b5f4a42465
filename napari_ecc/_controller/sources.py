"""Requests for the explorer's curve."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

from napari_ecc._controller.code import call
from napari_ecc._controller.curves import Progress, Request, compute_curve
from napari_ecc._controller.layers import Selection, part_in_words
from napari_ecc._controller.loading import describe, device_name
from napari_ecc._controller.warming import prepared
from napari_ecc._workers import Step


class Source(NamedTuple):
    """The request of a curve and its progress."""

    layer: Any
    selection: Selection
    options: dict[str, Any]
    """Keyword arguments of `napari_ecc.actions.layer_curve`."""
    request: Request
    progress: Progress

    @property
    def name(self) -> str:
        """The layer and the part of it."""
        return f"{self.layer.name}, {part_in_words(self.layer, self.selection.where)}"

    def steps(self) -> Iterator[Step]:
        """Compute the curve; `progress` has the time that it takes, without compiling kernels."""
        yield from prepared("curve", self.request.levels[-1])
        start = time.perf_counter()
        with closing(compute_curve(self.request, self.progress)) as steps:
            for step in steps:
                self.progress.seconds = time.perf_counter() - start
                yield step

    def in_words(self, data: Any) -> str:
        """Shape and dtype of what was computed, the time it took and the device."""
        seconds = self.progress.seconds
        spent = f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
        return f"{describe(data.shape)}, {data.dtype} · {spent} · {device_name() or 'CPU'}"

    def code(self, target: str, action: str, **options: Any) -> str:
        """A statement that calls one of `napari_ecc.actions` on the same part."""
        part = self.selection.where
        return call(target, action, self.layer, **self.options, part=part, **options)
