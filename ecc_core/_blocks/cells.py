"""Numbers of cells of an image, block by block.

They add up over blocks as curves do, if the boxes of all terms keep the axes of the image: a box of
thickness 1 has cells without extent across it. The shares of the V-construction serve groups of
points and the T-construction too, except for half-open windows of the latter. Along an axis of
points 0 to n-1 these leave out the faces before the first cube, which the shares count, and not
those between the last two cubes, which the shares count as if the last cube were alone. With f(p)
for the faces of the points p on one side, the difference is f(n-1) - f(0), where f(p) is twice the
cells of p, of thickness 1, less those of p repeated to a thickness of 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import on_host
from ecc_core._arrays.origin import origin_of
from ecc_core._backends.borders import closed
from ecc_core._blocks.planes import BlockSums, Box, Face, crossing_terms, faces_of
from ecc_core._blocks.regions import table_with_terms
from ecc_core._blocks.work import Index, Work
from ecc_core._request.estimator import Estimator, estimator_of
from ecc_core._request.filtration import Filtration

__all__ = ["CellSettings", "CellWork", "work_of"]

Array = NDArray[Any]
Values = NDArray[np.int64]
Faces = Sequence[Sequence[Face]]


class CellSettings(NamedTuple):
    """How cells are counted, as curves of all kinds of cells one after the other."""

    thresholds: Array
    filtration: Filtration
    estimators: tuple[Estimator, ...]

    @classmethod
    def of(cls, thresholds: Array, filtration: Filtration, name: str, spacing: Any) -> CellSettings:
        """The settings of an estimator, and of the exact one for the Euler characteristic."""
        chosen = estimator_of(name, spacing, filtration)
        others = () if chosen.exact else (estimator_of("exact", spacing, filtration),)
        return cls(thresholds, filtration, (chosen, *others))

    @property
    def size(self) -> int:
        """Values of a point of the batch axes, or of a label."""
        return sum(self.sizes)

    @property
    def sizes(self) -> list[int]:
        """Values of each estimator."""
        return [len(one.cells.groups) * self.thresholds.size for one in self.estimators]

    def curve(self, *box: Array) -> Values:
        """Numbers of cells of each image of a box on its own, (images, n)."""
        return np.concatenate([self.counts(box, one) for one in self.estimators], axis=1)

    def counts(self, box: Box, estimator: Estimator) -> Values:
        """As `curve` for one estimator."""
        image, *mask = box
        shown = mask[0] if mask else None
        whole = closed(self.filtration, self.filtration.ndim)
        counts: Values = (
            origin_of(image)
            .cell_counts()
            .cell_counts(image, self.thresholds, estimator.cells, whole, mask=shown, workers=1)
        )
        return counts.reshape((len(image), counts.shape[1] * counts.shape[2]))

    def region_curves(self, image: Array, labels: Array) -> tuple[Array, Values]:
        """Labels of a box without a batch axis, and their numbers of cells, (labels, n)."""
        backend = origin_of(image).cell_counts()
        found = [
            backend.region_cell_counts(
                image, labels, self.thresholds, one.cells, self.filtration, workers=1
            )
            for one in self.estimators
        ]
        rows = [
            counts.reshape((len(counts), n))
            for (_, counts), n in zip(found, self.sizes, strict=True)
        ]
        return on_host(found[0][0]), np.concatenate(rows, axis=1)


class CellWork(Work):
    """Numbers of cells of an image, or a table of those of its regions."""

    settings: CellSettings

    def share(self, block: Index, emitted: Sequence[BlockSums]) -> Values:
        """Return the contribution of a block."""
        own, place, settings = emitted[0], self.place(block), self.settings
        faces = faces_of(place, 1)
        if self.regions:
            return table_with_terms(own, crossing_terms(emitted, place.after, faces), settings)
        parts = np.split(own.own, np.cumsum(settings.sizes)[:-1], axis=1)
        for i, estimator in enumerate(settings.estimators):
            kept = faces if estimator.cells.every else self._with_outer_faces(block, faces)
            for sign, box in crossing_terms(emitted, place.after, kept):
                parts[i] = parts[i] + sign * settings.counts(box, estimator)
        values = np.concatenate(parts, axis=1)
        return values.reshape((*own.batch, values.shape[1]))

    def _with_outer_faces(self, block: Index, faces: Faces) -> Faces:
        """Faces of a block of cubes, with those on the outside of a half-open window."""
        if not self.settings.filtration.boundary.is_window:
            return faces
        found = []
        at, counts = block[self.lead :], self.counts[self.lead :]
        for i, count, own in zip(at, counts, faces, strict=True):
            first = [Face(-2, 0), Face(1, 0, thickness=2)] if i == 0 else []
            last = [Face(2, -1), Face(-1, -1, thickness=2)] if i == count - 2 else []
            found.append([*own, *first, *last])
        return found


def work_of(read: Any, chunks: Any, settings: Any, *, regions: bool = False) -> Work:
    """Return what is computed of the blocks of an image, for given settings."""
    kind = CellWork if isinstance(settings, CellSettings) else Work
    return kind(read, chunks, settings.filtration.ndim, settings, regions=regions)
