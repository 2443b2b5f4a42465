"""A line in the canvas around the selected object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.ndimage import binary_dilation, find_objects

from napari_ecc._controller.direction_overlays import COLOUR
from napari_ecc._controller.layers import Part, Selection, selection_of
from napari_ecc._controller.loading import Level, fitting_level, load
from napari_ecc._controller.overlays import LabelsOverlay
from napari_ecc._workers import Runner, Step

__all__ = ["ObjectMarker", "outline"]

LINE = 1 / 200
"""Width of the line as a share of the longest side of the image."""

NAME = "selected object"


def outline(level: Level, label: int) -> Iterator[Step]:
    """Find the points next to an object.

    Yields
    ------
    Step
        The value of the last is None if there is no such object; otherwise a pair: where a bool
        array begins, and the array, which is true at those points.
    """
    labels = yield from load(level.array)
    inside = labels == label
    found = find_objects(inside.view(np.uint8))
    if not found:
        yield Step(None)
        return
    width = max(1, round(LINE * max(labels.shape)))
    box = tuple(
        slice(max(at.start - width, 0), min(at.stop + width, size))
        for at, size in zip(found[0], labels.shape, strict=True)
    )
    cut = inside[box]
    around = binary_dilation(cut, iterations=width) & ~cut
    yield Step((tuple(at.start for at in box), around))


class ObjectMarker(LabelsOverlay):
    """A Labels layer of the points next to an object, so that the object itself stays visible.

    Attributes
    ----------
    runner : Runner
        Looks for the object.
    """

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer)
        self.runner = Runner("Selected object")

    def close(self) -> None:
        """Remove the outline and disconnect."""
        self.runner.close()
        super().close()

    def clear(self) -> None:
        """Remove the outline."""
        self.runner.cancel()
        self.remove_soon()

    def mark(self, layer: Any, part: Part, label: int) -> None:
        """Outline an object of a part of a Labels layer."""
        selection = selection_of(layer, part)
        level = fitting_level(selection, layer.name)
        self.runner.submit(
            lambda: outline(level, label),
            lambda step: self._on_outline(layer, selection, level, step.value),
        )

    def _on_outline(self, layer: Any, selection: Selection, level: Level, found: Any) -> None:
        if found is None:
            return
        start, around = found
        look: dict[str, Any] = {"name": NAME, "colour": COLOUR, "opacity": 0.9}
        self.show(layer, around, selection, level.spacing, start=start, **look)
