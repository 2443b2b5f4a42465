"""Labels layers of the components of a set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import generate_binary_structure, label

from napari_ecc._controller.curves import Field
from napari_ecc._controller.history import History
from napari_ecc._controller.layers import Selection, is_lazy
from napari_ecc._controller.overlays import embedded
from napari_ecc._model.explorer import ExplorerModel
from napari_ecc._workers import Runner, Step

__all__ = ["LabelsMaker"]


class LabelsMaker:
    """Makes Labels layers in the background.

    Parameters
    ----------
    viewer : napari.viewer.Viewer
    history : History
        Where the layers can be taken back.

    Attributes
    ----------
    runner : Runner
        Does the labelling.
    """

    def __init__(self, viewer: Any, history: History) -> None:
        self._viewer = viewer
        self._history = history
        self.runner = Runner("Labels")

    def make(self, image: Any, selection: Selection, field: Field, model: ExplorerModel) -> None:
        """Add a Labels layer of the components of the set at the model's threshold.

        Data that are not in memory give one label for all of the set, as lazily as they are.
        """
        threshold, superlevel, connectivity = model.threshold, model.superlevel, model.connectivity
        name = f"{image.name} {'≥' if superlevel else '≤'} {threshold:.6g}"

        def job() -> Iterator[Step]:
            if is_lazy(field.data):
                yield Step(_lazy_set(field, threshold, superlevel))
            else:
                whole = field.rows(0, field.data.shape[0], threshold, superlevel)
                structure = generate_binary_structure(whole.ndim, connectivity or whole.ndim)
                yield Step(label(whole, structure)[0])

        def on_step(step: Step) -> None:
            self._add(step.value, image, selection, name)

        self.runner.submit(job, on_step)

    def _add(self, labels: NDArray[Any], image: Any, selection: Selection, name: str) -> None:
        layer = self._viewer.add_labels(name=name, **embedded(labels, image, selection))

        def undo() -> None:
            if layer in self._viewer.layers:
                self._viewer.layers.remove(layer)

        self._history.add("Make Labels", undo)


def _lazy_set(field: Field, threshold: float, superlevel: bool) -> Any:
    inside = field.data >= threshold if superlevel else field.data <= threshold
    return (inside if field.mask is None else inside & field.mask).astype(np.uint8)
